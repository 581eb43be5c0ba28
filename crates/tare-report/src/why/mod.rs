//! Why two runs differ, and why one is what it is.

mod difference;
mod frames;
mod per_core;
mod story;
pub(crate) mod table;

use self::table::{corrected, is_clear};
use crate::block::{Block, Field, Row, Rows, Table, Text, Tone};
use crate::figures;
use crate::format::{between, count, joined, logarithm, percent, with_unit};
use crate::sections::{Part, Source, warnings};
use crate::{Report, words};
use tare_model::comparison::{MARGIN, Verdict};
use tare_model::figure::{self, Figure};
use tare_model::gate::Effect;
use tare_model::outcome::{Gross, GrossIs, Outcome};
use tare_model::why::{Change, Part as WhyPart, Run, Why};
use tare_model::{Reading, Record};

/// Of the whole, a part that is larger is not the answer to what the difference is: another cancels it.
const CANCELS_SHARE: f64 = 1.5;

/// Why two runs differ, laid out: how much, which part of it is what, and what else was not the same.
pub fn report(why: &Why) -> Report {
    Report { parts: parts(why), rows: rows(why) }
}

fn rows(why: &Why) -> Rows {
    let row = |name: &str, sides: [Option<f64>; 2], unit: &str, ln: f64, ci95: Option<[f64; 2]>| {
        let ([a, b], [low, high]) = (sides.map(Field::from), Field::ends(ci95));
        vec![name.into(), a, b, unit.into(), ln.into(), low, high]
    };
    let of = |name: &str, change: &Change| {
        row(name, [Some(change.from), Some(change.to)], &change.unit, change.ln, change.ci95)
    };
    let mut rows: Vec<Vec<Field>> = Vec::new();
    rows.extend(why.rate.value().map(|rate| of("rate", rate)));
    let corrected = why.interference_corrected;
    rows.extend(corrected.map(|one| row("interference_corrected", [None; 2], "", one.ln, one.ci95)));
    rows.extend(why.net.value().map(|net| of("net", net)));
    rows.extend(why.per_core.iter().map(|change| of("per_core", change)));
    let figure = |effect: &Effect| {
        let change = effect.change.value()?;
        let ci95 = Some(change.interval.map(f64::ln_1p));
        let unit =
            if effect.of_reference { "×".to_owned() } else { words::id(effect.figure.describe().unit) };
        Some(row(effect.figure.name(), [effect.baseline, effect.value], &unit, change.value.ln_1p(), ci95))
    };
    let is_above = |figure: Figure| match figure {
        Figure::Throughput => why.rate.value().is_some(),
        Figure::Net => why.net.value().is_some(),
        _ => false,
    };
    let figures = why.figures.iter().filter(|effect| !is_above(effect.figure));
    rows.extend(figures.filter_map(figure));
    let parts = why.parts.value().into_iter().flatten();
    rows.extend(
        parts.map(|part| row(&part.id, [Some(part.from), Some(part.to)], &part.unit, part.ln, part.ci95)),
    );
    Rows { header: &["part", "a", "b", "unit", "ln", "ci95_low", "ci95_high"], rows }
}

/// The account as the JSON object that scripts rely on, indented.
///
/// # Errors
/// None that is known: every key is a string, and a number that is not finite becomes `null`.
pub fn json(why: &Why) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(why).map(|text| text + "\n")
}

/// Why one run is what it is, laid out: the bottleneck first, then where its time went.
pub fn story(record: &Record, outcome: &Outcome) -> Report {
    let losses = outcome.accounting.sut.iter().flat_map(|sut| {
        let ran = std::iter::once(("ran".to_owned(), sut.busy_cpus));
        ran.chain(sut.losses_cpus.iter().map(|(name, lost)| (name.clone(), *lost)))
    });
    let rows = losses.map(|(name, cpus)| vec![Field::from(name), cpus.into()]).collect();
    Report {
        parts: story::parts(&Source { record, outcome }),
        rows: Rows { header: &["part", "cpus"], rows },
    }
}

fn parts(why: &Why) -> Vec<Part> {
    let parts = [
        Part::of("", lead(why)),
        Part::of("Figures", figures_of(why)),
        Part::of("Where the difference is", table::split(why)),
        Part::of("Code that takes another part of its CPU time", frames::changed(why)),
        Part::of("What else differed", difference::list(why)),
        Part::of("Not compared", difference::uncompared(why)),
        warnings::part(&why.warnings),
    ];
    parts.into_iter().flatten().collect()
}

/// All figures, and why some have no change.
fn figures_of(why: &Why) -> Vec<Block> {
    if why.figures.is_empty() {
        return Vec::new();
    }
    let rows = why.figures.iter().map(|effect| Row::Cells(figures::of_effect(effect, MARGIN))).collect();
    let mut blocks = vec![Block::Table(Table { columns: figures::columns(["A", "B"]), rows })];
    blocks.extend(figures::missing(&why.figures));
    let is_latency = |effect: &Effect| matches!(effect.figure.describe().source, figure::Source::Latency(_));
    if why.figures.iter().any(is_latency) {
        let note = "Latencies: the mean of the trials' percentiles. 'tare run' prints those of all requests together.";
        blocks.push(Block::Line(Text::plain(note)));
    }
    blocks
}

/// The sentences that a reader takes away.
fn lead(why: &Why) -> Vec<Block> {
    let mut blocks = vec![Block::Headline(headline(why))];
    let line = |text: String| Block::Line(Text::plain(joined(&text)));
    blocks.extend(why.per_core.iter().map(|change| line(per_core::sentence(change, why))));
    blocks.extend(bounds(&why.a, &why.b).map(line));
    blocks.extend(why.generator.iter().map(|generator| line(generator.clone())));
    blocks.extend(frames::sentence(why).map(line));
    blocks.push(line(net(&why.net, &why.a, &why.b)));
    let run = |name: &str, run: &Run| {
        let lock = run.lock_taken_in.as_ref();
        let lock = lock.map_or_else(String::new, |function| format!(" (its lock is taken in {function})"));
        let bottleneck = words::titled(run.bottleneck, &run.bottleneck_title) + &lock;
        let gross = match &run.gross {
            Gross::Measured(gross) => with_unit(gross.value, &gross.unit),
            Gross::Missing { .. } => "not measured".to_owned(),
        };
        let trials = words::things(run.trials as usize, "trial");
        (name.to_owned(), format!("{} · {gross} · {trials} · {bottleneck}", run.name))
    };
    blocks.push(Block::Pairs(vec![run("A", &why.a), run("B", &why.b)]));
    blocks
}

/// What to know of rates that are not what a server can do.
fn bounds(a: &Run, b: &Run) -> Option<String> {
    let named = |is: GrossIs| {
        let of = [("A", a), ("B", b)].into_iter().filter(|(_, run)| run.gross_is == is).map(|(name, _)| name);
        Some(of.collect::<Vec<_>>().join(" and ")).filter(|names| !names.is_empty())
    };
    let lower = named(GrossIs::LowerBound)
        .map(|names| format!("Lower bound: the rate of {names}; the server may do more."));
    let offered = named(GrossIs::Offered)
        .map(|names| format!("Asked for: the rate of {names}; it does not say what the server can do."));
    let said: Vec<String> = lower.into_iter().chain(offered).collect();
    (!said.is_empty()).then(|| said.join(" "))
}

fn headline(why: &Why) -> Text {
    let rate = match &why.rate {
        Reading::Measured(rate) => rate,
        Reading::Missing(missing) => {
            return Text::new(format!("The rates cannot be compared: {}.", missing.why), Tone::Warn);
        }
        Reading::NotApplicable { not_applicable } => {
            return Text::new(format!("The rates cannot be compared: {not_applicable}."), Tone::Warn);
        }
    };
    let figures = format!("{} after {}", with_unit(rate.to, &rate.unit), with_unit(rate.from, &rate.unit));
    let measured = format!("B is {} ({figures})", changed(rate.ln));
    let corrected = corrected(why);
    let all = || why.parts.value().into_iter().flatten();
    let programs = || all().filter(|part| !part.is_of_machine());
    match (corrected, rate.ci95) {
        (Some((ln, ci95)), _) if is_clear(ci95) => {
            let text = format!(
                "B is {} without the machine's interference{}. As measured it is {} ({figures}).",
                changed(ln),
                mostly(programs(), ln),
                changed(rate.ln)
            );
            Text::new(text, tone(ln))
        }
        (Some((_, ci95)), Some(of_rate)) if is_clear(of_rate) => {
            let text = format!(
                "{measured}; without the machine's interference no difference is shown ({}){}.",
                table::interval(Some(ci95)),
                moved(why, programs()).unwrap_or_default()
            );
            Text::new(text, tone(rate.ln))
        }
        (_, Some(of_rate)) if !is_clear(of_rate) => no_difference(&measured, why),
        _ if rate.ln == 0.0 => Text::new(format!("{measured}."), Tone::Strong),
        _ => Text::new(format!("{measured}{}.", mostly(all(), rate.ln)), tone(rate.ln)),
    }
}

fn tone(ln: f64) -> Tone {
    if ln < 0.0 { Tone::Warn } else { Tone::Good }
}

/// The largest part that is shown, and its share of the whole; where it is much more than the whole, what cancels it.
fn mostly<'p>(parts: impl Iterator<Item = &'p WhyPart>, whole_ln: f64) -> String {
    let mut parts: Vec<&WhyPart> = parts.collect();
    parts.sort_by(|one, other| other.ln.abs().total_cmp(&one.ln.abs()));
    if parts.is_empty() {
        return String::new();
    }
    let Some(largest) = parts.iter().find(|part| part.ci95.is_none_or(is_clear)) else {
        return ", and no part of it is shown by itself".to_owned();
    };
    let share = largest.ln / whole_ln;
    if (0.0..=CANCELS_SHARE).contains(&share) {
        return format!(": {} of it is {} ({})", percent(share), largest.id, table::meaning(&largest.id));
    }
    // A share of less than nothing, or of far more than all, says nothing.
    let named =
        |part: &WhyPart| format!("{} ({}) {} ln", part.id, table::meaning(&part.id), logarithm(part.ln));
    let said =
        |other: &&WhyPart| format!(", and its largest parts cancel: {} and {}", named(largest), named(other));
    let is_other = |part: &&&WhyPart| part.ln * largest.ln < 0.0 && part.ci95.is_none_or(is_clear);
    let cancelled = parts.iter().find(is_other).map(said);
    cancelled.unwrap_or_else(|| format!(", and the largest part that is shown is {}", named(largest)))
}

/// What is shown to differ although the rates are not: a part, net, a figure, a function. `None`: nothing.
fn moved<'p>(why: &Why, parts: impl Iterator<Item = &'p WhyPart>) -> Option<String> {
    let clear = parts.filter(|part| part.ci95.is_some_and(is_clear));
    if let Some(part) = clear.max_by(|one, other| one.ln.abs().total_cmp(&other.ln.abs())) {
        let (meaning, ln) = (table::meaning(&part.id), logarithm(part.ln));
        return Some(format!("; but its {} ({meaning}) did change: {ln} ln", part.id));
    }
    if let Some(net) = why.net.value().filter(|net| net.ci95.is_some_and(is_clear)) {
        return Some(format!("; but its net did change: {}", changed(net.ln)));
    }
    let decided = |effect: &&Effect| matches!(effect.verdict, Verdict::Faster | Verdict::Slower);
    let figures: Vec<&str> = why.figures.iter().filter(decided).map(|effect| effect.figure.title()).collect();
    if !figures.is_empty() {
        return Some(format!("; but other figures did change: {}", figures.join(", ")));
    }
    let functions = why.frames.value().map_or(0, Vec::len);
    (functions > 0).then(|| format!("; but the share of {} did change", words::things(functions, "function")))
}

/// Where the rates are not shown to differ: something else may be.
fn no_difference(measured: &str, why: &Why) -> Text {
    let without = corrected(why).map(|(ln, ci95)| {
        format!(", {} without the machine's interference ({})", changed(ln), table::interval(Some(ci95)))
    });
    let measured = format!("{measured}{}", without.unwrap_or_default());
    match moved(why, why.parts.value().into_iter().flatten()) {
        Some(moved) => Text::new(format!("{measured}, which trials alone may differ by{moved}."), Tone::Warn),
        None => Text::new(
            format!(
                "No difference is shown: {measured}, which trials alone may differ by; nor is one in any part of it."
            ),
            Tone::Good,
        ),
    }
}

/// `49 % slower`, `3.1 % faster`.
fn changed(ln: f64) -> String {
    let share = ln.exp_m1();
    match share {
        share if share < 0.0 => format!("{} slower", percent(-share)),
        share if share > 0.0 => format!("{} faster", percent(share)),
        _ => "as fast".to_owned(),
    }
}

fn net(net: &Reading<Change>, a: &Run, b: &Run) -> String {
    let change = match net {
        Reading::Measured(change) => change,
        Reading::Missing(missing) => {
            return format!("No net figure to compare: {}.", missing.why.trim_end_matches('.'));
        }
        Reading::NotApplicable { not_applicable } => return format!("No net figure: {not_applicable}."),
    };
    let figures = match change.unit.starts_with("of ") {
        true => format!("{} after {} {}", count(change.to), count(change.from), change.unit),
        false => {
            format!("{} after {}", with_unit(change.to, &change.unit), with_unit(change.from, &change.unit))
        }
    };
    let clock = |run: &Run| match &run.net {
        tare_model::outcome::NetOrMissing::Net(net) => net.ref_clock_hz,
        tare_model::outcome::NetOrMissing::Missing(_) => None,
    };
    let clocks = match (clock(a), clock(b)) {
        (Some(one), Some(other)) if (one / other - 1.0).abs() > 0.005 => format!(
            "; stated at {} and {}: give both --ref-clock to compare the programs",
            with_unit(one, "Hz"),
            with_unit(other, "Hz")
        ),
        _ => String::new(),
    };
    let said = match change.ci95 {
        Some([low, high]) if low <= 0.0 && high >= 0.0 => {
            format!("the program itself did not change beyond what trials differ by ({figures})")
        }
        Some(ends) => format!(
            "the program itself is {} ({figures}; {} ln)",
            changed(change.ln),
            between(ends, logarithm)
        ),
        None => format!(
            "{} ({figures}), with no interval to tell whether trials alone differ by that",
            changed(change.ln)
        ),
    };
    format!("Net: {said}{clocks}.")
}
