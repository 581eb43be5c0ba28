//! What a comparison keeps of its treatments: what was applied, and whether it is in use.

use super::place;
use super::switch::{Standing, Switch};
use super::verify::Seen;
use super::wanted::{Given, Treatment};
use tare_machine::smaps::Memory;
use tare_model::treatment::{InUse, TreatedSetting, Treatment as Kept, TreatmentScope};
use tare_model::{Missing, Reading};

/// What has not been done yet, where a comparison ends before.
const NOT_YET: &str = "the comparison ended before it was applied";
/// Settings of the whole machine that are seen to be in use by what the kernel counts, or by where the program is.
const SEEN_LATER: [&str; 4] = ["rps", "rps-flows", "busy-poll", "autogroup"];
/// Bytes below which huge pages hold nothing to speak of: one page.
const PAGE_BYTES: u64 = 2 << 20;

/// What is known of a program, beside what is known of A.
struct Known<'k> {
    own: &'k Seen,
    first: Option<&'k Seen>,
    /// What was changed for the setting.
    changes: &'k [&'k str],
    /// What the program was started with.
    environment: &'k [(String, String)],
    /// NUMA nodes of its CPUs and of A's.
    nodes: [&'k [u32]; 2],
}

/// What is kept before anything was applied.
pub(crate) fn begun(treatments: &[Treatment]) -> Vec<Kept> {
    let setting = |given: &Given| TreatedSetting {
        name: given.name.clone(),
        value: given.value.clone(),
        scope: given.scope,
        applied: Reading::NotApplicable { not_applicable: NOT_YET.to_owned() },
        verified: Reading::missing(NOT_YET),
        notes: Vec::new(),
    };
    let kept = |(treatment, name): (&Treatment, char)| Kept {
        program: name.to_string(),
        settings: treatment.given.iter().map(setting).collect(),
        result: Reading::missing(NOT_YET),
    };
    treatments.iter().zip('A'..).filter(|(treatment, _)| !treatment.is_empty()).map(kept).collect()
}

/// Fills in what was applied for a program, what could not be, and what was seen of it and of A.
pub(crate) fn fill(
    kept: &mut [Kept],
    program: usize,
    (switch, standing): (&Switch, Option<&Standing<'_>>),
    seen: &[Seen],
) {
    let name = char::from(b'A' + program as u8).to_string();
    let Some(kept) = kept.iter_mut().find(|kept| kept.program == name) else { return };
    let refused = switch.refused().filter(|refused| refused.program == program);
    let changes = standing.map(Standing::changes).unwrap_or_default();
    let nodes = [switch.nodes(program), switch.nodes(0)];
    for setting in &mut kept.settings {
        let is_refused =
            |name: &str| refused.as_ref().is_some_and(|refused| is_called(name, refused.setting));
        let own = changes.iter().filter(|(of, _)| is_called(&setting.name, of));
        let own: Vec<&str> = own.map(|(_, change)| change.as_str()).collect();
        setting.applied = match &refused {
            Some(refused) if is_refused(&setting.name) || setting.scope == TreatmentScope::Machine => {
                Reading::Missing(refused.why.clone())
            }
            _ => Reading::Measured(applied(setting, &own, switch.environment(program))),
        };
        setting.verified = match setting.applied.value() {
            None => Reading::missing("it could not be applied"),
            Some(_) => seen.get(program).map_or_else(
                || Reading::missing(NOT_YET),
                |its| {
                    let known = Known {
                        own: its,
                        first: seen.first().filter(|_| program > 0),
                        changes: &own,
                        environment: switch.environment(program),
                        nodes: [&nodes[0], &nodes[1]],
                    };
                    verified(setting, &known)
                },
            ),
        };
        setting.notes = match setting.scope {
            _ if is_called(&setting.name, "huge-pages") => {
                let tlb = "TLB misses are missing: tare compare reads no hardware counters ('tare run' does, where there are any)";
                switch.notes(program).into_iter().chain([tlb.to_owned()]).collect()
            }
            TreatmentScope::Machine => {
                let own = format!("{}: ", setting.name);
                let notes = standing.map(Standing::notes).unwrap_or_default().into_iter();
                notes.filter_map(|note| note.strip_prefix(&own).map(str::to_owned)).collect()
            }
            TreatmentScope::Process if setting.name == "placement" => switch.place_notes(program),
            TreatmentScope::Process => Vec::new(),
        };
    }
}

/// Fills in what was seen since in use, of what shows in a program itself, and of what the kernel counts while it runs.
pub(crate) fn see(kept: &mut Kept, switch: &Switch, seen: &[Seen]) {
    let Some(program) = ('A'..='Z').position(|name| kept.program == name.to_string()) else { return };
    let Some(own) = seen.get(program).filter(|own| own.samples > 0) else { return };
    let nodes = [switch.nodes(program), switch.nodes(0)];
    let known = Known {
        own,
        first: seen.first().filter(|_| program > 0),
        changes: &[],
        environment: switch.environment(program),
        nodes: [&nodes[0], &nodes[1]],
    };
    for setting in &mut kept.settings {
        let shows = setting.scope == TreatmentScope::Process
            || setting.name == "thp"
            || is_called(&setting.name, "huge-pages");
        if setting.applied.value().is_none() {
            continue;
        }
        if shows {
            setting.verified = verified(setting, &known);
        } else if let Some(in_use) = by_effect(setting, &known) {
            setting.verified = Reading::Measured(in_use);
        }
    }
}

/// What was given may have another name than the setting that it is of.
fn is_called(name: &str, setting: &str) -> bool {
    let setting_of = match name {
        "hugepages" => "huge-pages",
        "min-frequency" | "max-frequency" => "frequency",
        "pid" | "cgroup" => "quota",
        name => name,
    };
    setting_of == setting
}

fn applied(setting: &TreatedSetting, own: &[&str], environment: &[(String, String)]) -> String {
    match setting.scope {
        TreatmentScope::Process => "for this program alone".to_owned(),
        TreatmentScope::Machine => {
            let is_pool = is_called(&setting.name, "huge-pages");
            let variables =
                environment.iter().filter(|_| is_pool).map(|(name, value)| format!("{name}={value}"));
            let stood = own.is_empty().then(|| "it stood so already".to_owned());
            let own = own.iter().map(|change| (*change).to_owned());
            own.chain(stood).chain(variables).collect::<Vec<_>>().join(", ")
        }
    }
}

/// Whether the program has a setting in use.
fn verified(setting: &TreatedSetting, of: &Known<'_>) -> Reading<InUse> {
    let known = |in_use, evidence| Reading::Measured(InUse { in_use, evidence });
    match (setting.name.as_str(), setting.scope) {
        ("thp", _) => of_memory(of.own, |memory| transparent(&setting.value, memory, of.first)),
        ("hugepages" | "huge-pages", _) => of_memory(of.own, |memory| pool(memory, of.own.pool_used)),
        ("thp-process", _) => without(of),
        ("placement", _) => match &of.own.cpus {
            Some(cpus) => known(true, placed(cpus, of)),
            None => Reading::missing("it ended before its CPUs could be read"),
        },
        (_, TreatmentScope::Process) if of.own.samples == 0 => {
            Reading::missing("it ended before its environment could be read")
        }
        (name, TreatmentScope::Process) => {
            // What makes it use the pool may have been added to what was given.
            let set = of.environment.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
            let set = set.unwrap_or(&setting.value);
            let has = of.own.has(name, set);
            let tells = set.contains("hugetlb");
            let memory = of.own.memory.as_ref().ok().filter(|_| tells).map(in_words);
            let beside = memory.map_or_else(String::new, |memory| format!("; {memory}"));
            let words = match (has, set == setting.value) {
                (true, true) => "its environment has it",
                (true, false) => "its environment has it, and what hugepages added to it",
                (false, _) => "its environment has another value, or none",
            };
            known(has, format!("{words}{beside}"))
        }
        (_, TreatmentScope::Machine) => by_effect(setting, of).map_or_else(
            || match of.changes.is_empty() {
                true => Reading::missing(
                    "nothing of the machine was seen to change: it stood so already, or the kernel refused it",
                ),
                false => {
                    known(true, format!("read back while it was applied: {}", of.changes.join(", ")))
                }
            },
            Reading::Measured,
        ),
    }
}

/// Of a setting that shows in what the kernel counts, or in where the program is; `None` where that is not known, or says nothing.
fn by_effect(setting: &TreatedSetting, of: &Known<'_>) -> Option<InUse> {
    let name = SEEN_LATER.into_iter().find(|name| *name == setting.name)?;
    let is_off = matches!((name, setting.value.as_str()), (_, "off") | ("rps-flows", "0"));
    let beside = |first: Option<u64>| first.map_or_else(String::new, |count| format!(", A {count}"));
    match name {
        _ if is_off => None,
        "autogroup" => {
            let group = of.own.group.as_deref()?;
            let in_use = group == "/";
            let evidence = match in_use {
                true => "it is in the root control group, where sessions share CPU time; its own threads are one session".to_owned(),
                false => format!("it is in the control group {group}, where autogroup does nothing"),
            };
            Some(InUse { in_use, evidence })
        }
        "busy-poll" => {
            let count = of.own.counts.busy_packets?;
            let its = beside(of.first.and_then(|first| first.counts.busy_packets));
            let why = if count == 0 { " (none come so over loopback)" } else { "" };
            let evidence = format!(
                "{count} packets were got by busy polling while it ran (BusyPollRxPackets){its}{why}"
            );
            Some(InUse { in_use: count > 0, evidence })
        }
        _ => {
            let count = of.own.counts.rps_wakeups?;
            let its = beside(of.first.and_then(|first| first.counts.rps_wakeups));
            let why = if count == 0 { ": it got none, or each came on the right CPU" } else { "" };
            let evidence = format!(
                "{count} times a CPU was woken for packets that another one got while it ran (received_rps){its}{why}"
            );
            Some(InUse { in_use: count > 0, evidence })
        }
    }
}

/// A program that was refused transparent huge pages.
fn without(of: &Known<'_>) -> Reading<InUse> {
    let Some(refused) = of.own.no_thp else {
        return Reading::missing(
            "it ended before that could be read, or this kernel does not show it (THP_enabled, Linux 5.0)",
        );
    };
    let mib = |seen: &Seen| seen.memory.as_ref().ok().map(|memory| memory.transparent_bytes >> 20);
    let its = mib(of.own).map_or_else(String::new, |mib| format!(", AnonHugePages {mib} MiB"));
    let first = of.first.and_then(mib).map_or_else(String::new, |mib| format!(", A {mib} MiB"));
    let enabled = u8::from(!refused);
    Reading::Measured(InUse { in_use: refused, evidence: format!("THP_enabled is {enabled}{its}{first}") })
}

/// Its CPUs, and what was seen of how it ran there.
fn placed(cpus: &str, of: &Known<'_>) -> String {
    let first = of.first.and_then(|first| first.place.as_ref()).map(|place| (place, of.nodes[1]));
    let seen = of.own.place.as_ref().map(|own| place::in_words((own, of.nodes[0]), first));
    let seen = seen.map_or_else(String::new, |words| format!("; {words}"));
    format!("it may use CPUs {cpus}{seen}")
}

fn of_memory(seen: &Seen, judge: impl FnOnce(&Memory) -> InUse) -> Reading<InUse> {
    match &seen.memory {
        Ok(memory) => Reading::Measured(judge(memory)),
        Err(missing) => Reading::Missing(Missing::clone(missing)),
    }
}

fn in_words(memory: &Memory) -> String {
    format!(
        "{} MiB in transparent huge pages (AnonHugePages), {} MiB in pages of the pool (Private_Hugetlb)",
        memory.transparent_bytes >> 20,
        memory.pool_bytes >> 20
    )
}

fn transparent(wanted: &str, memory: &Memory, first: Option<&Seen>) -> InUse {
    let bytes = memory.transparent_bytes;
    let beside = first.and_then(|first| first.memory.as_ref().ok());
    let beside =
        beside.map_or_else(String::new, |first| format!(", A {} MiB", first.transparent_bytes >> 20));
    let in_use = match wanted {
        "never" => bytes == 0,
        _ => bytes > 0,
    };
    let why = match (in_use, wanted) {
        (true, _) => "",
        (false, "madvise") => ": it does not ask for them",
        (false, "never") => ": it has some all the same (they were made before, or it shares them)",
        (false, _) => ": no piece of its memory is large enough, or none was free",
    };
    InUse { in_use, evidence: format!("AnonHugePages {} MiB{beside}{why}", bytes >> 20) }
}

fn pool(memory: &Memory, pool_used: u64) -> InUse {
    let in_use = memory.pool_bytes > 0;
    let page = memory.page_bytes.max(PAGE_BYTES);
    let evidence = match in_use {
        true => format!(
            "{} MiB of its memory are in the pool (Private_Hugetlb), KernelPageSize {} kB, {pool_used} pages of the pool taken",
            memory.pool_bytes >> 20,
            page >> 10
        ),
        false => format!(
            "none of its memory is in the pool (Private_Hugetlb 0), {pool_used} pages of the pool taken: it does not ask for them, or the \
             pool is too small for one of its pieces"
        ),
    };
    InUse { in_use, evidence }
}

#[cfg(test)]
mod tests {
    use super::super::counts::Counts;
    use super::*;

    fn memory(transparent: u64, pool: u64) -> Memory {
        Memory { transparent_bytes: transparent << 20, pool_bytes: pool << 20, ..Memory::default() }
    }

    #[test]
    fn huge_pages_are_in_use_where_the_memory_of_the_program_is_in_them() {
        assert!(pool(&memory(0, 1024), 514).in_use && !pool(&memory(1024, 0), 0).in_use);
        for (wanted, bytes, in_use) in [
            ("always", 1024, true),
            ("always", 0, false),
            ("madvise", 0, false),
            ("never", 0, true),
            ("never", 2, false),
        ] {
            assert_eq!(transparent(wanted, &memory(bytes, 0), None).in_use, in_use, "{wanted} {bytes}");
        }
        let first = Seen { memory: Ok(memory(0, 0)), ..Seen::default() };
        assert_eq!(
            transparent("always", &memory(1024, 0), Some(&first)).evidence,
            "AnonHugePages 1024 MiB, A 0 MiB"
        );
    }

    fn known(own: &Seen) -> Known<'_> {
        Known { own, first: None, changes: &[], environment: &[], nodes: [&[], &[]] }
    }

    fn given(name: &str, value: &str, scope: TreatmentScope) -> TreatedSetting {
        TreatedSetting {
            name: name.into(),
            value: value.into(),
            scope,
            applied: Reading::Measured(String::new()),
            verified: Reading::missing(""),
            notes: Vec::new(),
        }
    }

    fn in_use(found: &Reading<InUse>) -> Option<bool> {
        found.value().map(|found| found.in_use)
    }

    #[test]
    fn a_variable_that_was_added_to_is_in_use() {
        let seen = |value: &str| Seen {
            environment: vec![format!("GLIBC_TUNABLES={value}")],
            samples: 1,
            ..Seen::default()
        };
        let set = [("GLIBC_TUNABLES".to_owned(), "glibc.malloc.check=1:glibc.malloc.hugetlb=2".to_owned())];
        let asked = given("GLIBC_TUNABLES", "glibc.malloc.check=1", TreatmentScope::Process);
        let has = seen("glibc.malloc.check=1:glibc.malloc.hugetlb=2");
        let found = verified(&asked, &Known { environment: &set, ..known(&has) });
        assert_eq!(in_use(&found), Some(true));
        assert!(found.value().unwrap().evidence.contains("hugepages added"), "{found:?}");
        // A wrapper that sets it anew, and one that is as it was given.
        let other = seen("glibc.malloc.check=1");
        assert_eq!(in_use(&verified(&asked, &Known { environment: &set, ..known(&other) })), Some(false));
        assert_eq!(in_use(&verified(&asked, &known(&other))), Some(true));
    }

    #[test]
    fn what_acts_on_packets_is_in_use_where_the_kernel_counts_it() {
        let seen = |rps, busy| Seen {
            counts: Counts { rps_wakeups: rps, busy_packets: busy },
            samples: 1,
            ..Seen::default()
        };
        let machine = |name, value| given(name, value, TreatmentScope::Machine);
        let (some, none) = (seen(Some(12), Some(3)), seen(Some(0), Some(0)));
        for name in ["rps", "rps-flows", "busy-poll"] {
            assert_eq!(in_use(&verified(&machine(name, "7"), &known(&some))), Some(true), "{name}");
            assert_eq!(in_use(&verified(&machine(name, "7"), &known(&none))), Some(false), "{name}");
            // Where nothing was counted the file says it; where it is switched off there is nothing to count.
            let changes = ["/a: 1 → 7"];
            let uncounted = Seen::default();
            let read_back = Known { changes: &changes, ..known(&uncounted) };
            assert_eq!(in_use(&verified(&machine(name, "7"), &read_back)), Some(true), "{name}");
            let off = Known { changes: &changes, ..known(&none) };
            assert_eq!(in_use(&verified(&machine(name, "off"), &off)), Some(true), "{name}");
        }
        // CPU 0 is a CPU; no flows are none.
        assert_eq!(in_use(&verified(&machine("rps", "0"), &known(&some))), Some(true));
        assert_eq!(in_use(&verified(&machine("rps-flows", "0"), &known(&some))), None);
        let beside = Known { first: Some(&none), ..known(&some) };
        let found = verified(&machine("rps", "0-1"), &beside);
        assert!(
            found.value().unwrap().evidence.contains("12 times")
                && found.value().unwrap().evidence.contains(", A 0"),
            "{found:?}"
        );
    }

    #[test]
    fn sessions_share_in_the_root_group_alone() {
        let of = |group: &str| Seen { group: Some(group.into()), samples: 1, ..Seen::default() };
        let on = given("autogroup", "on", TreatmentScope::Machine);
        assert_eq!(in_use(&verified(&on, &known(&of("/")))), Some(true));
        assert_eq!(in_use(&verified(&on, &known(&of("/system.slice/web")))), Some(false));
    }

    #[test]
    fn a_program_without_huge_pages_shows_it() {
        let of = |no_thp| Seen { no_thp, samples: 1, ..Seen::default() };
        let asked = given("thp-process", "never", TreatmentScope::Process);
        let verdict = |no_thp| in_use(&verified(&asked, &known(&of(no_thp))));
        assert_eq!(
            [verdict(Some(true)), verdict(Some(false)), verdict(None)],
            [Some(true), Some(false), None]
        );
    }

    #[test]
    fn what_ended_too_soon_is_missing_and_not_unused() {
        let setting = |name: &str, scope| given(name, "auto", scope);
        for name in ["thp", "hugepages"] {
            let found = verified(&setting(name, TreatmentScope::Machine), &known(&Seen::default()));
            assert!(matches!(found, Reading::Missing(_)), "{found:?}");
        }
        for name in ["placement", "thp-process", "MALLOC_ARENA_MAX"] {
            let found = verified(&setting(name, TreatmentScope::Process), &known(&Seen::default()));
            assert!(matches!(found, Reading::Missing(_)), "{found:?}");
        }
    }
}
