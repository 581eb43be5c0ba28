//! Rows of CSV as tools write it, a line each: quotation marks are doubled inside of a field.

use std::borrow::Cow;

/// Most fields of a row that are read.
const FIELDS_MAX: usize = 200;

/// The fields of one line, between commas.
pub(crate) fn fields(line: &str) -> Vec<Cow<'_, str>> {
    fields_by(line, ',')
}

/// The same with another separator. A field that goes on in the next line ends here.
pub(crate) fn fields_by(line: &str, separator: char) -> Vec<Cow<'_, str>> {
    let mut fields = Vec::new();
    let mut rest = line.trim_end_matches('\r');
    loop {
        if fields.len() >= FIELDS_MAX {
            return fields;
        }
        let (field, behind) = match rest.strip_prefix('"') {
            Some(quoted) => unquoted(quoted),
            None => {
                let end = rest.find(separator).unwrap_or(rest.len());
                (Cow::Borrowed(&rest[..end]), &rest[end..])
            }
        };
        fields.push(field);
        match behind.strip_prefix(separator) {
            Some(next) => rest = next,
            None => return fields,
        }
    }
}

/// What stands before the closing quotation mark, and what behind it.
fn unquoted(text: &str) -> (Cow<'_, str>, &str) {
    let mut at = 0;
    let mut doubled = false;
    while let Some(found) = text.get(at..).and_then(|rest| rest.find('"')) {
        let mark = at + found;
        if text[mark + 1..].starts_with('"') {
            doubled = true;
            at = mark + 2;
            continue;
        }
        let inner = &text[..mark];
        let field = if doubled { Cow::Owned(inner.replace("\"\"", "\"")) } else { Cow::Borrowed(inner) };
        return (field, &text[mark + 1..]);
    }
    (Cow::Borrowed(text), "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotation_marks_hold_commas_and_themselves() {
        assert_eq!(fields("a,,\"b,c\",\"d \"\"e\"\"\",f\r"), ["a", "", "b,c", "d \"e\"", "f"]);
        assert_eq!(fields(""), [""]);
        assert_eq!(fields_by("1,5;\"a;b\"", ';'), ["1,5", "a;b"]);
        assert_eq!(fields("\"open,x"), ["open,x"]);
    }
}
