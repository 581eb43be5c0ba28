//! `ports-exhausted`: the generator had no local port left to open a connection from.

use super::{Draft, Rule, Scope, number, number_if};
use crate::accounting::Closed;
use crate::capacity::levels::Accounting;
use tare_model::outcome::Cause;
use tare_model::trial::ErrorKind;

pub(super) static RULE: Rule = Rule {
    cause: Cause::PortsExhausted,
    scope: Scope::Http,
    needs: &[],
    applies: |accounting| failed(&accounting.asked.pool) >= 1.0,
    describe,
};

/// Whether most of the errors are this one.
pub(crate) fn holds(pool: &Closed) -> bool {
    pool.answered.fails_mostly_by(&[ErrorKind::PortsExhausted])
}

fn failed(pool: &Closed) -> f64 {
    pool.answered.errors.get(&ErrorKind::PortsExhausted).copied().unwrap_or(0.0)
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let (failed, around) = (failed(pool), &pool.around);
    let of = around.ports.map_or(String::new(), |ports| format!(" of the {ports:.0} that there are"));
    let waiting = around.time_wait.map_or(String::new(), |count| {
        format!("; {count:.0} connections that were over still kept theirs (TIME_WAIT)")
    });
    let mut evidence = vec![
        number("connections that found no local port", failed, "count"),
        number("of the attempts", pool.answered.error_share(), "share"),
    ];
    evidence.extend(number_if("ports to open connections from", around.ports, "count"));
    evidence.extend(number_if("connections in TIME_WAIT, most at once", around.time_wait, "count"));
    Draft {
        summary: format!("{failed:.0} connections found no local port left{of}{waiting}."),
        confidence: 1.0,
        evidence,
        remedy: "keep connections alive; else open them from several local addresses (--local-addr) or a wider range of \
                 ports (tare tune --apply --port-range 1024-65535)"
            .to_owned(),
        confirm: "with connections kept alive, or twice as many ports, the errors are gone and the rate rises".to_owned(),
        ..Draft::default()
    }
}
