//! Temperatures: of the thermal zones, and of the processor's own sensors.

use crate::numbers::{Found, Number, Whose, observer};
use crate::observer::Observer;
use crate::scene::Scene;
use tare_model::Missing;
use tare_model::metric::Subject;
use tare_model::metrics::thermal::TEMPERATURE_C;

/// A reading may ask the firmware, which takes its time.
const SAMPLE_HZ: f64 = 1.0;
const SENSORS_MAX: usize = 16;
const ZONES: &str = "/sys/class/thermal";
const SENSORS: &str = "/sys/class/hwmon";
/// Drivers of sensors in processors.
const PROCESSORS: [&str; 3] = ["coretemp", "k10temp", "zenpower"];

pub(crate) fn open(_scene: &Scene) -> Box<dyn Observer> {
    observer(find, SAMPLE_HZ)
}

fn find(scene: &Scene) -> Found {
    let mut found = Found::default();
    let mut count = 0;
    let mut add = |path: String, name: String| {
        if count < SENSORS_MAX {
            let number = Number {
                metric: &TEMPERATURE_C,
                whose: Whose::Subject(Subject::Device(name)),
                parse: Box::new(celsius),
                rare: false,
            };
            found.file(scene, &path, 32, vec![number]);
            count += 1;
        }
    };
    let names = |dir: &str| scene.root.names(dir).unwrap_or_default();
    let word = |path: String| scene.root.text(path).unwrap_or_default().trim().to_owned();
    for zone in names(ZONES).into_iter().filter(|name| name.starts_with("thermal_zone")) {
        let kind = word(format!("{ZONES}/{zone}/type"));
        add(format!("{ZONES}/{zone}/temp"), format!("{zone} {kind}"));
    }
    for sensor in names(SENSORS) {
        let driver = word(format!("{SENSORS}/{sensor}/name"));
        // The first input is the package's.
        if PROCESSORS.contains(&driver.as_str()) {
            add(format!("{SENSORS}/{sensor}/temp1_input"), format!("{sensor} {driver}"));
        }
    }
    if count == 0 {
        let reason =
            Missing::new("this machine shows no temperature: no thermal zone, no processor's sensor");
        found.absent(&TEMPERATURE_C, None, reason);
    }
    found
}

/// Thousandths of a degree; below absolute zero or above what silicon stands is no temperature.
fn celsius(text: &str) -> Option<f64> {
    let thousandths: i64 = text.trim().parse().ok()?;
    (-100_000..=200_000).contains(&thousandths).then_some(thousandths as f64 / 1e3)
}
