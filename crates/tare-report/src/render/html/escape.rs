//! Text into a page, where it stays text.

use std::fmt::{self, Display, Write};

/// Writing into a string cannot fail.
pub(super) fn put(page: &mut String, text: fmt::Arguments) {
    page.write_fmt(text).ok();
}

/// Text that stays text in an element and in a quoted attribute, whatever is in it.
pub(super) struct Escaped<'a>(pub(super) &'a str);

impl Display for Escaped<'_> {
    fn fmt(&self, to: &mut fmt::Formatter) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => to.write_str("&amp;")?,
                '<' => to.write_str("&lt;")?,
                '>' => to.write_str("&gt;")?,
                '"' => to.write_str("&quot;")?,
                '\'' => to.write_str("&#39;")?,
                '\n' => to.write_char(' ')?,
                // A page may hold none of these, and hidden directions would let a text pose as another.
                '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}'..='\u{ffff}' => {
                    to.write_char('?')?
                }
                c if c.is_control() => to.write_char('?')?,
                c => to.write_char(c)?,
            }
        }
        Ok(())
    }
}
