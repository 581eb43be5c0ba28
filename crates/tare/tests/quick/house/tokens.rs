//! The words and marks of a Rust file, without comments; enough to see which names a file defines and uses.

/// One token; spaces and comments are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Token {
    /// An identifier, a keyword or a number.
    Word(String),
    /// What a text literal says.
    Text(String),
    /// `::`
    PathMark,
    /// Any other mark.
    Mark(char),
}

impl Token {
    pub fn word(&self) -> Option<&str> {
        if let Token::Word(word) = self { Some(word) } else { None }
    }

    pub fn is(&self, mark: char) -> bool {
        *self == Token::Mark(mark)
    }

    pub fn says(&self, word: &str) -> bool {
        self.word() == Some(word)
    }
}

/// Splits a file into tokens.
pub fn tokens(text: &str) -> Vec<Token> {
    let letters: Vec<char> = text.chars().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        let rest = &letters[at..];
        match rest {
            ['/', '/', ..] => at += rest.iter().position(|&c| c == '\n').unwrap_or(rest.len()),
            ['/', '*', ..] => at += block_comment(rest),
            [c, ..] if c.is_whitespace() => at += 1,
            [':', ':', ..] => {
                out.push(Token::PathMark);
                at += 2;
            }
            ['\'', ..] => at += letter_or_lifetime(rest),
            ['"', ..] => at += quoted(rest, &mut out),
            [c, ..] if c.is_alphanumeric() || *c == '_' => at += word_or_raw(rest, &mut out),
            [c, ..] => {
                out.push(Token::Mark(*c));
                at += 1;
            }
            [] => break,
        }
    }
    out
}

fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The length of `'x'`, `'\n'` or `'lifetime`; neither names anything.
fn letter_or_lifetime(rest: &[char]) -> usize {
    match rest {
        [_, '\\', _, tail @ ..] => 3 + tail.iter().position(|&c| c == '\'').map_or(tail.len(), |at| at + 1),
        [_, _, '\'', ..] => 3,
        [_, tail @ ..] => 1 + tail.iter().take_while(|c| c.is_alphanumeric() || **c == '_').count(),
        [] => 0,
    }
}

fn quoted(rest: &[char], out: &mut Vec<Token>) -> usize {
    let mut at = 1;
    let mut text = String::new();
    while at < rest.len() && rest[at] != '"' {
        if rest[at] == '\\' {
            at += 1;
        }
        text.extend(rest.get(at));
        at += 1;
    }
    out.push(Token::Text(text));
    at + 1
}

/// A word, or a literal that starts with letters: `r"…"`, `br#"…"#`, `b"…"`, `b'x'`, `r#type`.
fn word_or_raw(rest: &[char], out: &mut Vec<Token>) -> usize {
    let end = rest.iter().take_while(|c| c.is_alphanumeric() || **c == '_').count();
    let word: String = rest[..end].iter().collect();
    let hashes = rest[end..].iter().take_while(|&&c| c == '#').count();
    match (word.as_str(), rest.get(end + hashes)) {
        ("r" | "br" | "cr", Some('"')) => {
            let body = &rest[end + hashes + 1..];
            let closing: Vec<char> = std::iter::once('"').chain("#".repeat(hashes).chars()).collect();
            let length = body.windows(closing.len()).position(|w| w == closing).unwrap_or(body.len());
            out.push(Token::Text(body[..length].iter().collect()));
            end + hashes + 1 + length + closing.len()
        }
        ("b" | "c", Some('"')) if hashes == 0 => end + quoted(&rest[end..], out),
        ("b", Some('\'')) if hashes == 0 => end + letter_or_lifetime(&rest[end..]),
        ("r", Some(_)) if hashes == 1 => end + 1,
        _ => {
            out.push(Token::Word(word));
            end
        }
    }
}
