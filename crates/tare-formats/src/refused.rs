//! Why nothing is read of a file.

use crate::reader::{DETECT_BYTES, DETECT_LINES};
use std::error::Error;
use std::fmt;

/// Why nothing is read of a file, and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It is of no tool that is known.
    Unknown,
    /// Its beginning is of no tool that is known, and more of it is not looked at.
    UnknownBeginning,
    /// It is of iperf 2, which prints what iperf3 prints, and other things by it.
    Iperf2,
    /// What is packed is cut off or damaged.
    Damaged,
    /// It unpacks to more than this.
    TooLarge {
        /// The most that is unpacked, in MiB.
        mib_max: u64,
    },
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by_regex = "'tare show FILE --meter-regex PATTERN' reads any text";
        match self {
            Refused::Unknown => write!(
                f,
                "neither a record of tare nor results of a tool that it knows (hint: 'tare help formats' lists them, and {by_regex})"
            ),
            Refused::UnknownBeginning => write!(
                f,
                "neither a record of tare nor results of a tool that it knows, as far as the first {DETECT_LINES} lines (of JSON the first {} MiB) \
                 show: only these were looked at (hint: leave out what stands before the results, as 'tail -n +LINE FILE | tare show -' does; \
                 'tare help formats' lists the tools; {by_regex})",
                DETECT_BYTES >> 20
            ),
            Refused::Iperf2 => {
                write!(
                    f,
                    "it is of iperf 2, which is not read (hint: measure with 'iperf3 --json'; {by_regex})"
                )
            }
            Refused::Damaged => {
                write!(
                    f,
                    "the packed file is cut off or damaged (hint: 'gzip -dc FILE | tare show -' reads what is whole)"
                )
            }
            Refused::TooLarge { mib_max } => {
                write!(
                    f,
                    "the packed file holds more than {mib_max} MiB (hint: 'gzip -dc FILE | tare show -' reads twice as much)"
                )
            }
        }
    }
}

impl Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_says_what_to_do() {
        for refused in [
            Refused::Unknown,
            Refused::UnknownBeginning,
            Refused::Iperf2,
            Refused::Damaged,
            Refused::TooLarge { mib_max: 7 },
        ] {
            assert!(refused.to_string().contains(" (hint: "), "{refused}");
        }
        let long = Refused::UnknownBeginning.to_string();
        assert!(long.contains("the first 2000 lines (of JSON the first 1 MiB)"), "{long}");
    }
}
