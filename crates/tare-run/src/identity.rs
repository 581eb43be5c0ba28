//! Which programs take part in a session, for the record.

use crate::request::{CommandRequest, LoadRequest};
use crate::subjects::sut::Sut;
use tare_machine::{Root, identity};
use tare_model::identity::Program;
use tare_model::observation::Role;

/// The server's processes, and a generator that is somebody else's.
pub fn of_server(sut: &Sut, load: &LoadRequest) -> Vec<Program> {
    let mut programs = identity::of_processes(&Root::live(), Role::Sut, &sut.pids);
    match load {
        LoadRequest::Own { .. } => {}
        LoadRequest::Start(command) => programs.extend(named_in(Role::Load, command, &[])),
        LoadRequest::Pid(pid) => programs.extend(identity::of_processes(&Root::live(), Role::Load, &[*pid])),
    }
    programs
}

/// The programs that will be run; through a shell, the one that the line begins with.
pub fn of_commands(
    variants: &[Vec<String>],
    request: &CommandRequest,
    environment: &[(String, String)],
) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    for words in variants.iter().take(COMMANDS_MAX) {
        let program = match (&request.shell, words.as_slice()) {
            (Some(_), words) => named_in(Role::Sut, &words.join(" "), environment),
            (None, [line]) => named_in(Role::Sut, line, environment),
            (None, words) => Some(identity::of_command(Role::Sut, words, environment)),
        };
        programs.extend(program);
    }
    programs
}

/// Commands whose programs are kept, at most: of parameters there may be thousands.
const COMMANDS_MAX: usize = 8;

/// The program that a command line begins with, as far as it is known without running a shell.
fn named_in(role: Role, line: &str, environment: &[(String, String)]) -> Option<Program> {
    let words = shell_words::split(line).ok().filter(|words| !words.is_empty())?;
    Some(identity::of_command(role, &words, environment))
}
