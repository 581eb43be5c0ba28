//! What servers differ by: one sentence for each, a row for each figure, and how much it can be trusted.

mod benchmarks;
mod treatments;
mod warmth;

use crate::block::{Block, Column, Row, Rows, Table, Text, Tone};
use crate::figures::{self, whole};
use crate::format::{self, between, logarithm, percent, seconds, with_unit};
use crate::metric_changes;
use crate::sections::{Part, warnings};
use crate::why::table::{is_clear, meaning};
use crate::{Report, words};
use std::collections::{BTreeMap, BTreeSet};
use tare_model::comparison::{
    Comparison, Disturbance, Effect, Ended, Figure, Launch, NotKnown, Part as WhyPart, Program, Verdict,
};

/// A difference that nobody would see between two columns.
const HAIR: f64 = 0.002;

/// The result, laid out.
pub fn report(comparison: &Comparison) -> Report {
    let others = comparison.programs.get(1..).unwrap_or_default();
    let mut parts = vec![Part {
        title: "",
        blocks: others
            .iter()
            .map(|program| {
                // A benchmark may run for a fixed time, whatever it does.
                treatments::headline(comparison, program)
                    .or_else(|| benchmarks::headline(comparison, program))
                    .unwrap_or_else(|| headline(comparison, program))
            })
            .collect(),
    }];
    parts.extend(Part::of("Settings", treatments::table(comparison)));
    if comparison.launches.is_empty() {
        // Nothing was run: there is nothing more to be said.
        return Report { parts, rows: rows(comparison) };
    }
    parts.extend(Part::of("Benchmarks", benchmarks::tables(comparison, others)));
    let missing =
        comparison.not_known.iter().map(|missing| Block::Line(Text::dim(not_known(missing, others.len()))));
    let figures = std::iter::once(table(comparison, others)).chain(missing).collect();
    parts.push(Part { title: "Figures", blocks: figures });
    let why = others.iter().filter_map(|program| why(comparison, program)).collect();
    parts.extend(Part::of("Where the difference is", why));
    parts.push(Part { title: "How far to trust it", blocks: trust(comparison) });
    parts.extend(warnings::part(&comparison.warnings));
    Report { parts, rows: rows(comparison) }
}

/// What the first program is called, which the others are held against.
fn baseline(comparison: &Comparison) -> &str {
    comparison.programs.first().map_or("", |first| first.name.as_str())
}

fn rows(comparison: &Comparison) -> Rows {
    let row = |effect: &Effect| {
        let Effect { program, figure, baseline, value, change, .. } = effect;
        let said = (effect.verdict, effect.launches as f64, effect.detectable);
        figures::csv((program, figure.name(), false), [Some(*baseline), Some(*value)], *change, said)
    };
    let launches = comparison.launches.len();
    let metrics = comparison.benchmarks.iter().map(|effect| metric_changes::csv(effect, launches));
    Rows {
        header: figures::HEADER,
        rows: comparison.effects.iter().map(row).chain(metrics).chain(treatments::rows(comparison)).collect(),
    }
}

/// The result as one JSON object.
///
/// # Errors
/// None that is known: every key is a string, and a number that is not finite becomes `null`.
pub fn json(comparison: &Comparison) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(comparison).map(|text| text + "\n")
}

/// What differs, the firmest first: its cost, then its rate, then latencies.
fn headline(comparison: &Comparison, program: &Program) -> Block {
    let of_program = |effect: &&Effect| effect.program == program.name;
    let effects: Vec<&Effect> = comparison.effects.iter().filter(of_program).collect();
    let decided = [Verdict::Faster, Verdict::Slower].map(|verdict| {
        let with = effects.iter().filter(|effect| effect.verdict == verdict);
        let with: Vec<&&Effect> = with.collect();
        // Net is the CPU time of a request turned round: it is named where that is not.
        let is_named = |effect: &&&Effect| effect.figure.is_of_its_own() || with.len() == 1;
        let named = with.iter().copied().filter(is_named);
        named.map(|effect| figures::named(effect.figure, effect.change)).collect()
    });
    let text = figures::headline([&program.name, baseline(comparison)], ["faster", "slower"], decided);
    Block::Headline(text.unwrap_or_else(|| undecided(comparison, program, &effects)))
}

fn undecided(comparison: &Comparison, program: &Program, effects: &[&Effect]) -> Text {
    let first = baseline(comparison);
    let name = &program.name;
    let margin = format::percent(comparison.margin);
    let same: Vec<&str> = effects
        .iter()
        .filter(|effect| effect.verdict == Verdict::NoDifference)
        .map(|effect| effect.figure.title())
        .collect();
    match same.as_slice() {
        [] => Text::new(format!("It is not known whether {name} differs from {first}."), Tone::Warn),
        all if all.len() == effects.len() => {
            Text::strong(format!("{name} does not differ from {first} by more than {margin}."))
        }
        some => Text::strong(format!(
            "{name} does not differ from {first} by more than {margin} in {}; of the rest it is not known.",
            some.join(", ")
        )),
    }
}

/// What a rate or a CPU time that was shown to differ is made of; shares are of the rate's difference.
fn why(comparison: &Comparison, program: &Program) -> Option<Block> {
    let decided = |figure: Figure| {
        let mut effects = comparison.effects.iter();
        effects.find(|effect| {
            effect.program == program.name
                && effect.figure == figure
                && matches!(effect.verdict, Verdict::Faster | Verdict::Slower)
        })
    };
    let rate = decided(Figure::Throughput);
    rate.or_else(|| decided(Figure::CpuPerRequest))?;
    let whole_ln = rate.and_then(|rate| Some(rate.change?.value.ln_1p()));
    let all: Vec<&WhyPart> = comparison.parts.iter().filter(|part| part.program == program.name).collect();
    let mut parts: Vec<&WhyPart> = all.iter().copied().filter(|part| part.within.is_none()).collect();
    parts.sort_by(|one, other| other.ln.abs().total_cmp(&one.ln.abs()));
    let parts = parts.into_iter().flat_map(|part| {
        let own = all.iter().copied().filter(|own| own.within.as_ref() == Some(&part.id));
        std::iter::once(part).chain(own)
    });
    let side = |value: Option<f64>, unit: &str| {
        value.map_or_else(|| format::NONE.to_owned(), |value| with_unit(value, unit))
    };
    let row = |part: &WhyPart| {
        let name = match part.within {
            Some(_) => Text::plain(format!("\u{a0}\u{a0}{}", part.id)),
            None => Text::strong(&part.id),
        };
        let ends = part.ci95.map(|ends| between(ends, logarithm));
        Row::Cells(vec![
            name,
            Text::plain(side(part.from, &part.unit)),
            Text::plain(side(part.to, &part.unit)),
            Text::plain(logarithm(part.ln)),
            Text::dim(ends.unwrap_or_default()),
            Text::plain(whole_ln.map_or_else(|| format::NONE.to_owned(), |whole| percent(part.ln / whole))),
            Text::dim(if is_over_full(part, comparison) { WORKED_OFF } else { meaning(&part.id) }),
        ])
    };
    let columns = vec![
        Column::words(if comparison.programs.len() > 2 { &program.name } else { "" }, 0),
        Column::figures(baseline(comparison), 2),
        Column::figures(&program.name, 2),
        Column::figures("ln", 0),
        Column::words("95 %", 1),
        Column::figures("share", 0),
        Column::words("", 3),
    ];
    let rows: Vec<Row> = parts.map(row).collect();
    (!rows.is_empty()).then_some(Block::Table(Table { columns, rows }))
}

/// Why a server can take more than its CPUs in its turns.
const WORKED_OFF: &str = "CPU time over its turns; some requests are answered after their turn";

fn is_over_full(part: &WhyPart, comparison: &Comparison) -> bool {
    let cpus = comparison.sut_cpus.len() as f64;
    part.id == "busy" && cpus > 0.0 && [part.from, part.to].into_iter().flatten().any(|share| share > cpus)
}

fn table(comparison: &Comparison, others: &[Program]) -> Block {
    let first = baseline(comparison);
    let other = if let [only] = others { only.name.as_str() } else { "other" };
    let mut columns = figures::columns([first, other]);
    columns.push(Column::figures("A/A control", 3));
    let mut rows = Vec::new();
    for program in others {
        if others.len() > 1 {
            rows.push(Row::Heading(Text::strong(format!("{}, against {first}", program.name))));
        }
        let effects = comparison.effects.iter().filter(|effect| effect.program == program.name);
        rows.extend(effects.map(|effect| row(effect, comparison.margin)));
    }
    Block::Table(Table { columns, rows })
}

fn row(effect: &Effect, margin: f64) -> Row {
    let sides = [Some(effect.baseline), Some(effect.value)];
    let mut cells = figures::cells((effect.figure, false), sides, (effect.change, effect.verdict), margin);
    cells.push(Text::dim(effect.aa_control.map_or_else(|| format::NONE.to_owned(), whole)));
    Row::Cells(cells)
}

/// `p99.9 is missing: 3 of 9 launches …; give …`
fn not_known(missing: &NotKnown, others: usize) -> String {
    let NotKnown { program, figure, why } = missing;
    let of = if others > 1 { format!(" of {program}") } else { String::new() };
    format!("{}{of} is missing: {}", figure.title(), words::then_remedy(why))
}

fn trust(comparison: &Comparison) -> Vec<Block> {
    let launches = comparison.launches.len();
    let ended = match comparison.ended {
        Some(Ended::Precise) => "as precise as was asked for",
        Some(Ended::Budget) => "the budget is used up",
        None => "cut short",
    };
    let first = comparison.programs.first().map_or("the first", |first| first.name.as_str());
    let mut pairs = vec![
        (
            "launches",
            format!("{launches} in {:.0} s, each with fresh processes; {ended}", comparison.elapsed_s),
        ),
        (
            "intervals",
            format!(
                "95 % for all {} together (Šidák), whenever it ended; widened by what {first} differs from itself",
                comparison.effects.iter().filter(|effect| effect.figure.is_of_its_own()).count()
            ),
        ),
    ];
    if !comparison.benchmarks.is_empty() {
        pairs.push((
            "benchmarks",
            format!(
                "95 % for all {} metrics together, apart from the times; a value is the median of a launch's runs",
                comparison.benchmarks.len()
            ),
        ));
    }
    let opposed = opposed(comparison);
    if !opposed.is_empty() {
        let why = "the columns are medians of all launches, the change is of pairs within a launch, and counts: machines move between launches";
        pairs.push(("columns", format!("{opposed}: {why}")));
    }
    let adjusted = of_deciding(comparison, |effect| effect.adjusted.map(whole));
    if !adjusted.is_empty() {
        let how = "at the median of how fast core and memory were in the launches (linear; verdicts go by what is not adjusted)";
        pairs.push(("adjusted", format!("{adjusted}, {how}")));
    }
    let shows = of_deciding(comparison, |effect| {
        effect.detectable.map(|share| format!("{:.1}\u{a0}%", share * 100.0))
    });
    if !shows.is_empty() {
        pairs.push((
            "would show",
            format!("{shows}, in nine of ten comparisons as long as this one may take"),
        ));
    }
    let takes =
        of_deciding(comparison, |effect| effect.one_percent_s.map(|took_s| format!("{took_s:.0}\u{a0}s")));
    if !takes.is_empty() {
        pairs.push(("±1 % takes", takes));
    }
    pairs.extend(warmth::warm_up(comparison).map(|text| ("warm-up", text)));
    pairs.extend(warmth::windows(comparison).map(|text| ("windows", text)));
    pairs.extend(warmth::interleaving(comparison, whole).map(|text| ("interleaving", text)));
    pairs.push(("disturbed", disturbed(&comparison.launches)));
    pairs.push(("turns", turns(comparison)));
    let reported = pairs.into_iter().map(|(label, text)| (label.to_owned(), text));
    let programs = comparison.programs.iter().map(|program| {
        let with = treatments::with(comparison, program);
        let words = [Some(program.command.as_str()), program.url.as_deref(), with.as_deref()];
        (program.name.clone(), words.into_iter().flatten().collect::<Vec<_>>().join("  "))
    });
    vec![Block::Pairs(reported.chain(programs).collect())]
}

/// Figures whose columns say the opposite of their change, by more than a hair.
fn opposed(comparison: &Comparison) -> String {
    let is_opposed = |effect: &&Effect| {
        let Some(change) = effect.change else { return false };
        let columns = effect.value / effect.baseline - 1.0;
        columns.is_finite()
            && is_clear(change.interval)
            && columns * change.value < 0.0
            && columns.abs() > HAIR
    };
    let titles: BTreeSet<&str> =
        comparison.effects.iter().filter(is_opposed).map(|effect| effect.figure.title()).collect();
    let titles: Vec<&str> = titles.into_iter().collect();
    titles.join(", ")
}

/// `0.9 % for throughput, 0.7 % for CPU time of a request`: what is reported of the firm figures.
fn of_deciding(comparison: &Comparison, reported: impl Fn(&Effect) -> Option<String>) -> String {
    let firm = |effect: &&Effect| effect.figure.describe().is_firm;
    let each = comparison.effects.iter().filter(firm).filter_map(|effect| {
        let of = if comparison.programs.len() > 2 { format!(" ({})", effect.program) } else { String::new() };
        Some(format!("{} for {}{of}", reported(effect)?, effect.figure.title()))
    });
    each.collect::<Vec<_>>().join(", ")
}

fn turns(comparison: &Comparison) -> String {
    let seed = comparison.seed;
    if comparison.is_of_commands() {
        let runs: u64 =
            comparison.launches.iter().flat_map(|launch| &launch.arms).map(|arm| arm.answers).sum();
        let on = match comparison.sut_cpus.as_slice() {
            [] => String::new(),
            cpus => format!(" on CPU {}", listed(cpus)),
        };
        return format!("{runs} runs{on}, one of each interleaved; seed {seed}");
    }
    if !comparison.treatments.is_empty() {
        return format!(
            "one server after another, each from its start to its end; generators on CPU {}; seed {seed}",
            listed(&comparison.load_cpus)
        );
    }
    format!(
        "{} each, servers on CPU {}, generators on CPU {}; seed {seed}",
        seconds(comparison.turn_ns as f64 / 1e9),
        listed(&comparison.sut_cpus),
        listed(&comparison.load_cpus),
    )
}

fn listed(cpus: &[u32]) -> String {
    cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(",")
}

/// What it is called in a list.
pub(crate) fn disturbance(what: Disturbance) -> &'static str {
    match what {
        Disturbance::Steal => "steal",
        Disturbance::Throttled => "throttled",
        Disturbance::Slow => "everything slow",
    }
}

fn disturbed(launches: &[Launch]) -> String {
    let mut kinds: BTreeMap<Disturbance, usize> = BTreeMap::new();
    launches
        .iter()
        .flat_map(|launch| &launch.disturbed)
        .for_each(|what| *kinds.entry(*what).or_default() += 1);
    let any = launches.iter().filter(|launch| !launch.disturbed.is_empty()).count();
    if any == 0 {
        return "no launch".to_owned();
    }
    let each = kinds.into_iter().map(|(what, times)| format!("{} {times}", disturbance(what)));
    format!("{any} of {} launches ({}); they count", launches.len(), each.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tare_model::Missing;
    use tare_model::comparison::Change;
    use tare_model::comparison::{Arm, Interference, SCHEMA};
    use tare_model::outcome::Warning;

    #[test]
    fn says_what_differs_and_how_far_to_trust_it() {
        let program = |name: &str| Program {
            name: name.into(),
            command: format!("./{name} {{port}}"),
            url: Some("/".into()),
        };
        let change = |value: f64| Some(Change { value, interval: [value - 0.01, value + 0.01] });
        let effect = |figure, value, verdict| Effect {
            program: "B".into(),
            figure,
            baseline: 5e-6,
            value: 5e-6,
            launches: 20,
            change: change(value),
            adjusted: change(value + 0.002),
            aa_control: change(0.001),
            verdict,
            detectable: Some(0.012),
            one_percent_s: Some(31.0),
        };
        let arm = Arm {
            waited_ns: None,
            throttled_ns: None,
            quota_cpus: None,
            modes: None,
            own_ns: 1,
            answers: 1,
            errors: 0,
            cpu_ns: None,
            figures: BTreeMap::new(),
            windows_s: Vec::new(),
            alone_s: None,
            benchmarks: Vec::new(),
        };
        let launch = |disturbed| Launch {
            turn_ns: 0,
            begin_s: 0.0,
            took_s: 1.0,
            arms: vec![arm.clone(), arm.clone(), arm.clone()],
            interference: Interference::default(),
            disturbed,
            warm_up: None,
        };
        let mut comparison = Comparison {
            schema: SCHEMA,
            argv: Vec::new(),
            programs: vec![program("A"), program("B")],
            seed: 7,
            budget_s: 60.0,
            precision: 0.01,
            margin: 0.02,
            planned: Some(60),
            turn_ns: 5_000_000,
            sut_cpus: vec![0],
            load_cpus: vec![1],
            ended: Some(Ended::Precise),
            elapsed_s: 20.0,
            launches: vec![launch(vec![Disturbance::Steal]), launch(Vec::new())],
            parts: Vec::new(),
            effects: vec![
                effect(Figure::Net, -0.03, Verdict::Slower),
                effect(Figure::CpuPerRequest, 0.031, Verdict::Slower),
                effect(Figure::P99, 0.004, Verdict::NoDifference),
            ],
            interleaving: Vec::new(),
            treatments: Vec::new(),
            benchmarks: Vec::new(),
            not_known: vec![NotKnown {
                program: "B".into(),
                figure: Figure::P999,
                why: Missing::with_remedy("too few answers", "give --window 2.0s"),
            }],
            warnings: vec![Warning { id: "not-saturated".into(), text: "idle".into(), hint: "-c".into() }],
        };
        let shown = |comparison: &Comparison| {
            report(comparison)
                .terminal(crate::Style { color: false, width: 140, unicode: true })
                .replace('\u{a0}', " ")
        };
        let text = shown(&comparison);
        for wanted in [
            "B is slower than A: CPU time of a request +3.10 % (+2.10 to +4.10).",
            "no difference beyond 2.0 %",
            "p99.9 is missing: too few answers; give --window 2.0s",
            "95 % for all 2 together",
            "adjusted    +3.30 % (+2.30 to +4.30) for CPU time of a request, at the median",
            "2 in 20 s",
            "as precise as was asked for",
            "1.2 % for CPU time of a request",
            "31 s for CPU time",
            "1 of 2 launches (steal 1); they count",
            "not-saturated",
            "./B {port}",
        ] {
            assert!(text.contains(wanted), "{wanted} in\n{text}");
        }
        comparison.effects.drain(..2);
        assert!(shown(&comparison).contains("B does not differ from A by more than 2.0 %."));
        comparison.effects[0].verdict = Verdict::CannotTell;
        assert!(shown(&comparison).contains("It is not known whether B differs from A."));
        let back: Comparison = serde_json::from_str(&json(&comparison).unwrap()).unwrap();
        assert_eq!(back, comparison);
    }
}
