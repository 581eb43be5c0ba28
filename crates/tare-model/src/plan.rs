//! What a session was resolved to do.

use crate::ceiling::KnownBounds;
use crate::reference_level::KnownReference;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Length of a turn where servers are interleaved. A host's disturbances last for milliseconds to seconds, so that short ones meet all servers
/// alike; but each turn begins with a burst after a pause, and what is in flight at its end is done in the next one's. Over turns of 50 ms a
/// request costs Go 1.2 times as much with turns of 5 ms, and 1.07 with 20 ms; nginx 1.07 and 1.04, Node 1.05 and 1.00 (medians of 8 to 12).
/// The ratio to the reference server varies alike with both.
pub const TURN: Duration = Duration::from_millis(20);
/// A turn is at least so many times the time of a request long.
const TURN_OVER_LATENCY: u32 = 10;
/// A server whose requests take longer than this allows for does not keep to its turns, which its accounting then shows.
pub const TURN_MAX: Duration = Duration::from_millis(500);

/// How long the turns of interleaved servers are whose requests take so long: 20 to 500 ms.
pub fn turn_for(latency: Duration) -> Duration {
    latency.saturating_mul(TURN_OVER_LATENCY).clamp(TURN, TURN_MAX)
}

/// A resolved plan: nothing in it is left to choose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The command line, for the reader.
    pub argv: Vec<String>,
    /// Wall clock at the start, seconds since 1970 (for display only).
    pub started_unix_s: u64,
    /// What is measured.
    pub workload: Workload,
    /// The SUT's CPUs where they were chosen or given; empty: the SUT runs where its affinity lets it.
    pub sut_cpus: Vec<u32>,
    /// The CPUs of the generator's threads; empty when somebody else placed it.
    pub load_cpus: Vec<u32>,
    /// Clock that net is stated at, if the user gave one; else the 95th percentile of this record's.
    pub ref_clock_hz: Option<f64>,
    /// What ends the trials; `None`: their number, or the rule of the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<Stopping>,
    /// What was known of what bounds the figure.
    #[serde(default)]
    pub bounds: KnownBounds,
}

/// Trials go on until gross is known well enough, or time is up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stopping {
    /// Half of the 95 % interval of gross at which they end, as a share; `None`: they go on as long as they may.
    pub precision: Option<f64>,
    /// How long they may take, with the load before them, seconds; several commands share it equally.
    pub budget_s: f64,
}

/// The kinds of things that can be measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workload {
    /// A server under HTTP load.
    Http(HttpWorkload),
    /// A program that runs and ends.
    Command(CommandWorkload),
}

impl Workload {
    /// The unit of gross: what is counted, or how long a run takes.
    pub fn unit(&self) -> &'static str {
        match self {
            Workload::Http(server) if server.url.is_none() => "op/s",
            Workload::Http(_) => "req/s",
            Workload::Command(_) => "s",
        }
    }
}

/// A server and the load on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HttpWorkload {
    /// The URL as given (or made, for the embedded server); `None`: the server speaks something else than HTTP.
    #[serde(default)]
    pub url: Option<String>,
    /// Which server.
    pub sut: Sut,
    /// Which generator.
    pub generator: Generator,
    /// How the bytes travel; costs over different transports are not compared.
    pub transport: Transport,
    /// The load levels, in the order of [`crate::trial::Trial::level`].
    pub levels: Vec<Level>,
    /// Seed of the order of the levels within each block; `None`: the levels were driven one after the other, or there is
    /// only one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Layouts of the generator that were tried first, the one that was taken first; empty: none was searched for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried_layouts: Vec<TriedLayout>,
    /// What was known of the reference server's level, where that server is driven; `None` in older records too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<KnownReference>,
    /// The load under which the call stacks of [`crate::Record::profile`] were to be sampled, after all trials of the levels; `trials` are its
    /// windows. `None`: no profile was planned, as in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Level>,
}

/// A layout of the generator that was tried for a moment: medians of short trials.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TriedLayout {
    /// Its threads.
    pub threads: u32,
    /// The CPUs that these may use.
    pub cpus: Vec<u32>,
    /// Answers per second that it got.
    pub rate_hz: f64,
    /// CPUs that its threads were busy for that.
    pub busy_cpus: f64,
    /// The rate at which they would be full: `rate_hz` · min(threads, CPUs) / `busy_cpus`.
    pub capacity_hz: f64,
}

/// Where the SUT comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sut {
    /// Tare's own server, as a child process.
    Embedded,
    /// Found running.
    Attached {
        /// Its processes at the start.
        pids: Vec<u32>,
    },
    /// Started by tare.
    Started {
        /// The command as given.
        command: String,
    },
    /// Cannot be observed from here: only the generator's side of the accounting is known.
    Unseen {
        /// Why.
        why: String,
    },
}

/// Who makes the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Generator {
    /// Tare's own.
    Own {
        /// Its threads.
        threads: u32,
    },
    /// Somebody else's, started by tare for each trial.
    Started {
        /// The command as given.
        command: String,
    },
    /// Somebody else's, already running.
    Attached {
        /// Its process.
        pid: u32,
    },
}

/// How requests reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// The same network namespace: the sender runs the receiver's softirq.
    Loopback,
    /// Another network namespace of this machine.
    Namespace,
    /// Another host.
    Remote,
}

impl HttpWorkload {
    /// How many connections tare opens at a level; `None` where it is somebody else's generator that opens them, as many as it likes.
    pub fn connections_of(&self, level: &Level) -> Option<u32> {
        matches!(self.generator, Generator::Own { .. }).then_some(level.connections)
    }
}

/// One level of load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Why it is driven.
    pub purpose: Purpose,
    /// Open connections of tare's own generator; see [`HttpWorkload::connections_of`].
    pub connections: u32,
    /// Requests per second of an open loop; `None` is a closed loop.
    pub rate_hz: Option<f64>,
    /// Requests in flight on each connection.
    pub pipeline: u32,
    /// Length of a trial, nanoseconds.
    pub trial_ns: u64,
    /// Load before the first trial, nanoseconds.
    pub warmup_ns: u64,
    /// How many trials, at most where [`Plan::stopping`] ends them; in a session in blocks, at most one of them in each.
    pub trials: u32,
    /// How many levels are driven interleaved within the same trials, this one among them: each server is loaded for a few
    /// milliseconds, then the next, so that interference meets all alike. 1: it alone.
    #[serde(default = "alone")]
    pub arms: u32,
    /// The stage of `--steps` that it is; the stages are driven one after the other, at one go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<PlannedStage>,
}

/// A stage of a load whose rate changes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PlannedStage {
    /// Requests per second at its beginning.
    pub from_hz: f64,
    /// Requests per second at its end; between them the rate changes evenly.
    pub to_hz: f64,
}

impl PlannedStage {
    /// Whether the rate changes in it.
    pub fn is_ramp(&self) -> bool {
        self.from_hz != self.to_hz
    }
}

fn alone() -> u32 {
    1
}

/// Why a level is driven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The load that was asked for: gross is measured here.
    Asked,
    /// As much as the generator can make: the cost at saturation is measured here.
    Saturating,
    /// As much as the generator can make on tare's own server, which stands in for the SUT on its CPUs while that idles: what
    /// it costs there shows the interference.
    Reference,
    /// The load that was asked for once more, in no figure: call stacks are sampled there.
    Profile,
}

/// A program, or several with parameters filled in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandWorkload {
    /// The commands as run, after parameters were filled in.
    pub commands: Vec<String>,
    /// Runs of each that count, at most where [`Plan::stopping`] ends them.
    pub runs: u32,
    /// Runs of each before those.
    pub warmup: u32,
    /// The shell that runs it; `None` runs the program itself.
    pub shell: Option<String>,
    /// Whether runs of all commands were interleaved, else one command came after the other.
    #[serde(default, skip_serializing_if = "is_false")]
    pub interleaved: bool,
    /// What of each run is its start; `None`: not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_up: Option<StartUp>,
}

/// How long an empty program takes, started the same way: it is part of every run's time.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct StartUp {
    /// What was run.
    pub program: String,
    /// Median of its wall time, seconds.
    pub median_s: f64,
    /// How often it was run.
    pub runs: u32,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_ten_requests_long_within_their_bounds() {
        let ms = Duration::from_millis;
        for (latency, turn) in
            [(ms(0), TURN), (ms(3), ms(30)), (ms(1_000), TURN_MAX), (Duration::MAX, TURN_MAX)]
        {
            assert_eq!(turn_for(latency), turn, "{latency:?}");
        }
    }
}
