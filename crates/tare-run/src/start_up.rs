//! What every run has in it that is not the program: the time of an empty program, started the same way.

use crate::error::LabError;
use crate::process::Output;
use crate::request::CommandRequest;
use crate::running::Running;
use crate::timed::{Input, Runner, Timed};
use std::fs::File;
use std::os::fd::AsRawFd;
use tare_model::plan::StartUp;
use tare_sys::process::Confinement;

const RUNS: usize = 21;

/// An empty program, in memory.
pub(crate) struct Empty {
    /// It is there for as long as this is open.
    _file: File,
    words: Vec<String>,
}

impl Empty {
    /// `None` where there is none for this architecture, or it cannot be made here.
    pub fn new() -> Option<Empty> {
        let file = tare_sys::file::in_memory(c"tare-empty", &EMPTY?).ok()?;
        let words = vec![format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())];
        Some(Empty { _file: file, words })
    }

    /// Runs it once, so that what starts a program is as ready as it is in the second of two runs.
    pub fn run(&self, confinement: Confinement, runner: &Runner, running: &mut Running<'_>) {
        runner.run(&timed(&self.words, confinement), running, |_| (), |_| ()).ok();
    }
}

fn timed(words: &[String], confinement: Confinement) -> Timed<'_> {
    Timed {
        words,
        environment: &[],
        confinement,
        output: Output::KeepErrors,
        shown: false,
        input: &Input::Nothing,
        pty: false,
        time_limit: None,
        phase: None,
    }
}

/// The median time of an empty program, or of the shell without a command where one runs the program. `None` where there is no empty
/// program for this architecture, or it cannot be run here.
pub(crate) fn measured(
    request: &CommandRequest,
    empty: Option<&Empty>,
    runner: &Runner,
    running: &mut Running<'_>,
) -> Result<Option<StartUp>, LabError> {
    let (words, what) = match &request.shell {
        Some(shell) => {
            let mut words = crate::subjects::program::words_of(shell)?;
            words.extend(["-c".to_owned(), String::new()]);
            (words, format!("{shell} -c ''"))
        }
        None => match empty {
            Some(empty) => (empty.words.clone(), "an empty program".to_owned()),
            None => return Ok(None),
        },
    };
    let confinement = Confinement {
        cpus: request.place.sut_cpus.clone().unwrap_or_default(),
        cgroup_procs: request.groups.clone(),
        no_thp: false,
    };
    let timed = timed(&words, confinement);
    let mut times_s = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        match runner.run(&timed, running, |_| (), |_| ()) {
            Ok(run) if run.ended.exit_code == Some(0) => times_s.push(run.wall_ns as f64 / 1e9),
            Err(LabError::Interrupted) => return Err(LabError::Interrupted),
            Ok(_) | Err(_) => return Ok(None),
        }
    }
    let median_s = tare_stats::median(&times_s);
    Ok(median_s.map(|median_s| StartUp { program: what, median_s, runs: RUNS as u32 }))
}

/// A program that does nothing but end: an ELF header, one segment, and the call `exit_group(0)`.
const EMPTY: Option<[u8; ELF + CODE]> = if cfg!(target_arch = "x86_64") {
    // mov eax, 231; xor edi, edi; syscall
    Some(elf(62, [0xb8, 231, 0, 0, 0, 0x31, 0xff, 0x0f, 0x05, 0, 0, 0]))
} else if cfg!(target_arch = "aarch64") {
    // movz x8, #94; movz x0, #0; svc #0
    Some(elf(183, [0xc8, 0x0b, 0x80, 0xd2, 0, 0, 0x80, 0xd2, 0x01, 0, 0, 0xd4]))
} else {
    None
};
const ELF: usize = 64 + 56;
const CODE: usize = 12;

const fn elf(machine: u8, code: [u8; CODE]) -> [u8; ELF + CODE] {
    const ADDRESS: u64 = 0x40_0000;
    let mut file = [0; ELF + CODE];
    // 64 bits, little-endian, version 1; an executable for the machine, version 1.
    put(&mut file, 0, &[0x7f, b'E', b'L', b'F', 2, 1, 1]);
    put(&mut file, 16, &[2, 0, machine, 0, 1]);
    put(&mut file, 24, &(ADDRESS + ELF as u64).to_le_bytes());
    put(&mut file, 32, &64u64.to_le_bytes());
    // Sizes of the header and of an entry, of which there is one; no sections.
    put(&mut file, 52, &[64, 0, 56, 0, 1, 0, 64]);
    // A segment to load, to be read and executed: the whole file.
    put(&mut file, 64, &[1, 0, 0, 0, 5]);
    put(&mut file, 80, &ADDRESS.to_le_bytes());
    put(&mut file, 88, &ADDRESS.to_le_bytes());
    put(&mut file, 96, &((ELF + CODE) as u64).to_le_bytes());
    put(&mut file, 104, &((ELF + CODE) as u64).to_le_bytes());
    put(&mut file, 112, &4096u64.to_le_bytes());
    put(&mut file, ELF, &code);
    file
}

const fn put(file: &mut [u8], at: usize, bytes: &[u8]) {
    let mut next = 0;
    while next < bytes.len() {
        file[at + next] = bytes[next];
        next += 1;
    }
}
