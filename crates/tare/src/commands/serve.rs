//! `tare serve`: the built-in server on its own.

use crate::cli::ServeArgs;
use crate::failure::Failure;
use crate::{Ended, terminal};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::process::ExitCode;
use tare_server::{Config, Server};

/// Serves until SIGINT or SIGTERM, then answers what has arrived and ends.
pub fn serve(args: &ServeArgs) -> Ended {
    let cpus = args.cpus.clone().map_or_else(Vec::new, |list| list.0);
    let threads = match (args.threads, cpus.len()) {
        (Some(threads), _) => threads as usize,
        (None, 0) => std::thread::available_parallelism().map_or(1, usize::from),
        (None, pinned) => pinned,
    };
    let config = Config { architecture: args.arch, threads, cpus, ..Config::new(args.listen) };
    let server = Server::builder().builtin_routes().bind(config).map_err(Failure::usage)?;
    let stop = server.stop_handle();
    let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(Failure::underway)?;
    let handle = signals.handle();
    let watch = std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            stop.stop();
        }
    });
    // The line that a program which starts this server waits for.
    terminal::print(&format!("listening on {}\n", server.local_addr())).map_err(Failure::underway)?;
    let result = server.run().map_err(Failure::underway);
    handle.close();
    watch.join().ok();
    result.map(|_report| ExitCode::SUCCESS)
}
