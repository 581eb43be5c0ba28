//! What server and generator executed for each request: instructions, cycles, misses.

use super::source::{Medium, Section, Source};
use crate::block::{Block, Column, Row, Table, Text};
use crate::format::{NONE, count, joined, percent, ratio};
use crate::words;
use std::collections::BTreeSet;
use tare_model::outcome::{CyclesFrom, Execution, RoleAccounting, Warning};
use tare_model::{Missing, Reading};

pub(crate) static SECTION: Section =
    Section { title: "Instructions and cycles", media: &[Medium::Terminal, Medium::Page], build };

/// Events that were on the PMU for less of the run than this took turns.
const WHOLE: f64 = 0.995;

/// A figure of both roles, as far as each has one.
type Both = [Option<f64>; 2];
/// Its name, how it is written, and the figure.
type Named = (String, fn(f64) -> String, Both);

fn build(source: &Source) -> Vec<Block> {
    let roles = roles(source);
    if roles == [None; 2] {
        return Vec::new();
    }
    let named = |name: String| match source.counts_operations() {
        true => name.replace("a request", "an operation"),
        false => name,
    };
    let rows: Vec<Row> =
        figures(&roles).into_iter().map(|(name, words, both)| row(&named(name), words, both)).collect();
    let mut blocks = Vec::new();
    if !rows.is_empty() {
        let columns =
            vec![Column::words("", 0), Column::figures("server", 0), Column::figures("load generator", 0)];
        blocks.push(Block::Table(Table { columns, rows }));
    }
    let notes = notes(&roles, &source.outcome.verdict.warnings);
    blocks.extend(notes.into_iter().map(|note| Block::Line(Text::dim(note))));
    blocks
}

/// The server and the generator.
fn roles<'a>(source: &Source<'a>) -> [Option<&'a Execution>; 2] {
    let accounting = &source.outcome.accounting;
    [&accounting.sut, &accounting.load]
        .map(|role| role.as_ref().and_then(|role: &RoleAccounting| role.execution.as_ref()))
}

/// Whether this section or a warning says why no hardware events were counted.
pub(super) fn says_why_none(source: &Source) -> bool {
    roles(source).into_iter().flatten().any(|role| matches!(role.ipc, Reading::Missing(_)))
}

/// Everything that is known of at least one of them, and how its figure is written.
fn figures(roles: &[Option<&Execution>; 2]) -> Vec<Named> {
    let of = |figure: fn(&Execution) -> &Reading<f64>| {
        roles.map(|role| role.and_then(|role| figure(role).value()).copied())
    };
    let mut figures: Vec<Named> = vec![
        ("instructions per cycle".into(), ratio, of(|role| &role.ipc)),
        ("instructions a request".into(), count, of(|role| &role.instructions_per_request)),
        ("cycles a request".into(), count, of(|role| &role.cycles_per_request)),
    ];
    let events: BTreeSet<&String> =
        roles.iter().flatten().flat_map(|role| role.events_per_request.keys()).collect();
    figures.extend(events.into_iter().map(|event| {
        let both = roles.map(|role| role.and_then(|role| role.events_per_request.get(event)).copied());
        (format!("{} a request", event.replace('_', " ")), count as fn(f64) -> String, both)
    }));
    figures.retain(|(_, _, both)| *both != [None; 2]);
    figures
}

fn row(name: &str, words: fn(f64) -> String, both: Both) -> Row {
    let [sut, load] = both.map(|figure| Text::plain(figure.map_or_else(|| NONE.into(), words)));
    Row::Cells(vec![Text::plain(name), sut, load])
}

/// Where the figures come from; what is missing, once however often it is. What a warning says with all that follows from it is left to
/// the warning.
fn notes(roles: &[Option<&Execution>; 2], warnings: &[Warning]) -> Vec<String> {
    let known = || roles.iter().flatten();
    let mut notes = Vec::new();
    if known().any(|role| role.cycles_from == CyclesFrom::Clock && role.cycles_per_request.value().is_some())
    {
        notes.push("Cycles are CPU time × the effective clock.".to_owned());
    }
    let on_pmu = known().filter_map(|role| role.on_pmu).min_by(f64::total_cmp);
    notes.extend(on_pmu.filter(|share| *share < WHOLE).map(|share| {
        format!("Events took turns on the PMU: each was counted for {} of the run or more.", percent(share))
    }));
    let warned = |missing: &Missing| {
        let says =
            |warning: &Warning| warning.id == "could-not-judge" && warning.text.ends_with(&missing.why);
        !missing.why.is_empty() && warnings.iter().any(says)
    };
    let reason = |role: &&Execution| match &role.ipc {
        Reading::Missing(missing) if !warned(missing) => {
            Some(format!("missing: {}", joined(&words::with_remedy(missing))))
        }
        _ => None,
    };
    let reasons: BTreeSet<String> = known().filter_map(reason).collect();
    notes.extend(reasons);
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn what_is_missing_is_said_once() {
        let why = || Reading::Missing(Missing::with_remedy("this VM exposes no PMU", "measure on metal"));
        let mut role = Execution {
            ipc: why(),
            instructions_per_request: why(),
            cycles_per_request: Reading::Measured(15_900.0),
            cycles_from: CyclesFrom::Clock,
            on_pmu: None,
            events_per_request: BTreeMap::new(),
        };
        let load = Execution { cycles_per_request: why(), ..role.clone() };
        let names = |roles: &[Option<&Execution>; 2]| {
            figures(roles).into_iter().map(|(name, ..)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(&[Some(&role), Some(&load)]), ["cycles a request"]);
        let reported = [
            "Cycles are CPU time × the effective clock.",
            "missing: this VM exposes no PMU (measure on metal)",
        ];
        assert_eq!(notes(&[Some(&role), Some(&load)], &[]), reported);
        let warning = Warning {
            id: "could-not-judge".into(),
            text: "could not judge cold-caches: this VM exposes no PMU".into(),
            hint: "measure on metal".into(),
        };
        assert_eq!(notes(&[Some(&role), Some(&load)], &[warning]), reported[..1]);

        (role.ipc, role.cycles_from, role.on_pmu) = (Reading::Measured(1.5), CyclesFrom::Pmu, Some(0.25));
        role.events_per_request.insert("llc_misses".into(), 7.0);
        let expected = ["instructions per cycle", "cycles a request", "llc misses a request"];
        assert_eq!(names(&[Some(&role), None]), expected);
        let [turns] = notes(&[Some(&role), None], &[]).try_into().unwrap_or_default();
        assert!(turns.contains("25\u{a0}% of the run"), "{turns}");
    }
}
