//! The parts of the difference: a table, and a waterfall from A to B.

use crate::block::{Block, Column, Hue, Row, Step, Table, Text, Tone};
use crate::format::{NONE, between, logarithm, percent, with_unit};
use crate::words;
use tare_model::Reading;
use tare_model::outcome::TareCause;
use tare_model::why::{Change, Corrected, Part, Why};

/// Parts below this, in ln, are one line together unless their interval lies clear of 0.
const SMALL_LN: f64 = 0.001;
/// Characters of a whole bar in text.
const BAR_CHARS: f64 = 24.0;

/// What a part is.
pub(crate) fn meaning(id: &str) -> &'static str {
    match id {
        "cost" => "what a request takes of a CPU",
        "interference" => "what the machine did to every program",
        "underload" => "at the asked load a request takes more than at saturation",
        "clock" => "how fast its CPUs ran",
        "instructions" => "instructions of a request",
        "ipc" => "instructions in a cycle",
        "entitlement" => "CPUs it could use",
        "busy" => "CPUs it kept busy",
        "user" => "in its own code",
        "kernel" => "in the kernel, for it",
        "waited-for-cpu" => words::meaning(TareCause::Preempted),
        "unexplained" => "in no account",
        "throttled" => "held back by a quota",
        "lock" => "in a futex: a lock, or no work",
        "disk" => "waited for a disk",
        "downstream" => "waited for another server",
        "timer" => "slept by itself",
        "fault" => "waited for a page",
        // As the weight of a run has it.
        cause => serde_json::from_value::<TareCause>(cause.into()).map_or("lost", words::meaning),
    }
}

/// Table and waterfall.
pub(super) fn split(why: &Why) -> Vec<Block> {
    let (Some(parts), Some(rate)) = (why.parts.value(), why.rate.value()) else {
        return match &why.parts {
            Reading::Missing(missing) => {
                vec![Block::Line(Text::new(format!("{}.", missing.why), Tone::Warn))]
            }
            _ => Vec::new(),
        };
    };
    let (shown, small): (Vec<&Part>, Vec<&Part>) = parts.iter().partition(|part| {
        let clear = part.ci95.is_some_and(is_clear);
        part.ln.abs() >= SMALL_LN || clear && part.ln.abs() >= SMALL_LN / 10.0
    });
    let mut at = 0.0;
    let ends: Vec<[f64; 2]> = shown
        .iter()
        .map(|part| {
            let begin = at;
            at += part.ln;
            [begin, at]
        })
        .collect();
    let low = ends.iter().flatten().copied().fold(0.0, f64::min);
    let high = ends.iter().flatten().copied().fold(0.0, f64::max);
    let whole = Whole::of(why, rate);
    let mut rows: Vec<Row> =
        shown.iter().zip(&ends).map(|(part, ends)| row(part, &whole, bar(*ends, low, high))).collect();
    if !small.is_empty() {
        rows.push(rest(&small, &whole));
    }
    rows.extend(whole.without_machine.map(|corrected| without_machine(corrected, &whole)));
    rows.push(total(rate, &whole));
    let waterfall = steps(&shown, &ends, rate, &whole);
    let columns = vec![
        Column::words("part", 0),
        Column::figures("A", 2),
        Column::figures("B", 2),
        Column::figures("ln", 0),
        Column::words("95 % together", 1),
        Column::figures("share", 1),
        Column::words("", 3),
        Column::words("", 4),
    ];
    let mut blocks: Vec<Block> =
        (!waterfall.is_empty()).then_some(Block::Steps(waterfall)).into_iter().collect();
    blocks.push(Block::Table(Table { columns, rows }));
    blocks.push(Block::Line(Text::dim(format!("{}.", capital(&why.method)))));
    blocks
}

fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// The difference without what the machine did to every program, where it has an interval.
pub(super) fn corrected(why: &Why) -> Option<(f64, [f64; 2])> {
    why.interference_corrected.and_then(|corrected| Some((corrected.ln, corrected.ci95?)))
}

/// The difference whose parts are given, and whether those of the machine are none of it: as the headline has it.
fn whole_ln(why: &Why, rate: &Change) -> (f64, bool) {
    match corrected(why) {
        Some((ln, ci95)) if is_clear(ci95) => (ln, true),
        _ => (rate.ln, false),
    }
}

/// Whether 0 is not in it.
pub(crate) fn is_clear([low, high]: [f64; 2]) -> bool {
    low > 0.0 || high < 0.0
}

/// What the parts are shares of: the difference that the headline gives.
struct Whole {
    ln: f64,
    /// The difference without the parts of the machine, where that is what the headline gives.
    without_machine: Option<Corrected>,
}

impl Whole {
    fn of(why: &Why, rate: &Change) -> Whole {
        let (ln, is_corrected) = whole_ln(why, rate);
        Whole { ln, without_machine: why.interference_corrected.filter(|_| is_corrected) }
    }

    fn share(&self, part: &Part) -> String {
        if self.without_machine.is_some() && part.is_of_machine() {
            NONE.into()
        } else {
            share(part.ln, self.ln)
        }
    }
}

fn row(part: &Part, whole: &Whole, bar: String) -> Row {
    let clear = part.ci95.is_none_or(is_clear);
    let tone = match (clear, part.ln) {
        (false, _) => Tone::Dim,
        (true, ln) if ln < 0.0 => Tone::Warn,
        (true, _) => Tone::Good,
    };
    Row::Cells(vec![
        Text::new(&part.id, tone),
        Text::plain(figure(part.from, &part.unit)),
        Text::plain(figure(part.to, &part.unit)),
        Text::plain(signed(part.ln)),
        Text::dim(interval(part.ci95)),
        Text::plain(whole.share(part)),
        Text::new(bar, tone),
        Text::dim(meaning(&part.id)),
    ])
}

fn rest(small: &[&Part], whole: &Whole) -> Row {
    let sum: f64 = small.iter().map(|part| part.ln).sum();
    let names: Vec<&str> = small.iter().map(|part| part.id.as_str()).collect();
    Row::Cells(vec![
        Text::dim(if small.len() == 1 { names.concat() } else { format!("{} others", small.len()) }),
        Text::plain(""),
        Text::plain(""),
        Text::dim(signed(sum)),
        Text::plain(""),
        Text::dim(if whole.without_machine.is_some() { NONE.into() } else { share(sum, whole.ln) }),
        Text::plain(""),
        Text::dim(if small.len() == 1 { String::new() } else { names.join(", ") }),
    ])
}

fn without_machine(corrected: Corrected, whole: &Whole) -> Row {
    Row::Cells(vec![
        Text::strong("without the machine"),
        Text::plain(""),
        Text::plain(""),
        Text::strong(signed(corrected.ln)),
        Text::dim(interval(corrected.ci95)),
        Text::strong(share(corrected.ln, whole.ln)),
        Text::plain(""),
        Text::dim("all but interference and clock"),
    ])
}

fn total(rate: &Change, whole: &Whole) -> Row {
    Row::Total(vec![
        Text::strong("B against A"),
        Text::strong(with_unit(rate.from, &rate.unit)),
        Text::strong(with_unit(rate.to, &rate.unit)),
        Text::strong(signed(rate.ln)),
        Text::dim(interval(rate.ci95)),
        Text::strong(if whole.without_machine.is_some() {
            NONE.to_owned()
        } else {
            share(rate.ln, whole.ln)
        }),
        Text::plain(""),
        Text::plain(""),
    ])
}

fn figure(value: f64, unit: &str) -> String {
    match unit {
        "CPUs" => format!("{} CPUs", crate::format::ratio(value)),
        // Of a request of the reference server.
        "×" => format!("{} ×", crate::format::ratio(value)),
        _ => with_unit(value, unit),
    }
}

fn signed(ln: f64) -> String {
    let text = logarithm(ln);
    if ln > 0.0 && text.chars().any(|c| ('1'..='9').contains(&c)) { format!("+{text}") } else { text }
}

pub(super) fn interval(ci95: Option<[f64; 2]>) -> String {
    ci95.map(|ends| between(ends, signed)).unwrap_or_default()
}

fn share(part: f64, whole: f64) -> String {
    // Shares of next to nothing say nothing.
    if whole.abs() < SMALL_LN { NONE.into() } else { percent(part / whole) }
}

/// One step of the waterfall, in characters between the lowest and the highest point of all.
fn bar(ends: [f64; 2], low: f64, high: f64) -> String {
    let span = high - low;
    if span <= 0.0 || !span.is_finite() {
        return String::new();
    }
    let place = |at: f64| ((at - low) / span * BAR_CHARS).round().clamp(0.0, BAR_CHARS) as usize;
    let (begin, end) = (place(ends[0].min(ends[1])), place(ends[0].max(ends[1])));
    format!("{}{}", "\u{a0}".repeat(begin), "█".repeat((end - begin).max(1)))
}

/// From A's rate to B's; a step's length is what it does at its place.
fn steps(parts: &[&Part], ends: &[[f64; 2]], rate: &Change, of: &Whole) -> Vec<Step> {
    let at = |ln: f64| rate.from * ln.exp();
    let longest = ends.iter().flatten().map(|ln| at(*ln)).chain([rate.from, rate.to]).fold(0.0, f64::max);
    if longest <= 0.0 || !longest.is_finite() {
        return Vec::new();
    }
    let whole = |label: &str, value: f64, hue| Step {
        label: label.into(),
        span: [0.0, value / longest],
        figure: with_unit(value, &rate.unit),
        meaning: "as measured".into(),
        hue,
    };
    let mut steps = vec![whole("A", rate.from, Hue::Server)];
    steps.extend(parts.iter().zip(ends).map(|(part, ends)| Step {
        label: part.id.clone(),
        span: [at(ends[0]) / longest, at(ends[1]) / longest],
        figure: signed(part.ln),
        meaning: format!("{}: {}", meaning(&part.id), of.share(part)),
        hue: if part.ln < 0.0 { Hue::Throttled } else { Hue::Net },
    }));
    steps.push(whole("B", rate.to, Hue::Server));
    steps
}
