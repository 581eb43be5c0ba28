//! What a comparison keeps of its treatments: what was applied, and whether it is in use.

use super::switch::{Standing, Switch};
use super::verify::Seen;
use super::wanted::{Given, Treatment};
use tare_machine::smaps::Memory;
use tare_model::treatment::{InUse, TreatedSetting, Treatment as Kept, TreatmentScope};
use tare_model::{Missing, Reading};

/// What has not been done yet, where a comparison ends before.
const NOT_YET: &str = "the comparison ended before it was applied";
/// Bytes below which huge pages hold nothing to speak of: one page.
const PAGE_BYTES: u64 = 2 << 20;

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
                |its| verified(setting, its, seen.first().filter(|_| program > 0), &own),
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

/// Fills in what was seen since in use, of what shows in a program itself.
pub(crate) fn see(kept: &mut Kept, seen: &[Seen]) {
    let Some(program) = ('A'..='Z').position(|name| kept.program == name.to_string()) else { return };
    let Some(own) = seen.get(program).filter(|own| own.samples > 0) else { return };
    let first = seen.first().filter(|_| program > 0);
    for setting in &mut kept.settings {
        let shows = setting.scope == TreatmentScope::Process
            || setting.name == "thp"
            || is_called(&setting.name, "huge-pages");
        if shows && setting.applied.value().is_some() {
            setting.verified = verified(setting, own, first, &[]);
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
fn verified(setting: &TreatedSetting, own: &Seen, first: Option<&Seen>, changes: &[&str]) -> Reading<InUse> {
    let known = |in_use, evidence| Reading::Measured(InUse { in_use, evidence });
    match (setting.name.as_str(), setting.scope) {
        ("thp", _) => of_memory(own, |memory| transparent(&setting.value, memory, first)),
        ("hugepages" | "huge-pages", _) => of_memory(own, |memory| pool(memory, own.pool_used)),
        ("placement", _) => match &own.cpus {
            Some(cpus) => known(true, format!("it may use CPUs {cpus}")),
            None => Reading::missing("it ended before its CPUs could be read"),
        },
        (_, TreatmentScope::Process) if own.samples == 0 => {
            Reading::missing("it ended before its environment could be read")
        }
        (name, TreatmentScope::Process) => {
            let has = own.has(name, &setting.value);
            let tells = setting.value.contains("hugetlb");
            let memory = own.memory.as_ref().ok().filter(|_| tells).map(in_words);
            let beside = memory.map_or_else(String::new, |memory| format!("; {memory}"));
            let words =
                if has { "its environment has it" } else { "its environment has another value, or none" };
            known(has, format!("{words}{beside}"))
        }
        (_, TreatmentScope::Machine) if changes.is_empty() => Reading::missing(
            "nothing of the machine was seen to change: it stood so already, or the kernel refused it",
        ),
        (_, TreatmentScope::Machine) => {
            known(true, format!("read back while it was applied: {}", changes.join(", ")))
        }
    }
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

    #[test]
    fn what_ended_too_soon_is_missing_and_not_unused() {
        let setting = |name: &str, scope| TreatedSetting {
            name: name.into(),
            value: "auto".into(),
            scope,
            applied: Reading::Measured(String::new()),
            verified: Reading::missing(""),
            notes: Vec::new(),
        };
        for name in ["thp", "hugepages"] {
            let found = verified(&setting(name, TreatmentScope::Machine), &Seen::default(), None, &[]);
            assert!(matches!(found, Reading::Missing(_)), "{found:?}");
        }
        for name in ["placement", "MALLOC_ARENA_MAX"] {
            let found = verified(&setting(name, TreatmentScope::Process), &Seen::default(), None, &[]);
            assert!(matches!(found, Reading::Missing(_)), "{found:?}");
        }
    }
}
