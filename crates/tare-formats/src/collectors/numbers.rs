//! One number a line.

use super::figures::decimal;
use crate::metrics::{Kind, Metrics};
use crate::reader::{Input, Reader};

pub(crate) const READER: Reader = Reader {
    name: "numbers",
    gets_wrong: &["numbers alone do not say their unit, nor whether they are of one process"],
    detect: |input| {
        let (mut count, mut others) = (0_u32, 0_u32);
        for line in input.head().filter(|line| is_content(line)) {
            if let Ok(value) = decimal(line) {
                count += u32::from(value.is_finite());
            } else if count == 0 {
                return false;
            } else {
                others += 1;
            }
        }
        // A few lines may be broken; a text with numbers between is no list of them.
        // One number alone is anything: the id of a process.
        count > 1 && others * 10 <= count
    },
    read,
};

/// Blank lines and comments are none.
fn is_content(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#')
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let kind = Kind { benchmark: "", name: "value", unit: "", better: None };
    for (line, number) in input.text.lines().zip(1..) {
        if !is_content(line) {
            continue;
        }
        match decimal(line) {
            Ok(value) => metrics.sample(number, kind, value),
            Err(why) => metrics.skip(number, line, why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_line_is_said_and_a_text_is_no_list() {
        let text = format!("# ms\n{}abc\n", "1.5\n".repeat(10));
        assert!(READER.detects(&Input::of_text(&text)));
        let read = READER.read(&Input::of_text(&text));
        assert_eq!((read.metrics[0].samples.len(), read.skipped[0].line), (10, 12));
        assert!(!READER.detects(&Input::of_text("1\nabc\n")));
        assert!(!READER.detects(&Input::of_text("12345\n")));
        assert!(!READER.detects(&Input::of_text("1\ninf\nnan\n")));
        assert!(READER.detects(&Input::of_text("1\ninf\n2\n")));
        assert!(!READER.detects(&Input::of_text("abc\n1\n")));
    }
}
