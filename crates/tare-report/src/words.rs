//! What each cause means, in words that a reader of a report understands.

use serde::Serialize;
use tare_model::outcome::{Cause, GrossIs, TareCause, TarePart};

/// The stable id of a cause, as it stands in the JSON result.
pub(crate) fn id(cause: impl Serialize) -> String {
    match serde_json::to_value(cause) {
        Ok(serde_json::Value::String(id)) => id,
        _ => "unknown".into(),
    }
}

/// What a part of the tare is.
pub(crate) fn meaning(cause: TareCause) -> &'static str {
    match cause {
        TareCause::NoWork => "waited for work",
        TareCause::Throttled => "a quota held it back",
        TareCause::Preempted => "others ran while it was ready",
        TareCause::Placement => "the generator ran on its CPUs",
        TareCause::Steal => "the hypervisor ran somebody else",
        TareCause::Irq => "interrupts",
        TareCause::Scheduler => "ready, yet the CPU idled",
        TareCause::Own => "its threads queued for one CPU",
        TareCause::Clock => "clock below its reference",
        TareCause::Cost => "request cost above saturation cost",
    }
}

/// What a part of this size is.
pub(crate) fn meaning_of(part: &TarePart) -> &'static str {
    match part.cause {
        TareCause::Cost if part.ln_share < 0.0 => "request cost below saturation cost",
        cause => meaning(cause),
    }
}

/// What a gross figure measures.
pub(crate) fn gross_is(gross_is: GrossIs) -> &'static str {
    match gross_is {
        GrossIs::Capacity => "measured, as it stands",
        GrossIs::LowerBound => "at least: it could do more",
        GrossIs::Offered => "measured, as it was asked for",
    }
}

/// The bottleneck as the subject of a sentence, for causes whose own finding has the figures.
pub(crate) fn bottleneck(cause: Cause) -> &'static str {
    match cause {
        Cause::LoadGeneratorBound => "The load generator was the bottleneck",
        Cause::OfferedLoad => "Nothing is short: the load that was offered is the bottleneck",
        Cause::ServerCpuBound => "The server's CPU is the bottleneck",
        Cause::OneThreadBound => "One thread of the server is the bottleneck",
        Cause::CpuQuotaThrottled => "A CPU quota is the bottleneck",
        Cause::CpuContended => "Other programs on its CPUs are the bottleneck",
        Cause::Oversubscribed => "More threads than CPUs are the bottleneck",
        Cause::PlacementConflict => "Server and load generator are in each other's way",
        Cause::Steal => "The hypervisor is the bottleneck: it ran somebody else",
        Cause::ClockDropped => "The clock is the bottleneck",
        Cause::ColdCaches => "Cold caches are the bottleneck",
        Cause::SoftirqSaturated => "Other programs' packets on its CPUs are the bottleneck",
        Cause::CrossCpuWakeups => "Waking threads on other CPUs is the bottleneck",
        Cause::ListenOverflow => "The accept queue is the bottleneck",
        Cause::MemoryPressure => "Too little memory is the bottleneck",
        Cause::BlockedOnDisk => "The disk is the bottleneck",
        Cause::GcPauses => "Collecting garbage is the bottleneck",
        Cause::LockContended => "A lock is the bottleneck",
        Cause::BlockedOnDownstream => "Another server is the bottleneck: the program waits for its answers",
        Cause::KernelLockContended => "Locks of the kernel are the bottleneck",
        Cause::TooLittleConcurrency => "Too few connections are the bottleneck",
        Cause::NetworkCeiling => "The network is the bottleneck",
        Cause::DelayedAck => "Delayed acknowledgements are the bottleneck",
        Cause::PortsExhausted => "The generator's local ports are the bottleneck",
        Cause::NotSteady => "There is no steady state yet",
        Cause::Errors => "Errors are being measured, not the server",
        Cause::TooNoisy => "The measurement is too noisy to name a limit",
        Cause::ProgramCpuBound => "The program itself is the bottleneck",
        Cause::ProgramIdle => "The program's own waits are the bottleneck",
        Cause::Unknown => "What the bottleneck is could not be told",
    }
}

/// A number of things: `1 trial`, `3 trials`.
pub(crate) fn things(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}
