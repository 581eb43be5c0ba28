//! Idle time of a CPU to the nanosecond.

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
    /// open is only known from there.
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

    proptest! {
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
