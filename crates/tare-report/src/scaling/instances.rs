//! Instances of a service: what each does alone and together, what took the difference, and how evenly they lose.

use crate::block::{Block, Column, Row, Table, Text};
use crate::format::{NONE, between, count, percent, ratio, seconds, with_unit};
use tare_model::Reading;
use tare_model::instances::{Instance, InstanceState, Taken, TakenBy};
use tare_model::outcome::Estimate;
use tare_model::scaling::{LevelAccounting, ScaleOutcome};

/// Instances of which a line is said; all stand in the tables.
const SAID: usize = 4;

/// What a reader takes away: what each keeps, and the lines of those that lost most.
pub(super) fn sentences(outcome: &ScaleOutcome) -> Vec<String> {
    let mut known: Vec<(&Instance, &Estimate)> =
        outcome.instances.iter().filter_map(|instance| Some((instance, instance.kept.value()?))).collect();
    known.sort_by(|one, other| one.1.value.total_cmp(&other.1.value));
    let (Some(least), Some(most)) = (known.first(), known.last()) else { return Vec::new() };
    let all = outcome.instances.len();
    let which = match known.len() {
        judged if judged < all => {
            format!("Of {all} instances together {judged} could be judged; each of these")
        }
        _ => format!("Of {all} instances together each"),
    };
    let mut said = vec![format!(
        "{which} keeps {} of what it does alone.",
        match percent(least.1.value) == percent(most.1.value) {
            true => percent(least.1.value),
            false => between([least.1.value, most.1.value], percent),
        }
    )];
    let lines = known.iter().take(SAID).filter_map(|(instance, _)| {
        let line = instance.summary.value()?;
        Some(format!("Instance {}: {line}.", instance.i))
    });
    said.extend(lines);
    said
}

/// Each instance in both states.
pub(super) fn table(outcome: &ScaleOutcome) -> Vec<Block> {
    if outcome.instances.is_empty() {
        return Vec::new();
    }
    let columns = vec![
        Column::figures("instance", 0),
        Column::words("CPUs", 2),
        Column::figures("alone", 0),
        Column::figures("together", 0),
        Column::figures("keeps", 0),
        Column::figures("95 %", 3),
        Column::figures("busy CPUs", 4),
        Column::figures("CPU time each", 1),
        Column::figures("IPC", 2),
    ];
    let rows = outcome.instances.iter().map(|instance| Row::Cells(cells(instance).map(Text::plain).to_vec()));
    let mut blocks = vec![Block::Table(Table { columns, rows: rows.collect() })];
    blocks.extend(no_ipc(&outcome.instances).map(|why| Block::Line(Text::dim(format!("No IPC: {why}.")))));
    blocks
}

fn cells(instance: &Instance) -> [String; 9] {
    let states = [&instance.alone, &instance.together];
    let figures = states.map(|state| {
        let estimate = state.estimate.value();
        estimate.map_or_else(|| NONE.to_owned(), |estimate| with_unit(estimate.value, &estimate.unit))
    });
    let both = |of: fn(&LevelAccounting) -> Option<f64>, each: fn(f64) -> String| {
        let known = |state: &InstanceState| state.accounting.value().and_then(of);
        let known = states.map(|state| known(state).map_or_else(|| NONE.to_owned(), each));
        if known.iter().all(|known| known == NONE) { NONE.to_owned() } else { known.join(" → ") }
    };
    let kept = instance.kept.value();
    let [alone, together] = figures;
    [
        instance.i.to_string(),
        cpus(instance),
        alone,
        together,
        kept.map_or_else(|| NONE.to_owned(), |kept| percent(kept.value)),
        kept.and_then(|kept| kept.ci95).map_or_else(String::new, |ends| between(ends, percent)),
        both(|of| of.cpus_busy, ratio),
        both(|of| of.cpu_s_per_unit, seconds),
        both(|of| of.ipc, ratio),
    ]
}

fn cpus(instance: &Instance) -> String {
    let list = tare_model::CpuSet::from(instance.cpus.as_slice()).to_string();
    if instance.shared_cpus.is_empty() { list } else { format!("{list} (shared)") }
}

/// The one reason for which no instance has an IPC.
fn no_ipc(instances: &[Instance]) -> Option<String> {
    let of = |instance: &Instance| match &instance.alone.ipc {
        Reading::Missing(missing) => Some(missing.why.clone()),
        _ => None,
    };
    let all: Option<Vec<String>> = instances.iter().map(of).collect();
    all?.into_iter().next()
}

/// What took it from each.
pub(super) fn taken(outcome: &ScaleOutcome) -> Vec<Block> {
    let mut rows = Vec::new();
    for instance in outcome.instances.iter().filter(|instance| !instance.taken.is_empty()) {
        let kept = instance.kept.value().map_or_else(|| NONE.to_owned(), |kept| percent(kept.value));
        rows.push(Row::Heading(Text::strong(format!("instance {}: keeps {kept}", instance.i))));
        rows.extend(instance.taken.iter().map(row));
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let columns =
        vec![Column::words("what took it", 0), Column::figures("share", 0), Column::words("evidence", 1)];
    vec![Block::Table(Table { columns, rows })]
}

fn row(taken: &Taken) -> Row {
    let text = if taken.by == TakenBy::NotExplained { Text::dim } else { Text::plain };
    let cells = [taken.by.words().to_owned(), percent(taken.share), taken.evidence.clone()];
    Row::Cells(cells.map(text).to_vec())
}

/// Jain's index and the range, level by level.
pub(super) fn fairness(outcome: &ScaleOutcome) -> Vec<Block> {
    if outcome.fairness.is_empty() {
        return Vec::new();
    }
    let columns = vec![
        Column::figures("instances", 0),
        Column::figures("Jain's index", 0),
        Column::figures("95 %", 2),
        Column::figures("least kept", 1),
        Column::figures("most kept", 1),
    ];
    let index = |value: f64| format!("{value:.3}");
    let share = |share: Option<f64>| share.map_or_else(|| NONE.to_owned(), percent);
    let row = |level: &tare_model::instances::Fairness| {
        let jain = level.jain.value();
        let cells = [
            count(level.n),
            jain.map_or_else(|| NONE.to_owned(), |jain| index(jain.value)),
            jain.and_then(|jain| jain.ci95).map_or_else(String::new, |ends| between(ends, index)),
            share(level.least_kept),
            share(level.most_kept),
        ];
        Row::Cells(cells.map(Text::plain).to_vec())
    };
    let table = Table { columns, rows: outcome.fairness.iter().map(row).collect() };
    let key = "1: all keep the same share of what they do alone; 1/n: one keeps all.";
    vec![Block::Table(table), Block::Line(Text::dim(key))]
}
