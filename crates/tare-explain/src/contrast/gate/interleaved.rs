//! Two builds that were measured interleaved, as a gate sees them.

use super::figures::machine as machine_in_words;
use super::judge::{Asked, with_conditions};
use std::collections::BTreeMap;
use tare_model::comparison::{BenchmarkEffect, Comparison, Effect as Compared, Figure, Verdict};
use tare_model::condition::Condition;
use tare_model::gate::{Against, Effect, FigureValue, Gate, Run, SCHEMA};
use tare_model::machine::MachineFacts;
use tare_model::{Missing, Reading};

/// A command that takes longer by more than this fails where nothing else was asked for.
const DEFAULT_LONGER: f64 = 0.05;

/// Holds the second program of a comparison, the new build, against its first one. `time_unix_s` is when it began; `valid`: whether its
/// answers can be trusted to be answers.
pub fn interleaved(
    comparison: &Comparison,
    (machine, time_unix_s): (&MachineFacts, u64),
    valid: bool,
    asked: &Asked,
) -> Gate {
    let is_of_commands = comparison.is_of_commands();
    let figures: Vec<Figure> = match is_of_commands {
        true => Figure::of_commands().collect(),
        false => Figure::of_servers().collect(),
    };
    let new_name = comparison.programs.get(1).map(|program| program.name.as_str()).unwrap_or_default();
    let compared = |figure: Figure| {
        comparison.effects.iter().find(|effect| effect.figure == figure && effect.program == new_name)
    };
    let run = |at: usize, value: &dyn Fn(&Compared) -> f64| {
        let program = comparison.programs.get(at);
        let of = |figure: Figure| match compared(figure) {
            Some(effect) => Reading::Measured(FigureValue {
                value: value(effect),
                half_ln: None,
                trials: effect.launches as u32,
            }),
            None => Reading::Missing(why_not(comparison, figure)),
        };
        Run {
            schema: SCHEMA,
            label: program.map(|program| program.command.clone()).unwrap_or_default(),
            time_unix_s,
            length_s: Some(comparison.elapsed_s),
            plan: program.and_then(|program| program.url.clone()).unwrap_or_else(|| "a command".to_owned()),
            machine: machine_in_words(machine),
            kernel: machine.kernel.clone(),
            valid,
            figures: figures.iter().map(|figure| (*figure, of(*figure))).collect(),
            against_reference: BTreeMap::new(),
        }
    };
    let method = "95 % intervals that hold together for all figures, over launches in which both builds were started afresh and measured \
                  interleaved; widened by what the same build differs by from itself (A/A control)";
    let gate = Gate {
        schema: SCHEMA,
        new: run(1, &|effect| effect.value),
        against: Against::Interleaved(run(0, &|effect| effect.baseline)),
        margin: comparison.margin,
        valid,
        effects: figures.iter().map(|figure| effect(*figure, compared(*figure), comparison)).collect(),
        benchmarks: benchmarks(comparison, new_name),
        change_points: Vec::new(),
        conditions: Vec::new(),
        method: method.to_owned(),
        warnings: comparison.warnings.clone(),
    };
    let usual = Condition { figure: Figure::Time, above: true, bound: DEFAULT_LONGER };
    // What a benchmark prints is judged, and not how long it took: most run for a fixed time.
    let usual = is_of_commands.then(|| if gate.judges_benchmarks() { Vec::new() } else { vec![usual] });
    with_conditions(gate, &Asked { margin: asked.margin, conditions: asked.conditions.clone().or(usual) })
}

/// The new build's, by the name that it has in a gate.
fn benchmarks(comparison: &Comparison, new_name: &str) -> Vec<BenchmarkEffect> {
    let label = comparison.programs.get(1).map(|program| program.command.clone()).unwrap_or_default();
    let of_new = comparison.benchmarks.iter().filter(|effect| effect.program == new_name);
    of_new.map(|effect| BenchmarkEffect { program: label.clone(), ..effect.clone() }).collect()
}

fn effect(figure: Figure, compared: Option<&Compared>, comparison: &Comparison) -> Effect {
    let change = compared.and_then(|effect| effect.change);
    let worse = |more: f64| if figure.higher_is_better() { more / (1.0 + more) } else { more };
    Effect {
        figure,
        of_reference: false,
        baseline: compared.map(|effect| effect.baseline),
        value: compared.map(|effect| effect.value),
        runs: compared.map_or(0, |effect| effect.launches as u32),
        runs_missing: 0,
        change: change.map_or_else(|| Reading::Missing(why_not(comparison, figure)), Reading::Measured),
        detectable: compared.and_then(|effect| effect.detectable).map(worse),
        verdict: compared.map_or(Verdict::CannotTell, |effect| effect.verdict),
    }
}

fn why_not(comparison: &Comparison, figure: Figure) -> Missing {
    let known = comparison.not_known.iter().find(|missing| missing.figure == figure);
    known.map_or_else(
        || Missing::with_remedy("too few launches for an interval", "give a longer --budget"),
        |missing| missing.why.clone(),
    )
}
