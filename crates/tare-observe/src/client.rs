//! The network namespace of our own generator: its ports, and how its end acknowledges.

use crate::network::named;
use crate::numbers::{Found, Number, Whose, observer};
use crate::observer::Observer;
use crate::scene::Scene;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::client;

/// Samples per second between the edges: as often as the SUT's own counters.
const SAMPLE_HZ: f64 = 10.0;
const FILE_BYTES_MAX: usize = 64 << 10;
/// For a file of `/proc/sys` the kernel clears a buffer as large as it is asked for.
const SYSCTL_BYTES_MAX: usize = 64;

pub(crate) fn open(_scene: &Scene) -> Box<dyn Observer> {
    observer(find, SAMPLE_HZ)
}

fn find(scene: &Scene) -> Found {
    let mut found = Found::default();
    let mut file =
        |metric: &'static Descriptor, path: &str, bytes_max: usize, parse: fn(&str) -> Option<u64>| {
            let number = Number {
                metric,
                whose: Whose::Subject(Subject::Machine),
                parse: Box::new(move |text| parse(text).map(|count| count as f64)),
                rare: true,
            };
            found.file(scene, path, bytes_max, vec![number]);
        };
    file(&client::DELAYED_ACKS, "/proc/self/net/netstat", FILE_BYTES_MAX, |text| {
        named(text, "TcpExt:", "DelayedACKs")
    });
    file(&client::TIME_WAIT, "/proc/self/net/sockstat", FILE_BYTES_MAX, time_wait);
    file(&client::PORTS, "/proc/sys/net/ipv4/ip_local_port_range", SYSCTL_BYTES_MAX, ports);
    found
}

/// `TCP: inuse 7 orphan 0 tw 3 alloc 9 mem 1`.
fn time_wait(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("TCP: "))?;
    let mut words = line.split_ascii_whitespace();
    words.find(|word| *word == "tw").and_then(|_| words.next()?.parse().ok())
}

/// `32768\t60999`, both of which may be used.
fn ports(text: &str) -> Option<u64> {
    let mut ends = text.split_ascii_whitespace().map_while(|end| end.parse::<u64>().ok());
    let (first, last) = (ends.next()?, ends.next()?);
    last.checked_sub(first).filter(|_| last <= u64::from(u16::MAX)).map(|between| between + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ports_and_those_that_wait_are_counted() {
        assert_eq!(time_wait("sockets: used 9\nTCP: inuse 7 orphan 0 tw 31 alloc 9 mem 1\n"), Some(31));
        assert_eq!(time_wait("UDP: inuse 7 tw 3\n"), None);
        assert_eq!(ports("32768\t60999\n"), Some(28_232));
        assert_eq!((ports("5 4"), ports("1 99999"), ports("7")), (None, None, None));
    }

    proptest! {
        #[test]
        fn garbage_is_no_count(text in "\\PC{0,80}") {
            prop_assert_eq!(time_wait(&text), None);
            ports(&text);
        }
    }
}
