//! Gross, the tare parts, net: what was measured, what was taken, what is left to the program itself.

use super::scale::Scale;
use super::source::{Medium, Section, Source};
use crate::block::{Block, Column, Hue, Row, Step, Table, Text, Tone};
use crate::format::{NONE, count, hertz, logarithm, percent, seconds, spread, with_unit};
use crate::words;
use tare_model::outcome::{AgainstReference, Net, NetOrMissing, TarePart};
use tare_model::reference_level::ReferenceLevel;

pub(crate) static SECTION: Section =
    Section { title: "Weight", media: &[Medium::Terminal, Medium::Markdown, Medium::Page], build };

/// A part's interval narrower than this is not worth a figure.
const SPREAD_LN_MIN: f64 = 0.0002;
/// Net that is below gross by more is explained in a sentence.
const BELOW_MIN: f64 = 0.02;
/// Parts below this share of ln are one line together.
const SMALL_LN: f64 = 0.001;

/// The unit of a program's figures.
const SECONDS: &str = "s";

fn build(source: &Source) -> Vec<Block> {
    let outcome = source.outcome;
    if outcome.trials.is_empty() || outcome.answers.commands.len() > 1 {
        // Several commands have no common weight; each has its own line in their own section.
        return Vec::new();
    }
    let scale = Scale::of(outcome);
    let unit = outcome.figures.gross.unit();
    let mut rows = vec![gross_row(source)];
    let (parts, small): (Vec<&TarePart>, Vec<&TarePart>) = outcome
        .figures
        .tare
        .iter()
        .partition(|part| part.ln_share.abs() >= SMALL_LN || part.ln_share.is_nan());
    rows.extend(parts.iter().map(|part| part_row(part, &scale, unit)));
    if !small.is_empty() {
        rows.push(small_row(&small, &scale, unit));
    }
    let mut remarks = Vec::new();
    match &outcome.figures.net {
        NetOrMissing::Net(net) => {
            rows.push(net_row(net, &outcome.figures.tare));
            remarks.extend(below_gross(source, net).map(Block::Line));
            remarks.extend(net.against_reference.as_ref().map(|against| Block::Line(beside(against))));
        }
        NetOrMissing::Missing(missing) => {
            let why = missing.why.trim_end_matches('.');
            remarks.push(Block::Line(Text::new(format!("No net figure: {why}."), Tone::Warn)));
            if !missing.remedy.is_empty() {
                remarks.push(Block::Line(Text::dim(format!("hint: {}", missing.remedy))));
            }
        }
    }
    let mut blocks = Vec::new();
    if let NetOrMissing::Net(net) = &outcome.figures.net {
        let steps = steps(source, net, &scale);
        blocks.extend((!steps.is_empty()).then_some(Block::Steps(steps)));
    }
    blocks.push(Block::Table(Table { columns: columns(unit), rows }));
    blocks.extend(remarks);
    blocks
}

fn columns(unit: &str) -> Vec<Column> {
    vec![
        Column::words("", 0),
        Column::figures(if unit == SECONDS { "time" } else { unit }, 0),
        Column::words("", 1),
        Column::figures("ln", 4),
        Column::figures("share", 2),
        Column::words("", 3),
    ]
}

fn gross_row(source: &Source) -> Row {
    let gross = &source.outcome.figures.gross;
    let meaning = match source.http() {
        Some(_) => words::gross_is(source.outcome.figures.gross_is),
        None => "measured, wall time per run",
    };
    Row::Cells(vec![
        Text::strong("gross"),
        Text::strong(gross.value().map_or_else(|| NONE.into(), |value| figure(value, gross.unit()))),
        Text::dim(spread(gross.value().unwrap_or(f64::NAN), gross.ci95(), |end| figure(end, gross.unit()))),
        Text::plain(""),
        Text::plain(""),
        Text::dim(meaning),
    ])
}

fn part_row(part: &TarePart, scale: &Scale, unit: &str) -> Row {
    let tone = if part.ln_share >= SMALL_LN { Tone::Warn } else { Tone::Plain };
    let spread = match part.ci95 {
        Some([low, high]) if high - low >= SPREAD_LN_MIN => format!("±{}", percent((high - low) / 2.0)),
        _ => String::new(),
    };
    Row::Cells(vec![
        Text::new(words::id(part.cause), tone),
        Text::plain(change(scale.amount(part.ln_share), unit)),
        Text::dim(spread),
        Text::plain(logarithm(part.ln_share)),
        Text::plain(percent(scale.share(part.ln_share))),
        Text::dim(words::meaning_of(part, unit != SECONDS)),
    ])
}

fn small_row(small: &[&TarePart], scale: &Scale, unit: &str) -> Row {
    let sum: f64 = small.iter().map(|part| part.ln_share).sum();
    let names: Vec<String> = small.iter().map(|part| words::id(part.cause)).collect();
    Row::Cells(vec![
        Text::dim(if small.len() == 1 { names[0].clone() } else { format!("{} others", small.len()) }),
        Text::dim(change(scale.amount(sum), unit)),
        Text::plain(""),
        Text::dim(logarithm(sum)),
        Text::dim(percent(scale.share(sum))),
        Text::dim(if small.len() == 1 { String::new() } else { names.join(", ") }),
    ])
}

fn net_row(net: &Net, tare: &[TarePart]) -> Row {
    let total: f64 = tare.iter().map(|part| part.ln_share).sum();
    Row::Total(vec![
        Text::new("net", Tone::Good),
        Text::new(figure(net.value, &net.unit), Tone::Good),
        Text::dim(spread(net.value, net.ci95, |end| figure(end, &net.unit))),
        Text::plain(if tare.is_empty() { String::new() } else { logarithm(total) }),
        Text::plain(""),
        Text::dim(conditions(net)),
    ])
}

/// From gross to net, part by part. The amounts add up, so that each step begins where the last one ended.
fn steps(source: &Source, net: &Net, scale: &Scale) -> Vec<Step> {
    let outcome = source.outcome;
    let unit = outcome.figures.gross.unit();
    // Throughput that was taken comes back on the way to net; time that was added goes away.
    let parts: Vec<(&TarePart, f64)> = outcome
        .figures
        .tare
        .iter()
        .filter(|part| part.ln_share.abs() >= SMALL_LN)
        .filter_map(|part| scale.amount(part.ln_share).map(|amount| (part, -amount)))
        .collect();
    let Some(gross) = outcome.figures.gross.value() else { return Vec::new() };
    let mut ends = vec![gross];
    ends.extend(parts.iter().scan(gross, |at, (_, amount)| {
        *at += amount;
        Some(*at)
    }));
    let longest = ends.iter().copied().chain([net.value]).fold(0.0, f64::max);
    if longest <= 0.0 || !longest.is_finite() || ends.iter().any(|end| !end.is_finite()) {
        return Vec::new();
    }
    let whole = |label: &str, value: f64, meaning: String, hue| Step {
        label: label.into(),
        span: [0.0, value / longest],
        figure: with_unit(value, unit),
        meaning,
        hue,
    };
    let mut steps = vec![whole("gross", gross, "as measured".into(), Hue::Server)];
    steps.extend(parts.iter().zip(ends.windows(2)).map(|((part, _), ends)| Step {
        label: words::id(part.cause),
        span: [ends[0] / longest, ends[1] / longest],
        figure: change(scale.amount(part.ln_share), unit),
        meaning: format!(
            "{}: {}",
            words::meaning_of(part, unit != SECONDS),
            percent(scale.share(part.ln_share))
        ),
        hue: if part.ln_share > 0.0 { Hue::Throttled } else { Hue::Net },
    }));
    steps.push(whole("net", net.value, conditions(net), Hue::Net));
    steps
}

/// What makes net less than what was measured, where it clearly is.
fn below_gross(source: &Source, net: &Net) -> Option<Text> {
    let figures = &source.outcome.figures;
    let gross = source.http().and_then(|_| figures.gross.value())?;
    let below = 1.0 - net.value / gross;
    let least = figures.tare.iter().min_by(|a, b| a.ln_share.total_cmp(&b.ln_share))?;
    (below > BELOW_MIN && least.ln_share < 0.0).then(|| {
        Text::new(
            format!(
                "Net is {} below gross, most of all by {} ({}). Gross is what it did in these trials; net is for \
                 comparing it with other runs.",
                percent(below),
                words::id(least.cause),
                words::meaning_of(least, true)
            ),
            Tone::Warn,
        )
    })
}

/// Net beside the reference server's.
fn beside(against: &AgainstReference) -> Text {
    let interference =
        if against.interference_corrected { "; the machine's interference is taken out of net" } else { "" };
    // Of a server that sleeps it is next to nothing.
    let shown = |ratio: f64| if against.ratio < 0.1 { percent(ratio) } else { format!("{ratio:.3}") };
    let spread = spread(against.ratio, against.ci95, shown);
    let spread = if spread.is_empty() { spread } else { format!(" ({spread})") };
    let level = against.level.as_ref().map_or_else(String::new, |level| format!(" {}", stated_at(level)));
    Text::dim(format!(
        "net is {}{spread} of what tare's own server does on such a CPU, interleaved with it{interference}.{level}",
        shown(against.ratio)
    ))
}

/// The level of the reference, and how well it is known.
fn stated_at(level: &ReferenceLevel) -> String {
    let known = percent(level.half_ln);
    let each = seconds(level.cost_s);
    match level.sessions {
        0 | 1 => format!(
            "Undisturbed, that server takes {each} of a CPU for a request, known to ±{known} from one session of this boot: more sessions make it better known."
        ),
        sessions => format!(
            "Undisturbed, that server takes {each} of a CPU for a request, known to ±{known} from {sessions} sessions of this boot."
        ),
    }
}

/// What a net figure holds for.
pub(super) fn conditions(net: &Net) -> String {
    let cpus = count(net.cpus);
    let cpus = if cpus == "1" { "on 1 CPU".into() } else { format!("on {cpus} CPUs") };
    let clock = net.ref_clock_hz.map(|hz| format!(" at {}", hertz(hz))).unwrap_or_default();
    match net.transport.as_str() {
        "none" | "" => format!("{cpus}{clock}"),
        transport => format!("{cpus}{clock}, {transport}"),
    }
}

/// A figure under a heading that has the unit, but for times, whose prefixes differ.
fn figure(value: f64, unit: &str) -> String {
    if unit == "s" { with_unit(value, unit) } else { count(value) }
}

/// An amount with its sign.
fn change(amount: Option<f64>, unit: &str) -> String {
    let Some(amount) = amount else { return String::new() };
    // Less than half a request or a nanosecond is nothing.
    let least = if unit == "s" { 0.5e-9 } else { 0.5 };
    let amount = if amount.abs() < least { 0.0 } else { amount };
    let figure = if unit == "s" { seconds(amount) } else { count(amount) };
    if amount > 0.0 && figure != NONE { format!("+{figure}") } else { figure }
}
