//! Two threads that wake each other in turn through two pipes: on one CPU each hand-over is a context switch, on two
//! it is a wake-up of the other CPU.

use super::place::{on_first, pin};
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use tare_model::Missing;
use tare_model::probes::{Handover, Spread};
use tare_sys::time::monotonic_ns;

/// Round trips of one sample.
const BATCH: u32 = 20;
/// Samples that are kept, at most.
const SAMPLES_MAX: usize = 10_000;

/// Hands a byte to and fro between the two CPUs (which may be the same) for `duration_ns`.
///
/// # Errors
/// Why one of the threads could not run.
pub fn run(cpus: [u32; 2], duration_ns: u64) -> Result<Handover, Missing> {
    let (inbox, there) = pipe().map_err(no_pipe)?;
    let (back, outbox) = pipe().map_err(no_pipe)?;
    // It ends when the other ends of its pipes are closed, at the latest with the probe's own thread.
    let echo = move || pin(cpus[1]).map(|()| echo(inbox, outbox));
    std::thread::Builder::new()
        .name("tare-probe".into())
        .spawn(echo)
        .map_err(|error| Missing::new(format!("no thread for the probe: {error}")))?;
    on_first(cpus, duration_ns, move || {
        let (mut there, mut back) = (there, back);
        let (mut own_reader, mut own_writer) = pipe().map_err(no_pipe)?;
        let end_ns = monotonic_ns().saturating_add(duration_ns);
        let (mut trips_ns, mut calls_ns) = (Vec::new(), Vec::new());
        for _ in 0..BATCH {
            round_trip(&mut there, &mut back)?;
        }
        loop {
            trips_ns.push(batch_ns(|| round_trip(&mut there, &mut back))? / 2.0);
            calls_ns.push(batch_ns(|| round_trip(&mut own_writer, &mut own_reader))?);
            if monotonic_ns() >= end_ns || trips_ns.len() >= SAMPLES_MAX {
                return summary(cpus, &trips_ns, &calls_ns);
            }
        }
    })
}

fn summary(cpus: [u32; 2], trips_ns: &[f64], calls_ns: &[f64]) -> Result<Handover, Missing> {
    let (handover_ns, calls) = Spread::of(trips_ns)
        .zip(Spread::of(calls_ns))
        .ok_or_else(|| Missing::new("no round trip in the time given"))?;
    // A hand-over holds one write and one read, as the calls do that were timed alone.
    Ok(Handover { cpus, handover_ns, switch_ns: (handover_ns.median - calls.median).max(0.0) })
}

/// Nanoseconds of one of a batch.
fn batch_ns(mut one: impl FnMut() -> Result<(), Missing>) -> Result<f64, Missing> {
    let start_ns = monotonic_ns();
    for _ in 0..BATCH {
        one()?;
    }
    Ok((monotonic_ns() - start_ns) as f64 / f64::from(BATCH))
}

fn round_trip(there: &mut PipeWriter, back: &mut PipeReader) -> Result<(), Missing> {
    let mut byte = [0u8];
    there
        .write_all(&byte)
        .and_then(|()| back.read_exact(&mut byte))
        .map_err(|error| Missing::new(format!("the other thread could not run on its CPU: {error}")))
}

fn echo(mut inbox: PipeReader, mut outbox: PipeWriter) {
    let mut byte = [0u8];
    while inbox.read_exact(&mut byte).and_then(|()| outbox.write_all(&byte)).is_ok() {}
}

fn no_pipe(error: std::io::Error) -> Missing {
    Missing::with_remedy(format!("no pipe: {error}"), "raise the limit on open files (ulimit -n)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_are_taken_off() {
        let handover = summary([0, 1], &[2000.0, 2100.0, 1900.0], &[500.0]).unwrap();
        assert_eq!((handover.handover_ns.median, handover.switch_ns), (2000.0, 1500.0));
        assert_eq!(summary([0, 1], &[400.0], &[500.0]).unwrap().switch_ns, 0.0);
    }

    #[test]
    fn a_byte_goes_to_and_fro_on_one_cpu_and_on_two() {
        let allowed = tare_sys::affinity::get(0).unwrap();
        for cpus in [[allowed[0]; 2], [allowed[0], allowed[allowed.len() - 1]]] {
            let handover = run(cpus, 5_000_000).unwrap();
            assert!(handover.handover_ns.median > 0.0, "{handover:?}");
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_missing() {
        let here = tare_sys::affinity::get(0).unwrap()[0];
        let nowhere = tare_sys::affinity::CPUS_MAX - 1;
        assert!(run([here, nowhere], 1).unwrap_err().why.contains("other thread"));
        assert!(run([nowhere, here], 1).unwrap_err().why.contains("cannot run on CPU"));
    }
}
