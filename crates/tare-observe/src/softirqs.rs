//! Soft interrupts by kind, on the CPUs of the SUT and the generator.

use crate::numbers::{Found, Number, Whose, observer};
use crate::observer::Observer;
use crate::scene::Scene;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::softirqs;

const SAMPLE_HZ: f64 = 10.0;
const FILE: &str = "/proc/softirqs";
const CPUS_MAX: usize = 64;

/// Metric and row.
static KINDS: &[(&Descriptor, &str)] = &[
    (&softirqs::NET_RX, "NET_RX:"),
    (&softirqs::NET_TX, "NET_TX:"),
    (&softirqs::TIMER, "TIMER:"),
    (&softirqs::SCHED, "SCHED:"),
    (&softirqs::RCU, "RCU:"),
    (&softirqs::BLOCK, "BLOCK:"),
];

pub(crate) fn open(_scene: &Scene) -> Box<dyn Observer> {
    observer(find, SAMPLE_HZ)
}

fn find(scene: &Scene) -> Found {
    let mut found = Found::default();
    let mut numbers = Vec::new();
    for cpu in scene.busy_cpus().into_iter().take(CPUS_MAX) {
        numbers.extend(KINDS.iter().map(|&(metric, row)| Number {
            metric,
            whose: Whose::Subject(Subject::Cpu(cpu)),
            parse: Box::new(move |text| count(text, row, cpu).map(|count| count as f64)),
            rare: true,
        }));
    }
    // Ten rows of eleven characters for each possible CPU.
    found.file(scene, FILE, 1 << 16, numbers);
    found
}

/// `CPU0 CPU1 …` above, then a row for each kind. CPUs that are not there have no column.
fn count(text: &str, row: &str, cpu: u32) -> Option<u64> {
    let mut lines = text.lines();
    let column = lines.next()?.split_ascii_whitespace().position(|name| {
        name.strip_prefix("CPU").and_then(|number| number.parse::<u32>().ok()) == Some(cpu)
    })?;
    let row = lines.find_map(|line| line.trim_start().strip_prefix(row))?;
    row.split_ascii_whitespace().nth(column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TEXT: &str = "                    CPU0       CPU2\n          HI:          1          2\n      NET_RX:        113         18\n";

    #[test]
    fn counts_stand_under_their_cpus() {
        assert_eq!(count(TEXT, "NET_RX:", 2), Some(18));
        assert_eq!(count(TEXT, "NET_RX:", 1), None);
        assert_eq!(count(TEXT, "RX:", 0), None);
    }

    proptest! {
        #[test]
        fn garbage_is_no_count(text in "\\PC{0,80}", cut in 0..TEXT.len()) {
            prop_assert_eq!(count(&text, "NET_RX:", 0), None);
            count(&TEXT[..cut], "NET_RX:", 2);
        }
    }
}
