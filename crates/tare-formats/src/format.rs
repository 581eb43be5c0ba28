//! What the file of a tool provides.

use crate::result::ToolOutput;
use crate::shapes::Shapes;

/// One tool's way to print its results.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// The tool's name; no two formats have the same.
    pub name: &'static str,
    /// What this tool gets wrong, one sentence each: reported beside its figures.
    pub gets_wrong: &'static [&'static str],
    pub(crate) detect: fn(&str) -> bool,
    pub(crate) read: fn(&str) -> ToolOutput,
    pub(crate) shapes: Shapes,
}

impl Format {
    /// Whether `printed` is this tool's output, or the beginning or the end of it.
    pub fn detects(&self, printed: &str) -> bool {
        (self.detect)(printed)
    }

    /// All that `printed` says; what it does not say is missing.
    pub fn read(&self, printed: &str) -> ToolOutput {
        (self.read)(printed)
    }
}
