//! An open loop below what the server can do.

use super::{Ground, Injection, LabError, Need, Scene};
use tare_load::{Gaps, Pacing};

pub(super) static INJECTION: Injection = Injection {
    name: "fixed-rate",
    about: "5,000 requests a second, whatever the server could do",
    needs: &[Need::Cpus(2)],
    put_up,
};

fn put_up(_ground: &Ground<'_>, scene: &mut Scene) -> Result<(), LabError> {
    scene.server.traffic.pacing = Pacing::Open { rate_hz: 5000.0, gaps: Gaps::Fixed };
    Ok(())
}
