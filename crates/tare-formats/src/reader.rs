//! What the file of a tool's results provides, where they are more than one summary of a load.

use crate::metrics::Metrics;

/// One way to keep or print results.
#[derive(Debug, Clone, Copy)]
pub struct Reader {
    /// Stable name, kebab-case; no two readers have the same. A tool whose summary of a load is a [`Format`](crate::Format) has the name of that.
    pub name: &'static str,
    /// What this tool gets wrong, one sentence each: reported beside its figures.
    pub gets_wrong: &'static [&'static str],
    pub(crate) detect: fn(&Input<'_>) -> bool,
    pub(crate) read: fn(&Input<'_>, &mut Metrics),
}

impl Reader {
    /// Whether this is the tool's output, by its content alone.
    pub fn detects(&self, input: &Input<'_>) -> bool {
        (self.detect)(input)
    }

    /// All that it says.
    pub fn read(&self, input: &Input<'_>) -> tare_model::tool::ToolMetrics {
        let mut metrics = Metrics::new(self.name);
        (self.read)(input, &mut metrics);
        metrics.finish(self.gets_wrong)
    }
}

/// What is to be read: a file, or all that a program printed.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// As it is; binary formats read this.
    pub bytes: &'a [u8],
    /// The same as text, what is no UTF-8 replaced; without a byte order mark.
    pub text: &'a str,
}

/// Detection looks at so many lines, and for JSON at so many bytes: results stand behind logs, but not behind endless ones.
pub(crate) const DETECT_LINES: usize = 2000;
pub(crate) const DETECT_BYTES: usize = 1 << 20;

impl<'a> Input<'a> {
    /// Text that is at hand.
    pub fn of_text(text: &'a str) -> Input<'a> {
        Input { bytes: text.as_bytes(), text: text.trim_start_matches('\u{feff}') }
    }

    /// The lines that a detection looks at: the first ones, trimmed at the right.
    pub(crate) fn head(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.text.lines().take(DETECT_LINES).map(str::trim_end)
    }

    /// Whether there is more than a detection looks at.
    pub(crate) fn goes_on(&self) -> bool {
        self.text.len() > DETECT_BYTES || self.text.lines().nth(DETECT_LINES).is_some()
    }

    /// Whether the text is, but for blanks around it, one JSON object or array, as far as its ends tell.
    pub(crate) fn is_json(&self) -> bool {
        let text = self.text.trim();
        text.starts_with('{') && text.ends_with('}') || text.starts_with('[') && text.ends_with(']')
    }
}
