//! Processes that a run started and that are still there.

use super::id::{Id, identity};
use crate::procs;
use crate::root::Root;

/// The environment variable that every process started by tare carries, and that its children inherit.
pub const RUN_VARIABLE: &str = "TARE_RUN";

/// What a dead run started and is still there: the leaders, their groups, and whoever carries the run id.
pub(super) fn left_running(root: &Root, leaders: &[(Id, u32)], run: &str) -> Vec<procs::Stat> {
    let alive = |process: &procs::Stat| !matches!(process.state, 'Z' | 'X') && process.id > 1;
    let mark = format!("{RUN_VARIABLE}={run}");
    let carries_mark = |pid: u32| {
        let environ = root.bytes(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes())
    };
    let is_left = |process: &procs::Stat| {
        let is_leader = |(id, _): &(Id, u32)| id.pid == process.id && id.start_ticks == process.start_ticks;
        // A group's number cannot be given out again while it has members; one that is older than its
        // leader's start has been.
        let is_member = |(id, pgid): &(Id, u32)| {
            *pgid == process.pgid && process.start_ticks >= id.start_ticks && group_is_ours(root, *id)
        };
        process.id != std::process::id()
            && (leaders.iter().any(|leader| is_leader(leader) || is_member(leader))
                || carries_mark(process.id))
    };
    procs::all(root).unwrap_or_default().into_iter().filter(alive).filter(is_left).collect()
}

/// Whether the group that `leader` led can still be the one it made: nobody else has its number now.
fn group_is_ours(root: &Root, leader: Id) -> bool {
    identity(root, leader.pid).map_or(true, |now| now == leader)
}
