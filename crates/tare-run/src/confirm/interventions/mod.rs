//! What is tried on each cause: one file each, and the registry.

mod concurrency;
mod cpu;
mod placement;
mod quota;
mod rate;
mod weight;

use super::intervention::{Change, Ground, Intervention, Lever, Turn};
use tare_model::Missing;
use tare_model::outcome::Cause;

/// What is tried on a cause.
///
/// # Errors
/// Nothing can be: why not, and what would tell instead.
pub(super) fn of(cause: Cause) -> Result<&'static Intervention, Missing> {
    let not = |why: &str, remedy: &str| Err(Missing::with_remedy(why, remedy));
    match cause {
        Cause::LoadGeneratorBound => Ok(&cpu::GENERATOR),
        Cause::ServerCpuBound => Ok(&cpu::SERVER),
        Cause::OneThreadBound => Ok(&cpu::ONE_THREAD),
        Cause::CpuQuotaThrottled => Ok(&quota::INTERVENTION),
        Cause::TooLittleConcurrency => Ok(&concurrency::INTERVENTION),
        Cause::OfferedLoad => Ok(&rate::INTERVENTION),
        Cause::PlacementConflict => Ok(&placement::INTERVENTION),
        Cause::CpuContended => Ok(&weight::INTERVENTION),
        Cause::Oversubscribed => not(
            "how many threads a program has is its own",
            "run again with one thread for each CPU (generator: --threads)",
        ),
        Cause::Steal => {
            not("only the host can give what it takes", "run again at another hour, or on another host")
        }
        Cause::ClockDropped => {
            not("the clock is not turned under a run", "hold it with 'tare tune --apply', and run again")
        }
        Cause::ColdCaches => not(
            "caches cannot be given or taken a little",
            "move the neighbour to another cache, or pin to another core",
        ),
        Cause::SoftirqSaturated => {
            not("other programs' packets are not tare's to stop", "steer them to other CPUs, and run again")
        }
        Cause::CrossCpuWakeups => not(
            "where a program wakes its threads is its own",
            "hold it on CPUs of one core or cache (--sut-cpus)",
        ),
        Cause::ListenOverflow => not(
            "the queue's length is the program's to ask for",
            "raise its backlog (and net.core.somaxconn), and run again",
        ),
        Cause::MemoryPressure => not(
            "memory that was taken back is read again for seconds",
            "raise the group's limit, and run again",
        ),
        Cause::BlockedOnDisk => {
            not("a disk cannot be made a little faster", "run again with the files on tmpfs")
        }
        Cause::BlockedOnDownstream => {
            not("the other server is not tare's", "run again against a quicker one")
        }
        Cause::GcPauses => not(
            "a runtime takes its heap when it starts",
            "run again with twice the heap (GOGC=200, twice -Xmx)",
        ),
        Cause::LockContended => {
            not("a lock of the program cannot be given or taken", "run again with half the threads")
        }
        Cause::KernelLockContended => {
            not("a lock of the kernel cannot be given or taken", "run again with one thread")
        }
        Cause::NetworkCeiling => {
            not("what is on the way is not tare's to change", "run again with answers of half the size")
        }
        Cause::DelayedAck => not("socket options are the program's", "set TCP_NODELAY there, and run again"),
        Cause::PortsExhausted => not(
            "closed connections keep their ports for a minute",
            "keep connections alive, or widen the range ('tare tune --port-range')",
        ),
        Cause::NotSteady => {
            not("there is no level to compare with", "warm up for longer (-w), and run again")
        }
        Cause::Errors => not("errors are not the workload", "run again on a path that answers 200"),
        Cause::TooNoisy => {
            not("an effect would not be seen in this noise either", "run again when the machine is quieter")
        }
        Cause::ProgramCpuBound | Cause::ProgramIdle => not(
            "interleaved blocks need a server that goes on",
            "compare runs of the program with 'tare compare'",
        ),
        Cause::Unknown => {
            not("there is no cause to try", "change one thing at a time: connections, --threads, CPUs")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_tried_or_says_why_not() {
        let (mut tried, mut reported) = (0, 0);
        for cause in tare_explain::causes() {
            match of(cause) {
                Ok(intervention) => {
                    assert!(intervention.floor > 0.0 && intervention.floor < 1.0, "{cause:?}");
                    tried += 1;
                }
                Err(missing) => {
                    assert!(missing.why.len() > 10 && missing.remedy.len() > 10, "{cause:?}: {missing:?}");
                    reported += 1;
                }
            }
        }
        assert!(tried >= 7 && reported > 10, "{tried} {reported}");
    }
}
