//! What the kernel counts of settings that act on packets: of the whole machine, while an arm runs.

use tare_machine::Root;

/// The column of `/proc/net/softnet_stat` (hexadecimal, a line for each CPU) with how often a CPU was woken for packets that
/// another one got: `received_rps` of net/core/net-procfs.c.
const RECEIVED_RPS: usize = 9;
/// The counter of packets that were got by busy polling, in `/proc/net/netstat`.
const BUSY_PACKETS: &str = "BusyPollRxPackets";

/// Counts since the machine was started, or what was added to them; `None`: not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// How often CPUs were woken for packets that another one got (RPS, RFS).
    pub rps_wakeups: Option<u64>,
    /// Packets that were got by busy polling.
    pub busy_packets: Option<u64>,
}

impl Counts {
    /// As they stand now.
    pub fn read(root: &Root) -> Counts {
        let softnet = root.text("/proc/net/softnet_stat");
        let netstat = root.text("/proc/net/netstat");
        Counts {
            rps_wakeups: softnet.ok().and_then(|text| received_rps(&text)),
            busy_packets: netstat.ok().and_then(|text| extended(&text, BUSY_PACKETS)),
        }
    }

    /// What was added since `before`.
    pub fn since(self, before: Counts) -> Counts {
        let added = |now: Option<u64>, before: Option<u64>| now?.checked_sub(before?);
        Counts {
            rps_wakeups: added(self.rps_wakeups, before.rps_wakeups),
            busy_packets: added(self.busy_packets, before.busy_packets),
        }
    }

    /// Those of two runs together.
    pub fn and(self, other: Counts) -> Counts {
        let both = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        Counts {
            rps_wakeups: both(self.rps_wakeups, other.rps_wakeups),
            busy_packets: both(self.busy_packets, other.busy_packets),
        }
    }
}

/// The sum over all CPUs; the counts of the kernel are of 32 bits and may start again.
fn received_rps(text: &str) -> Option<u64> {
    let of_cpu = |line: &str| {
        let field = line.split_ascii_whitespace().nth(RECEIVED_RPS)?;
        u64::from_str_radix(field, 16).ok()
    };
    let mut lines = text.lines().map(of_cpu).peekable();
    lines.peek()?;
    lines.try_fold(0_u64, |sum, count| Some(sum.saturating_add(count?)))
}

/// A counter of `/proc/net/netstat`: a line of names, and one of values behind it.
fn extended(text: &str, name: &str) -> Option<u64> {
    let lines: Vec<&str> = text.lines().collect();
    lines.chunks(2).find_map(|pair| {
        let [names, values] = pair else { return None };
        let at = names.split_ascii_whitespace().position(|known| known == name)?;
        values.split_ascii_whitespace().nth(at)?.parse().ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOFTNET: &str = "\
00000019 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000010 00000000 00000000 00000000 00000000 00000000
00001829 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000001 00000000 00000000 00000001 00000000 00000000
";
    const NETSTAT: &str =
        "TcpExt: SyncookiesSent BusyPollRxPackets\nTcpExt: 3 41\nIpExt: InNoRoutes\nIpExt: 0\n";

    #[test]
    fn counters_are_found_by_their_place_and_name() {
        assert_eq!(received_rps(SOFTNET), Some(17));
        assert_eq!(extended(NETSTAT, BUSY_PACKETS), Some(41));
        // Of kernels that have not so many columns, or not that name, nothing is known.
        assert_eq!(received_rps("00000019 00000000\n"), None);
        assert_eq!((received_rps(""), extended("", BUSY_PACKETS)), (None, None));
        assert_eq!(extended("TcpExt: A\nTcpExt: 1\n", BUSY_PACKETS), None);
        assert_eq!(extended("TcpExt: A BusyPollRxPackets\n", BUSY_PACKETS), None);
    }

    #[test]
    fn what_was_added_is_known_where_both_ends_are() {
        let at = |rps, busy| Counts { rps_wakeups: rps, busy_packets: busy };
        assert_eq!(at(Some(9), Some(3)).since(at(Some(4), None)), at(Some(5), None));
        // It has started again.
        assert_eq!(at(Some(2), None).since(at(Some(4), None)), Counts::default());
        assert_eq!(at(Some(2), None).and(at(Some(4), Some(1))), at(Some(6), Some(1)));
    }

    #[test]
    fn this_machine_has_both() {
        let now = Counts::read(&Root::live());
        assert!(now.rps_wakeups.is_some() && now.busy_packets.is_some(), "{now:?}");
    }
}
