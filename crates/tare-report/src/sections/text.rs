//! Text of sections.

/// Things reported on one line, which breaks between them and not within.
pub(super) fn join(reported: impl IntoIterator<Item = String>) -> String {
    let reported =
        reported.into_iter().filter(|text| !text.is_empty()).map(|text| text.replace(' ', "\u{a0}"));
    reported.collect::<Vec<_>>().join("\u{a0}· ")
}

/// A sentence starts with a capital letter, unless with a name.
pub(crate) fn capital(text: &str) -> String {
    match text.strip_prefix("the ") {
        Some(rest) => format!("The {rest}"),
        None => text.into(),
    }
}
