//! What a kind of ceiling is made of.

use super::ground::Ground;
use std::rc::Rc;
use tare_model::Missing;
use tare_model::better::Better;

/// One ceiling: what it is called, and how it is opened for sampling.
pub(super) struct Kind {
    /// Its name, as in data.
    pub name: String,
    /// What is measured, in words.
    pub about: String,
    /// Its unit.
    pub unit: &'static str,
    /// Makes what the samples need, once.
    pub open: Open,
}

/// Makes what the samples of a ceiling need.
pub(super) type Open = Box<dyn FnOnce(&Rc<Ground>) -> Result<Opened, Missing>>;

/// A sample of so many nanoseconds, in the ceiling's unit.
pub(super) type Sample = Box<dyn FnMut(u64) -> Result<f64, Missing>>;

/// A ceiling that can be sampled.
pub(super) struct Opened {
    /// Takes one.
    pub sample: Sample,
    /// What is special about how it is measured here.
    pub note: String,
}

impl Kind {
    /// One that needs nothing to be made before its samples.
    pub fn new(
        name: impl Into<String>,
        unit: &'static str,
        about: impl Into<String>,
        sample: impl Fn(&Ground, u64) -> Result<f64, Missing> + 'static,
    ) -> Kind {
        Kind::opened(name, unit, about, move |ground| {
            let ground = Rc::clone(ground);
            Ok(Opened { sample: Box::new(move |ns| sample(&ground, ns)), note: String::new() })
        })
    }

    /// One that is opened first.
    pub fn opened(
        name: impl Into<String>,
        unit: &'static str,
        about: impl Into<String>,
        open: impl FnOnce(&Rc<Ground>) -> Result<Opened, Missing> + 'static,
    ) -> Kind {
        Kind { name: name.into(), about: about.into(), unit, open: Box::new(open) }
    }

    /// Times are better where they are lower, rates where they are higher.
    pub fn better(&self) -> Better {
        if self.unit == "s" { Better::Lower } else { Better::Higher }
    }
}
