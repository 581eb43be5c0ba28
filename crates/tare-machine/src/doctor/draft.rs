//! What a check is made of, before its area is filled in.

use tare_model::calibration::Calibration;
use tare_model::check::{Area, Check, Level};
use tare_model::probes::Probes;
use tare_model::survey::Survey;
use tare_model::topology::Topology;
use tare_model::{Missing, Reading};

/// What checks work from.
#[derive(Debug, Clone, Copy)]
pub struct Examined<'a> {
    /// What was read.
    pub survey: &'a Survey,
    /// The part of the machine that may be used.
    pub topology: &'a Topology,
    /// What was measured; `None` where it was not asked for.
    pub probes: Option<&'a Probes>,
    /// How often tare was right here, when it was last calibrated.
    pub calibration: &'a Reading<Calibration>,
    /// The time now, seconds since 1970.
    pub now_unix_s: u64,
}

/// Things that are looked at together.
pub(super) struct Topic {
    pub(super) area: Area,
    /// Every name that its checks can have.
    pub(super) ids: &'static [&'static str],
    pub(super) look: fn(&Examined) -> Vec<Draft>,
}

/// A check whose area is not filled in yet.
pub(super) struct Draft(pub(super) Check);

pub(super) fn draft(id: &str, level: Level, found: impl Into<String>) -> Draft {
    Draft(Check {
        id: id.to_owned(),
        area: Area::Host,
        level,
        found: found.into(),
        effect: String::new(),
        fix: String::new(),
        setting: None,
    })
}

pub(super) fn ok(id: &str, found: impl Into<String>) -> Draft {
    draft(id, Level::Ok, found)
}

pub(super) fn note(id: &str, found: impl Into<String>) -> Draft {
    draft(id, Level::Note, found)
}

pub(super) fn warn(id: &str, found: impl Into<String>) -> Draft {
    draft(id, Level::Warn, found)
}

pub(super) fn bad(id: &str, found: impl Into<String>) -> Draft {
    draft(id, Level::Bad, found)
}

/// It could not be looked at.
pub(super) fn unknown(id: &str, missing: &Missing) -> Draft {
    note(id, missing.to_string()).fix(missing.remedy.as_str())
}

/// What `look` says of a value; that it is missing where it is, and nothing where it does not apply.
pub(super) fn each<T>(id: &str, reading: &Reading<T>, look: impl FnOnce(&T) -> Draft) -> Vec<Draft> {
    several(id, reading, |value| vec![look(value)])
}

/// The same where there may be several things to say, or none.
pub(super) fn several<T>(id: &str, reading: &Reading<T>, look: impl FnOnce(&T) -> Vec<Draft>) -> Vec<Draft> {
    match reading {
        Reading::Measured(value) => look(value),
        Reading::Missing(missing) => vec![unknown(id, missing)],
        Reading::NotApplicable { .. } => Vec::new(),
    }
}

impl Draft {
    /// What it does to a measurement.
    pub(super) fn effect(mut self, effect: impl Into<String>) -> Draft {
        self.0.effect = effect.into();
        self
    }

    /// What to do about it.
    pub(super) fn fix(mut self, fix: impl Into<String>) -> Draft {
        self.0.fix = fix.into();
        self
    }

    /// The setting of `tare tune` that does it.
    pub(super) fn setting(mut self, setting: &str) -> Draft {
        self.0.setting = Some(setting.to_owned());
        self
    }

    pub(super) fn finish(self, area: Area) -> Check {
        Check { area, ..self.0 }
    }
}
