//! What a rule cannot judge without, and why it is not there.

use crate::accounting::Asleep;
use crate::bottlenecks::signs::{garbage, packets};
use crate::capacity::levels::Accounting;
use tare_model::Missing;
use tare_model::metric::Descriptor;
use tare_model::metrics::{clock, connections, cpus, groups, network, open_files, pressure, tasks};
use tare_model::observation::Role;

/// More sleep than this share without a reason, and reasons cannot be judged.
const UNSPLIT_SHARE_MAX: f64 = 0.05;

/// A kind of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    /// The SUT's threads.
    Sut,
    /// The generator's threads.
    Load,
    /// A count of requests.
    Requests,
    /// How long threads were ready without a CPU.
    Waits,
    /// Why threads slept.
    Sleeps,
    /// The quota's time of the SUT's control groups.
    Groups,
    /// Run and idle of the SUT's CPUs.
    Cpus,
    /// The effective clock.
    Clock,
    /// Counters of the network namespace.
    Network,
    /// What the kernel counts of the connections.
    Connections,
    /// Open files of the SUT's processes, and their limit.
    OpenFiles,
    /// Time in which somebody waited for memory.
    MemoryPressure,
    /// Packets that each CPU handled, and the SUT's among them.
    Packets,
    /// Hardware events at the asked level and at one that fills the server.
    Events,
    /// Whether a runtime of the SUT's collects garbage, and when.
    Collector,
    /// When each answer began and when it was whole, as our own generator knows.
    Answers,
    /// Net, which sets a level's cost against the cost at saturation.
    Net,
}

impl Input {
    /// Why it is not there; `None` when it is.
    pub fn missing(self, accounting: &Accounting) -> Option<Missing> {
        let pool = &accounting.asked.pool;
        let unless = |there: bool, missing: Missing| (!there).then_some(missing);
        match self {
            Input::Sut => unless(accounting.sut().is_some(), sut_unseen(accounting)),
            Input::Load => unless(
                accounting.load().is_some(),
                Missing::new("the load generator's threads cannot be seen from here"),
            ),
            Input::Requests => unless(
                pool.answered.requests.is_some(),
                Missing::with_remedy(
                    "the requests could not be counted",
                    "use tare's own generator, or one whose summary can be read (wrk)",
                ),
            ),
            Input::Waits => {
                let known = pool.threads_of(Role::Sut).any(|thread| thread.queue_s.is_some());
                unless(known, absent(accounting, &tasks::WAIT_NS))
            }
            Input::Sleeps => {
                let serving = || pool.threads_of(Role::Sut).filter(|thread| thread.serves());
                let unsplit_s: f64 = serving().map(|thread| thread.asleep(Asleep::Unsplit)).sum();
                let wall_s: f64 = serving().map(|thread| thread.wall_s).sum();
                // A thread that no sample found asleep hardly slept.
                let known = unsplit_s <= UNSPLIT_SHARE_MAX * wall_s;
                unless(known, absent(accounting, &tasks::SAMPLES))
            }
            Input::Groups => {
                unless(pool.throttling.throttled_s.is_some(), absent(accounting, &groups::THROTTLED_NS))
            }
            Input::Cpus => {
                let complete = |accounting: &crate::accounting::Cpu| accounting.times.imbalance_s().is_some();
                let known = pool.cpus.values().any(complete);
                unless(known, absent(accounting, &cpus::TASK_RUN_NS))
            }
            Input::Clock => {
                unless(!pool.hardware.clocks_hz.is_empty(), absent(accounting, &clock::EFFECTIVE_HZ))
            }
            Input::Network => {
                unless(pool.around.listen_overflows.is_some(), absent(accounting, &network::LISTEN_OVERFLOWS))
            }
            Input::Connections => {
                unless(pool.around.connections.is_some(), absent(accounting, &connections::CLIENT_SEGMENTS))
            }
            Input::OpenFiles => {
                unless(pool.around.open_files.is_some(), absent(accounting, &open_files::OPEN))
            }
            Input::MemoryPressure => {
                unless(pool.around.memory.stalled_s.is_some(), absent(accounting, &pressure::MEMORY_SOME_NS))
            }
            Input::Packets => unless(
                packets::at_most_own(pool).is_some() && !pool.around.packets.is_empty(),
                match pool.around.packets.is_empty() {
                    true => absent(accounting, &network::SOFTNET_PACKETS),
                    false => Missing::new("it is not known which packets are the server's own"),
                },
            ),
            Input::Events => no_events(accounting),
            Input::Collector => garbage::unseen(accounting),
            Input::Answers => unless(
                accounting
                    .samples()
                    .any(|sample| sample.detail.is_some() && sample.latency.value().is_some()),
                Missing::with_remedy(
                    "the generator does not report when each answer began",
                    "use tare's own generator",
                ),
            ),
            Input::Net => accounting.net_estimate.as_ref().err().map(|missing| Missing {
                why: format!("net is missing: {}", missing.why),
                remedy: missing.remedy.clone(),
            }),
        }
    }
}

fn no_events(accounting: &Accounting) -> Option<Missing> {
    let unknown = || Missing::new("no hardware event was counted");
    let pool = &accounting.asked.pool;
    if pool.hardware.sut.is_none() {
        return Some(pool.hardware.no_events.clone().unwrap_or_else(unknown));
    }
    match &accounting.saturating {
        Some(level) if level.pool.hardware.sut.is_some() => None,
        Some(_) => Some(unknown()),
        None => Some(Missing::with_remedy(
            "there is no second level of load to set the asked one against",
            "leave out --no-levels",
        )),
    }
}

/// Why there is no effective clock.
pub(crate) fn clock_missing(accounting: &Accounting) -> Option<Missing> {
    Input::Clock.missing(accounting)
}

/// Why the SUT's side of the accounting is empty.
pub(crate) fn sut_unseen(accounting: &Accounting) -> Missing {
    match accounting.http.map(|http| &http.sut) {
        Some(tare_model::plan::Sut::Unseen { why }) => {
            Missing::new(format!("the server cannot be seen from here: {why}"))
        }
        _ => Missing::new("none of the threads under test could be read"),
    }
}

/// The observers' own reason for a metric that they could not read.
fn absent(accounting: &Accounting, metric: &Descriptor) -> Missing {
    let absences = accounting.record.trials.iter().flat_map(|trial| &trial.observation.absences);
    absences
        .filter(|absence| absence.metric == metric.id)
        .map(|absence| absence.reason.clone())
        .next()
        .unwrap_or_else(|| metric.not_observed())
}
