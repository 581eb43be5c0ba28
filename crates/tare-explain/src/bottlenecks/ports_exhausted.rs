//! `ports-exhausted`: the generator had no local port left to open a connection from.

use crate::accounting::Closed;
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if};
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::requests::fails;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, GrossIs};
use tare_model::trial::ErrorKind;

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::PortsExhausted,
    title: "The generator's local ports are the bottleneck",
    scope: Scope::Http,
    needs: &[],
    gross_is: GrossIs::LowerBound,
    holds,
    applies: |accounting| failed(&accounting.asked.pool) >= 1.0,
    describe,
    confirm: Confirm::Cannot {
        why: "closed connections keep their ports for a minute",
        instead: "keep connections alive, or widen the range ('tare tune --port-range')",
    },
    injections: &["few-ports"],
    page: &PAGE,
};

/// Whether most of the errors are this one.
fn holds(accounting: &Accounting) -> Option<Claim> {
    let mostly = accounting.asked.pool.answered.fails_mostly_by(&[ErrorKind::PortsExhausted]);
    (fails(accounting) && mostly).then(|| Claim::at(Rank::FailureExplained).beside_time())
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

static PAGE: Page = Page {
    brief: "The generator had no local port left to open a connection from.",
    means: &[
        "Each connection to one server address needs a local port of its own, and there are about 28,000 of \
         them. The side that closes first keeps its port for 60 s more (TIME_WAIT). A connection for each \
         request uses them up at about 470 per second.",
        "What was measured is this limit of the client. Gross is a lower bound, and the errors make the \
         result not valid.",
    ],
    evidence: &[
        "Connections that found no local port, and their share of the attempts.",
        "Ports that there are, and the most connections in TIME_WAIT at once.",
    ],
    looks_the_same: &[
        "`listen-overflow`: the server has no room for the connection. It is not an error of the client's \
         bind or connect (EADDRNOTAVAIL).",
        "`errors`: connections are refused or reset by the other side.",
        "`open-files-exhausted`: the server may open no more files; the generator has ports left.",
    ],
    to_do: &[
        "Keep connections alive: leave out `--no-keepalive`.",
        "Use several local addresses: `tare run --no-keepalive --local-addr 127.0.0.2,127.0.0.3 URL`.",
        "Widen the range: `tare tune --apply --port-range 1024-65535`.",
    ],
    to_confirm: &[
        "There is no intervention: closed connections keep their ports for a minute. With connections kept \
         alive, or twice as many ports, the errors are gone.",
        "By hand: `ss -s` (timewait), `sysctl net.ipv4.ip_local_port_range`.",
    ],
    source: &[
        "EADDRNOTAVAIL of the generator's connects, `/proc/net/sockstat`. Linux: ip(7), tcp(7). RFC 9293 \
         section 3.6.1 (TIME-WAIT).",
    ],
};
