//! What is done to the servers.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The rows of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Row {
    /// Nothing: tare's generator with 64 connections.
    Fast,
    /// A weak generator: wrk.
    Weak,
    /// The same with eight threads on one CPU.
    WeakThreads,
    /// Eight connections.
    Eight,
    /// A quota of 30 % of a CPU.
    Quota,
    /// A quota of 60 %.
    Quota60,
    /// A rate that is a fraction of what it can do.
    Rate,
    /// A loop that is never done on the server's CPU.
    Busy,
    /// The generator on the server's CPU.
    Shared,
    /// One connection.
    One,
}

impl Row {
    pub const ALL: [Row; 10] = [
        Row::Fast,
        Row::Weak,
        Row::WeakThreads,
        Row::Eight,
        Row::Quota,
        Row::Quota60,
        Row::Rate,
        Row::Busy,
        Row::Shared,
        Row::One,
    ];

    /// Its quota, per cent of a CPU.
    pub fn quota(self) -> Option<u32> {
        match self {
            Row::Quota => Some(30),
            Row::Quota60 => Some(60),
            _ => None,
        }
    }

    /// In the other rows nothing of the server itself changes; the last two change where it runs and what it is asked.
    pub fn holds_still(self) -> bool {
        !matches!(self, Row::Shared | Row::One)
    }

    pub fn words(self) -> &'static str {
        match self {
            Row::Fast => "nothing, fast generator, 64 connections",
            Row::Weak => "weak generator (wrk)",
            Row::WeakThreads => "weak generator with 8 threads on one CPU",
            Row::Eight => "8 connections",
            Row::Quota => "30 % CPU quota",
            Row::Quota60 => "60 % CPU quota",
            Row::Rate => "a slow rate",
            Row::Busy => "busy loop on its CPU",
            Row::Shared => "generator on its CPU",
            Row::One => "1 connection",
        }
    }

    /// The causes of which the largest part must be one, where it is a twentieth or more.
    pub fn causes(self) -> &'static [&'static str] {
        match self {
            Row::Fast => &["no-work"],
            // Part of what a weak generator does is cost: it sleeps more, and is woken.
            Row::Weak | Row::WeakThreads | Row::Eight | Row::Rate => &["no-work", "cost"],
            Row::Quota | Row::Quota60 => &["throttled"],
            Row::Busy => &["preempted"],
            Row::Shared => &["placement"],
            // With one connection a wake-up is paid for by every request.
            Row::One => &["no-work", "cost"],
        }
    }

    /// The bottleneck that must be named, where there is only one.
    pub fn bottleneck(self) -> Option<&'static str> {
        match self {
            Row::Quota | Row::Quota60 => Some("cpu-quota-throttled"),
            Row::Rate => Some("offered-load"),
            Row::Busy => Some("cpu-contended"),
            Row::Shared => Some("placement-conflict"),
            Row::One => Some("too-little-concurrency"),
            Row::Fast | Row::Weak | Row::WeakThreads | Row::Eight => None,
        }
    }
}
