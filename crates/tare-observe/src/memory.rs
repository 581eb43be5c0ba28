//! Memory that the SUT's processes hold. (Page faults are counted with its threads.)

use crate::numbers::{Found, Number, Whose, observer};
use crate::observer::Observer;
use crate::scene::Scene;
use tare_model::Missing;
use tare_model::metrics::memory::RESIDENT_BYTES;
use tare_sys::process::page_bytes;

const SAMPLE_HZ: f64 = 10.0;
/// Processes that are read, at most.
const PROCESSES_MAX: usize = 64;

pub(crate) fn open(_scene: &Scene) -> Box<dyn Observer> {
    observer(find, SAMPLE_HZ)
}

fn find(scene: &Scene) -> Found {
    let mut found = Found::default();
    let pids = scene.family(&scene.watch.sut_pids);
    if pids.is_empty() {
        found.absent(&RESIDENT_BYTES, None, Missing::new("the SUT is not seen from here"));
    }
    let page = page_bytes() as f64;
    for pid in pids.into_iter().take(PROCESSES_MAX) {
        let number = Number {
            metric: &RESIDENT_BYTES,
            whose: Whose::Thread(pid),
            parse: Box::new(move |text| resident_pages(text).map(|pages| pages as f64 * page)),
            rare: true,
        };
        found.file(scene, &format!("/proc/{pid}/statm"), 128, vec![number]);
    }
    found
}

/// `size resident shared …`, pages.
fn resident_pages(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}
