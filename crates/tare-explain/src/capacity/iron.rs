//! The iron law of throughput: X = b · f / C, and from it gross → tare → net.
//!
//! Net = min(f_ref · A / C_sat, what the program's own serial stages let through): what the program would do on its
//! CPUs with nothing in the way. ln(net / gross) is exactly the sum of what was lost of the CPU entitlement, the clock and the service demand.

use crate::accounting::Closed;
use crate::accounting::{Loss, ratio};
use crate::capacity::fit::{FitSample, WAKEUPS_S};
use crate::capacity::serial::Serial;
use std::collections::BTreeMap;
use tare_model::Missing;
use tare_model::observation::Role;
use tare_model::outcome::TareCause;
use tare_stats::log_mean;

/// One load level in the terms of the iron law.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    /// X, answers per second.
    pub rate_hz: f64,
    /// b: busy CPUs, at most the CPU entitlement.
    pub busy: f64,
    /// A: CPUs it could have used.
    pub entitled: f64,
    /// How many servers were loaded interleaved, this one among them.
    pub arms: u32,
    /// CPUs lost, by where.
    pub lost: BTreeMap<Loss, f64>,
    /// f: effective clock, where known.
    pub clock_hz: Option<f64>,
    /// CPU seconds of a request, at that clock.
    pub cost_s: f64,
    /// Seconds that a request spends in the program's own locks, disk and timers.
    pub program_s: f64,
    /// The cost with the machine's interference taken out; `None` where the reference server was not measured beside it.
    pub corrected_demand_s: Option<f64>,
    /// The SUT's own sleeps for each request; `None` where switches are not known.
    pub sleeps: Option<f64>,
    /// Of these, those that left a CPU idle: the others hand work to another thread of the program, and would at saturation.
    pub own_wakeups: Option<f64>,
    /// Sleepers of the generator for each request, whom the SUT wakes (on loopback the sender runs the receiver's
    /// softirq): on idle CPUs, on busy CPUs. `None` where its switches are not known.
    pub woken: Option<[f64; 2]>,
    /// The program's own serial stages.
    pub serial: Serial,
}

/// More own wake-ups for each request, and more sleepers of the generator that are woken, show in its cost.
const OWN_WAKEUPS_MIN: f64 = 0.05;
const WOKEN_MIN: f64 = 0.15;
/// If wake-ups can take no more than this share of a request, its cost is that at saturation, as far as it goes.
const WAKEUPS_SHARE_MAX: f64 = 0.15;

/// A server that a quota held back for more than this finds its caches cold.
const THROTTLED_LN_MIN: f64 = 0.05;

/// Of its share of the time a server interleaved may be busy so many times: it ends what is in flight after its part.
const BUSY_INTERLEAVED_MAX: f64 = 1.15;

impl Point {
    pub fn of(window: &Closed) -> Result<Point, Missing> {
        let sut = window
            .sut
            .as_ref()
            .ok_or_else(|| Missing::new("the server's threads cannot be seen from here"))?;
        let rate_hz = window.rate_hz().ok_or_else(|| Missing::new("the requests could not be counted"))?;
        if rate_hz <= 0.0 {
            return Err(Missing::new("no request was answered"));
        }
        let (busy, entitled) = (sut.busy(), sut.cpus());
        if busy <= 0.0 || entitled <= 0.0 {
            return Err(Missing::new("the server did not run in the window"));
        }
        // Run steps at ticks, so it may read a hair more than there was.
        let busy = busy.min(entitled);
        let lost: BTreeMap<Loss, f64> =
            sut.lost_s.iter().map(|(loss, lost_s)| (*loss, ratio(*lost_s, sut.wall_s))).collect();
        let program: f64 = lost
            .iter()
            .filter(|(loss, _)| matches!(loss, Loss::Program(_) | Loss::Downstream))
            .map(|(_, lost)| lost)
            .sum();
        let sleeps = window.sum_of(Role::Sut, |thread| thread.switched.voluntary);
        // There are no more of them than idle periods.
        let own_wakeups = sleeps
            .map(|sleeps| window.switches.wake_ups.sut_idle_exits.map_or(sleeps, |exits| exits.min(sleeps)));
        Ok(Point {
            rate_hz,
            busy,
            entitled,
            arms: window.arms(),
            clock_hz: window.clock_hz(),
            cost_s: busy / rate_hz,
            program_s: program / rate_hz,
            corrected_demand_s: window
                .corrected_run_s
                .and_then(|run_s| window.per_request(run_s))
                .filter(|cost_s| *cost_s > 0.0),
            sleeps: sleeps.and_then(|sleeps| window.per_request(sleeps)),
            own_wakeups: own_wakeups.and_then(|wakeups| window.per_request(wakeups)),
            woken: woken(window),
            serial: Serial::of(window, rate_hz),
            lost,
        })
    }

    fn tare_lost(&self) -> impl Iterator<Item = (TareCause, f64)> {
        self.lost.iter().filter_map(|(loss, lost)| match loss {
            Loss::Tare(cause) => Some((*cause, *lost)),
            Loss::Program(_) | Loss::Downstream => None,
        })
    }

    /// CPUs that nobody but the program and its load used or left idle, in its own part of the time where several are interleaved.
    fn available(&self) -> f64 {
        let arms = f64::from(self.arms);
        let taken = |(cause, lost): (TareCause, f64)| match cause {
            TareCause::NoWork => 0.0,
            // In everybody's part of the time alike.
            TareCause::Steal | TareCause::Irq => lost / arms,
            _ => lost,
        };
        let left = (self.entitled / arms - self.tare_lost().map(taken).sum::<f64>()).max(0.0);
        // A quota goes on throttling it while the others are loaded: what it ran, it was allowed to.
        if self.arms > 1 { left.max(self.busy) } else { left }
    }

    /// Whether what it was sent in its part of the time was done in it: else it ran in the others' too, and neither demand is that of a
    /// server alone.
    pub fn keeps_to_its_part(&self) -> bool {
        self.busy <= BUSY_INTERLEAVED_MAX * self.entitled / f64::from(self.arms)
    }

    /// Which share it used of what it was allowed to use, of its own part of the time where several are interleaved.
    pub fn fullness(&self) -> f64 {
        let program = self.program_s * self.rate_hz;
        ratio(self.busy + program, self.available()).min(1.0)
    }

    /// Whether the service demand here is that at saturation: busy wherever it was allowed to run, and hardly anything of it wake-ups.
    pub fn is_saturated(&self) -> bool {
        self.fullness() >= 0.9 && self.wakeups_share() <= WAKEUPS_SHARE_MAX
    }

    /// Which share of a request's CPU time wake-ups can take, its own and those of the generator: a server that is saturated has none.
    pub fn wakeups_share(&self) -> f64 {
        let [own_s, ..] = WAKEUPS_S;
        // Who waits for itself is woken so often at saturation, too.
        let waits_itself = self.program_s > 0.1 * self.cost_s;
        let own = self.own_wakeups.filter(|own| *own >= OWN_WAKEUPS_MIN && !waits_itself);
        self.woken_share() + ratio(own.unwrap_or(0.0) * own_s, self.cost_s)
    }

    /// The same of the generator's alone.
    pub fn woken_share(&self) -> f64 {
        let [_, idle_s, busy_s] = WAKEUPS_S;
        let woken = self.woken.filter(|[idle, busy]| idle + busy >= WOKEN_MIN);
        woken.map_or(0.0, |[idle, busy]| ratio(idle * idle_s + busy * busy_s, self.cost_s))
    }

    /// The cost as it was, or with the interference taken out.
    pub fn cost(&self, corrected: bool) -> Option<f64> {
        if corrected { self.corrected_demand_s } else { Some(self.cost_s) }
    }

    /// As the fit of wake-ups sees it; `None` where wake-ups are not known.
    pub fn fit_sample(&self, corrected: bool) -> Option<FitSample> {
        let [woken_idle, woken_busy] = self.woken.unwrap_or_default();
        // With the interference the clock of the window is taken out already.
        let per_s = self.clock_hz.filter(|_| !corrected).unwrap_or(1.0);
        let cost = self.cost(corrected)? * per_s;
        Some(FitSample { cost, per_s, own: self.own_wakeups?, woken_idle, woken_busy })
    }
}

/// Who wakes a sleeping thread of the generator ends an idle period of its CPU, if that was idle: there are no more such wake-ups than idle
/// periods.
fn woken(window: &Closed) -> Option<[f64; 2]> {
    let sleeps = window.sum_of(Role::Load, |thread| thread.switched.voluntary)?;
    let on_idle =
        match (window.switches.wake_ups.load_idle_exits, crate::capacity::generator::cpu_share(window)) {
            (Some(exits), _) => exits.min(sleeps),
            (None, Some(busy)) => sleeps * (1.0 - busy),
            (None, None) => sleeps,
        };
    Some([window.per_request(on_idle)?, window.per_request(sleeps - on_idle)?])
}

/// The service demand in the unit that net is computed in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SaturatedCost {
    /// CPU seconds of a request at `clock_hz`.
    pub cost_s: f64,
    pub clock_hz: Option<f64>,
    /// The program's serial stages, at the level where a request cost `seen_cost_s`.
    pub serial: Serial,
    pub seen_cost_s: f64,
}

/// Gross to net of pooled trials.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    pub net_hz: f64,
    /// They sum to ln(net / gross).
    pub parts: BTreeMap<TareCause, f64>,
}

impl Chain {
    /// Gross to net at a level of the reference server that is known beforehand: what that server cost above it was interference, which
    /// is in neither cost. `level_hz` is the clock of that level.
    pub fn stated(
        point: &Point,
        saturated: &SaturatedCost,
        level_hz: Option<f64>,
        reference_hz: Option<f64>,
    ) -> Option<Chain> {
        let clocks = level_hz.zip(reference_hz).zip(point.clock_hz);
        let cost_s =
            clocks.map_or(saturated.cost_s, |((level, reference), _)| saturated.cost_s * level / reference);
        let (net_hz, demand_share) = capacity(point, saturated, cost_s);
        let undisturbed_s = point.corrected_demand_s?;
        let clock_ln = clocks.map(|((level, _), clock)| (level / clock).ln());
        let mut parts = BTreeMap::new();
        if let Some(((_, reference), clock)) = clocks {
            parts.insert(TareCause::Clock, (reference / clock).ln());
        }
        parts.insert(TareCause::Cost, (undisturbed_s / saturated.cost_s).ln());
        let disturbed = (point.cost_s / undisturbed_s).ln() - clock_ln.unwrap_or(0.0);
        parts.insert(TareCause::Interference, disturbed);
        let mut chain = Chain::with_entitlement(point, net_hz, demand_share, parts)?;
        let throttled = chain.parts.get(&TareCause::Throttled).is_some_and(|part| *part > THROTTLED_LN_MIN);
        if let Some(part) = chain.parts.remove(&TareCause::Interference) {
            let cause = if throttled { TareCause::ColdAfterThrottling } else { TareCause::Interference };
            chain.parts.insert(cause, part);
        }
        Some(chain)
    }

    /// With the parts of the CPU entitlement beside those of the demand, which count as far as the rate follows the demand.
    fn with_entitlement(
        point: &Point,
        net_hz: f64,
        demand_share: f64,
        mut of_demand: BTreeMap<TareCause, f64>,
    ) -> Option<Chain> {
        of_demand.values_mut().for_each(|part| *part *= demand_share);
        let rest_ln = (net_hz / point.rate_hz).ln() - of_demand.values().sum::<f64>();
        let mut parts = entitlement_parts(point, point.busy * rest_ln.exp())?;
        parts.extend(of_demand);
        Chain { net_hz, parts }.whole()
    }

    fn whole(self) -> Option<Chain> {
        let is_whole =
            self.net_hz.is_finite() && self.net_hz > 0.0 && self.parts.values().all(|part| part.is_finite());
        is_whole.then_some(self)
    }

    /// `clocks` is (f_ref, f) where the clock is known at both levels; without it costs are in seconds.
    pub fn of(point: &Point, saturated: &SaturatedCost, reference_hz: Option<f64>) -> Option<Chain> {
        let clocks = match (reference_hz, point.clock_hz, saturated.clock_hz) {
            (Some(reference), Some(clock), Some(at_saturation)) => Some((reference, clock, at_saturation)),
            _ => None,
        };
        // Both costs in seconds at the reference clock (cycles over f_ref), or as they are without clocks.
        let (cost_s, cost_now_s) = match clocks {
            Some((reference, clock, at_saturation)) => {
                (saturated.cost_s * at_saturation / reference, point.cost_s * clock / reference)
            }
            None => (saturated.cost_s, point.cost_s),
        };
        let (net_hz, demand_share) = capacity(point, saturated, cost_s);
        let mut parts = BTreeMap::new();
        if let Some((reference, clock, _)) = clocks {
            parts.insert(TareCause::Clock, (reference / clock).ln());
        }
        parts.insert(TareCause::Cost, (cost_now_s / cost_s).ln());
        Chain::with_entitlement(point, net_hz, demand_share, parts)
    }
}

/// What its CPUs and its serial stages let through, and by which share of the demand that follows the demand.
fn capacity(point: &Point, saturated: &SaturatedCost, cost_s: f64) -> (f64, f64) {
    let stage = saturated.serial.tightest(cost_s, cost_s / saturated.seen_cost_s);
    let of_cpus_hz = point.entitled / cost_s;
    if of_cpus_hz <= stage.hz { (of_cpus_hz, 1.0) } else { (stage.hz, stage.demand_share) }
}

/// ln(usable / b) by cause: Lᵢ / Λ(usable, b), stretched so that the parts sum to it exactly. The stretch is one
/// where the accounting closes and the program does not wait for itself.
pub(crate) fn entitlement_parts(point: &Point, usable: f64) -> Option<BTreeMap<TareCause, f64>> {
    let mean = log_mean(usable, point.busy)?;
    let whole = (usable / point.busy).ln();
    let mut parts: BTreeMap<TareCause, f64> =
        point.tare_lost().filter(|(_, lost)| *lost > 0.0).map(|(cause, lost)| (cause, lost / mean)).collect();
    let sum: f64 = parts.values().sum();
    if sum > 0.0 {
        parts.values_mut().for_each(|part| *part *= whole / sum);
    } else {
        parts.insert(TareCause::NoWork, whole);
    }
    Some(parts)
}
