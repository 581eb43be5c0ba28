//! A figure before it is judged.

use tare_model::comparison::Figure;
use tare_model::gate::{FigureValue, Run};
use tare_model::{Missing, Reading};
use tare_stats::Jackknife;

/// A figure before it is judged.
pub(in crate::contrast) struct Row {
    pub figure: Figure,
    pub of_reference: bool,
    pub baseline: Option<f64>,
    pub value: Option<f64>,
    pub runs: u32,
    pub runs_missing: u32,
    /// Of ln(now/before): what both sides add to its error.
    pub spread: Result<[Jackknife; 2], Missing>,
}

/// What a run knows of a figure by itself.
pub(super) fn absolute(run: &Run, figure: Figure) -> Result<FigureValue, Missing> {
    let reading = run.figures.get(&figure).cloned();
    let measured = reading.unwrap_or_else(|| Reading::missing("it was not measured")).ok()?;
    // A history is a file that anybody may have written.
    let usable = measured.value > 0.0 && measured.value.is_finite();
    if usable { Ok(measured) } else { Err(Missing::new("it is not above 0")) }
}

/// The reason, with the run that it is of.
pub(super) fn of_run(run: &Run, missing: Missing) -> Missing {
    Missing { why: format!("in {} {}", run.label, missing.why), remedy: missing.remedy }
}

/// Of a figure's logarithm, or a difference of it to another one.
pub(super) fn error(value: f64, measured: FigureValue) -> Option<Jackknife> {
    Jackknife::of_half(value, measured.half_ln?, measured.trials)
}
