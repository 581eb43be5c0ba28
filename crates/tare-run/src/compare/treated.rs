//! What settings did to the figure that they are judged by.

use tare_model::comparison::{Comparison, Effect, Figure};
use tare_model::treatment::TreatmentResult;
use tare_model::{Missing, Reading};

/// Whether a setting could not be applied: there is nothing to compare then.
pub(super) fn is_refused(comparison: &Comparison) -> bool {
    comparison.treatments.iter().any(|treatment| treatment.not_applied().is_some())
}

fn of(effect: &Effect) -> Option<TreatmentResult> {
    let change = effect.change?;
    TreatmentResult::of(effect.figure, change.value, change.interval)
}

/// Fills in what came of each treatment, by the effects.
pub(super) fn results(comparison: &mut Comparison) {
    let figure = if comparison.is_of_commands() { Figure::Time } else { Figure::Throughput };
    let first = comparison.programs.first().map(|program| program.name.clone());
    let effects = &comparison.effects;
    for treatment in &mut comparison.treatments {
        let refused = treatment.not_applied().map(|missing| Missing {
            why: format!("could not be applied: {}", missing.why),
            remedy: missing.remedy.clone(),
        });
        let is_its = |effect: &&Effect| effect.program == treatment.program && effect.figure == figure;
        treatment.result = match (refused, effects.iter().find(is_its).and_then(of)) {
            (Some(refused), _) => Reading::Missing(refused),
            (None, Some(result)) => Reading::Measured(result),
            (None, None) if Some(&treatment.program) == first.as_ref() => {
                Reading::NotApplicable { not_applicable: "it is what B is compared with".to_owned() }
            }
            (None, None) => Reading::Missing(Missing::with_remedy(
                "there are too few launches for an interval",
                "give a longer --budget",
            )),
        };
    }
}
