//! Figures that are held against others, as every comparison shows them: a row for each.

use crate::block::{Block, Column, Field, Text, Tone};
use crate::format::{self, count, joined};
use crate::words;
use tare_model::Reading;
use tare_model::comparison::{Change, Verdict};
use tare_model::figure::Figure;
use tare_model::gate::Effect;

/// Columns of a table of [`cells`], with the names of both sides.
pub(crate) fn columns([before, after]: [&str; 2]) -> Vec<Column> {
    vec![
        Column::words("", 0),
        Column::figures(before, 2),
        Column::figures(after, 2),
        Column::figures("change", 0),
        Column::words("", 0),
    ]
}

/// One figure, and whether it is in units of the reference; before and after; its change, and what that says.
pub(crate) fn cells(
    (figure, of_reference): (Figure, bool),
    sides: [Option<f64>; 2],
    (change, verdict): (Option<Change>, Verdict),
    margin: f64,
) -> Vec<Text> {
    let none = || format::NONE.to_owned();
    // A ratio has no unit.
    let shown = |value: Option<f64>| match value {
        Some(value) if of_reference => format!("{}×", format::ratio(value)),
        Some(value) => format::figure(value, figure.describe().unit),
        None => none(),
    };
    let unit = if of_reference { " (of the reference's)" } else { "" };
    let [before, after] = sides.map(shown).map(Text::plain);
    vec![
        Text::plain(format!("{}{unit}", figure.title())),
        before,
        after,
        Text::strong(change.map_or_else(none, whole)),
        said(verdict, margin),
    ]
}

/// A figure of two records.
pub(crate) fn of_effect(effect: &Effect, margin: f64) -> Vec<Text> {
    let change = (effect.change.value().copied(), effect.verdict);
    cells((effect.figure, effect.of_reference), [effect.baseline, effect.value], change, margin)
}

/// Why a figure has no interval; figures with the same reason together.
pub(crate) fn missing(effects: &[Effect]) -> Vec<Block> {
    let mut reasons: Vec<(String, Vec<&str>)> = Vec::new();
    for effect in effects {
        let reason = match &effect.change {
            Reading::Measured(_) => continue,
            Reading::Missing(missing) => words::with_remedy(missing),
            Reading::NotApplicable { not_applicable } => not_applicable.clone(),
        };
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, figures)) => figures.push(effect.figure.title()),
            None => reasons.push((reason, vec![effect.figure.title()])),
        }
    }
    let pair = |(reason, figures): (String, Vec<&str>)| (figures.join(", "), joined(&reason));
    if reasons.is_empty() { Vec::new() } else { vec![Block::Pairs(reasons.into_iter().map(pair).collect())] }
}

/// What other programs read of figures that are held against others.
pub(crate) const HEADER: &[&str] = &[
    "program",
    "figure",
    "of_reference",
    "before",
    "after",
    "change",
    "ci95_low",
    "ci95_high",
    "verdict",
    "measured",
    "detectable",
];

/// One figure or metric: its program, its name and whether it is in units of the reference; before and after; its change; what that says,
/// by how many launches or runs, and what would have been shown.
pub(crate) fn csv(
    (program, name, of_reference): (&str, &str, bool),
    sides: [Option<f64>; 2],
    change: Option<Change>,
    (verdict, measured, detectable): (Verdict, f64, Option<f64>),
) -> Vec<Field> {
    let [low, high] = Field::ends(change.map(|change| change.interval));
    let [before, after] = sides.map(Field::from);
    vec![
        program.into(),
        name.into(),
        of_reference.to_string().into(),
        before,
        after,
        change.map(|change| change.value).into(),
        low,
        high,
        words::id(verdict).into(),
        measured.into(),
        detectable.into(),
    ]
}

/// A figure in a sentence, with its change where it has one: `throughput +2.0 % (+1.2 to +2.8)`.
pub(crate) fn named(figure: Figure, change: Option<Change>) -> String {
    match change {
        Some(change) => format!("{} {}", figure.title(), whole(change)),
        None => figure.title().to_owned(),
    }
}

/// In which figures one side is better than the other or worse, and `called` so; `None` where it is neither in any.
pub(crate) fn headline(
    [new, old]: [&str; 2],
    called: [&str; 2],
    [better, worse]: [Vec<String>; 2],
) -> Option<Text> {
    let all = |figures: &[String]| figures.join(", ");
    Some(match (better.as_slice(), worse.as_slice()) {
        ([], []) => return None,
        (better, []) => Text::new(format!("{new} is {} than {old}: {}.", called[0], all(better)), Tone::Good),
        ([], worse) => Text::new(format!("{new} is {} than {old}: {}.", called[1], all(worse)), Tone::Bad),
        (better, worse) => Text::new(
            format!(
                "{new} is better than {old} in some figures ({}) and worse in others ({}).",
                all(better),
                all(worse)
            ),
            Tone::Warn,
        ),
    })
}

/// A verdict in a table.
pub(crate) fn said(verdict: Verdict, margin: f64) -> Text {
    match verdict {
        Verdict::Faster => Text::new("faster", Tone::Good),
        Verdict::Slower => Text::new("slower", Tone::Bad),
        Verdict::NoDifference => Text::plain(format!("no difference beyond {}", format::percent(margin))),
        Verdict::CannotTell => Text::dim("cannot tell"),
    }
}

/// With such a ratio between its ends an interval says nothing.
const SAYS_NOTHING: f64 = 10.0;

/// `+2.0 % (+1.2 to +2.8)`.
pub(crate) fn whole(change: Change) -> String {
    let [low, high] = change.interval;
    if low < 0.0 && high > 0.0 && 1.0 + high > SAYS_NOTHING * (1.0 + low) {
        return format!("{}\u{a0}% (not known)", signed(change.value));
    }
    let [low, high] = change.interval.map(signed);
    format!("{}\u{a0}% ({low} to {high})", signed(change.value))
}

/// Per cent with a sign, two digits where they say something.
pub(crate) fn signed(share: f64) -> String {
    let percent = share * 100.0;
    let sign = format::sign(percent);
    match percent.abs() {
        size if !size.is_finite() => format::NONE.to_owned(),
        size if size < 9.95 => format!("{sign}{size:.2}"),
        size if size < 1e6 => format!("{sign}{size:.0}"),
        size => format!("{sign}{}", count(size)),
    }
}
