//! The modules of a crate: which file defines a name, which names a file uses. Types are not inferred.

use super::tokens::{Token, tokens};
use std::collections::{BTreeMap, BTreeSet};

/// A path as written: `crate`, `a`, `B`.
pub type Names = Vec<String>;

/// One module, in a file of its own or inline in one.
#[derive(Debug, Default)]
pub struct Module {
    /// The file, from the root of the search.
    pub file: String,
    pub parent: Option<usize>,
    pub children: BTreeMap<String, usize>,
    /// Items that the module defines itself.
    pub defines: BTreeSet<String>,
    /// Whether the module has anything but declarations and re-exports.
    pub has_code: bool,
    /// Names that `use` brings in, with the path each stands for.
    pub imports: Vec<(String, Names)>,
    /// Paths of `use path::*`.
    pub globs: Vec<Names>,
    /// Paths and words in the code.
    pub mentions: BTreeSet<Names>,
    /// Names called as methods.
    pub calls: BTreeSet<String>,
    /// Own methods of a type: the type as written, and their names.
    pub methods: Vec<(Names, BTreeSet<String>)>,
}

/// All modules of one crate; the first is its root.
#[derive(Debug, Default)]
pub struct Tree {
    pub modules: Vec<Module>,
}

/// Reads a crate from its root file; `read` gives a file's text, `None` where there is no such file.
pub fn read(root: &str, read: &dyn Fn(&str) -> Option<String>) -> Tree {
    let mut reader = Reader { tree: Tree::default(), read };
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    reader.file(root, &folder, None);
    reader.tree
}

struct Reader<'a> {
    tree: Tree,
    read: &'a dyn Fn(&str) -> Option<String>,
}

/// What stood in front of an item.
#[derive(Default)]
struct Attributes {
    is_test: bool,
    path: Option<String>,
}

impl Reader<'_> {
    /// `folder` is where the module's children are looked for.
    fn file(&mut self, file: &str, folder: &str, parent: Option<usize>) -> usize {
        let module = self.module(file, parent);
        let text = (self.read)(file).unwrap_or_else(|| panic!("{file} is not there"));
        let tokens = tokens(&text);
        self.items(&tokens, module, folder);
        module
    }

    fn module(&mut self, file: &str, parent: Option<usize>) -> usize {
        self.tree.modules.push(Module { file: file.to_owned(), parent, ..Module::default() });
        self.tree.modules.len() - 1
    }

    /// Reads items up to the end of `tokens`.
    fn items(&mut self, tokens: &[Token], module: usize, folder: &str) {
        let mut at = 0;
        let mut attributes = Attributes::default();
        while at < tokens.len() {
            if tokens[at].is('#') {
                let inner = tokens.get(at + 1).is_some_and(|t| t.is('!'));
                let end = group_end(tokens, at + 1 + usize::from(inner));
                self.attribute(&tokens[at..end], module, &mut attributes);
                if inner && attributes.is_test {
                    return;
                }
                at = end;
                continue;
            }
            let end = item_end(tokens, at);
            if !attributes.is_test {
                self.item(&tokens[at..end], module, folder, &attributes);
            }
            attributes = Attributes::default();
            at = end;
        }
    }

    fn attribute(&mut self, tokens: &[Token], module: usize, attributes: &mut Attributes) {
        attributes.is_test |= is_test(tokens);
        let texts = tokens.iter().filter_map(|t| if let Token::Text(text) = t { Some(text) } else { None });
        let is_path = tokens.get(2).is_some_and(|t| t.says("path"));
        for text in texts {
            if is_path {
                attributes.path = Some(text.clone());
            } else if text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                // `#[serde(with = "a::b")]` uses a name as well.
                let names: Names = text.split("::").map(str::to_owned).collect();
                self.tree.modules[module].mentions.insert(names);
            }
        }
    }

    fn item(&mut self, tokens: &[Token], module: usize, folder: &str, attributes: &Attributes) {
        let start = after_modifiers(tokens);
        let tokens = &tokens[start..];
        let name = tokens.get(1).and_then(Token::word).unwrap_or_default().to_owned();
        let modules = &mut self.tree.modules;
        match tokens.first().and_then(Token::word) {
            Some("use") => use_tree(&tokens[1..], &mut modules[module]),
            Some("mod") => self.child(tokens, module, folder, &name, attributes),
            Some("extern") => {}
            Some("fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static") => {
                let name = if name == "mut" { tokens[2].word().unwrap_or_default().to_owned() } else { name };
                modules[module].defines.insert(name);
                self.body(&tokens[1..], module);
            }
            Some("macro_rules") => {
                let name = tokens.get(2).and_then(Token::word).unwrap_or_default();
                modules[module].defines.insert(format!("{name}!"));
                self.body(&tokens[2..], module);
            }
            Some("impl") => {
                if let Some(methods) = own_methods(tokens) {
                    modules[module].methods.push(methods);
                }
                self.body(tokens, module);
            }
            // A macro at the level of items, as `thread_local!`.
            Some(_) => {
                for pair in tokens.windows(2).filter(|pair| pair[0].says("static")) {
                    modules[module].defines.extend(pair[1].word().map(str::to_owned));
                }
                self.body(tokens, module);
            }
            None => {}
        }
    }

    fn child(&mut self, tokens: &[Token], module: usize, folder: &str, name: &str, attributes: &Attributes) {
        let file = self.tree.modules[module].file.clone();
        let inside = format!("{folder}/{name}");
        let child = if tokens.len() > 2 && tokens[2].is('{') {
            let child = self.module(&file, Some(module));
            self.items(&tokens[3..tokens.len() - 1], child, &inside);
            child
        } else if let Some(path) = &attributes.path {
            let beside = file.rsplit_once('/').map_or("", |(folder, _)| folder);
            let path = format!("{beside}/{path}");
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
            self.file(&path, &folder, Some(module))
        } else {
            let beside = format!("{inside}.rs");
            let file = if (self.read)(&beside).is_some() { beside } else { format!("{inside}/mod.rs") };
            self.file(&file, &inside, Some(module))
        };
        self.tree.modules[module].children.insert(name.to_owned(), child);
    }

    /// Paths, words and calls in code.
    fn body(&mut self, tokens: &[Token], module: usize) {
        self.tree.modules[module].has_code = true;
        let mut at = 0;
        while at < tokens.len() {
            if tokens[at].is('#') && tokens.get(at + 1).is_some_and(|t| t.is('[')) {
                let end = group_end(tokens, at + 1);
                let mut attributes = Attributes::default();
                self.attribute(&tokens[at..end], module, &mut attributes);
                at = if attributes.is_test { part_end(tokens, end) } else { end };
            } else if tokens[at].says("use") {
                let end = item_end(tokens, at);
                use_tree(&tokens[at + 1..end], &mut self.tree.modules[module]);
                at = end;
            } else if tokens[at].word().is_some() {
                at = self.mention(tokens, at, module);
            } else {
                at += 1;
            }
        }
    }

    fn mention(&mut self, tokens: &[Token], start: usize, module: usize) -> usize {
        let mut names: Names = Vec::new();
        let mut at = start;
        while let Some(word) = tokens.get(at).and_then(Token::word) {
            names.push(word.to_owned());
            at += 1;
            let goes_on = tokens.get(at) == Some(&Token::PathMark)
                && tokens.get(at + 1).is_some_and(|t| t.word().is_some());
            if !goes_on {
                break;
            }
            at += 1;
        }
        let is_call = tokens.get(at).is_some_and(|t| t.is('('))
            || tokens.get(at) == Some(&Token::PathMark) && tokens.get(at + 1).is_some_and(|t| t.is('<'));
        let is_macro = tokens.get(at).is_some_and(|t| t.is('!'))
            && tokens.get(at + 1).is_some_and(|t| t.is('(') || t.is('[') || t.is('{'));
        let module = &mut self.tree.modules[module];
        if start > 0 && tokens[start - 1].is('.') {
            if is_call {
                module.calls.extend(names.pop());
            }
        } else {
            if is_macro && let Some(last) = names.last_mut() {
                last.push('!');
            }
            module.mentions.insert(names);
        }
        at
    }
}

/// Whether an attribute says that what follows is there in tests alone.
fn is_test(attribute: &[Token]) -> bool {
    let words: Vec<&str> = attribute.iter().filter_map(Token::word).collect();
    matches!(words[..], ["cfg", "test"]) || matches!(words[..], ["cfg", "all", ..] if words.contains(&"test"))
}

/// Just behind the bracket that closes the one at `open`.
fn group_end(tokens: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token {
            Token::Mark('(' | '[' | '{') => depth += 1,
            Token::Mark(')' | ']' | '}') => depth -= 1,
            _ => {}
        }
        if depth <= 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// Just behind the item that starts at `start`: its `;`, or the brace that closes it.
fn item_end(tokens: &[Token], start: usize) -> usize {
    let first = start + after_modifiers(&tokens[start..]);
    let ends_with_semicolon = tokens
        .get(first)
        .and_then(Token::word)
        .is_some_and(|word| matches!(word, "use" | "const" | "static" | "type"));
    let mut at = start;
    while at < tokens.len() {
        match &tokens[at] {
            Token::Mark(';') => return at + 1,
            Token::Mark('{') => {
                at = group_end(tokens, at);
                if !ends_with_semicolon {
                    return at;
                }
            }
            Token::Mark('(' | '[') => at = group_end(tokens, at),
            _ => at += 1,
        }
    }
    tokens.len()
}

/// Just behind a part of an item, a field, a method or a statement, that is there in tests alone.
fn part_end(tokens: &[Token], start: usize) -> usize {
    let mut at = start;
    while at < tokens.len() {
        match &tokens[at] {
            Token::Mark(';' | ',') => return at + 1,
            Token::Mark('}' | ')' | ']') => return at,
            Token::Mark('{') => return group_end(tokens, at),
            Token::Mark('(' | '[') => at = group_end(tokens, at),
            _ => at += 1,
        }
    }
    tokens.len()
}

/// How many tokens of `pub(crate)`, `async`, `unsafe` … come before the keyword of an item.
fn after_modifiers(tokens: &[Token]) -> usize {
    let mut at = 0;
    while let Some(word) = tokens.get(at).and_then(Token::word) {
        let next = tokens.get(at + 1);
        match word {
            "pub" if next.is_some_and(|t| t.is('(')) => at = group_end(tokens, at + 1),
            "pub" | "async" | "unsafe" | "default" => at += 1,
            "const"
                if next.is_some_and(|t| matches!(t.word(), Some("fn" | "unsafe" | "async" | "extern"))) =>
            {
                at += 1;
            }
            "extern" if matches!(next, Some(Token::Text(_))) => at += 2,
            "extern" if next.is_some_and(|t| t.says("fn")) => at += 1,
            _ => break,
        }
    }
    at
}

/// The names that `use` brings in.
fn use_tree(tokens: &[Token], module: &mut Module) {
    fn branch(tokens: &[Token], before: &[String], module: &mut Module) {
        let mut path = before.to_vec();
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                Token::Word(word) if word == "as" => {
                    let alias = tokens.get(at + 1).and_then(Token::word).unwrap_or_default();
                    return import(alias, path, module);
                }
                Token::Word(word) => path.push(word.clone()),
                Token::Mark('*') => return module.globs.push(path),
                Token::Mark('{') => {
                    let inside = &tokens[at + 1..group_end(tokens, at) - 1];
                    let mut start = 0;
                    while start < inside.len() {
                        let mut end = start;
                        while end < inside.len() && !inside[end].is(',') {
                            end = if inside[end].is('{') { group_end(inside, end) } else { end + 1 };
                        }
                        branch(&inside[start..end], &path, module);
                        start = end + 1;
                    }
                    return;
                }
                Token::Mark(';') => break,
                _ => {}
            }
            at += 1;
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let alias = path.last().cloned().unwrap_or_default();
        import(&alias, path, module);
    }
    fn import(alias: &str, path: Names, module: &mut Module) {
        if !path.is_empty() {
            module.imports.push((alias.to_owned(), path));
        }
    }
    branch(tokens, &[], module);
}

/// The type and the methods of an `impl` without a trait.
fn own_methods(tokens: &[Token]) -> Option<(Names, BTreeSet<String>)> {
    let open = tokens.iter().position(|t| t.is('{'))?;
    let (header, body) = tokens.split_at(open);
    let for_trait = header.windows(2).any(|pair| pair[0].says("for") && !pair[1].is('<'));
    if for_trait {
        return None;
    }
    let mut at = 1;
    if header.get(at).is_some_and(|t| t.is('<')) {
        let mut depth = 0;
        while at < header.len() {
            let arrow = at > 0 && header[at - 1].is('-');
            depth += i32::from(header[at].is('<')) - i32::from(header[at].is('>') && !arrow);
            at += 1;
            if depth == 0 {
                break;
            }
        }
    }
    let path = header[at..]
        .iter()
        .take_while(|t| t.word().is_some() || **t == Token::PathMark)
        .filter_map(Token::word)
        .take_while(|word| *word != "where")
        .map(str::to_owned)
        .collect();
    let mut methods = BTreeSet::new();
    let mut at = 1;
    let mut depth = 0;
    while at < body.len() {
        match &body[at] {
            Token::Mark('{') => depth += 1,
            Token::Mark('}') => depth -= 1,
            Token::Word(word) if word == "fn" && depth == 0 => {
                methods.extend(body.get(at + 1).and_then(Token::word).map(str::to_owned));
            }
            _ => {}
        }
        at += 1;
    }
    Some((path, methods))
}
