//! The clock of the SUT's CPUs as the CPUs themselves count it: APERF ticks at the clock that they ran at, MPERF at a
//! fixed one, both only while the CPU is not idle.
//!
//! Read through the kernel's `msr` PMU, else from `/dev/cpu/N/msr`. Most virtual machines have neither.

use crate::observed::{Observed, refused};
use crate::observer::{Edge, Observer};
use crate::scene::Scene;
use crate::tape::Tape;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use tare_machine::Root;
use tare_model::Missing;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::clock;
use tare_model::observation::Sample;
use tare_sys::perf::{Event, Group, GroupCount, Whom};

/// Each reading interrupts the CPU that is asked.
const SAMPLE_HZ: f64 = 2.0;
const CPUS_MAX: usize = 64;
const DEVICE: &str = "/sys/bus/event_source/devices/msr";

/// Metric, the `msr` PMU's name for it, and the register's number (Intel SDM volume 4, AMD APM volume 2).
static REGISTERS: [(&Descriptor, &str, u64); 3] =
    [(&clock::APERF, "aperf", 0xe8), (&clock::MPERF, "mperf", 0xe7), (&clock::TSC, "tsc", 0x10)];

enum Meter {
    Perf(Group),
    Registers(File),
}

impl Meter {
    /// The three numbers, as they come.
    fn read(&self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Meter::Perf(group) => group.read_raw(bytes),
            Meter::Registers(file) => {
                for ((_, _, register), bytes) in REGISTERS.iter().zip(bytes.chunks_exact_mut(8)) {
                    file.read_exact_at(bytes, *register)?;
                }
                Ok(8 * REGISTERS.len())
            }
        }
    }

    fn parse(&self, bytes: &[u8]) -> Option<Vec<u64>> {
        match self {
            Meter::Perf(_) => GroupCount::parse(bytes).map(|count| count.values),
            Meter::Registers(_) => {
                let (words, []) = bytes.as_chunks::<8>() else { return None };
                Some(words.iter().map(|word| u64::from_ne_bytes(*word)).collect())
            }
        }
    }
}

struct Aperf {
    meters: Result<Vec<(u32, Meter)>, Missing>,
    tape: Tape,
}

pub(crate) fn open(scene: &Scene) -> Box<dyn Observer> {
    let cpus = scene.watch.sut_cpus.iter().take(CPUS_MAX);
    let meters = match scene.watch.sut_cpus.is_empty() {
        true => Err(Missing::new("the SUT's CPUs are not known")),
        false => cpus.map(|cpu| Ok((*cpu, meter(&scene.root, *cpu)?))).collect(),
    };
    Box::new(Aperf { meters, tape: Tape::default() })
}

fn meter(root: &Root, cpu: u32) -> Result<Meter, Missing> {
    if let Some(events) = events(root).filter(|_| root.is_live())
        && let Ok(group) = Group::open(Whom::Cpu(cpu), &events)
    {
        return Ok(Meter::Perf(group));
    }
    let path = format!("/dev/cpu/{cpu}/msr");
    let meter = match File::open(root.path(&path)) {
        Ok(file) => Meter::Registers(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Missing::with_remedy(
                "no APERF and MPERF: neither the kernel's msr PMU nor /dev/cpu/N/msr tells them",
                "modprobe msr; virtual machines seldom have them",
            ));
        }
        Err(error) => return Err(refused(&path, &error)),
    };
    let mut bytes = [0; 8 * REGISTERS.len()];
    meter.read(&mut bytes).map_err(|error| refused(&path, &error))?;
    Ok(meter)
}

/// All three, or none.
fn events(root: &Root) -> Option<Vec<Event>> {
    let kind: u32 = root.value(format!("{DEVICE}/type")).ok()?;
    let event = |(_, name, _): &(&Descriptor, &str, u64)| {
        let text = root.text(format!("{DEVICE}/events/{name}")).ok()?;
        let number = text.trim().strip_prefix("event=0x")?;
        Some(Event::of_device(kind, u64::from_str_radix(number, 16).ok()?))
    };
    REGISTERS.iter().map(event).collect()
}

impl Aperf {
    fn read(&mut self) {
        let Ok(meters) = &self.meters else { return };
        for (cpu, meter) in meters {
            if let Err(error) = self.tape.record_with(*cpu, GroupCount::BYTES_MAX, |bytes| meter.read(bytes))
            {
                self.meters = Err(refused("APERF and MPERF", &error));
                return;
            }
        }
    }
}

impl Observer for Aperf {
    fn prepare(&mut self, _scene: &Scene) {
        self.tape.clear();
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
        if self.meters.is_ok() { scene.next(SAMPLE_HZ, tick) } else { u64::MAX }
    }

    fn report(&mut self, _scene: &Scene, observed: &mut Observed) {
        let meters = match &self.meters {
            Ok(meters) => meters,
            Err(reason) => {
                REGISTERS.iter().for_each(|(metric, ..)| observed.absent(metric, None, reason.clone()));
                return;
            }
        };
        for (cpu, meter) in meters {
            let readings = self.tape.readings().filter(|reading| reading.source == *cpu);
            let read: Vec<(u64, Vec<u64>)> =
                readings.filter_map(|reading| Some((reading.at_ns, meter.parse(reading.bytes)?))).collect();
            for (at, (metric, ..)) in REGISTERS.iter().enumerate() {
                let sample = |(at_ns, values): &(u64, Vec<u64>)| {
                    values.get(at).map(|value| Sample { at_ns: *at_ns, value: *value as f64 })
                };
                observed.column(metric, Subject::Cpu(*cpu), read.iter().filter_map(sample).collect());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Watch;

    fn scene(root: &Root) -> Scene {
        let watch = Watch { sut_cpus: vec![3], sample_hz: 20.0, ..Watch::default() };
        Scene::new(watch, root)
    }

    fn window(root: &Root, between: impl Fn()) -> tare_model::observation::Observation {
        let scene = scene(root);
        let mut aperf = open(&scene);
        let mut edge = Edge { at_ns: 0 };
        aperf.prepare(&scene);
        aperf.edge(&mut edge);
        between();
        aperf.edge(&mut edge);
        let mut observed = Observed::new(0, 1);
        aperf.report(&scene, &mut observed);
        observed.close()
    }

    #[test]
    fn registers_are_read_where_the_device_is() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("dev/cpu/3")).unwrap();
        let write = |aperf: u64, mperf: u64, tsc: u64| {
            let mut bytes = vec![0u8; 0xf8];
            for (register, value) in [(0xe8, aperf), (0x10, tsc)] {
                bytes[register..register + 8].copy_from_slice(&value.to_ne_bytes());
            }
            // A file is no device: its bytes overlap. The last one written counts.
            bytes[0xe7..0xe8].copy_from_slice(&[mperf as u8]);
            std::fs::write(dir.path().join("dev/cpu/3/msr"), bytes).unwrap();
        };
        write(1000, 0, 5000);
        let seen = window(&Root::at(dir.path()), || write(4000, 0, 9000));
        let delta = |metric| seen.delta(metric, &Subject::Cpu(3)).ok().unwrap();
        assert_eq!((delta(&clock::APERF), delta(&clock::TSC)), (3000.0, 4000.0));
    }

    #[test]
    fn without_them_it_is_said() {
        let dir = tempfile::tempdir().unwrap();
        let reason = window(&Root::at(dir.path()), || {}).why_absent(&clock::APERF, &Subject::Cpu(3));
        assert!(reason.why.contains("no APERF") && reason.remedy.contains("modprobe msr"), "{reason}");
    }
}
