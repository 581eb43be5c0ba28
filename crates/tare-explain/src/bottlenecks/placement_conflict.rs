//! `placement-conflict`: server and generator stand in each other's way, on one CPU or one physical core.

use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::{Claim, Rank};
use crate::bottlenecks::signs::bounds::{LOSS_SHARE_MIN, NOTICE_SHARE};
use crate::bottlenecks::signs::free::used_share;
use crate::bottlenecks::signs::sides::taken_by_others;
use crate::bottlenecks::signs::together::{FULL_MIN, Together};
use crate::capacity::levels::Accounting;
use crate::capacity::summary::{Filled, filled_by_others, shared_cores, shared_cpus};
use tare_model::outcome::{Cause, Evidence, GrossIs, TareCause};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::PlacementConflict,
    title: "Server and load generator are in each other's way",
    scope: Scope::Http,
    needs: &[Input::Sut, Input::Load],
    gross_is: GrossIs::Capacity,
    holds,
    applies,
    describe,
    confirm: Confirm::By("generator-placement"),
    injections: &["shared-cpu", "shared-core"],
    page: &PAGE,
};

fn holds(accounting: &Accounting) -> Option<Claim> {
    let together = || Together::of(accounting).map(|_| Claim::at(Rank::FullTogether));
    taken_by_others(accounting, TareCause::Placement).or_else(together)
}

fn applies(accounting: &Accounting) -> bool {
    accounting.lost(TareCause::Placement) >= NOTICE_SHARE || !shared_cores(accounting).is_empty()
}

/// What each side used of the CPUs that both use.
fn on_shared(shared: &[(u32, f64, f64)]) -> impl Iterator<Item = Evidence> {
    shared.iter().flat_map(|(cpu, sut, load)| {
        [
            number(format!("server on CPU {cpu}"), *sut, "share"),
            number(format!("generator on CPU {cpu}"), *load, "share"),
        ]
    })
}

/// As [`describe`] where neither keeps the other off much, and both fill the CPUs.
fn describe_together(accounting: &Accounting, both: Together) -> Draft {
    let shared = shared_cpus(&accounting.asked.pool);
    let list: Vec<String> = shared.iter().map(|(cpu, _, _)| cpu.to_string()).collect();
    let mut evidence = vec![
        number("the server's CPUs, used by anybody", both.used, "share"),
        number("generator ready and waiting for a CPU, share of its time", both.generator_waits, "share"),
    ];
    evidence.extend(on_shared(&shared));
    let filled = filled_by_others(&accounting.asked.pool);
    let (no_way_out, who) = no_way_out(&filled);
    evidence.extend(who);
    Draft {
        summary: format!(
            "Server and generator share CPU {}, and the server's CPUs are {} full: the generator waited {} of its time for a CPU, \
             and the server for requests meanwhile.{no_way_out}",
            list.join(", "),
            percent(both.used),
            percent(both.generator_waits),
        ),
        effect_ln: accounting.effect(TareCause::Placement),
        confidence: accounting.support(used_share, FULL_MIN),
        evidence,
        remedy: remedy(&filled),
        confirm: CONFIRM.to_owned(),
    }
}

/// Of more CPUs than these the first say enough.
const FILLED_SHOWN: usize = 3;

/// What is to be known of those that leave the two no other CPU: a sentence, and each as evidence.
fn no_way_out(filled: &[Filled]) -> (String, Vec<Evidence>) {
    let who = |filled: &Filled| filled.by.clone().unwrap_or_else(|| "others".to_owned());
    let said = filled.iter().take(FILLED_SHOWN).map(|one| {
        format!(
            " CPU {} is open to one of them or both, but {} kept it busy ({} of its time).",
            one.cpu,
            who(one),
            percent(one.share)
        )
    });
    let evidence = filled
        .iter()
        .take(FILLED_SHOWN)
        .map(|one| number(format!("{} on CPU {}", who(one), one.cpu), one.share, "share"));
    (said.collect(), evidence.collect())
}

/// What to do where others leave the two no other CPU.
fn remedy(filled: &[Filled]) -> String {
    match filled.iter().find_map(|one| one.by.as_ref().map(|by| (by, one.cpu))) {
        Some((by, cpu)) => format!("stop {by} or move it away from CPU {cpu}; or {REMEDY}"),
        None => REMEDY.to_owned(),
    }
}

const REMEDY: &str = "put the generator on other physical cores than the server's (--load-cpus, --sut-cpus)";
const CONFIRM: &str =
    "with the generator on another CPU the server's wait is gone and throughput rises (--confirm)";

fn describe(accounting: &Accounting) -> Draft {
    let share = accounting.lost(TareCause::Placement);
    if let Some(both) =
        Together::of(accounting).filter(|_| taken_by_others(accounting, TareCause::Placement).is_none())
    {
        return describe_together(accounting, both);
    }
    let shared = shared_cpus(&accounting.asked.pool);
    let cores = shared_cores(accounting);
    let mut evidence =
        vec![number("kept off its CPU by the generator, share of the CPU entitlement", share, "share")];
    evidence.extend(on_shared(&shared));
    evidence.extend(cores.iter().map(|(sut, load)| {
        number(format!("CPUs {sut} (server) and {load} (generator) are one core"), 2.0, "threads")
    }));
    let filled = filled_by_others(&accounting.asked.pool);
    let (no_way_out, who) = no_way_out(&filled);
    evidence.extend(who);
    let summary = if share >= NOTICE_SHARE || cores.is_empty() {
        let list: Vec<String> = shared.iter().map(|(cpu, _, _)| cpu.to_string()).collect();
        format!(
            "Server and generator share CPU {}: the server lost {} of the time it could have used to the generator.{no_way_out}",
            if list.is_empty() { "time".to_owned() } else { list.join(", ") },
            percent(share)
        )
    } else {
        let list: Vec<String> = cores.iter().map(|(sut, load)| format!("{sut}/{load}")).collect();
        format!(
            "Server and generator run on SMT siblings of the same cores ({}): each slows the other without a wait to show for it.",
            list.join(", ")
        )
    };
    Draft {
        summary,
        effect_ln: accounting.effect(TareCause::Placement),
        confidence: if share >= NOTICE_SHARE {
            accounting.support_loss(TareCause::Placement, LOSS_SHARE_MIN)
        } else {
            0.5
        },
        evidence,
        remedy: remedy(&filled),
        confirm: CONFIRM.to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "Server and load generator share CPUs, or the siblings of one core.",
    means: &[
        "The generator ran on the server's CPU while the server was ready, or the two run on SMT siblings \
         of one core. In the first case the server waits. In the second case nobody waits: both run, and \
         each runs slower.",
        "Or both fill the same CPUs together, though neither is full by itself: while the generator waits for a CPU, \
         the server has no requests.",
        "A client on the same CPU is part of the measurement, not of the server. The time that it takes is \
         in the tare.",
    ],
    evidence: &[
        "Share of the entitlement in which the generator kept the server off its CPU.",
        "For each shared CPU: the share of it that the server and the generator used.",
        "Pairs of CPUs that are one physical core, one used by each side.",
        "CPUs that the server or the generator may use, and that another program kept busy for 70 % of the time or more, with its name.",
    ],
    looks_the_same: &[
        "`cpu-contended`: the one who ran there is another program.",
        "`load-generator-bound`: the generator is full on CPUs of its own.",
        "`server-cpu-bound`: a sibling that is used makes each request cost more CPU time. The CPU looks \
         full of the server's work.",
    ],
    to_do: &[
        "Put them on different physical cores: `tare run --sut-cpus 0-3 --load-cpus 4-7 URL`. `tare doctor \
         --topology` draws which CPUs are siblings, and proposes who should have which.",
        "With too few cores, use fewer generator threads, or load from another host.",
    ],
    to_confirm: &[
        "`tare run --confirm URL` moves the generator to CPUs that are not the server's, in pairs of short \
         trials. The rate must rise with an elasticity of 0.1 or more: waking each other across CPUs costs \
         something, too.",
        "By hand: `cat /sys/devices/system/cpu/cpu0/topology/thread_siblings_list`, and `ps -eLo psr,comm` \
         for where threads run.",
    ],
    source: &[
        "Run time of server and generator on each CPU, wait time in schedstat, `thread_siblings_list`. J. \
         Funston and others, An SMT-Selection Metric, IPDPS 2012, for what siblings take from each other.",
    ],
};
