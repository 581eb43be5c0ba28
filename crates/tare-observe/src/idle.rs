//! Idle time of a CPU to the nanosecond, and what one idle period costs beside it.

use tare_sys::perf::Switch;

/// What `/proc/timer_list` tells about one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IdleState {
    pub(crate) cpu: u32,
    /// Idle and iowait time of the idle periods that have ended.
    slept_ns: u64,
    /// When idle time was last begun or added.
    entry_ns: u64,
    /// The tick is stopped: the CPU is idle right now.
    tick_stopped: bool,
    /// When the list was printed.
    pub(crate) now_ns: u64,
}

impl IdleState {
    /// Idle time up to now. `coarse_ns` is the same from `/proc/stat`, rounded down: once for idle and once
    /// for iowait, each by less than `step_ns`. A short idle period leaves the tick running, so whether one is
    /// open can only be told from there.
    pub(crate) fn idle_ns(&self, coarse_ns: Option<u64>, step_ns: u64) -> u64 {
        let open_ns = if self.tick_stopped { self.now_ns.saturating_sub(self.entry_ns) } else { 0 };
        let idle_ns = self.slept_ns.saturating_add(open_ns);
        match coarse_ns {
            Some(coarse_ns) => idle_ns.clamp(coarse_ns, coarse_ns.saturating_add(2 * step_ns)),
            None => idle_ns,
        }
    }
}

/// Reads `/proc/timer_list`; a CPU of which a number is missing is left out.
pub(crate) fn parse_timer_list(text: &str) -> Vec<IdleState> {
    let now_ns = text.lines().find_map(|line| number(line.strip_prefix("now at ")?));
    let Some(now_ns) = now_ns else { return Vec::new() };
    // Behind the CPUs stand the tick devices, each of which starts with this.
    let cpus = text.split("Tick Device:").next().unwrap_or_default();
    cpus.split("\ncpu: ").skip(1).filter_map(|section| parse_cpu(section, now_ns)).collect()
}

fn parse_cpu(section: &str, now_ns: u64) -> Option<IdleState> {
    let field = |name: &str| {
        let line = section.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
        number(line.trim_start().strip_prefix(':')?)
    };
    Some(IdleState {
        cpu: section.lines().next()?.trim().parse().ok()?,
        slept_ns: field(".idle_sleeptime")?.checked_add(field(".iowait_sleeptime")?)?,
        entry_ns: field(".idle_entrytime")?,
        tick_stopped: field(".tick_stopped")? == 1,
        now_ns,
    })
}

/// `123 nsecs` or `123`.
fn number(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.parse().ok()
}

/// How long the idle task was the current one within `[begin_ns, end_ns]`, and how often it gave the CPU away.
/// `switches` holds every switch to or from it, in time order. Without any, it cannot be told who was current.
pub(crate) fn idle_current(switches: &[Switch], begin_ns: u64, end_ns: u64) -> Option<(u64, u64)> {
    let inside = |at_ns: u64| at_ns.clamp(begin_ns, end_ns);
    let (mut total_ns, mut exits) = (0u64, 0u64);
    // A first switch away from the idle task ends a period that was open at the beginning.
    let mut since = (switches.first()?.prev_pid == 0).then_some(begin_ns);
    for switch in switches {
        match (switch.prev_pid == 0, since) {
            (true, Some(start)) => {
                total_ns += inside(switch.at_ns).saturating_sub(inside(start));
                exits += u64::from((begin_ns..=end_ns).contains(&switch.at_ns));
                since = None;
            }
            (false, None) => since = Some(switch.at_ns),
            // One was missed: from where to where is not known, so the period is left out.
            (true, None) => {}
            (false, Some(_)) => since = Some(switch.at_ns),
        }
    }
    if let Some(start) = since {
        total_ns += end_ns.saturating_sub(inside(start));
    }
    Some((total_ns, exits))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIST: &str = "Timer List Version: v0.10\nnow at 1000000500 nsecs\n\ncpu: 0\n clock 0:\n\
        active timers:\n #0: x\n  .tick_stopped   : 1\n  .idle_entrytime : 1000000200 nsecs\n\
        \x20 .idle_sleeptime : 700000000 nsecs\n  .iowait_sleeptime: 5 nsecs\n\ncpu: 3\n  .tick_stopped   : 0\n\
        \x20 .idle_entrytime : 1000000200 nsecs\n  .idle_sleeptime : 900000000 nsecs\n  .iowait_sleeptime: 0 nsecs\n\
        \ncpu: 4\n  .idle_sleeptime : 1 nsecs\n\nTick Device: mode:     1\n";

    #[test]
    fn open_idle_periods_count_while_the_tick_is_stopped() {
        let states = parse_timer_list(LIST);
        assert_eq!(states.iter().map(|state| state.cpu).collect::<Vec<_>>(), [0, 3]);
        assert_eq!(states[0].idle_ns(None, 10), 700_000_305);
        assert_eq!(states[1].idle_ns(None, 10), 900_000_000);
        // The coarse figure bounds what the tick cannot tell.
        assert_eq!(states[1].idle_ns(Some(900_000_100), 10), 900_000_100);
        assert_eq!(states[0].idle_ns(Some(700_000_000), 10), 700_000_020);
    }

    fn switch(at_ns: u64, prev_pid: u32) -> Switch {
        Switch { at_ns, prev_pid, next_pid: if prev_pid == 0 { 9 } else { 0 } }
    }

    #[test]
    fn periods_are_cut_at_the_window() {
        let switches = [switch(10, 0), switch(30, 9), switch(40, 0), switch(90, 9)];
        assert_eq!(idle_current(&switches, 0, 100), Some((10 + 10 + 10, 2)));
        assert_eq!(idle_current(&switches, 35, 95), Some((5 + 5, 1)));
        assert_eq!(idle_current(&[switch(50, 9)], 0, 100), Some((50, 0)));
        assert_eq!(idle_current(&[], 0, 100), None);
    }

    proptest! {
        #[test]
        fn idle_never_exceeds_the_window(
            steps in proptest::collection::vec((0u64..50, 0u32..3), 0..40),
            begin_ns in 0u64..100,
            length_ns in 0u64..1000,
        ) {
            let mut at_ns = 0;
            let mut switches = Vec::new();
            for (step, prev) in steps {
                at_ns += step;
                switches.push(switch(at_ns, prev));
            }
            if let Some((idle_ns, exits)) = idle_current(&switches, begin_ns, begin_ns + length_ns) {
                prop_assert!(idle_ns <= length_ns);
                prop_assert!(exits as usize <= switches.len());
            }
        }

        #[test]
        fn garbage_is_no_cpu(text in "\\PC{0,120}") {
            prop_assert_eq!(parse_timer_list(&text), vec![]);
        }

        #[test]
        fn a_list_cut_anywhere_is_read_as_far_as_it_goes(cut in 0..LIST.len()) {
            prop_assert!(parse_timer_list(&LIST[..cut]).len() <= 2);
        }
    }
}
