//! Too little concurrency: half as many connections more.

use super::{Change, Ground, Intervention, Lever};
use tare_load::LoadSpec;
use tare_model::Missing;

/// The rate follows the connections as long as a request takes no longer for it (Little's law); it soon does on the way to
/// saturation, so that less is asked of it than of a resource that is used up.
pub(super) static INTERVENTION: Intervention = Intervention { name: "connections", floor: 0.3, prepare };

fn prepare<'a>(ground: &Ground<'a>) -> Result<Change<'a>, Missing> {
    let before = ground.spec.connections;
    let changed = before.saturating_add(before.div_ceil(2));
    let spec = LoadSpec { connections: changed, ..ground.spec.clone() };
    spec.validate().map_err(|error| Missing::new(error.to_string()))?;
    Ok(Change {
        what: "connections".to_owned(),
        unit: "connections",
        before: f64::from(before),
        changed: f64::from(changed),
        by: Lever::Load(Box::new(spec)),
    })
}
