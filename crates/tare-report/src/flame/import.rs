//! Stacks that another tool recorded.
//!
//! `inferno` can collapse the output of `perf script` too, but gives up by panicking on text that is none; and what it
//! collapses has lost the modules.

use super::choice::FlameError;
use tare_model::Reading;
use tare_model::observation::Role;
use tare_model::stacks::{Folded, Folder, Frame, FrameKind, Module, Stacks};

/// Reads the output of `perf script`, or stacks that are folded already (by `stackcollapse-perf`, `bpftrace`, or
/// [`super::folded`]); all of it is taken as the server's, the first frame of a folded stack as the thread.
///
/// # Errors
/// There are no stacks in it.
pub fn import(text: &str) -> Result<Stacks, FlameError> {
    let mut reader = Reader::default();
    if is_folded(text) {
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            reader.folded_line(line).ok_or_else(|| FlameError::NotStacks(shown(line)))?;
        }
    } else {
        text.lines().for_each(|line| reader.script_line(line));
        reader.end_sample();
    }
    let Reader { folder, folded, .. } = reader;
    let not_there = Reading::missing("what was imported says nothing about waiting");
    let stacks = folder.close(Reading::Measured(folded), not_there, Vec::new());
    let seen = stacks.on_cpu.value().is_some_and(|profile| profile.total(Role::Sut) > 0);
    if seen { Ok(stacks) } else { Err(FlameError::NotStacks("there is no sample in it".into())) }
}

/// A folded line has a number at its end and nothing before its first frame.
fn is_folded(text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#'));
    first.is_some_and(|line| !line.starts_with(char::is_whitespace) && counted(line).is_some())
}

/// A path of frames and its count.
fn counted(line: &str) -> Option<(&str, u64)> {
    let (path, value) = line.trim_end().rsplit_once(' ')?;
    Some((path, value.parse().ok()?))
}

/// The beginning of a line, for a message.
fn shown(line: &str) -> String {
    line.chars().take(60).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[derive(Default)]
struct Reader {
    folder: Folder,
    folded: Folded,
    /// The sample that is being read: its thread, and its frames, innermost first.
    thread: Option<u32>,
    frames: Vec<u32>,
}

impl Reader {
    fn folded_line(&mut self, line: &str) -> Option<()> {
        let (path, value) = counted(line)?;
        let mut names = path.split(';');
        let thread = self.folder.frame(Frame::mark(names.next().unwrap_or_default()));
        let mut frames: Vec<u32> = names.map(|name| self.folder.frame(folded_frame(name))).collect();
        if frames.is_empty() {
            frames.push(thread);
        }
        self.folded.add(Role::Sut, thread, frames, value);
        Some(())
    }

    /// A sample is a line about its event and a line for each frame; an empty line or the next event ends it.
    fn script_line(&mut self, line: &str) {
        if line.trim().is_empty() {
            self.end_sample();
        } else if self.thread.is_some() && self.frame(line) {
        } else if let Some(name) = thread_name(line) {
            self.end_sample();
            self.thread = Some(self.folder.frame(Frame::mark(name)));
            // Without a call chain the only frame stands behind the event's name.
            if let Some((_, rest)) = line.rsplit_once(": ") {
                self.frame(rest);
            }
        }
    }

    /// `ffffffff81000010 vfs_read+0x10 ([kernel.kallsyms])`: whether the line is such a one.
    fn frame(&mut self, line: &str) -> bool {
        let parts = || {
            let (address, rest) = line.trim().split_once(' ')?;
            u64::from_str_radix(address, 16).ok()?;
            let (symbol, path) = rest.strip_suffix(')')?.rsplit_once('(')?;
            Some((symbol.trim(), path))
        };
        let Some((symbol, path)) = parts() else { return false };
        let offset = symbol.rsplit_once("+0x").filter(|(_, offset)| u64::from_str_radix(offset, 16).is_ok());
        let symbol = offset.map_or(symbol, |(symbol, _)| symbol);
        let known = Module { path: path.into(), build_id: None };
        let symbol = match symbol {
            "" | "[unknown]" if !path.starts_with('[') => format!("[{}]", known.name()),
            "" | "[unknown]" => path.into(),
            symbol => symbol.into(),
        };
        let module = (!matches!(path, "inlined" | "[unknown]")).then(|| self.folder.module(known));
        self.frames.push(self.folder.frame(Frame { symbol, module, kind: kind(path) }));
        true
    }

    fn end_sample(&mut self) {
        let mut frames = std::mem::take(&mut self.frames);
        frames.reverse();
        if let Some(thread) = self.thread.take().filter(|_| !frames.is_empty()) {
            self.folded.add(Role::Sut, thread, frames, 1);
        }
    }
}

/// `nginx: worker  1234 [000] 100.5: 1 cpu-clock:`: what stands before the number of the thread, if a colon follows.
fn thread_name(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |word: &str| word.split('/').all(|part| part.parse::<u32>().is_ok());
    let at = words.iter().skip(1).position(|word| number(word))? + 1;
    words[at..].iter().any(|word| word.ends_with(':')).then(|| words[..at].join(" "))
}

fn kind(path: &str) -> FrameKind {
    match path {
        "[vdso]" => FrameKind::Vdso,
        "[unknown]" | "[heap]" | "[stack]" | "//anon" => FrameKind::User,
        _ if path.starts_with("/tmp/perf-") && path.ends_with(".map") => FrameKind::Jit,
        // The kernel's own image, and its modules by name or by file.
        _ if path.starts_with('[') || path.contains("/vmlinux") || path.contains(".ko") => FrameKind::Kernel,
        _ => FrameKind::User,
    }
}

fn folded_frame(name: &str) -> Frame {
    let (symbol, kind) = match (name.strip_suffix("_[k]"), name.strip_suffix("_[j]")) {
        (Some(symbol), _) => (symbol, FrameKind::Kernel),
        (_, Some(symbol)) => (symbol, FrameKind::Jit),
        _ => (name, FrameKind::User),
    };
    Frame { symbol: symbol.into(), module: None, kind }
}
