//! Circles of files: files of a crate that use each other's names, directly or in a ring.

use super::tree::{Module, Names, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// Which file uses which, and by which names.
pub type Uses = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// The uses between the files of a crate. A file that only declares and re-exports is in none.
pub fn uses(tree: &Tree) -> Uses {
    let methods = methods_elsewhere(tree);
    let mut uses = Uses::new();
    let with_code: BTreeSet<&str> =
        tree.modules.iter().filter(|m| m.has_code).map(|m| m.file.as_str()).collect();
    for (at, module) in tree.modules.iter().enumerate() {
        if !with_code.contains(module.file.as_str()) {
            continue;
        }
        let mut used: Vec<(usize, String)> = Vec::new();
        for names in module.imports.iter().map(|(_, path)| path).chain(&module.mentions) {
            if let Some(Found::Item(file, name, rest)) = find(tree, at, names) {
                if let Some(method) = rest.first()
                    && let Some(&elsewhere) = methods.of_types.get(&(file, name.clone(), method.clone()))
                {
                    used.push((elsewhere, format!("{name}::{method}")));
                }
                used.push((file, name));
            }
        }
        let knows = |of: usize| {
            let file = &tree.modules[of].file;
            *file == module.file || used.iter().any(|(used, _)| tree.modules[*used].file == *file)
        };
        let called: Vec<(usize, String)> = module
            .calls
            .iter()
            .filter_map(|call| methods.by_name.get(call).map(|(of, elsewhere)| (call, *of, *elsewhere)))
            .filter(|(_, of, _)| knows(*of))
            .map(|(call, _, elsewhere)| (elsewhere, format!(".{call}()")))
            .collect();
        used.extend(called);
        for (of, name) in used {
            let file = &tree.modules[of].file;
            if *file != module.file {
                let names = uses.entry(module.file.clone()).or_default().entry(file.clone()).or_default();
                names.insert(name.trim_end_matches('!').to_owned());
            }
        }
    }
    uses
}

/// Methods that stand in another file than their type.
struct Elsewhere {
    of_types: BTreeMap<(usize, String, String), usize>,
    /// Those whose name no other type of the crate gives to a method of its own: where type and method stand. A call
    /// counts in a file that names the type.
    by_name: BTreeMap<String, (usize, usize)>,
}

fn methods_elsewhere(tree: &Tree) -> Elsewhere {
    let mut of_types = BTreeMap::new();
    let mut by_name = BTreeMap::new();
    let mut times: BTreeMap<&String, usize> = BTreeMap::new();
    for (at, module) in tree.modules.iter().enumerate() {
        for (path, methods) in &module.methods {
            for method in methods {
                *times.entry(method).or_default() += 1;
            }
            let Some(Found::Item(defined, name, _)) = find(tree, at, path) else { continue };
            if tree.modules[defined].file == module.file {
                continue;
            }
            for method in methods {
                of_types.insert((defined, name.clone(), method.clone()), at);
                by_name.insert(method.clone(), (defined, at));
            }
        }
    }
    by_name.retain(|method: &String, _| times[method] == 1);
    Elsewhere { of_types, by_name }
}

/// What a path leads to.
enum Found {
    Module(usize),
    /// The module that defines the item, the item, and what the path says behind it.
    Item(usize, String, Names),
}

fn find(tree: &Tree, from: usize, path: &[String]) -> Option<Found> {
    Search { tree, seen: BTreeSet::new() }.follow(from, path, false)
}

struct Search<'a> {
    tree: &'a Tree,
    /// Names looked up so far: re-exports can name each other.
    seen: BTreeSet<(usize, String, bool)>,
}

impl Search<'_> {
    /// `as_prefix`: more names come behind the path, so a module goes before an item of the same name.
    fn follow(&mut self, from: usize, path: &[String], as_prefix: bool) -> Option<Found> {
        let parent = |module: usize| self.tree.modules[module].parent.map(Found::Module);
        let mut found = match path.first()?.as_str() {
            "crate" => Found::Module(0),
            "self" if path.len() > 1 => Found::Module(from),
            "super" => parent(from)?,
            name => self.look_up(from, name, as_prefix || path.len() > 1)?,
        };
        for (at, name) in path.iter().enumerate().skip(1) {
            match found {
                Found::Item(module, item, mut behind) => {
                    behind.extend(path[at..].iter().cloned());
                    return Some(Found::Item(module, item, behind));
                }
                Found::Module(module) if name == "super" => {
                    found = Found::Module(self.tree.modules[module].parent?);
                }
                Found::Module(module) => {
                    found = self.look_up(module, name, as_prefix || at + 1 < path.len())?;
                }
            }
        }
        Some(found)
    }

    fn look_up(&mut self, at: usize, name: &str, as_prefix: bool) -> Option<Found> {
        let tree = self.tree;
        let module: &Module = &tree.modules[at];
        let child = module.children.get(name).map(|&child| Found::Module(child));
        if as_prefix && child.is_some() {
            return child;
        }
        if module.defines.contains(name) {
            return Some(Found::Item(at, name.to_owned(), Names::new()));
        }
        if !self.seen.insert((at, name.to_owned(), as_prefix)) {
            return child;
        }
        if name.ends_with('!') {
            // A macro is used by its name alone wherever it is in scope.
            let of = tree.modules.iter().position(|m| m.defines.contains(name));
            return of.map(|of| Found::Item(of, name.to_owned(), Names::new()));
        }
        let mut reexported = None;
        for (_, path) in module.imports.iter().filter(|(alias, _)| alias == name) {
            reexported = reexported.or_else(|| self.follow(at, path, as_prefix));
        }
        for path in &module.globs {
            if reexported.is_none()
                && let Some(Found::Module(of)) = self.follow(at, path, true)
            {
                reexported = self.look_up(of, name, as_prefix);
            }
        }
        reexported.or(child)
    }
}

/// Groups of files in which each leads to each other one.
pub fn circles(uses: &Uses) -> Vec<BTreeSet<String>> {
    let reach: BTreeMap<&String, BTreeSet<&String>> =
        uses.keys().map(|file| (file, reached_from(uses, file))).collect();
    let mut circles: Vec<BTreeSet<String>> = Vec::new();
    for (file, reached) in &reach {
        if reached.contains(*file) && !circles.iter().any(|circle| circle.contains(*file)) {
            let back = reached.iter().filter(|other| reach.get(**other).is_some_and(|r| r.contains(*file)));
            circles.push(back.map(|other| (**other).clone()).collect());
        }
    }
    circles
}

fn reached_from<'a>(uses: &'a Uses, start: &'a String) -> BTreeSet<&'a String> {
    let mut reached = BTreeSet::new();
    let mut open = vec![start];
    while let Some(file) = open.pop() {
        for next in uses.get(file).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(next) {
                open.push(next);
            }
        }
    }
    reached
}

/// A circle in words: each use inside it, with the names.
pub fn describe(uses: &Uses, circle: &BTreeSet<String>) -> String {
    let mut text = format!("a circle of {} files:\n", circle.len());
    for file in circle {
        for (other, names) in &uses[file] {
            if circle.contains(other) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                text.push_str(&format!("  {file} uses {other}: {}\n", names.join(", ")));
            }
        }
    }
    text
}
