//! The pages of the documentation, and the lines of them.
#![allow(dead_code)] // each test binary uses its own part

use std::path::{Path, PathBuf};

/// The folder of the whole source.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A text in Markdown.
pub struct Page {
    /// Where it is, from the root.
    pub path: String,
    pub text: String,
}

impl Page {
    pub fn read(path: &str) -> Page {
        let text = std::fs::read_to_string(root().join(path));
        Page { path: path.to_owned(), text: text.unwrap_or_else(|error| panic!("{path}: {error}")) }
    }

    /// Every line but those that begin and end a block of code.
    pub fn lines(&self) -> Vec<Line<'_>> {
        let mut block = None;
        let mut lines = Vec::new();
        for (at, text) in self.text.lines().enumerate() {
            match (text.trim_start().strip_prefix("```"), block) {
                (Some(language), None) => block = Some(language.trim()),
                (Some(_), Some(_)) => block = None,
                (None, _) => lines.push(Line { number: at + 1, text, block }),
            }
        }
        lines
    }
}

/// A line of a page.
pub struct Line<'t> {
    pub number: usize,
    pub text: &'t str,
    /// The language of the block of code that it stands in.
    pub block: Option<&'t str>,
}

/// Every page below `docs`, by its path.
pub fn of_docs() -> Vec<Page> {
    let mut paths = Vec::new();
    let mut folders = vec!["docs".to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{folder}/{}", entry.file_name().to_string_lossy());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.ends_with(".md") {
                paths.push(path);
            }
        }
    }
    paths.sort_unstable();
    paths.iter().map(|path| Page::read(path)).collect()
}
