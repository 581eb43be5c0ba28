//! TCP and the receive path of the SUT's network namespace.

use crate::observed::{Observed, changes, refused};
use crate::observer::{Edge, Observer};
use crate::scene::Scene;
use crate::tape::Tape;
use std::fs::File;
use tare_model::Missing;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::network;
use tare_model::observation::Sample;

/// Samples per second between the edges: the kernel adds up the counters of all CPUs for each.
const SAMPLE_HZ: f64 = 10.0;

const FILE_BYTES_MAX: usize = 64 << 10;

const NETSTAT: u32 = 0;
const SNMP: u32 = 1;
const SOFTNET: u32 = 2;
const FILES: [&str; 3] = ["netstat", "snmp", "softnet_stat"];

/// Metric, file, and the names that the value stands under.
static NAMED: &[(&Descriptor, u32, &str, &str)] = &[
    (&network::LISTEN_OVERFLOWS, NETSTAT, "TcpExt:", "ListenOverflows"),
    (&network::LISTEN_DROPS, NETSTAT, "TcpExt:", "ListenDrops"),
    (&network::DELAYED_ACKS, NETSTAT, "TcpExt:", "DelayedACKs"),
    (&network::RETRANSMITS, SNMP, "Tcp:", "RetransSegs"),
    (&network::SEGMENTS_IN, SNMP, "Tcp:", "InSegs"),
    (&network::SEGMENTS_OUT, SNMP, "Tcp:", "OutSegs"),
];

/// Metric and column of `softnet_stat`.
static PER_CPU: &[(&Descriptor, usize)] =
    &[(&network::SOFTNET_PACKETS, 0), (&network::SOFTNET_DROPS, 1), (&network::SOFTNET_SQUEEZES, 2)];

struct Network {
    files: Vec<(u32, Result<File, Missing>)>,
    tape: Tape,
}

pub(crate) fn open(_scene: &Scene) -> Box<dyn Observer> {
    Box::new(Network { files: Vec::new(), tape: Tape::default() })
}

impl Observer for Network {
    fn prepare(&mut self, scene: &Scene) {
        self.tape.clear();
        // The SUT's own namespace where it is seen: its listener's overflows are counted there.
        let whose = scene.watch.sut_pids.first().map_or("self".to_string(), u32::to_string);
        let open = |name: &&str| {
            let path = format!("/proc/{whose}/net/{name}");
            File::open(scene.root.path(&path)).map_err(|error| refused(&path, &error))
        };
        self.files = (0u32..).zip(FILES.iter().map(open)).collect();
    }

    fn edge(&mut self, _edge: &mut Edge) {
        self.read();
    }

    fn sample(&mut self, scene: &Scene, tick: u64) {
        if tick.is_multiple_of(scene.every(SAMPLE_HZ)) {
            self.read();
        }
    }

    fn next(&self, scene: &Scene, tick: u64) -> u64 {
        scene.next(SAMPLE_HZ, tick)
    }

    fn report(&mut self, scene: &Scene, observed: &mut Observed) {
        let why = |files: &[(u32, Result<File, Missing>)], source: u32, otherwise: &str| {
            let file = files.iter().find(|(known, _)| *known == source);
            file.and_then(|(_, file)| file.as_ref().err().cloned()).unwrap_or_else(|| Missing::new(otherwise))
        };
        for &(metric, source, group, name) in NAMED {
            let readings = self.tape.readings().filter(|reading| reading.source == source);
            let samples: Vec<Sample> = readings
                .filter_map(|reading| {
                    Some(Sample { at_ns: reading.at_ns, value: named(reading.text(), group, name)? as f64 })
                })
                .collect();
            if samples.is_empty() {
                let reason = why(&self.files, source, &format!("this kernel does not count {name}"));
                observed.absent(metric, None, reason);
            }
            observed.column(metric, Subject::Machine, changes(samples));
        }
        let online = tare_machine::facts::online_cpus(&scene.root).unwrap_or_default();
        for &(metric, column) in PER_CPU {
            let mut found = false;
            for (row, &cpu) in online.iter().enumerate() {
                let readings = self.tape.readings().filter(|reading| reading.source == SOFTNET);
                let samples: Vec<Sample> = readings
                    .filter_map(|reading| {
                        let value = softnet(reading.text(), cpu, row, column)?;
                        Some(Sample { at_ns: reading.at_ns, value: value as f64 })
                    })
                    .collect();
                found |= !samples.is_empty();
                observed.column(metric, Subject::Cpu(cpu), changes(samples));
            }
            if !found {
                observed.absent(metric, None, why(&self.files, SOFTNET, "softnet_stat lists no CPU"));
            }
        }
    }
}

impl Network {
    fn read(&mut self) {
        for (source, file) in &mut self.files {
            let outcome = file.as_ref().ok().map(|file| match *source {
                SOFTNET => self.tape.record_all(SOFTNET, file),
                // One record each, which the kernel gives in one piece.
                _ => self.tape.record(*source, file, FILE_BYTES_MAX),
            });
            if let Some(Err(error)) = outcome {
                *file = Err(refused(FILES[*source as usize], &error));
            }
        }
    }
}

/// Two lines start with `group`: names, then numbers in the same order.
pub(crate) fn named(text: &str, group: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(group));
    let names = lines.next()?.split_ascii_whitespace();
    let mut values = lines.next()?.split_ascii_whitespace();
    let at = names.into_iter().position(|known| known == name)?;
    values.nth(at)?.parse().ok()
}

/// One row per online CPU, hexadecimal; since Linux 5.10 the 13th column is the CPU's number.
fn softnet(text: &str, cpu: u32, row: usize, column: usize) -> Option<u64> {
    const CPU_COLUMN: usize = 12;
    let number = |line: &str, at: usize| u64::from_str_radix(line.split_ascii_whitespace().nth(at)?, 16).ok();
    let is_numbered = text.lines().next().is_some_and(|line| number(line, CPU_COLUMN).is_some());
    let line = match is_numbered {
        true => text.lines().find(|line| number(line, CPU_COLUMN) == Some(u64::from(cpu)))?,
        false => text.lines().nth(row)?,
    };
    number(line, column)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn counters_are_found_by_name() {
        let text =
            "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 1 22 333\nIpExt: X\nIpExt: 5\n";
        assert_eq!(named(text, "TcpExt:", "ListenOverflows"), Some(22));
        assert_eq!(named(text, "TcpExt:", "ListenDrops"), Some(333));
        assert_eq!(named(text, "TcpExt:", "Nonsense"), None);
        assert_eq!(named("TcpExt: A B\nTcpExt: 1\n", "TcpExt:", "B"), None);
    }

    #[test]
    fn softnet_rows_go_by_number_or_by_order() {
        let new =
            "0000000a 1 2 0 0 0 0 0 0 0 0 0 00000003 0 0\n000000ff 0 0 0 0 0 0 0 0 0 0 0 00000007 0 0\n";
        assert_eq!(softnet(new, 7, 0, 0), Some(255));
        assert_eq!(softnet(new, 3, 9, 2), Some(2));
        assert_eq!(softnet(new, 4, 0, 0), None);
        assert_eq!(softnet("0000000a 1 2\n0000000b 3 4\n", 5, 1, 0), Some(11));
    }

    proptest! {
        #[test]
        fn garbage_is_no_number(text in "\\PC{0,100}") {
            prop_assert_eq!(named(&text, "TcpExt:", "ListenDrops"), None);
            softnet(&text, 0, 0, 0);
        }
    }
}
