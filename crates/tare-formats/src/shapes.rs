//! What lines of figures look like in a tool's text, so that one which was not understood is said with its number.

use crate::documents::with_keys;
use crate::metrics::Metrics;
use crate::numbers::{positive, without_thousands};
use crate::result::short;

/// Most words of a line that are looked at.
const WORDS_MAX: usize = 64;

/// What is read of a text. A line with the words of a shape and a figure that is none was not understood; other lines are prose.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shapes {
    /// Lines as the tool prints them. `#` stands for a figure, also inside of a word (`#%`, `tps=#`), `~` for a unit that stands alone, `*` for
    /// whatever a word ends with, and `..` as a first or last word for any words. A last word that ends with `..` may come again.
    pub lines: &'static [&'static str],
    /// Units that may follow a number without a blank, or stand for `~`; a comma where thousands have one.
    pub units: &'static [&'static str],
    /// Where it prints JSON: a document has all keys of one of these sets.
    pub documents: &'static [&'static [&'static str]],
}

impl Shapes {
    /// Of a text whose reader says by itself what it does not understand.
    pub const NONE: Shapes = Shapes { lines: &[], units: &[], documents: &[] };

    /// Notes what of a text was not understood, and returns how many things that are. `first`: the number of the text's first line.
    pub fn note_unread(&self, text: &str, first: u64, metrics: &mut Metrics) -> u64 {
        let shapes: Vec<Shape> = self.lines.iter().copied().map(Shape::of).collect();
        let mut count = 0;
        for (line, number) in text.lines().zip(first..) {
            // Progress ends with carriage returns, and so shares a line with what follows it.
            for part in line.split('\r').filter(|part| has_digit(part)) {
                let words: Vec<&str> = part.split_whitespace().take(WORDS_MAX).collect();
                if let Some(word) = broken(&shapes, &words, self.units) {
                    let why = format!("'{}' is no figure with a unit that is known", short(word));
                    metrics.skip(number, part.trim(), &why);
                    count += 1;
                }
            }
        }
        let documents = (!self.documents.is_empty()).then(|| with_keys(text, self.documents));
        for (line, why) in documents.into_iter().flatten().filter_map(|one| one.parse().err()) {
            metrics.skip(line.saturating_add(first).saturating_sub(1), "JSON", &why);
            count += 1;
        }
        count
    }
}

/// How a line fits a shape.
enum Fit<'a> {
    /// It has other words, or no figures.
    Other,
    Whole,
    /// It has the words, and this is no figure or no unit.
    Broken(&'a str),
}

/// A shape, taken apart.
struct Shape {
    words: Vec<&'static str>,
    /// Whether any words may stand before these, and behind them.
    before: bool,
    behind: bool,
    /// Whether the last of them may come again.
    again: bool,
}

impl Shape {
    fn of(text: &'static str) -> Shape {
        let (before, text) = text.strip_prefix(".. ").map_or((false, text), |rest| (true, rest));
        let (behind, text) = text.strip_suffix(" ..").map_or((false, text), |rest| (true, rest));
        let (again, text) = text.strip_suffix("..").map_or((false, text), |rest| (true, rest));
        Shape { words: text.split(' ').collect(), before, behind, again }
    }

    fn fit<'a>(&self, words: &[&'a str], units: &[&str]) -> Fit<'a> {
        let Some(spare) = words.len().checked_sub(self.words.len()) else { return Fit::Other };
        let last = if self.before { spare } else { 0 };
        (0..=last)
            .filter(|from| self.behind || self.again || *from == spare)
            .map(|from| self.fit_from(&words[from..], units))
            .find(|fit| !matches!(fit, Fit::Other))
            .unwrap_or(Fit::Other)
    }

    fn fit_from<'a>(&self, words: &[&'a str], units: &[&str]) -> Fit<'a> {
        let again = self.words.last().copied().filter(|_| self.again);
        let patterns = self.words.iter().copied().chain(again.into_iter().cycle());
        let (mut has_figures, mut has_part, mut broken) = (false, false, None);
        for (pattern, word) in patterns.zip(words.iter().copied()) {
            if pattern == "~" {
                // What is counted in whole numbers is prose (`Total: 45 tests`): a tool that prints units prints parts of them.
                if !has_part && !units.contains(&word) {
                    return Fit::Other;
                }
                broken = broken.or((!units.contains(&word)).then_some(word));
                continue;
            }
            let Some(found) = figures(pattern, word) else { return Fit::Other };
            // A word without a digit stands for no figure (`-`, `N/A`, `NaN`), or the line is prose.
            for figure in found.into_iter().filter(|figure| has_digit(figure)) {
                has_figures = true;
                has_part |= figure.contains('.');
                broken = broken.or((!is_figure(figure, units)).then_some(figure));
            }
        }
        match broken {
            _ if !has_figures => Fit::Other,
            Some(word) => Fit::Broken(word),
            None => Fit::Whole,
        }
    }
}

/// What keeps a line with the words of a shape from being understood; `None` where it is, or has no such words.
fn broken<'a>(shapes: &[Shape], words: &[&'a str], units: &[&str]) -> Option<&'a str> {
    let mut broken = None;
    for shape in shapes {
        match shape.fit(words, units) {
            Fit::Other => {}
            Fit::Whole => return None,
            Fit::Broken(word) => broken = broken.or(Some(word)),
        }
    }
    broken
}

/// What stands in a word where the pattern has `#`; `None` where it is another word.
fn figures<'a>(pattern: &str, word: &'a str) -> Option<Vec<&'a str>> {
    if let Some(start) = pattern.strip_suffix('*') {
        return word.starts_with(start).then(Vec::new);
    }
    let mut pieces = pattern.split('#').peekable();
    let mut rest = word.strip_prefix(pieces.next()?)?;
    let mut found = Vec::new();
    while let Some(piece) = pieces.next() {
        let end = match pieces.peek() {
            Some(_) => rest.find(piece)?,
            None => rest.strip_suffix(piece)?.len(),
        };
        found.push(&rest[..end]);
        rest = &rest[end + piece.len()..];
    }
    rest.is_empty().then_some(found)
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

/// A number that is not negative, or several with units: `12.5`, `1e3`, `4.72ms`, `1m2.5s`, `1,234` where a comma is among the units.
fn is_figure(text: &str, units: &[&str]) -> bool {
    if positive(text).is_some() {
        return true;
    }
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let plain = match units.contains(&",") && number.contains(',') {
        true => without_thousands(number).map(|number| number + unit),
        false => Some(text.to_owned()),
    };
    let Some(plain) = plain else { return false };
    let mut rest = plain.as_str();
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, behind) = rest.split_at(unit_at);
        let next = behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, behind) = behind.split_at(next);
        if positive(number).is_none() || !unit.is_empty() && !units.contains(&unit) {
            return false;
        }
        rest = behind;
    }
    !text.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPES: Shapes = Shapes {
        lines: &[
            "Rate: # ~",
            "done: #",
            "done: #/#",
            "#% in #",
            ".. # a second",
            "[#] # ..",
            "Totals #..",
            "name* (#)",
        ],
        units: &["ms", "s", "m", ",", "KB"],
        documents: &[&["\"k\""]],
    };

    /// The lines that were not understood, and what of them.
    fn unread(text: &str) -> Vec<(u64, String)> {
        let mut metrics = Metrics::new("test");
        let count = SHAPES.note_unread(text, 1, &mut metrics);
        let read = metrics.finish(&[]);
        assert_eq!(read.skipped_count, count);
        let word = |why: &str| why.split('\'').nth(1).unwrap_or(why).to_owned();
        read.skipped.iter().map(|skipped| (skipped.line, word(&skipped.why))).collect()
    }

    #[test]
    fn lines_that_are_understood_and_prose_are_not_noted() {
        for line in [
            "Rate: 12.5 KB",
            "  Rate:\t1,234 s ",
            "done: 100",
            "done: 100/100",
            "99.9% in 1m2.5s",
            "at last 12 a second",
            "[1] 2 or more",
            "Totals 1 2.5 --- 1e-3",
            "name...: (7)",
            // No figures.
            "Rate: NaN ms",
            "done: N/A",
            "Rate: as before",
            "Rate: 45 tests",
            // Other words.
            "Rate: 12x",
            "was done: 1x",
            "done: 1x 2",
            "rate: 1x ms",
        ] {
            assert_eq!(unread(line), [], "{line}");
        }
    }

    #[test]
    fn a_broken_figure_or_an_unknown_unit_is_noted_with_its_line() {
        for (line, word) in [
            ("Rate: 12.5 parsec", "parsec"),
            ("Rate: 1.2.5 ms", "1.2.5"),
            ("done: 1o0", "1o0"),
            ("done: 100/1x", "100/1x"),
            ("done: -5", "-5"),
            ("99.9% in 5ns", "5ns"),
            ("at last 12x a second", "12x"),
            ("[1] 2x", "2x"),
            ("Totals 1 2.5 3.4.5 6", "3.4.5"),
            ("name...: (7b)", "7b"),
            ("progress 10%\rdone: 1x", "1x"),
        ] {
            assert_eq!(unread(&format!("prose 1\n\n{line}\nmore\n")), [(3, word.to_owned())], "{line}");
        }
    }

    #[test]
    fn a_document_that_is_cut_off_is_noted() {
        assert_eq!(unread("{\"k\": 1}\n{\"other\":"), []);
        let found = unread("log\n{\"k\": 1}\n{\"k\": [\n1,");
        assert_eq!((found.len(), found[0].0), (1, 4));
    }

    #[test]
    fn lines_are_counted_from_the_first_on() {
        let mut metrics = Metrics::new("test");
        SHAPES.note_unread("a\ndone: 1x\n{\"k\":", 10, &mut metrics);
        let lines: Vec<u64> = metrics.finish(&[]).skipped.iter().map(|skipped| skipped.line).collect();
        assert_eq!(lines, [11, 12]);
    }
}
