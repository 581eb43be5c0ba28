//! Which load levels a server is driven at, and how long their trials take.

use crate::request::{LoadRequest, ServerRequest, SutRequest};
use std::time::Duration;
use tare_load::{LoadSpec, Pacing, Protocol, Stage};
use tare_model::plan::{Level, PlannedStage, Purpose};
use tare_stats::{PLANNED_MAX, SERIES_MIN};

/// Connections that saturate any server when each waits for its answer: several requests are always due.
pub const SATURATING_CONNECTIONS: u32 = 64;
/// Length of a trial unless another is asked for, or a timeline of rates has its own: ten of the slices of which spikes stand out. A host's
/// disturbances last for seconds, so more trials tell more than longer ones.
const TRIAL_NS: u64 = 1_000_000_000;
/// Where trials end by what is known, levels beside the asked one have so many trials for each of its. With the reference it is net that
/// becomes known: then they have more of them, and shorter ones, since it is their number that counts.
const TRIALS_BESIDE: f64 = 0.5;
const TRIALS_INTERLEAVED: f64 = 2.0;
const NET_TRIAL_NS: u64 = 1_000_000_000;
/// That needs a budget of so many times what the fewest take that tell an interval.
const ROOM: f64 = 1.5;
/// A saturating level alone is short: only the service demand is taken from it, and pooled over its trials. Of schedstat's
/// tick-wise steps half a per cent is left in one, and less in all.
const SATURATING_TRIAL_NS: u64 = 600_000_000;
/// Interleaved with the reference server, each of the two has half of it. In longer ones the ratio of the two is known no better.
const INTERLEAVED_TRIAL_NS: u64 = 600_000_000;
/// Shorter than this, steps and edges are more than they are worth.
const OTHER_TRIAL_NS_MIN: u64 = 300_000_000;
const OTHER_TRIALS_MAX: u32 = 10;
const OTHER_WARMUP_NS: u64 = 150_000_000;
/// With more connections than these, opening them for every trial takes longer than the trial.
const BLOCK_CONNECTIONS_MAX: u32 = 1024;
/// Where a window cannot measure it itself: finding what an idle period costs under the level's own load, before each of its trials
/// and at the end of the warm-up. It changes with what the host of a virtual machine does, and only several seconds together show it
/// well enough.
pub(crate) const CALIBRATION: Duration = Duration::from_millis(500);
/// One sample of that; a saturated CPU is hardly ever idle, so that it is enough there.
const CALIBRATION_MIN: Duration = Duration::from_millis(250);
/// Load on connections that stay before an interleaved trial, where there was a warm-up before.
pub(crate) const SETTLE: Duration = Duration::from_millis(100);
/// The same on new connections, whose windows grow first.
pub(crate) const SETTLE_NEW: Duration = Duration::from_millis(250);

/// Before the first stage of a load whose rate changes: the observers start and idle periods are found out meanwhile.
pub(crate) const LEAD_IN: Duration = Duration::from_secs(1);
/// Before each other one, at the rate that it begins with: the trial before goes to disk, the load settles, idle periods are found out.
pub(crate) const BETWEEN_STAGES: Duration = Duration::from_millis(500);

/// Windows of a profile: how much they differ says what samples do not.
const PROFILE_WINDOWS: u32 = 4;
/// Length of one, at most: some 400 samples of each CPU that is busy.
const PROFILE_NS_MAX: u64 = 400_000_000;
/// A profile takes no more than a fifth of what the trials take, ...
const PROFILE_SHARE: f64 = 0.2;
/// ... and is left out where its windows would be shorter.
const PROFILE_NS_MIN: u64 = 50_000_000;

/// The levels of a request: the asked one (with `--steps`, one for each stage), and those beside it where the SUT turns out to be within reach.
#[derive(Debug, Clone)]
pub(crate) struct Levels {
    asked: Vec<Level>,
    beside: Vec<Level>,
    profile: Option<Level>,
    /// The levels beside it are driven only where the generator has more threads than CPUs.
    only_oversubscribed: bool,
}

impl Levels {
    /// A level below saturation has a saturating one beside it, because only there can the program's service demand
    /// be measured. The reference server is interleaved with it, which shows the interference of the machine: then there
    /// is one beside a saturating level too.
    pub fn of(request: &ServerRequest, speaks_http: bool) -> Levels {
        let for_net = Levels::with(request, speaks_http, TRIALS_INTERLEAVED);
        let (fewest_s, _) = for_net.fewest_s(SERIES_MIN);
        let interleaved = for_net.beside.iter().any(|level| level.arms > 1);
        match request.trials.stopping {
            Some(stopping) if !interleaved || ROOM * fewest_s > stopping.budget_s => {
                Levels::with(request, speaks_http, TRIALS_BESIDE)
            }
            _ => for_net,
        }
    }

    /// `beside`: for each trial of the asked level, where they end by what is known.
    fn with(request: &ServerRequest, speaks_http: bool, beside: f64) -> Levels {
        let trials = &request.trials;
        let most = PLANNED_MAX as f64;
        let (count, count_of_others) = match trials.stopping {
            Some(_) => ((most / beside.max(1.0)) as u32, (most * beside.min(1.0)) as u32),
            None => (trials.count, trials.count.min(OTHER_TRIALS_MAX)),
        };
        let for_net = trials.stopping.is_some() && beside > 1.0;
        let interleaved_ns = if for_net { NET_TRIAL_NS } else { INTERLEAVED_TRIAL_NS };
        let traffic = &request.traffic;
        let asked = Level {
            purpose: Purpose::Asked,
            connections: traffic.connections,
            rate_hz: traffic.pacing.rate_hz(),
            pipeline: traffic.pipeline,
            trial_ns: trials.length.map_or(traffic.pacing.stages_ns().unwrap_or(TRIAL_NS), nanoseconds),
            warmup_ns: nanoseconds(trials.warmup.at_least()),
            trials: count,
            arms: 1,
            stage: None,
        };
        let other = |purpose, trial_ns: u64, arms: u32| Level {
            purpose,
            connections: traffic.connections.max(SATURATING_CONNECTIONS),
            rate_hz: None,
            pipeline: traffic.pipeline,
            trial_ns: (asked.trial_ns.saturating_mul(u64::from(arms))).clamp(OTHER_TRIAL_NS_MIN, trial_ns),
            warmup_ns: OTHER_WARMUP_NS,
            trials: count_of_others,
            arms,
            stage: None,
        };
        // Nobody's generator that runs already would stop for another level, and tare's own speaks HTTP alone.
        let may = speaks_http && !request.beside.no_levels && !matches!(request.load, LoadRequest::Pid(_));
        let below_saturation = !request.load.is_own()
            || traffic.pacing != Pacing::Closed
            || traffic.connections < SATURATING_CONNECTIONS;
        let with_reference = may && !request.beside.no_reference && reference_would_tell(request);
        let beside = if with_reference {
            [Purpose::Saturating, Purpose::Reference]
                .map(|purpose| other(purpose, interleaved_ns, 2))
                .to_vec()
        } else if may {
            vec![other(Purpose::Saturating, SATURATING_TRIAL_NS, 1)]
        } else {
            Vec::new()
        };
        let only_oversubscribed = !with_reference && !below_saturation;
        let profile = profile(&asked, request);
        Levels { asked: by_stage(asked, traffic), beside, profile, only_oversubscribed }
    }

    /// The load under which call stacks are sampled after the trials of the others.
    pub fn profile(&self) -> Option<Level> {
        self.profile.clone()
    }

    /// Those that are driven. Never others than the asked one against another host unasked.
    ///
    /// `oversubscribed`: the generator that was asked for has more threads than CPUs.
    pub fn driven(&self, transport_is_local: bool, oversubscribed: bool) -> Vec<Level> {
        let beside = transport_is_local && (oversubscribed || !self.only_oversubscribed);
        let beside = if beside { self.beside.as_slice() } else { &[] };
        self.asked.iter().chain(beside).cloned().collect()
    }

    /// Seconds that the fewest trials take that tell an interval: `fewest` of the level that has the most.
    pub fn fewest_s(&self, fewest: usize) -> (f64, usize) {
        let levels = self.driven(true, false);
        let most = levels.iter().map(|level| level.trials).max().unwrap_or(1).max(1);
        let each_s = levels.iter().map(|level| {
            let share = f64::from(level.trials) / f64::from(most);
            share * trial_s(level, levels.len() > 1) / f64::from(level.arms.max(1))
        });
        (each_s.sum::<f64>() * fewest as f64, levels.len())
    }
}

/// The asked load once more, for call stacks alone. A generator that is somebody else's runs for as long as it likes, and the rate of a load with
/// stages is not one rate.
fn profile(asked: &Level, request: &ServerRequest) -> Option<Level> {
    let is_steady = request.traffic.pacing.stages_ns().is_none();
    let may = request.watch.profile && request.watch.stacks.is_none() && request.load.is_own() && is_steady;
    let trials_s = f64::from(asked.trials) * asked.trial_ns as f64 / 1e9;
    let takes_s = request.trials.stopping.map_or(trials_s, |stopping| stopping.budget_s);
    let longest_ns = 1e9 * PROFILE_SHARE * takes_s / f64::from(PROFILE_WINDOWS);
    let trial_ns = (longest_ns as u64).min(PROFILE_NS_MAX);
    (may && trial_ns >= PROFILE_NS_MIN).then(|| Level {
        purpose: Purpose::Profile,
        trial_ns,
        warmup_ns: 0,
        trials: PROFILE_WINDOWS,
        ..asked.clone()
    })
}

/// A level for each stage of a load whose rate changes; else the level itself.
fn by_stage(asked: Level, traffic: &LoadSpec) -> Vec<Level> {
    let Pacing::Stages { stages, .. } = &traffic.pacing else { return vec![asked] };
    let level = |(index, stage): (usize, &Stage)| Level {
        rate_hz: Some(0.5 * (stage.from_hz + stage.to_hz)),
        trial_ns: stage.for_ns,
        warmup_ns: if index == 0 { asked.warmup_ns } else { 0 },
        stage: Some(PlannedStage { from_hz: stage.from_hz, to_hz: stage.to_hz }),
        ..asked.clone()
    };
    stages.iter().enumerate().map(level).collect()
}

/// Whether the reference server can be measured as the SUT is: over the same transport, on connections that are kept, and by requests that end
/// within their turn. Beside itself it shows nothing.
fn reference_would_tell(request: &ServerRequest) -> bool {
    let traffic = &request.traffic;
    let same_transport = !traffic.route.target.is_tls()
        && traffic.route.unix_socket.is_none()
        && traffic.protocol == Protocol::Http1;
    same_transport
        && traffic.content.body_file.is_none()
        && traffic.keep_alive
        && request.sut != SutRequest::Embedded
        && traffic.connections <= BLOCK_CONNECTIONS_MAX
}

/// How long all trials of a level take, with the load before them.
pub(crate) fn level_s(level: &Level, in_blocks: bool) -> f64 {
    level.warmup_ns as f64 / 1e9 + f64::from(level.trials) * trial_s(level, in_blocks)
}

/// How long a trial takes, with the load before it; without what is found out before it, which only users without rights need.
fn trial_s(level: &Level, in_blocks: bool) -> f64 {
    let settle = if in_blocks { SETTLE_NEW } else { Duration::ZERO };
    let before = if level.stage.is_some() { BETWEEN_STAGES } else { settle };
    level.trial_ns as f64 / 1e9 + before.as_secs_f64()
}

/// How long idle periods are looked at before a trial, where that has to be.
pub(crate) fn calibration(level: &Level) -> Duration {
    match level.purpose {
        Purpose::Asked => (Duration::from_nanos(level.trial_ns) / 2).clamp(CALIBRATION_MIN, CALIBRATION),
        // Only its service demand is of use, which has no idle periods in it.
        _ if level.arms > 1 => Duration::ZERO,
        Purpose::Saturating | Purpose::Reference => CALIBRATION_MIN,
        Purpose::Profile => Duration::ZERO,
    }
}

pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
