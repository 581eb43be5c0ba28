//! `server-cpu-bound`: the server used what CPU it had.

use crate::accounting::Loss;
use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::bounds::NOTICE_SHARE;
use crate::bottlenecks::signs::sides::{Side, fuller_side, server_is_full, system_share};
use crate::bottlenecks::signs::together::kept_off;
use crate::capacity::downstream;
use crate::capacity::generator;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, GrossIs, TareCause};

/// Programs that are named beside the server.
const CALLED_NAMED: usize = 3;

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::ServerCpuBound,
    title: "The server's CPU is the bottleneck",
    scope: Scope::Http,
    needs: &[Input::Sut],
    gross_is: GrossIs::Capacity,
    holds,
    // Only worth saying when it is the bottleneck: else something else is in its way.
    applies: |_| false,
    describe,
    confirm: Confirm::By("server-cpu"),
    injections: &["none", "costly-handler"],
    page: &PAGE,
};

/// Where it has nothing left; or has little, and more of nothing else would help.
fn holds(accounting: &Accounting) -> Option<Claim> {
    if server_is_full(accounting) {
        return Some(Claim::at(Rank::ServerFull));
    }
    let fuller = kept_off(accounting).is_none() && fuller_side(accounting) == Some(Side::Server);
    fuller.then(|| Claim::at(Rank::FullerSide))
}

fn busy_share(accounting: &Accounting) -> f64 {
    accounting.sut().map_or(0.0, |sut| sut.busy() / sut.cpus())
}

/// Programs that it calls and that ran on its CPUs, busiest first: part of what is full.
fn called_there(accounting: &Accounting) -> Vec<(String, f64)> {
    let share = accounting.sut().map_or(0.0, |sut| sut.share(Loss::Downstream));
    let mut called: Vec<(String, f64)> = downstream::all(&accounting.asked.pool)
        .into_iter()
        .filter(|called| share >= NOTICE_SHARE && called.busy_on_sut_cpus >= NOTICE_SHARE)
        .map(|called| (called.program.name.clone(), called.busy_on_sut_cpus))
        .collect();
    called.sort_by(|a, b| b.1.total_cmp(&a.1));
    called
}

/// The server and those beside it in a sentence.
fn summary(accounting: &Accounting, entitled: f64, each: &str) -> String {
    let called = called_there(accounting);
    let busy = percent(busy_share(accounting));
    if called.is_empty() {
        return format!(
            "The server is the bottleneck: it was busy {busy} of the {entitled:.2} CPUs it can use{each}."
        );
    }
    let name =
        |(name, cpus): &(String, f64)| format!("{name} {}", percent(cpus / entitled.max(f64::MIN_POSITIVE)));
    let named: Vec<String> = called.iter().take(CALLED_NAMED).map(name).collect();
    format!(
        "The CPUs of the whole system are the bottleneck: of the {entitled:.2} CPUs that the server can use it was busy {busy}{each}, and \
         what it calls ran there too: {}.",
        named.join(", ")
    )
}

fn describe(accounting: &Accounting) -> Draft {
    let pool = &accounting.asked.pool;
    let (busy, entitled) = accounting.sut().map_or((0.0, 0.0), |sut| (sut.busy(), sut.cpus()));
    let cost_ns = pool.sut.as_ref().and_then(|sut| pool.per_request(sut.run_s)).map(|cost_s| cost_s * 1e9);
    let each = cost_ns.map_or(String::new(), |cost_ns| format!(", {:.2} µs of CPU a request", cost_ns / 1e3));
    let mut evidence = vec![
        number("server busy", busy, "CPUs"),
        number("server's CPU entitlement", entitled, "CPUs"),
        number(
            "server idle for want of requests, share of its CPUs",
            accounting.lost(TareCause::NoWork),
            "share",
        ),
    ];
    let called = called_there(accounting);
    evidence.extend(
        called
            .iter()
            .map(|(name, cpus)| number(format!("{name}, which it calls, on its CPUs"), *cpus, "CPUs")),
    );
    evidence.extend(number_if("CPU time of a request", cost_ns, "ns"));
    evidence.extend(number_if("generator running or ready", generator::fullness(pool), "share"));
    Draft {
        summary: summary(accounting, entitled, &each),
        effect_ln: 0.0,
        confidence: accounting.support(
            |window| window.sut.as_ref().filter(|sut| sut.entitled_s > 0.0).map(system_share),
            0.85,
        ),
        evidence,
        remedy: if called.is_empty() {
            "spend less CPU per request (profile the server), or give it more CPUs and threads to use them"
        } else {
            "give what it calls CPUs of its own, or spend less CPU per request in either (profile both)"
        }
        .to_owned(),
        confirm: "with a third of the server's CPU time taken throughput falls with an elasticity above 0.5 (--confirm); with another generator thread it does not rise".to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "The server used all CPU time that it may use.",
    means: &[
        "The server ran for 85 % or more of its CPU entitlement (the CPUs that its serving threads can use \
         at once), and it was at least as full as the generator. Throughput is busy CPUs divided by CPU \
         time per request.",
        "This is the usual bottleneck of a good measurement: the figure is a property of the program.",
    ],
    evidence: &[
        "Server busy, in CPUs, and its entitlement.",
        "What it calls (a backend, a database) and that ran on the same CPUs, with the share of each: it is part of the system, and \
         never a neighbour.",
        "Share of its CPUs that was idle for want of requests. It is small.",
        "CPU time per request, and how full the generator was.",
    ],
    looks_the_same: &[
        "`cpu-quota-throttled`, `cpu-contended`, `steal`: the server is short of CPU because something else \
         takes it. These come first where they take 12 % or more.",
        "`one-thread-bound`: one thread is full, the other threads are not.",
        "`gc-pauses`: the server is full, and a quarter or more of its CPU time collects garbage.",
        "`kernel-lock-contended`: spinning on a lock of the kernel counts as run time. `tare run --trace \
         URL` tells the two apart.",
    ],
    to_do: &[
        "Find where the time goes: `tare run --stacks URL`, then `tare flame`; or `perf record -g -p PID -- \
         sleep 10` and `perf report`.",
        "Give the server more CPUs (`--sut-cpus`) if it has threads to use them.",
        "Look at the tare beside the bottleneck: a clock that is too low or cold caches make each request \
         cost more time.",
    ],
    to_confirm: &[
        "`tare run --confirm URL` takes a third of the server's CPU time by a quota, in pairs of short \
         trials. The rate must follow with an elasticity of 0.5 or more.",
        "By hand: one more generator thread does not raise the rate, and one CPU more for the server does.",
    ],
    source: &[
        "schedstat run time of the server's threads. The utilization law U = X · D and its bound X ≤ 1 / D: \
         E. Lazowska and others, Quantitative System Performance, 1984, chapters 3 and 5.",
    ],
};
