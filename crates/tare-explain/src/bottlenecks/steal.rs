//! `steal`: the hypervisor ran somebody else.

use crate::bottlenecks::bottleneck::{Bottleneck, Confirm, Page, Scope};
use crate::bottlenecks::draft::{Draft, number, percent};
use crate::bottlenecks::input::Input;
use crate::bottlenecks::signs::bounds::{LOSS_SHARE_MIN, NOTICE_SHARE};
use crate::bottlenecks::signs::sides::taken_by_others;
use crate::capacity::levels::Accounting;
use tare_model::outcome::{Cause, GrossIs, TareCause};

pub(crate) static BOTTLENECK: Bottleneck = Bottleneck {
    cause: Cause::Steal,
    title: "The hypervisor is the bottleneck: it ran another guest",
    scope: Scope::Any,
    needs: &[Input::Sut, Input::Cpus],
    gross_is: GrossIs::Capacity,
    holds: |accounting| taken_by_others(accounting, TareCause::Steal),
    applies,
    describe,
    confirm: Confirm::Cannot {
        why: "only the host can give what it takes",
        instead: "run again at another hour, or on another host",
    },
    injections: &[],
    page: &PAGE,
};

fn applies(accounting: &Accounting) -> bool {
    accounting.lost(TareCause::Steal) >= NOTICE_SHARE
}

fn describe(accounting: &Accounting) -> Draft {
    let share = accounting.lost(TareCause::Steal);
    let cpus = accounting
        .asked
        .pool
        .cpus
        .iter()
        .filter(|(_, cpu)| cpu.times.steal_s > 0.0 && cpu.times.wall_s > 0.0);
    let mut evidence = vec![number("stolen, share of the CPU entitlement", share, "share")];
    evidence.extend(cpus.map(|(cpu, accounting)| {
        number(format!("steal on CPU {cpu}"), accounting.times.steal_s / accounting.times.wall_s, "share")
    }));
    Draft {
        summary: format!(
            "The hypervisor gave {} of the time the program could have used to another guest.",
            percent(share)
        ),
        effect_ln: accounting.effect(TareCause::Steal),
        confidence: accounting.support_loss(TareCause::Steal, LOSS_SHARE_MIN),
        evidence,
        remedy: "measure when the host is quieter, or on a machine with dedicated CPUs".to_owned(),
        confirm: "steal falls at another hour or on another host, and throughput rises".to_owned(),
    }
}

static PAGE: Page = Page {
    brief: "The hypervisor ran another guest while this machine had work.",
    means: &[
        "A virtual CPU was ready, and the host gave its physical CPU to another guest. Inside the guest \
         time goes by, and threads look as if they ran more slowly.",
        "The server cannot change it. The stolen time is in the tare, so net is what the program does \
         without it.",
    ],
    evidence: &[
        "Stolen time as a share of the entitlement, and on each CPU.",
        "Steal is counted by the host and handed to the guest. A host that does not hand it over shows 0: \
         then `clock-dropped` or `too-noisy` is all that can be seen of it.",
    ],
    looks_the_same: &[
        "`cpu-contended`: the one who ran is a process of this machine, and it has a name.",
        "`cpu-quota-throttled`: a quota in this machine. Cloud hosts limit guests by a quota of their own, \
         and that shows as steal.",
        "`clock-dropped`: the CPU ran all the time, but more slowly.",
    ],
    to_do: &[
        "Measure at another hour, on another host, or on an instance with dedicated CPUs.",
        "On burstable instances (with CPU credits) steal begins when the credits are used up.",
        "Measure longer and interleaved: `tare compare` changes between the two programs every few \
         milliseconds, and steal hits both alike.",
    ],
    to_confirm: &[
        "There is no intervention: only the host can give the time back. Steal falls at another hour, and \
         throughput rises.",
        "By hand: `mpstat -P ALL 1` (column %steal) or `vmstat 1` (column st).",
    ],
    source: &[
        "`/proc/stat`, eighth field of each CPU; where the kernel has PARAVIRT_TIME_ACCOUNTING, run times \
         of threads exclude it. Linux: proc_stat(5).",
    ],
};
