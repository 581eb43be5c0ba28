//! Offered load: a fifth more is sent.

use super::{Change, Ground, Intervention, Lever};
use tare_load::{LoadSpec, Pacing};
use tare_model::Missing;

/// Who answers all that is sent follows the rate.
pub(super) static INTERVENTION: Intervention = Intervention { name: "rate", floor: 0.5, prepare };

const MORE: f64 = 1.2;

fn prepare<'a>(ground: &Ground<'a>) -> Result<Change<'a>, Missing> {
    let Pacing::Open { rate_hz, gaps } = ground.spec.pacing else {
        return Err(Missing::new("the load has no fixed rate"));
    };
    let changed = rate_hz * MORE;
    let pacing = Pacing::Open { rate_hz: changed, gaps };
    Ok(Change {
        what: "requests sent a second".to_owned(),
        unit: "req/s",
        before: rate_hz,
        changed,
        by: Lever::Load(Box::new(LoadSpec { pacing, ..ground.spec.clone() })),
    })
}
