//! Core-to-core latency between the SUT's CPUs and the generator's, before and after a window: a hypervisor may move them
//! meanwhile, and what passes between the two sides then costs more or less.

use crate::observed::Observed;
use crate::observer::{Edge, Observer};
use crate::scene::Scene;
use crate::watch::LoadWatch;
use tare_machine::probes::transfer;
use tare_model::Missing;
use tare_model::metric::Subject;
use tare_model::metrics::core_latency::TRANSFER_NS;
use tare_model::observation::Sample;
use tare_sys::time::monotonic_ns;

/// A sample takes as long as both CPUs are busy with others: of a SUT on many CPUs, the first ones are sampled.
const CPUS_MAX: usize = 4;

pub(crate) fn open(scene: &Scene) -> Box<dyn Observer> {
    let watch = &scene.watch;
    let load_cpu = watch.load_cpus.first().filter(|_| watch.load != LoadWatch::None);
    let pairs = load_cpu.map(|&load_cpu| {
        let others = watch.sut_cpus.iter().filter(|cpu| !watch.load_cpus.contains(cpu));
        others.take(CPUS_MAX).map(|&cpu| [cpu, load_cpu]).collect()
    });
    Box::new(CoreLatency { pairs: pairs.unwrap_or_default(), samples: Vec::new(), active: true })
}

struct CoreLatency {
    /// A CPU of the SUT, and the generator's.
    pairs: Vec<[u32; 2]>,
    samples: Vec<PairSample>,
    active: bool,
}

struct PairSample {
    cpu: u32,
    at_ns: u64,
    found: Result<f64, Missing>,
}

impl CoreLatency {
    /// Not [`Observer::sample`], which is within a window.
    fn measure(&mut self) {
        let pairs = if self.active { self.pairs.as_slice() } else { &[] };
        let sample = |pair: &[u32; 2]| {
            let found = transfer::look(*pair).map(|found| found.transfer_ns.median);
            PairSample { cpu: pair[0], at_ns: monotonic_ns(), found }
        };
        self.samples.extend(pairs.iter().map(sample));
    }
}

impl Observer for CoreLatency {
    fn prepare(&mut self, _scene: &Scene) {
        self.samples.clear();
        self.measure();
    }

    fn edge(&mut self, _edge: &mut Edge) {}

    fn report(&mut self, _scene: &Scene, observed: &mut Observed) {
        if self.pairs.is_empty() {
            let why = "the server and the generator have no CPUs of their own";
            return observed.absent(&TRANSFER_NS, None, Missing::new(why));
        }
        self.measure();
        for &[cpu, _] in &self.pairs {
            let mut samples = Vec::new();
            let mut why = Missing::new("there is no sample");
            for sample in self.samples.iter().filter(|sample| sample.cpu == cpu) {
                match &sample.found {
                    Ok(ns) => samples.push(Sample { at_ns: sample.at_ns, value: *ns }),
                    Err(missing) => why = missing.clone(),
                }
            }
            if samples.is_empty() {
                observed.absent(&TRANSFER_NS, Some(Subject::Cpu(cpu)), why);
            }
            observed.column(&TRANSFER_NS, Subject::Cpu(cpu), samples);
        }
    }

    fn set_active(&mut self, active: bool) {
        self.active = active;
    }
}
