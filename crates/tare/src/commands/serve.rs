//! `tare serve`: the built-in server on its own.

use crate::cli::serve::{ServeArgs, Steer};
use crate::failure::{Ended, Failure};
use crate::terminal;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs::OpenOptions;
use std::process::ExitCode;
use tare_model::CpuSet;
use tare_server::tables;
use tare_server::{AccessLog, Chosen, Config, Limits, Listening, Report, Server, Steering, Timeouts};

/// Serves until SIGINT or SIGTERM, then answers what has arrived, says what was done and ends.
pub fn serve(args: ServeArgs) -> Ended {
    // As many descriptors as may be: each connection is one. What is refused shows as pauses in accepting.
    tare_sys::process::raise_open_files_limit().ok();
    let config = Config { access_log: access_log(&args)?, ..config(&args) };
    #[cfg(feature = "tls")]
    let config = Config { tls: tls(&args)?, ..config };
    let log = config.access_log.clone();
    let builder = match &args.root {
        Some(folder) => Server::builder().files(folder).map_err(Failure::usage)?,
        None => Server::builder().builtin_routes(),
    };
    let builder = match args.downstream {
        Some(other) => builder.downstream(other),
        None => builder,
    };
    let (architecture, place) = (config.architecture.name(), loops_line(&config));
    let server = builder.bind(config).map_err(Failure::usage)?;
    if let Chosen::Epoll { instead: Some(why) } = server.backend() {
        terminal::say(&format!("epoll instead of io_uring: {why}"));
    }
    let line = format!("({architecture}, {}, {place})", server.backend().name());
    let stop = server.stop_handle();
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(Failure::underway)?;
    let handle = signals.handle();
    let watch = std::thread::spawn(move || {
        let mut coming = signals.forever();
        if coming.next().is_some() {
            stop.stop();
        }
        // Whoever asks twice does not want to wait for the slow.
        if let Some(signal) = coming.next() {
            signal_hook::low_level::emulate_default_handler(signal).ok();
        }
    });
    // The line that a program which starts this server waits for.
    let mut begin = format!("listening on {} {line}\n", server.local_addr());
    if let Some(address) = server.metrics_addr() {
        begin.push_str(&format!("metrics at http://{address}/metrics\n"));
    }
    terminal::print(&begin).map_err(Failure::underway)?;
    let result = server.run().map_err(Failure::underway);
    handle.close();
    watch.join().ok();
    let lines = end_lines(&result?, log.as_ref().map_or(0, AccessLog::lost_lines));
    match log {
        // The log may be standard output itself, and that is held by the write that nobody takes.
        Some(log) if log.is_stuck() => {
            terminal::say("nobody takes the rest of the access log: its last lines are lost");
            terminal::say(lines.trim_end());
        }
        _ => terminal::print(&lines).map_err(Failure::underway)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn access_log(args: &ServeArgs) -> Result<Option<AccessLog>, Failure> {
    let Some(path) = &args.access_log else { return Ok(None) };
    if path.as_os_str() == "-" {
        return Ok(Some(AccessLog::new(std::io::stdout())));
    }
    let file = OpenOptions::new().append(true).create(true).open(path);
    let file = file.map_err(|error| super::unwritable(path, &error))?;
    Ok(Some(AccessLog::new(file)))
}

#[cfg(feature = "tls")]
fn tls(args: &ServeArgs) -> Result<Option<tare_server::Tls>, Failure> {
    let (Some(certificates), Some(key)) = (&args.tls_cert, &args.tls_key) else { return Ok(None) };
    tare_server::Tls::from_pem(certificates, key).map(Some).map_err(Failure::usage)
}

/// The arguments as the library takes them, but for what has to be opened.
pub fn config(args: &ServeArgs) -> Config {
    let (threads, limits, timeouts) = (&args.threads, &args.limits, &args.timeouts);
    let cpus = threads.cpus.clone().map_or_else(Vec::new, |list| list.0);
    let count = match (threads.threads, cpus.len()) {
        (Some(count), _) => count as usize,
        (None, _) if threads.arch.name() == "reactor" => 1,
        (None, 0) => std::thread::available_parallelism().map_or(1, usize::from),
        (None, pinned) => pinned,
    };
    let own = Config::new(args.listen);
    Config {
        listening: Listening {
            address: args.listen,
            threads: count,
            cpus,
            backlog: threads.backlog,
            steering: match threads.steer {
                Steer::None => Steering::Hash,
                Steer::IncomingCpu => Steering::IncomingCpu,
                Steer::Cbpf => Steering::CpuProgram,
            },
            defer_accept: threads.defer_accept,
        },
        architecture: threads.arch,
        backend: threads.backend,
        connections_max: threads.max_connections.map_or(own.connections_max, |n| n as usize),
        own_tables: needs_own_tables(threads.max_connections, count),
        metrics: args.metrics,
        busy_poll: threads.busy_poll,
        limits: Limits {
            target_bytes: limits.max_target as usize,
            head_bytes: limits.max_head as usize,
            fields: limits.max_fields as usize,
            body_bytes: u64::from(limits.max_body),
            ..Limits::default()
        },
        bodies_bytes_max: usize::try_from(limits.max_bodies).unwrap_or(usize::MAX),
        timeouts: Timeouts {
            head: timeouts.head_timeout,
            body: timeouts.body_timeout,
            write: timeouts.write_timeout,
            idle: timeouts.idle_timeout,
            linger: timeouts.linger_timeout,
            drain: timeouts.drain_timeout,
        },
        ..own
    }
}

/// Whether more connections are asked for than the table of descriptors of one process has room for.
fn needs_own_tables(asked: Option<u32>, threads: usize) -> bool {
    let limit = tare_sys::process::open_files_limit().unwrap_or(u64::MAX);
    asked.is_some_and(|connections| connections as usize > tables::room(limit, threads))
}

/// `2 loops on CPUs 0-1`.
fn loops_line(config: &Config) -> String {
    let threads = config.listening.threads;
    let loops = if threads == 1 { "1 loop".to_owned() } else { format!("{threads} loops") };
    let place = match config.listening.cpus.as_slice() {
        [] => String::new(),
        [cpu] => format!(" on CPU {cpu}"),
        cpus => format!(" on CPUs {}", CpuSet::from(cpus)),
    };
    #[cfg(feature = "tls")]
    let tls = if config.tls.is_some() { ", TLS" } else { "" };
    #[cfg(not(feature = "tls"))]
    let tls = "";
    let tables = if config.own_tables { ", each with its own table of descriptors" } else { "" };
    format!("{loops}{place}{tables}{tls}")
}

/// What each loop was given: one with far more than its share holds the others' clients up.
fn end_lines(report: &Report, lost_lines: u64) -> String {
    let mut text = String::from("loop   CPU  connections      requests   errors  timed out\n");
    let row = |name: &str, cpu: &str, of: &tare_server::counters::Counts| {
        let errors = of.answers_4xx + of.answers_5xx;
        format!(
            "{name:<5} {cpu:>4} {:>12} {:>13} {errors:>8} {:>10}\n",
            of.accepted,
            of.answers(),
            of.timed_out
        )
    };
    for (i, thread) in report.threads.iter().enumerate() {
        let cpu = thread.cpu.map_or_else(|| "any".to_owned(), |cpu| cpu.to_string());
        text.push_str(&row(&i.to_string(), &cpu, &thread.counts));
    }
    if report.threads.len() > 1 {
        text.push_str(&row("all", "", &report.sum()));
    }
    if let Some(ratio) = report.imbalance() {
        text.push_str(&format!("the fullest loop was given {ratio:.2} times its share of the connections\n"));
    }
    let sum = report.sum();
    if sum.accept_pauses > 0 {
        text.push_str(&format!(
            "accepting paused {} times for want of room: raise --max-connections or the limit on open files\n",
            sum.accept_pauses
        ));
    }
    if sum.bodies_refused > 0 {
        text.push_str(&format!(
            "{} bodies were answered with 503 for want of memory: raise --max-bodies\n",
            sum.bodies_refused
        ));
    }
    if sum.log_lines_dropped + lost_lines > 0 {
        text.push_str(&format!(
            "the access log lacks {} lines: {} came faster than they were written, {lost_lines} could not be written\n",
            sum.log_lines_dropped + lost_lines,
            sum.log_lines_dropped
        ));
    }
    if sum.panics > 0 {
        text.push_str(&format!("{} handlers panicked, each was answered with 500\n", sum.panics));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Only {
        #[command(flatten)]
        args: ServeArgs,
    }

    #[test]
    fn defaults_are_those_of_the_library() {
        let config = config(&Only::parse_from(["serve"]).args);
        let own = tare_server::Config::new("127.0.0.1:8080".parse().unwrap());
        assert_eq!((config.limits, config.timeouts), (own.limits, own.timeouts));
        assert_eq!(
            (config.connections_max, config.bodies_bytes_max),
            (own.connections_max, own.bodies_bytes_max)
        );
        let (listening, own_listening) = (&config.listening, &own.listening);
        assert_eq!(listening.backlog, own_listening.backlog);
        assert_eq!(
            (listening.steering, listening.defer_accept),
            (own_listening.steering, own_listening.defer_accept)
        );
        assert_eq!((config.busy_poll, config.architecture.name()), (own.busy_poll, own.architecture.name()));
    }
}
