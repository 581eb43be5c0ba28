//! CPU time of the server, of its fullest thread, or of the generator: a third of what there is for it is taken, by a quota on a group
//! that is made around it. Of what there is, not of what it uses: who has time to spare does not feel it.

use super::{Change, Ground, Intervention, Lever, Toggle};
use tare_machine::Root;
use tare_machine::journal::{MadeGroup, Members};
use tare_model::Missing;
use tare_model::observation::Role;

pub(super) static SERVER: Intervention = Intervention { name: "server-cpu", floor: 0.5, prepare: server };
pub(super) static ONE_THREAD: Intervention =
    Intervention { name: "one-thread-cpu", floor: 0.5, prepare: one_thread };
pub(super) static GENERATOR: Intervention =
    Intervention { name: "generator-cpu", floor: 0.5, prepare: generator };

/// Less would not be felt by a server that is the bottleneck and yet is idle for some of its time.
const LEFT: f64 = 2.0 / 3.0;
/// What others take of an CPU entitlement: it is not there to be given.
const TAKEN_BY_OTHERS: [&str; 4] = ["throttled", "preempted", "placement", "steal"];

fn server<'a>(ground: &Ground<'a>) -> Result<Change<'a>, Missing> {
    let accounting = ground.server()?;
    let lost = |loss: &&str| accounting.losses_cpus.get(*loss).copied().unwrap_or(0.0);
    let there_is = accounting.entitled_cpus - TAKEN_BY_OTHERS.iter().map(lost).sum::<f64>();
    take("CPU time of the server", Members::Processes(ground.pids), there_is, ground)
}

fn one_thread<'a>(ground: &Ground<'a>) -> Result<Change<'a>, Missing> {
    let threads = ground.outcome.accounting.threads_of(Role::Sut);
    let thread = threads.first().ok_or_else(|| Missing::new("no thread of the server was seen"))?;
    let what = format!("CPU time of {}/{}", thread.name, thread.tid);
    take(&what, Members::Threads(&[thread.tid]), 1.0 - thread.wait, ground)
}

fn generator<'a>(ground: &Ground<'a>) -> Result<Change<'a>, Missing> {
    let cpus = &ground.spec.workers.cpus;
    let of_others = ground.outcome.accounting.cpus.iter().filter(|row| cpus.contains(&row.cpu));
    let of_others: f64 = of_others.map(|row| row.others + row.sut + row.steal).sum();
    let there_is = match cpus.len() {
        0 => ground.load_tids.len() as f64,
        count => (count as f64 - of_others).min(ground.load_tids.len() as f64),
    };
    take("CPU time of the generator", Members::Threads(ground.load_tids), there_is, ground)
}

fn take<'a>(
    what: &str,
    members: Members<'_>,
    there_is_cpus: f64,
    ground: &Ground<'a>,
) -> Result<Change<'a>, Missing> {
    let changed = LEFT * there_is_cpus;
    // Less than the kernel can hold back in a period.
    if changed.is_nan() || changed < 0.02 {
        return Err(Missing::new(format!("{what}: there is hardly any to take")));
    }
    let group = MadeGroup::around(ground.journal, &Root::live(), members)
        .map_err(|error| Missing::new(error.to_string()))?;
    Ok(Change {
        what: what.to_owned(),
        unit: "CPUs",
        before: there_is_cpus,
        changed,
        by: Lever::Toggle(Box::new(Held { group, cpus: changed })),
    })
}

/// A group with a quota now and then.
struct Held {
    group: MadeGroup,
    cpus: f64,
}

impl Toggle for Held {
    fn set(&mut self, changed: bool) -> Result<(), Missing> {
        let set = if changed { self.group.set_quota(self.cpus) } else { self.group.lift_quota() };
        set.map_err(|error| Missing::new(error.to_string()))
    }
}
