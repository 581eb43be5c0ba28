//! The disk below the folder in use.

use super::kind::{Kind, Opened};
use tare_machine::probes::disk::Scratch;

const IN_MEMORY: &str = "the file system is in memory: no disk is in it";
const CACHED: &str = "the file system has no direct reads: the page cache answered";

pub(super) fn kinds(_: usize) -> Vec<Kind> {
    let fsync =
        Kind::opened("fsync", "s", "4 KiB written and on the disk (fsync), in the folder in use", |ground| {
            let scratch = Scratch::to_write(&ground.dir)?;
            let note = if scratch.is_in_memory { IN_MEMORY } else { "" };
            Ok(Opened { sample: Box::new(move |ns| scratch.fsync_s(ns)), note: note.to_owned() })
        });
    let read = Kind::opened(
        "random-read",
        "s",
        "4 KiB read at a random place of 64 MiB, one at a time (O_DIRECT), in the folder in use",
        |ground| {
            let scratch = Scratch::to_read(&ground.dir)?;
            let note = match (scratch.is_in_memory, scratch.is_direct) {
                (true, _) => IN_MEMORY,
                (false, false) => CACHED,
                (false, true) => "",
            };
            Ok(Opened { sample: Box::new(move |ns| scratch.read_s(ns)), note: note.to_owned() })
        },
    );
    vec![fsync, read]
}
