//! Memory: caches, huge pages, and who moves pages about.

use super::setting::{Change, Setting};
use super::wanted::Wanted;
use crate::huge_pages::{Pool, meminfo};
use crate::root::Root;
use crate::value::{self, Step};
use tare_model::Missing;

const THP: &str = "/sys/kernel/mm/transparent_hugepage/enabled";
const NUMA_BALANCING: &str = "/proc/sys/kernel/numa_balancing";
const NODES: &str = "/sys/devices/system/node";
const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";
const HUGE_PAGES: &str = "/proc/sys/vm/nr_hugepages";

/// Transparent huge pages.
#[derive(Debug)]
pub(super) struct Thp;

impl Setting for Thp {
    fn name(&self) -> &'static str {
        "thp"
    }

    fn about(&self) -> &'static str {
        "transparent huge pages: made by the kernel when it finds the time, so that one run has them and the next has not"
    }

    fn now(&self, root: &Root) -> Result<String, Missing> {
        let now = value::read(root, THP)?;
        let choices = value::choices(root, THP)?;
        // Without brackets, or with a word that is none of these, it is not this file.
        let is_choice = ["always", "madvise", "never"].contains(&now.as_str()) && choices.contains(&now);
        if is_choice { Ok(now) } else { Err(Missing::new(format!("{THP} holds {now:?}"))) }
    }

    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>> {
        let wanted = wanted.memory.thp.as_deref()?;
        Some(self.now(root).map(|before| Change::of([Step::change(THP, before, wanted)])))
    }
}

/// Automatic NUMA balancing.
#[derive(Debug)]
pub(super) struct NumaBalancing;

impl Setting for NumaBalancing {
    fn name(&self) -> &'static str {
        "numa-balancing"
    }

    fn about(&self) -> &'static str {
        "the kernel unmaps pages now and then to see who uses them, and moves them"
    }

    fn now(&self, root: &Root) -> Result<String, Missing> {
        let names = root.names(NODES)?;
        let is_node =
            |name: &&String| name.strip_prefix("node").is_some_and(|number| number.parse::<u32>().is_ok());
        if names.iter().filter(is_node).count() < 2 {
            return Err(Missing::new("there is one NUMA node: nothing is balanced"));
        }
        // 2 is tiering of memory kinds; 3 is both.
        match value::number(root, NUMA_BALANCING)? {
            0 => Ok("off".to_string()),
            1 => Ok("on".to_string()),
            mode @ 2..=3 => Ok(format!("on (mode {mode})")),
            other => Err(Missing::new(format!("{NUMA_BALANCING} holds {other}"))),
        }
    }

    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>> {
        let on = wanted.memory.numa_balancing?;
        Some(self.now(root).and_then(|now| {
            // Whoever wants it on has it in any mode.
            if on && now != "off" {
                return Ok(Change::default());
            }
            let before = value::read(root, NUMA_BALANCING)?;
            Ok(Change::of([Step::change(NUMA_BALANCING, before, if on { "1" } else { "0" })]))
        }))
    }
}

/// The page cache, dentries and inodes.
#[derive(Debug)]
pub(super) struct DropCaches;

impl Setting for DropCaches {
    fn name(&self) -> &'static str {
        "drop-caches"
    }

    fn about(&self) -> &'static str {
        "start with cold caches, and without what an earlier run left in memory; once, nothing to put back"
    }

    fn now(&self, root: &Root) -> Result<String, Missing> {
        let cached = meminfo(&root.text("/proc/meminfo")?, "Cached")?;
        if !root.exists(DROP_CACHES) {
            return Err(Missing::with_remedy(
                format!("{DROP_CACHES} is not there"),
                "in a container: on its host",
            ));
        }
        Ok(format!("{} cached", value::bytes(cached)))
    }

    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>> {
        wanted.memory.drop_caches.then(|| {
            self.now(root).map(|_| Change {
                // 3: page cache, dentries and inodes.
                steps: vec![Step {
                    path: DROP_CACHES.into(),
                    before: None,
                    wanted: "3".to_string(),
                    may_be_refused: false,
                    moves_by_itself: false,
                }],
                notes: vec![
                    "dropped caches fill again by themselves: there is nothing to put back".to_string(),
                ],
            })
        })
    }
}

/// The pool of huge pages of the default size.
#[derive(Debug)]
pub(super) struct HugePages;

impl Setting for HugePages {
    fn name(&self) -> &'static str {
        "huge-pages"
    }

    fn about(&self) -> &'static str {
        "a pool of huge pages for programs that ask for them, by size"
    }

    fn now(&self, root: &Root) -> Result<String, Missing> {
        let pool = Pool::read(root)?;
        Ok(format!("{} of {}", pool.total, value::bytes(pool.page_bytes)))
    }

    fn change(&self, root: &Root, wanted: &Wanted) -> Option<Result<Change, Missing>> {
        let wanted_bytes = wanted.memory.huge_pages_bytes?;
        Some(Pool::read(root).and_then(|pool| {
            let count = pool.pages_for(wanted_bytes)?;
            let before = value::number(root, HUGE_PAGES)?;
            let step = Step::change(HUGE_PAGES, before.to_string(), count.to_string())
                .map(|step| Step { moves_by_itself: true, ..step });
            let note = format!(
                "{count} pages of {} are {}; a program has to ask for them (JVM: -XX:+UseLargePages)",
                value::bytes(pool.page_bytes),
                value::bytes(pool.bytes(count))
            );
            Ok(Change { notes: vec![note], ..Change::of([step]) })
        }))
    }
}
