//! Tasks that end between two samples: the kernel reports their run when they end, and it belongs to the tree that started them.
//!
//! A server with a process for each request, a shell script or a compiler have most of their CPU time there. Those that `tasks` has
//! listed get their last counts from here; all others are summed by name.

use crate::observed::Observed;
use crate::observer::{Edge, Observer};
use crate::roles::{processes, role_of_thread};
use crate::scene::Scene;
use crate::watch::LoadWatch;
use std::collections::{BTreeMap, BTreeSet};
use tare_model::Missing;
use tare_model::ended::Ended;
use tare_model::metrics::tasks;
use tare_model::observation::Role;
use tare_sys::taskstats::{Exit, Exits as Reports, exit};
use tare_sys::time::monotonic_ns;

/// How often the socket is emptied: its buffer holds some thousands of ends.
const DRAIN_HZ: f64 = 5.0;
/// Ends that are kept of one window, at most.
const KEPT_MAX: usize = 1 << 18;
/// Generations that are followed from a task to somebody known, at most.
const GENERATIONS_MAX: usize = 64;
/// Names that are reported, at most: those that ran most, for each role.
const NAMES_MAX: usize = 32;

struct Exits {
    reports: Result<Reports, Missing>,
    buffer: Vec<u8>,
    /// The window has begun.
    begun: bool,
    lost: bool,
    kept: Vec<(u64, Exit)>,
    /// Who was there before the window.
    roles: BTreeMap<u32, Role>,
}

pub(crate) fn open(_scene: &Scene) -> Box<dyn Observer> {
    Box::new(Exits {
        reports: Err(Missing::new("no window was opened")),
        buffer: Reports::buffer(),
        begun: false,
        lost: false,
        kept: Vec::new(),
        roles: BTreeMap::new(),
    })
}

impl Observer for Exits {
    fn prepare(&mut self, scene: &Scene) {
        self.kept.clear();
        (self.begun, self.lost) = (false, false);
        self.roles = processes(scene).into_iter().collect();
        let cpus = scene.root.text("/sys/devices/system/cpu/possible").unwrap_or_default();
        self.reports = Reports::open(cpus.trim()).map_err(|error| {
            Missing::with_remedy(
                format!("the ends of tasks are not reported: {error}"),
                "run tare as root in the machine's own namespaces",
            )
        });
    }

    fn edge(&mut self, _edge: &mut Edge) {
        self.drain();
        if self.begun {
            // Outside of a window no end is to be reported.
            self.reports = Err(Missing::new("no window is open"));
        } else {
            self.kept.clear();
            (self.begun, self.lost) = (true, false);
        }
    }

    fn sample(&mut self, scene: &Scene, tick: u64) {
        if tick.is_multiple_of(scene.every(DRAIN_HZ)) {
            self.drain();
        }
    }

    fn next(&self, scene: &Scene, tick: u64) -> u64 {
        if self.reports.is_ok() { scene.next(DRAIN_HZ, tick) } else { u64::MAX }
    }

    fn report(&mut self, scene: &Scene, observed: &mut Observed) {
        let kept = std::mem::take(&mut self.kept);
        if self.lost {
            return;
        }
        let family = Family::of(scene, &self.roles, &kept, observed);
        let listed: BTreeSet<u32> = observed.tasks().iter().map(|task| task.tid).collect();
        let mut sums: BTreeMap<(u8, [u8; 16]), Ended> = BTreeMap::new();
        for (at_ns, exit) in &kept {
            let values = [(&tasks::RUN_NS, exit.run_ns), (&tasks::WAIT_NS, exit.wait_ns)];
            if listed.contains(&exit.tid)
                && observed.ended_thread(exit.tid, (*at_ns).min(observed.end_ns()), &values)
            {
                continue;
            }
            let role = family.role(scene, exit);
            let sum = sums.entry((role as u8, exit.name)).or_insert_with(|| nothing(name(exit), role));
            add(sum, exit, at_ns.saturating_sub(observed.begin_ns()));
        }
        if self.begun {
            observed.ended(shortened(sums.into_values().collect()));
        }
    }
}

impl Exits {
    fn drain(&mut self) {
        let Ok(reports) = &self.reports else {
            self.lost = true;
            return;
        };
        let at_ns = monotonic_ns();
        // A bound for one call: tasks may end as fast as they are read.
        for _ in 0..KEPT_MAX {
            match reports.read(&mut self.buffer) {
                Ok(Some(message)) if self.kept.len() < KEPT_MAX => {
                    self.kept.extend(exit(message).map(|exit| (at_ns, exit)));
                }
                Ok(None) => return,
                Ok(Some(_)) | Err(_) => {
                    self.lost = true;
                    return;
                }
            }
        }
    }
}

/// Who descends from whom.
struct Family {
    roles: BTreeMap<u32, Role>,
    parents: BTreeMap<u32, u32>,
}

impl Family {
    fn of(scene: &Scene, before: &BTreeMap<u32, Role>, kept: &[(u64, Exit)], observed: &Observed) -> Family {
        let mut roles = before.clone();
        roles.extend(scene.watch.sut_pids.iter().map(|pid| (*pid, Role::Sut)));
        if let LoadWatch::Process(pids) = &scene.watch.load {
            roles.extend(pids.iter().map(|pid| (*pid, Role::Load)));
        }
        let ours = observed.tasks().iter().filter(|task| task.role != Role::Tare);
        for task in ours.filter(|task| task.pid != scene.own_pid && task.role != Role::Other) {
            roles.entry(task.pid).or_insert(task.role);
        }
        Family { roles, parents: kept.iter().map(|(_, exit)| (exit.pid, exit.parent)).collect() }
    }

    fn role(&self, scene: &Scene, exit: &Exit) -> Role {
        if exit.pid == scene.own_pid {
            return role_of_thread(scene, exit.tid, Role::Tare);
        }
        let mut pid = exit.pid;
        for _ in 0..GENERATIONS_MAX {
            match self.roles.get(&pid) {
                // Whom we started is known: a child that came to us is an orphan of the SUT.
                Some(Role::Tare) => return Role::Sut,
                Some(role) => return *role,
                None => {}
            }
            match self.parents.get(&pid) {
                Some(parent) if *parent != pid => pid = *parent,
                _ if pid == exit.pid && exit.parent != pid => pid = exit.parent,
                _ => return Role::Other,
            }
        }
        Role::Other
    }
}

fn name(exit: &Exit) -> String {
    let name = exit.name.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

fn nothing(name: String, role: Role) -> Ended {
    Ended { name, role, count: 0, run_ns: 0, wait_ns: 0, life_ns: 0, user_ns: 0, system_ns: 0 }
}

/// Adds one of which `window_ns` at most lay in the window: somebody else's may have begun long before, and what it did of that
/// in the window is its share.
fn add(sum: &mut Ended, exit: &Exit, window_ns: u64) {
    let life_ns = exit.life_ns.min(window_ns);
    let share = if exit.life_ns > 0 { life_ns as f64 / exit.life_ns as f64 } else { 1.0 };
    let of = |ns: u64| (ns as f64 * share) as u64;
    sum.count += 1;
    sum.run_ns = sum.run_ns.saturating_add(of(exit.run_ns));
    sum.wait_ns = sum.wait_ns.saturating_add(of(exit.wait_ns));
    sum.life_ns = sum.life_ns.saturating_add(life_ns);
    sum.user_ns = sum.user_ns.saturating_add(of(exit.user_ns));
    sum.system_ns = sum.system_ns.saturating_add(of(exit.system_ns));
}

/// The names that ran most, and the rest of each role as one without a name.
fn shortened(mut all: Vec<Ended>) -> Vec<Ended> {
    all.sort_by(|a, b| b.run_ns.cmp(&a.run_ns).then_with(|| a.name.cmp(&b.name)));
    let mut kept: Vec<Ended> = Vec::new();
    for ended in all {
        let of_role = kept.iter().filter(|known| known.role == ended.role).count();
        let rest = kept.iter_mut().find(|known| known.role == ended.role && known.name.is_empty());
        match rest {
            Some(rest) if of_role > NAMES_MAX => {
                rest.count += ended.count;
                rest.run_ns = rest.run_ns.saturating_add(ended.run_ns);
                rest.wait_ns = rest.wait_ns.saturating_add(ended.wait_ns);
                rest.life_ns = rest.life_ns.saturating_add(ended.life_ns);
                rest.user_ns = rest.user_ns.saturating_add(ended.user_ns);
                rest.system_ns = rest.system_ns.saturating_add(ended.system_ns);
            }
            _ if of_role >= NAMES_MAX => kept.push(Ended { name: String::new(), ..ended }),
            _ => kept.push(ended),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::Watch;
    use tare_machine::Root;

    fn ended(pid: u32, parent: u32, name: &str) -> (u64, Exit) {
        let mut letters = [0; 16];
        letters[..name.len()].copy_from_slice(name.as_bytes());
        let exit = Exit {
            tid: pid,
            pid,
            parent,
            name: letters,
            run_ns: 4,
            wait_ns: 2,
            life_ns: 10,
            user_ns: 3,
            system_ns: 1,
        };
        (100, exit)
    }

    #[test]
    fn whoever_ended_belongs_to_the_tree_that_started_it() {
        let watch = Watch { sut_pids: vec![50], load: LoadWatch::Process(vec![60]), ..Watch::default() };
        let mut scene = Scene::new(watch, &Root::at("/nowhere"));
        scene.own_pid = 7;
        // 52 is the grandchild of 50, and ended before its parent; 53 was left behind and came to us.
        let kept = [
            ended(52, 51, "as"),
            ended(51, 50, "gcc"),
            ended(53, 7, "late"),
            ended(61, 60, "wrk"),
            ended(90, 1, "cron"),
        ];
        let observed = Observed::new(0, 1000);
        let family = Family::of(&scene, &BTreeMap::from([(7, Role::Tare)]), &kept, &observed);
        let roles: Vec<Role> = kept.iter().map(|(_, exit)| family.role(&scene, exit)).collect();
        assert_eq!(roles, [Role::Sut, Role::Sut, Role::Sut, Role::Load, Role::Other]);
    }

    #[test]
    fn a_circle_of_parents_ends() {
        let scene = Scene::new(Watch::default(), &Root::at("/nowhere"));
        let kept = [ended(52, 51, "a"), ended(51, 52, "b"), ended(54, 54, "c")];
        let family = Family::of(&scene, &BTreeMap::new(), &kept, &Observed::new(0, 1000));
        assert!(kept.iter().all(|(_, exit)| family.role(&scene, exit) == Role::Other));
    }

    #[test]
    fn many_names_are_few_rows_and_lose_no_time() {
        let one = |at: u64| Ended { run_ns: at, count: 1, ..nothing(format!("p{at}"), Role::Sut) };
        let rows = shortened((1..=100).map(one).collect());
        assert_eq!(rows.len(), NAMES_MAX + 1);
        assert_eq!(rows.iter().map(|row| row.run_ns).sum::<u64>(), 5050);
        assert_eq!(rows.iter().map(|row| row.count).sum::<u64>(), 100);
        assert_eq!((rows[0].name.as_str(), rows[NAMES_MAX].name.as_str()), ("p100", ""));
    }

    #[test]
    fn of_one_that_began_before_the_window_only_a_share_counts() {
        let mut sum = nothing("x".into(), Role::Other);
        add(&mut sum, &ended(1, 0, "x").1, 5);
        assert_eq!((sum.life_ns, sum.run_ns, sum.wait_ns), (5, 2, 1));
    }
}
