//! `blocked-on-downstream`: serving threads slept on a socket that they had connected: another server's answers. The
//! program's own: it stays in net.

use super::{Draft, Input, Rule, Scope, number};
use crate::accounting::Asleep;
use crate::capacity::levels::Accounting;
use crate::capacity::summary::own_wait;
use tare_model::outcome::Cause;

pub(super) static RULE: Rule = Rule {
    cause: Cause::BlockedOnDownstream,
    scope: Scope::Any,
    needs: &[Input::Sut, Input::Sleeps],
    applies,
    describe,
};

/// Servers that are named.
const PEERS_NAMED: usize = 4;

fn applies(accounting: &Accounting) -> bool {
    own_wait(accounting, Asleep::Downstream) >= 0.1
}

fn describe(accounting: &Accounting) -> Draft {
    let peers = accounting.asked.pool.switches.peers();
    let named: Vec<&str> = peers.iter().take(PEERS_NAMED).map(|peer| peer.peer.as_str()).collect();
    let verb = match named.as_slice() {
        [] => "slept on another server".to_owned(),
        named => format!("slept on {}", named.join(", ")),
    };
    let mut draft = super::own_wait_draft(
        accounting,
        Asleep::Downstream,
        &verb,
        "ask that server less often (cache, batch), several times at once, or make it faster; measure it with tare run --sut-pid",
        "with the other server's answers ready at once (a stub) the wait is gone",
    );
    let share = |peer: &tare_model::schedule::PeerShare| {
        number(format!("{}, of all sleep on other servers", peer.peer), peer.share, "share")
    };
    draft.evidence.extend(peers.iter().take(PEERS_NAMED).map(share));
    draft
}
