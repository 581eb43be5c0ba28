//! For a terminal: aligned, wrapped to its width, and just as clear without colour.

use crate::block::{Align, Block, Note, Row, Table, Text, Tone};
use crate::sections::Part;
use unicode_width::UnicodeWidthStr;

/// How a terminal can be written to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether escape sequences for colour may be used.
    pub color: bool,
    /// Columns; less than 40 is taken for 40.
    pub width: usize,
    /// Whether anything beyond ASCII may be used.
    pub unicode: bool,
}

const WIDTH_MIN: usize = 40;
/// Prose is not read well on longer lines; tables may be wider.
const PROSE_MAX: usize = 110;
const INDENT: usize = 2;
/// Between the columns of a table.
const GAP: usize = 2;
/// A column of words is not cut below this.
const WORDS_MIN: usize = 8;
/// Text beside a label is not squeezed below this.
const BESIDE_MIN: usize = 16;

/// All parts, ending with a newline.
pub(crate) fn render(parts: &[Part], style: Style) -> String {
    let mut page = Page { style: Style { width: style.width.max(WIDTH_MIN), ..style }, text: String::new() };
    for part in parts {
        if !page.text.is_empty() {
            page.text.push('\n');
        }
        if !part.title.is_empty() {
            page.line(&[(Tone::Strong, part.title)]);
        }
        let indent = if part.title.is_empty() { 0 } else { INDENT };
        part.blocks.iter().for_each(|block| page.block(block, indent));
    }
    page.text
}

struct Page {
    style: Style,
    text: String,
}

impl Page {
    fn block(&mut self, block: &Block, indent: usize) {
        match block {
            Block::Headline(text) => self.paragraph(text, indent),
            Block::Line(text) => self.paragraph(text, indent),
            Block::Pairs(pairs) => {
                let label_width = pairs.iter().map(|(label, _)| label.width()).max().unwrap_or(0) + GAP;
                for (label, value) in pairs {
                    self.labelled(indent, label_width, (Tone::Dim, label), value);
                }
            }
            Block::Table(table) => self.table(table, indent),
            Block::Notes(notes) => notes.iter().for_each(|note| self.note(note, indent)),
            Block::Figures(_) | Block::Steps(_) | Block::Bars(_) | Block::Chart(_) | Block::Flame(_) => {}
        }
    }

    fn paragraph(&mut self, text: &Text, indent: usize) {
        for line in self.wrap(&text.text, indent) {
            self.line(&[(Tone::Plain, &" ".repeat(indent)), (text.tone, &line)]);
        }
    }

    fn note(&mut self, note: &Note, indent: usize) {
        let margin = " ".repeat(indent);
        let inner = indent + INDENT;
        let title = self.clean(&note.title.text);
        // A remark without figures of its own fits beside its title.
        if note.aside.is_empty() && note.lines.is_empty() && !note.body.is_empty() {
            return self.labelled(indent, title.width() + GAP, (note.title.tone, &title), &note.body);
        }
        let aside = self.clean(&note.aside);
        if indent + title.width() + GAP + aside.width() <= self.style.width {
            self.line(&[
                (Tone::Plain, &margin),
                (note.title.tone, &title),
                (Tone::Plain, "  "),
                (Tone::Dim, &aside),
            ]);
        } else {
            self.paragraph(&note.title, indent);
            self.paragraph(&Text::dim(&note.aside), inner);
        }
        if !note.body.is_empty() {
            self.paragraph(&Text::plain(&note.body), inner);
        }
        let label_width = note.lines.iter().map(|(label, _)| label.width() + 1).max().unwrap_or(0) + 1;
        for (label, text) in &note.lines {
            self.labelled(inner, label_width, (Tone::Dim, &format!("{label}:")), text);
        }
    }

    /// A label, then text that is wrapped beside it, or below it where the label (a thread may carry any name) leaves no room.
    fn labelled(&mut self, indent: usize, label_width: usize, label: (Tone, &str), text: &str) {
        let label_text = self.clean(label.1);
        let most = self.style.width.saturating_sub(BESIDE_MIN);
        let least = indent + label_text.width() + 1;
        if least > most {
            self.paragraph(&Text { text: label.1.to_owned(), tone: label.0 }, indent);
            return self.paragraph(&Text::plain(text), indent + INDENT);
        }
        let hanging = (indent + label_width).min(most).max(least);
        let mut lines = self.wrap(text, hanging).into_iter();
        let gap = " ".repeat(hanging - indent - label_text.width());
        let first = lines.next().unwrap_or_default();
        let margin = " ".repeat(indent);
        self.line(&[
            (Tone::Plain, &margin),
            (label.0, &label_text),
            (Tone::Plain, &gap),
            (Tone::Plain, &first),
        ]);
        for line in lines {
            self.line(&[(Tone::Plain, &" ".repeat(hanging)), (Tone::Plain, &line)]);
        }
    }

    fn table(&mut self, table: &Table, indent: usize) {
        let titles: Vec<String> = table.columns.iter().map(|column| self.clean(&column.title)).collect();
        let mut widths: Vec<usize> = titles.iter().map(|title| title.width()).collect();
        for row in &table.rows {
            let (Row::Cells(cells) | Row::Total(cells)) = row else { continue };
            for (width, cell) in widths.iter_mut().zip(cells) {
                *width = (*width).max(self.clean(&cell.text).width());
            }
        }
        self.fit(table, &mut widths, indent);
        if titles.iter().zip(&widths).any(|(title, width)| *width > 0 && !title.is_empty()) {
            let header: Vec<Text> = titles.into_iter().map(Text::dim).collect();
            self.row(table, &widths, indent, &header);
        }
        for row in &table.rows {
            match row {
                Row::Cells(cells) => self.row(table, &widths, indent, cells),
                Row::Total(cells) => {
                    self.paragraph(&Text::dim("─".repeat(needed(&widths))), indent);
                    self.row(table, &widths, indent, cells);
                }
                Row::Heading(text) => self.paragraph(text, indent),
            }
        }
    }

    /// Takes columns away by rank, then cuts the widest column of words, until the table fits.
    fn fit(&self, table: &Table, widths: &mut [usize], indent: usize) {
        let room = self.style.width.saturating_sub(indent);
        for rank in (1..=u8::MAX).rev() {
            if needed(widths) <= room {
                return;
            }
            for (column, width) in table.columns.iter().zip(widths.iter_mut()) {
                if column.rank == rank {
                    *width = 0;
                }
            }
        }
        let over = needed(widths).saturating_sub(room);
        let words = table.columns.iter().zip(widths).filter(|(column, _)| column.align == Align::Left);
        if let Some((_, width)) = words.max_by_key(|(_, width)| **width) {
            *width = width.saturating_sub(over).max(WORDS_MIN.min(*width));
        }
    }

    fn row(&mut self, table: &Table, widths: &[usize], indent: usize, cells: &[Text]) {
        let mut spans = vec![(Tone::Plain, " ".repeat(indent))];
        for ((column, &width), Text { text, tone }) in table.columns.iter().zip(widths).zip(cells) {
            if width == 0 {
                continue;
            }
            let cell = cut(&self.clean(text), width, self.style.unicode);
            let pad = " ".repeat(width.saturating_sub(cell.width()));
            match column.align {
                Align::Left => spans.extend([(*tone, cell), (Tone::Plain, pad)]),
                Align::Right => spans.extend([(Tone::Plain, pad), (*tone, cell)]),
            }
            spans.push((Tone::Plain, " ".repeat(GAP)));
        }
        let spans: Vec<(Tone, &str)> = spans.iter().map(|(tone, text)| (*tone, text.as_str())).collect();
        self.line(&spans);
    }

    /// One line without blanks at its end.
    fn line(&mut self, spans: &[(Tone, &str)]) {
        let last = spans.iter().rposition(|(_, text)| !text.trim_end().is_empty());
        for (at, (tone, text)) in spans.iter().enumerate().take(last.map_or(0, |last| last + 1)) {
            let text = if Some(at) == last { text.trim_end() } else { text };
            match code(*tone) {
                Some(code) if self.style.color && !text.trim().is_empty() => {
                    self.text.push_str(&format!("\x1b[{code}m{text}\x1b[0m"));
                }
                _ => self.text.push_str(text),
            }
        }
        self.text.push('\n');
    }

    /// Lines that fit beside an indentation, broken at spaces; a longer word is cut.
    fn wrap(&self, text: &str, indent: usize) -> Vec<String> {
        let room = self.style.width.min(PROSE_MAX).saturating_sub(indent).max(WORDS_MIN);
        let mut lines = vec![String::new()];
        for word in self.joined(text).split(' ').filter(|word| !word.is_empty()) {
            let mut word = word.replace('\u{a0}', " ");
            loop {
                let Some(line) = lines.last_mut() else { return lines };
                let gap = usize::from(!line.is_empty());
                if line.width() + gap + word.width() <= room {
                    line.push_str(&" ".repeat(gap));
                    line.push_str(&word);
                    break;
                }
                if line.is_empty() {
                    let (fits, rest) = split_at_width(&word, room);
                    line.push_str(fits);
                    word = rest.to_string();
                }
                lines.push(String::new());
            }
        }
        lines
    }

    /// What may be shown: no control characters (a thread may carry any name), no more than the terminal knows.
    fn clean(&self, text: &str) -> String {
        self.joined(text).replace('\u{a0}', " ")
    }

    /// The same with no-break spaces kept.
    fn joined(&self, text: &str) -> String {
        let shown = text.chars().map(|c| match c {
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}' => '?',
            c if c.is_control() => '?',
            c => c,
        });
        if self.style.unicode {
            return shown.collect();
        }
        let mut text = String::with_capacity(text.len());
        shown.for_each(|c| match ascii(c) {
            Ok(c) => text.push(c),
            Err(several) => text.push_str(several),
        });
        text
    }
}

/// The nearest in ASCII; the no-break space is turned into a space later.
fn ascii(c: char) -> Result<char, &'static str> {
    match c {
        '\u{a0}' => Ok(c),
        '–' | '−' | '─' => Ok('-'),
        'µ' => Ok('u'),
        'σ' => Err("sd"),
        'α' => Ok('a'),
        'β' => Ok('b'),
        'γ' => Ok('g'),
        '±' => Err("+/-"),
        '…' => Err("..."),
        '·' => Ok('|'),
        '×' => Ok('x'),
        '→' => Err("->"),
        '≥' => Err(">="),
        '≤' => Err("<="),
        // Heights, lowest first.
        '▁' => Ok('_'),
        '▂' => Ok('.'),
        '▃' => Ok(':'),
        '▄' => Ok('-'),
        '▅' => Ok('='),
        '▆' => Ok('+'),
        '▇' => Ok('*'),
        '█' => Ok('#'),
        c if c.is_ascii() => Ok(c),
        _ => Ok('?'),
    }
}

/// SGR parameters of a tone.
fn code(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::Strong => Some("1"),
        Tone::Dim => Some("2"),
        Tone::Good => Some("1;32"),
        Tone::Warn => Some("33"),
        Tone::Bad => Some("1;31"),
    }
}

/// What a table of these columns takes; a width of 0 is a column that is not shown.
fn needed(widths: &[usize]) -> usize {
    widths.iter().filter(|width| **width > 0).map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
}

/// The text, or as much of it as leaves room for a mark that something is missing.
fn cut(text: &str, width: usize, unicode: bool) -> String {
    if text.width() <= width {
        return text.into();
    }
    let mark = if unicode { "…" } else { "~" };
    let (fits, _) = split_at_width(text, width.saturating_sub(mark.width()));
    format!("{fits}{mark}")
}

/// The longest beginning that fits into `width` columns (one character at least), and the rest.
fn split_at_width(text: &str, width: usize) -> (&str, &str) {
    let mut end = 0;
    for (at, c) in text.char_indices() {
        let next = at + c.len_utf8();
        if at > 0 && text[..next].width() > width {
            break;
        }
        end = next;
    }
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread may carry any name: a label of one that leaves no room beside it has its text below.
    #[test]
    fn a_long_label_has_its_text_below_it_and_does_not_push_the_others_out() {
        let pairs = vec![
            ("run".to_owned(), "10 % of the time".to_owned()),
            ("a name that is longer than the half of it".to_owned(), "20 %".to_owned()),
        ];
        let part = Part { title: "", blocks: vec![Block::Pairs(pairs)] };
        let text = render(&[part], Style { color: false, width: 40, unicode: false });
        assert_eq!(
            text,
            "run                     10 % of the time\na name that is longer than the half of\nit\n  20 %\n"
        );
    }
}
