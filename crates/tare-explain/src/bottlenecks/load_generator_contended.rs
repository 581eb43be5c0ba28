//! `load-generator-contended`: the generator gave out first because others ran on its CPUs.

use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, number_if, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::rank::Claim;
use crate::bottlenecks::signs::bounds::LOSS_SHARE_MIN;
use crate::bottlenecks::signs::sides::{generator_gives_out, generator_is_kept_off};
use crate::capacity::levels::Accounting;
use crate::capacity::summary::neighbours_of;
use tare_model::observation::Role;
use tare_model::outcome::{Cause, GrossIs, TareCause};

/// Others on the same CPUs that are named.
const NAMED_MAX: usize = 5;

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::LoadGeneratorContended,
    title: "Other programs on the load generator's CPUs are the bottleneck",
    scope: Scope::Http,
    needs: &[Input::Load, Input::Cpus],
    gross_is: GrossIs::LowerBound,
    holds,
    // As of a full generator: it costs nothing while something else is in the way.
    applies: |_| false,
    describe,
    confirm: Confirm::By("generator-cpu"),
    injections: &["generator-neighbour"],
    page: &PAGE,
};

/// Where it has nothing or little left, and would have more without the others.
fn holds(accounting: &Accounting) -> Option<Claim> {
    generator_gives_out(accounting).filter(|_| generator_is_kept_off(accounting))
}

fn describe(accounting: &Accounting) -> Draft {
    let load = accounting.load();
    let share = load.map_or(0.0, |load| load.tare_share(TareCause::Preempted));
    let neighbours = neighbours_of(&accounting.asked.pool, Role::Load);
    let who = neighbours.first().map_or("programs that no sample shows".to_owned(), |(name, _)| name.clone());
    let idle = accounting.sut().map(|sut| sut.tare_share(TareCause::NoWork));
    let mut evidence = vec![number("generator ready while others ran, share of its CPUs", share, "share")];
    evidence.extend(number_if("generator busy", load.map(|load| load.busy()), "CPUs"));
    evidence.extend(number_if("server idle for want of requests, share of its CPUs", idle, "share"));
    let named = neighbours.into_iter().take(NAMED_MAX);
    evidence.extend(named.map(|(name, busy)| number(format!("{name} on the same CPUs"), busy, "CPUs")));
    Draft {
        summary: format!(
            "The load generator was ready and did not run for {} of its time: {who} had its CPUs.",
            percent(share)
        ),
        effect_ln: accounting.effect(TareCause::NoWork),
        confidence: accounting.support(
            |window| Some(window.load.as_ref()?.tare_share(TareCause::Preempted)),
            LOSS_SHARE_MIN,
        ),
        evidence,
        remedy: "stop the others or move them to other CPUs (taskset -acp), or give the generator CPUs of its own (--load-cpus)"
            .to_owned(),
        confirm: "with a third of the generator's CPU time taken throughput falls with an elasticity above 0.5 (--confirm); \
                  with the others stopped it rises"
            .to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "Other programs ran on the load generator's CPUs: the rate is a lower bound.",
    means: &[
        "The generator ran or was ready to run for 90 % of the time or more, and it would have had time to \
         spare if nobody else had run on its CPUs. The server had time to spare.",
        "Gross is a lower bound. What the others take differs from run to run, so that the figure does, too.",
    ],
    evidence: &[
        "Generator ready while others ran, as a share of the CPUs that it may use: 12 % or more.",
        "Who ran there: other processes on the same CPUs, with the CPU time that each used.",
        "Server: the share of its CPUs that was idle for want of requests.",
    ],
    looks_the_same: &[
        "`load-generator-bound`: the generator uses its CPUs up itself. Without the others it would be full, \
         too.",
        "`placement-conflict`: the one who runs on the generator's CPU is the server.",
        "`cpu-contended`: the others run on the server's CPUs.",
        "`oversubscribed`: the generator's own threads are in front of each other.",
    ],
    to_do: &[
        "Give the generator CPUs of its own: `tare run --load-cpus 4-7 URL`. `tare doctor` names who else \
         uses CPU time.",
        "Stop the others, or move them: `taskset -acp 0-3 PID`.",
        "Load from another host, if this one has no CPUs that are free.",
    ],
    to_confirm: &[
        "`tare run --confirm URL` takes a third of the CPU time that is left to the generator, in pairs of \
         short trials. The rate must follow with an elasticity of 0.5 or more.",
        "By hand: `top` (press 1) shows the generator's CPUs full, and less than that for the generator. \
         With the others stopped the rate rises.",
    ],
    source: &[
        "Wait time in schedstat of the generator's threads, and the run time of all tasks on their CPUs in \
         the same interval. Linux: Documentation/scheduler/sched-stats.rst.",
    ],
};
