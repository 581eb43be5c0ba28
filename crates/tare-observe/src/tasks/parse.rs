//! The files of a thread, from text to numbers.

use crate::scene::USER_TICK_NS;
use crate::tape::Reading;

/// What of `/proc/PID/task/TID/stat` is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TaskStat {
    pub(super) name: String,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
    pub(super) user_ns: u64,
    pub(super) system_ns: u64,
    /// Of children that were waited for.
    pub(super) children_user_ns: u64,
    pub(super) children_system_ns: u64,
    pub(super) last_cpu: u64,
}

pub(super) fn parse_stat(text: &str) -> Option<TaskStat> {
    let (_, rest) = text.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace();
    // `nth` counts on from the last one taken: the field numbers of proc(5) are behind.
    let mut skip = |count: usize| fields.nth(count)?.parse::<u64>().ok();
    let minor_faults = skip(7)?; // 10
    let major_faults = skip(1)?; // 12
    let user = skip(1)?; // 14
    let system = skip(0)?; // 15
    let children_user = skip(0)?; // 16
    let children_system = skip(0)?; // 17
    let last_cpu = skip(21)?; // 39
    Some(TaskStat {
        name: name.to_string(),
        minor_faults,
        major_faults,
        user_ns: user.checked_mul(USER_TICK_NS)?,
        system_ns: system.checked_mul(USER_TICK_NS)?,
        children_user_ns: children_user.checked_mul(USER_TICK_NS)?,
        children_system_ns: children_system.checked_mul(USER_TICK_NS)?,
        last_cpu,
    })
}

/// Run and wait, nanoseconds.
pub(super) fn parse_schedstat(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.split_ascii_whitespace();
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// A reading of `/proc/PID/task/TID/schedstat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Schedstat {
    pub(super) at_ns: u64,
    pub(super) run_ns: u64,
    pub(super) wait_ns: u64,
    /// How often it was given a CPU.
    pub(super) slices: u64,
}

impl Schedstat {
    pub(super) fn of(reading: &Reading) -> Option<Schedstat> {
        let (run_ns, wait_ns) = parse_schedstat(reading.text())?;
        let slices = reading.text().split_ascii_whitespace().nth(2)?.parse().ok()?;
        Some(Schedstat { at_ns: reading.at_ns, run_ns, wait_ns, slices })
    }

    /// Time that it ran or wanted to.
    pub(super) fn used_ns(self) -> u64 {
        self.run_ns.saturating_add(self.wait_ns)
    }
}

/// Voluntary and involuntary context switches.
pub(super) fn parse_status_switches(text: &str) -> Option<(u64, u64)> {
    let field = |name: &str| {
        let line = text.lines().rev().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    Some((field("voluntary_ctxt_switches:")?, field("nonvoluntary_ctxt_switches:")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &str = "71 (a) b) S 1 71 71 0 -1 4194560 100 101 102 103 14 15 16 17 20 0 3 0 4567 1000 10 \
        18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1 0 0 0 0 0";

    fn reading(text: &str) -> Reading<'_> {
        Reading { at_ns: 7, source: 0, bytes: text.as_bytes() }
    }

    #[test]
    fn numbers_stand_where_proc_5_says() {
        let stat = parse_stat(STAT).unwrap();
        let wanted = TaskStat {
            name: "a) b".into(),
            minor_faults: 100,
            major_faults: 102,
            user_ns: 140_000_000,
            system_ns: 150_000_000,
            children_user_ns: 160_000_000,
            children_system_ns: 170_000_000,
            last_cpu: 1,
        };
        assert_eq!(stat, wanted);
        assert_eq!(parse_schedstat("12 34 5\n"), Some((12, 34)));
        let schedstat = Schedstat::of(&reading("12 34 5\n"));
        assert_eq!(schedstat, Some(Schedstat { at_ns: 7, run_ns: 12, wait_ns: 34, slices: 5 }));
        assert!(
            schedstat.is_some_and(|schedstat| schedstat.used_ns() == 46)
                && Schedstat::of(&reading("12 34")).is_none()
        );
        let status = "Name:\tx\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t8\n";
        assert_eq!(parse_status_switches(status), Some((7, 8)));
    }

    proptest! {
        #[test]
        fn a_cut_or_garbled_file_is_refused_or_right(cut in 0..STAT.len(), text in "\\PC{0,80}") {
            parse_stat(&text);
            parse_schedstat(&text);
            Schedstat::of(&reading(&text));
            parse_status_switches(&text);
            if let Some(stat) = parse_stat(&STAT[..cut]) {
                prop_assert_eq!(stat.user_ns, 140_000_000);
            }
        }
    }
}
