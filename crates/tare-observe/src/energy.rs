//! Energy by RAPL domain, from the power capping framework.

use crate::numbers::{Found, Number, Whose, observer};
use crate::observer::Observer;
use crate::scene::Scene;
use tare_model::Missing;
use tare_model::metric::Subject;
use tare_model::metrics::energy::{ENERGY_UJ, RANGE_UJ};

const SAMPLE_HZ: f64 = 10.0;
const DOMAINS_MAX: usize = 32;
const DIR: &str = "/sys/class/powercap";

pub(crate) fn open(_scene: &Scene) -> Box<dyn Observer> {
    observer(find, SAMPLE_HZ)
}

fn find(scene: &Scene) -> Found {
    let mut found = Found::default();
    let names = scene.root.names(DIR).unwrap_or_default();
    // `intel-rapl:0` and below it `intel-rapl:0:1`; AMD's are called so, too. The `-mmio` ones are the same again.
    let domains = names.into_iter().filter(|name| name.starts_with("intel-rapl:"));
    let mut count = 0;
    for domain in domains.take(DOMAINS_MAX) {
        let name = scene.root.text(format!("{DIR}/{domain}/name")).unwrap_or_default();
        let number = |metric| Number {
            metric,
            whose: Whose::Subject(Subject::Device(format!("{domain} {}", name.trim()))),
            parse: Box::new(|text| text.trim().parse::<u64>().ok().map(|value| value as f64)),
            rare: false,
        };
        found.file(scene, &format!("{DIR}/{domain}/energy_uj"), 32, vec![number(&ENERGY_UJ)]);
        let range = Number { rare: true, ..number(&RANGE_UJ) };
        found.file(scene, &format!("{DIR}/{domain}/max_energy_range_uj"), 32, vec![range]);
        count += 1;
    }
    if count == 0 {
        let why = "this machine shows no energy counter (RAPL)";
        let remedy = "load the module intel_rapl_msr; virtual machines are not given one";
        for metric in [&ENERGY_UJ, &RANGE_UJ] {
            found.absent(metric, None, Missing::with_remedy(why, remedy));
        }
    }
    found
}
