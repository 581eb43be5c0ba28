//! What a row of the table says.

/// A rule and a request that shows whether it is kept. `⏎` stands for CR LF.
pub struct Row {
    /// Section, `9110 …` or `9112 …`.
    pub section: &'static str,
    pub rule: &'static str,
    pub request: String,
    /// Status and body of each answer, `Status` alone where the body does not matter.
    pub answers: &'static [&'static str],
    pub after: After,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    Stays,
    Closes,
}

pub fn stays(
    section: &'static str,
    rule: &'static str,
    request: &str,
    answers: &'static [&'static str],
) -> Row {
    row(section, rule, request, answers, After::Stays)
}

pub fn closes(
    section: &'static str,
    rule: &'static str,
    request: &str,
    answers: &'static [&'static str],
) -> Row {
    row(section, rule, request, answers, After::Closes)
}

fn row(
    section: &'static str,
    rule: &'static str,
    request: &str,
    answers: &'static [&'static str],
    after: After,
) -> Row {
    Row { section, rule, request: request.replace('⏎', "\r\n"), answers, after }
}
