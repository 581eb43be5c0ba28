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
        TareCause::Starved => "waited for work",
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

/// The limit as the subject of a sentence, for causes whose own finding has the figures.
pub(crate) fn limit(cause: Cause) -> &'static str {
    match cause {
        Cause::LoadGeneratorBound => "The load generator was the limit",
        Cause::OfferedLoad => "Nothing is short: the load that was offered is the limit",
        Cause::ServerCpuBound => "The server's CPU is the limit",
        Cause::OneThreadBound => "One thread of the server is the limit",
        Cause::CpuQuotaThrottled => "A CPU quota is the limit",
        Cause::CpuContended => "Other programs on its CPUs are the limit",
        Cause::Oversubscribed => "More threads than CPUs are the limit",
        Cause::PlacementConflict => "Server and load generator are in each other's way",
        Cause::Steal => "The hypervisor is the limit: it ran somebody else",
        Cause::ClockDropped => "The clock is the limit",
        Cause::ColdCaches => "Cold caches are the limit",
        Cause::SoftirqCrowded => "Other programs' packets on its CPUs are the limit",
        Cause::CrossCpuWakeups => "Waking threads on other CPUs is the limit",
        Cause::ListenOverflow => "The accept queue is the limit",
        Cause::MemoryPressure => "Too little memory is the limit",
        Cause::BlockedOnDisk => "The disk is the limit",
        Cause::GcPauses => "Collecting garbage is the limit",
        Cause::LockContended => "A lock is the limit",
        Cause::BlockedOnDownstream => "Another server is the limit: the program waits for its answers",
        Cause::KernelLockContended => "Locks of the kernel are the limit",
        Cause::TooLittleConcurrency => "Too few connections are the limit",
        Cause::NetworkCeiling => "The network is the limit",
        Cause::DelayedAck => "Delayed acknowledgements are the limit",
        Cause::PortsExhausted => "The generator's local ports are the limit",
        Cause::NotSteady => "There is no steady state yet",
        Cause::Errors => "Errors are being measured, not the server",
        Cause::TooNoisy => "The measurement is too noisy to name a limit",
        Cause::ProgramCpuBound => "The program itself is the limit",
        Cause::ProgramWaits => "The program's own waits are the limit",
        Cause::Unknown => "What the limit is could not be told",
    }
}

/// A number of things: `1 trial`, `3 trials`.
pub(crate) fn things(count: usize, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}
