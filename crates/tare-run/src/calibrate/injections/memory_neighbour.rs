//! Somebody on another CPU who washes the caches that all share.

use super::{Ground, Injection, LabError, Need, Scene};

pub(super) static INJECTION: Injection = Injection {
    name: "memory-neighbour",
    about: "memory written all the time on every CPU that neither server nor generator uses",
    needs: &[Need::Cpus(3), Need::Pmu],
    put_up,
};

fn put_up(ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    let used = [ground.place.sut_cpu, ground.place.load_cpu];
    for cpu in ground.place.cpus.iter().copied().filter(|cpu| !used.contains(cpu)) {
        // Each block is larger than a cache, and written by the kernel.
        let words = ["dd", "if=/dev/zero", "of=/dev/null", "bs=64M"].map(String::from).to_vec();
        scene.hold(ground.start("a neighbour", words, vec![cpu])?);
    }
    Ok(())
}
