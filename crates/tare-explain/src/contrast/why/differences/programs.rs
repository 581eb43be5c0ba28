//! The programs: content, call, environment, and tare itself.

use super::list::List;
use std::collections::{BTreeMap, BTreeSet};
use tare_model::identity::{Program, Setting};
use tare_model::observation::Role;
use tare_model::why::Kind;
use tare_model::{Missing, Record};

/// Variables that differ from one shell to the next and that no program measures by.
const PASSING: &[&str] = &[
    "_",
    // By which tare finds again what it started.
    "TARE_RUN",
    "SHLVL",
    "OLDPWD",
    "WINDOWID",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "TERM",
    "COLUMNS",
    "LINES",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "SYSTEMD_EXEC_PID",
    "XDG_SESSION_ID",
    "TARE_STATE_DIR",
];
const ENVIRONMENT: &str =
    "runtimes, allocators and libraries are tuned by variables: it may run other code or other sizes";

pub(super) fn compare(a: &Record, b: &Record, list: &mut List) {
    let (Some(one), Some(other)) = (&a.identity, &b.identity) else {
        for (name, record) in [("A", a), ("B", b)] {
            if record.identity.is_none() {
                list.not_compared(Missing::with_remedy(
                    format!("{name} is older than the record of programs, settings and microcode"),
                    "measure it again",
                ));
            }
        }
        return;
    };
    let text = |version: &String| Some(version.clone());
    let matters = "what is read, and how it is explained, may differ; both are explained by this tare now";
    list.compare(Kind::Tare, "tare", text(&one.tare), text(&other.tare), matters);
    for role in [Role::Sut, Role::Load, Role::Tare] {
        let of = |programs: &'_ [Program]| -> Vec<Program> {
            programs.iter().filter(|program| program.role == role).cloned().collect()
        };
        let (mine, theirs) = (of(&one.programs), of(&other.programs));
        // Each with the one in its place: both lists begin with the process that was found or started first.
        for place in 0..mine.len().max(theirs.len()) {
            match (mine.get(place), theirs.get(place)) {
                (Some(mine), Some(theirs)) => pair(role, mine, theirs, list),
                (mine, theirs) => {
                    let path = |program: Option<&Program>| {
                        program.map(|one| one.path.value().cloned().unwrap_or_else(|| "a program".to_owned()))
                    };
                    let matters = "another program takes part";
                    list.compare(Kind::Binary, whose(role), path(mine), path(theirs), matters);
                }
            }
        }
    }
}

fn whose(role: Role) -> &'static str {
    match role {
        Role::Sut => "the program",
        Role::Downstream => "the downstream",
        Role::Load => "the generator",
        Role::Tare | Role::Other => "tare",
    }
}

fn pair(role: Role, a: &Program, b: &Program, list: &mut List) {
    let whose = whose(role);
    let kind = if role == Role::Tare { Kind::Tare } else { Kind::Binary };
    content(kind, whose, a, b, list);
    list.words(kind, &format!("{whose}'s path"), (&a.path, &b.path), "another file was executed");
    // How tare was called stands in the load, the placement and the plan.
    if role == Role::Tare {
        return;
    }
    if a.processes != b.processes {
        let count = |program: &Program| Some(program.processes.to_string());
        let matters = "more processes share the work, and the CPUs";
        list.compare(Kind::Threads, &format!("{whose}'s processes"), count(a), count(b), matters);
    }
    let reported = |words: &Vec<Setting>| words.iter().map(Setting::to_string).collect::<Vec<_>>().join(" ");
    let name = format!("{whose}'s command line");
    let matters = "it was asked to do something else";
    list.readings(Kind::CommandLine, &name, (&a.arguments, &b.arguments), reported, matters);
    environment(whose, a, b, list);
}

fn content(kind: Kind, whose: &str, a: &Program, b: &Program, list: &mut List) {
    let same_by_linker = a.build_id.value().is_some() && a.build_id.value() == b.build_id.value();
    let matters = match same_by_linker {
        true => "the same build (its build id is the same), stripped or signed since",
        false => "another build: other code was measured",
    };
    let short = |sum: &String| format!("sha256 {}", sum.chars().take(16).collect::<String>());
    match (a.sha256.value(), b.sha256.value()) {
        (Some(_), Some(_)) => {
            list.readings(kind, &format!("{whose}'s binary"), (&a.sha256, &b.sha256), short, matters);
        }
        _ => {
            let name = format!("{whose}'s build id");
            list.readings(kind, &name, (&a.build_id, &b.build_id), String::clone, matters);
        }
    }
}

fn environment(whose: &str, a: &Program, b: &Program, list: &mut List) {
    let (one, other) = match (a.environment.value(), b.environment.value()) {
        (Some(one), Some(other)) => (one, other),
        _ => {
            let name = format!("{whose}'s environment");
            let sides = (&a.environment, &b.environment);
            list.readings(
                Kind::Environment,
                &name,
                sides,
                |all| format!("{} variables", all.len()),
                ENVIRONMENT,
            );
            return;
        }
    };
    let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
    for name in names.into_iter().filter(|name| !PASSING.contains(&name.as_str())) {
        let of = |all: &BTreeMap<String, Setting>| all.get(name).map(Setting::to_string);
        list.compare(Kind::Environment, name, of(one), of(other), ENVIRONMENT);
    }
}
