//! The injections: one file each, and one line in the registry.

mod backlog;
mod bandwidth;
mod cold_start;
mod costly_handler;
mod costly_requests;
mod delayed_ack;
mod downstream;
mod drift;
mod error_page;
mod few_ports;
mod fixed_rate;
mod fsync;
mod garbage;
mod generator_neighbour;
mod generator_oversubscribed;
mod hot_thread;
mod little_memory;
mod lock;
mod loss;
mod memory_neighbour;
mod neighbour;
mod none;
mod one_connection;
mod one_loop;
mod oversubscribed_quota;
mod packet_rate;
mod parent_quota;
mod program_computes;
mod program_neighbour;
mod program_quota;
mod program_sleeps;
mod quota;
mod server_oversubscribed;
mod shared_core;
mod shared_cpu;

use super::ground::{Ground, Need, refused};
use super::hosts::{LINK, reported};
use super::injection::{Injection, Scene};
use crate::error::LabError;

/// The injection that disturbs nothing.
pub(super) const UNDISTURBED: &str = "none";

/// Every injection.
pub(super) static INJECTIONS: &[&Injection] = &[
    &none::INJECTION,
    &costly_handler::INJECTION,
    &costly_requests::INJECTION,
    &quota::INJECTION,
    &parent_quota::INJECTION,
    &oversubscribed_quota::INJECTION,
    &neighbour::INJECTION,
    &generator_neighbour::INJECTION,
    &server_oversubscribed::INJECTION,
    &generator_oversubscribed::INJECTION,
    &shared_cpu::INJECTION,
    &shared_core::INJECTION,
    &one_connection::INJECTION,
    &fixed_rate::INJECTION,
    &hot_thread::INJECTION,
    &one_loop::INJECTION,
    &lock::INJECTION,
    &fsync::INJECTION,
    &downstream::INJECTION,
    &backlog::INJECTION,
    &bandwidth::INJECTION,
    &packet_rate::INJECTION,
    &loss::INJECTION,
    &few_ports::INJECTION,
    &delayed_ack::INJECTION,
    &little_memory::INJECTION,
    &garbage::INJECTION,
    &memory_neighbour::INJECTION,
    &error_page::INJECTION,
    &cold_start::INJECTION,
    &drift::INJECTION,
    &program_computes::INJECTION,
    &program_sleeps::INJECTION,
    &program_neighbour::INJECTION,
    &program_quota::INJECTION,
];

/// Those that leave net alone. The built-in server has its one thread, its CPU and its requests as undisturbed, and has all the work
/// that it can do: then alone does a session without a saturating level, as all are here, see what a request costs at saturation.
///
/// All others do not: what is asked for or answered is another thing (costly, failing, slow or drifting requests), or the server is
/// (another program, more threads, another architecture); another transport (two hosts); a sibling or a generator in the
/// same caches; or too little to do, whereupon a request costs more and net is a bound or missing (fixed rate, one connection,
/// a generator that is held back).
static LEAVE_NET: &[&Injection] =
    &[&none::INJECTION, &quota::INJECTION, &parent_quota::INJECTION, &neighbour::INJECTION];

/// Whether net is to be what it is undisturbed.
pub(super) fn leaves_net(name: &str) -> bool {
    LEAVE_NET.iter().any(|injection| injection.name == name)
}
