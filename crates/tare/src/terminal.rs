//! What this terminal can show.

use crate::cli::ColorChoice;
use std::io::{IsTerminal, Write};
use tare_report::Style;

/// Width used where there is no terminal to ask.
const WIDTH_WITHOUT_TERMINAL: usize = 100;

/// The style for standard output.
pub fn style(color: ColorChoice) -> Style {
    let stdout = std::io::stdout();
    let color = match color {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        // https://no-color.org: set and not empty means no colour.
        ColorChoice::Auto => {
            stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty())
        }
    };
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse::<usize>().ok());
    let width = match stdout.is_terminal() {
        true => columns.or_else(terminal_columns).unwrap_or(WIDTH_WITHOUT_TERMINAL),
        false => columns.unwrap_or(WIDTH_WITHOUT_TERMINAL),
    };
    Style { color, width: width.clamp(60, 200), unicode: utf8_locale() }
}

fn terminal_columns() -> Option<usize> {
    terminal_size::terminal_size().map(|(width, _)| usize::from(width.0))
}

fn utf8_locale() -> bool {
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    // Without any locale nothing says that bytes above 127 are safe, yet today's terminals take UTF-8.
    locale.is_none_or(|value| {
        let value = value.to_ascii_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

/// Writes a line to standard error; nobody may be reading it, which is no failure either.
pub fn say(line: &str) {
    writeln!(std::io::stderr().lock(), "{line}").ok();
}

/// Writes a result to standard output; a reader that went away is no failure.
pub fn print(text: &str) -> std::io::Result<()> {
    print_bytes(text.as_bytes())
}

/// The same of what may be no text.
pub fn print_bytes(content: &[u8]) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(content).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
