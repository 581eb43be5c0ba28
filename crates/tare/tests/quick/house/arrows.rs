//! Arrows between the folders of a crate: who may use whom.

use super::circles::Uses;
use std::collections::BTreeSet;

/// Folders or files below `src`, without `.rs`, and which others each may use, with what is in them: only such as
/// stand above it.
pub type Folders = &'static [(&'static str, &'static [&'static str])];

/// What goes against the table, a line each.
pub fn wrong(uses: &Uses, source: &str, folders: Folders) -> Vec<String> {
    let mut wrong = BTreeSet::new();
    let mut above: BTreeSet<&str> = BTreeSet::new();
    for (folder, may_use) in folders {
        for used in may_use.iter().filter(|used| !above.iter().any(|above| is_in(above, used))) {
            wrong.insert(format!("{folder} may use {used}, which does not stand above it in the table"));
        }
        above.insert(folder);
    }
    for (file, used) in uses {
        for (other, names) in used {
            let mut placed = |file: &str| {
                let folder = folder_of(file, source, folders);
                if folder.is_none() {
                    wrong.insert(format!("{file} is in no folder of the table"));
                }
                folder
            };
            let (Some((from, may_use)), Some((to, _))) = (placed(file), placed(other)) else { continue };
            if from != to && !may_use.iter().any(|used| is_in(to, used)) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                wrong.insert(format!("{file} ({from}) uses {other} ({to}): {}", names.join(", ")));
            }
        }
    }
    wrong.into_iter().collect()
}

/// The longest entry that a file is in.
fn folder_of(file: &str, source: &str, folders: Folders) -> Option<(&'static str, &'static [&'static str])> {
    let inside = file.strip_prefix(source)?.trim_start_matches('/').strip_suffix(".rs")?;
    folders.iter().filter(|(folder, _)| is_in(inside, folder)).max_by_key(|(folder, _)| folder.len()).copied()
}

fn is_in(inside: &str, folder: &str) -> bool {
    inside.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
