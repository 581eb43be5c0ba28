//! The machine and how it was set.

use super::list::List;
use tare_model::machine::MachineFacts;
use tare_model::survey::{Discipline, Frequency, Memory, Mitigation, Policy, Scheduler, Survey};
use tare_model::why::Kind;
use tare_model::{Reading, Record};

const MACHINE: &str = "another machine: cycles, caches and clocks are not the same";
const CLOCK: &str = "it decides how fast the clock runs and how soon: shows as clock";
const KERNEL: &str = "most of a request's cost on a fast server is the kernel's";

pub(super) fn compare(a: &Record, b: &Record, list: &mut List) {
    facts(&a.machine, &b.machine, list);
    if let (Some(one), Some(other)) = (&a.identity, &b.identity) {
        survey(&one.survey, &other.survey, list);
    }
}

fn facts(a: &MachineFacts, b: &MachineFacts, list: &mut List) {
    let text = |words: &String| Some(words.clone());
    list.compare(Kind::Kernel, "the kernel", text(&a.kernel), text(&b.kernel), KERNEL);
    list.words(Kind::Machine, "the processor", (&a.cpu_model, &b.cpu_model), MACHINE);
    let cpus = |facts: &MachineFacts| Some(facts.cpus.len().to_string());
    list.compare(Kind::Machine, "CPUs online", cpus(a), cpus(b), MACHINE);
    let mib = |bytes: &u64| format!("{} MiB", bytes >> 20);
    list.readings(Kind::Machine, "memory", (&a.memory_bytes, &b.memory_bytes), mib, MACHINE);
    let sides = (&a.virtualization, &b.virtualization);
    list.words(
        Kind::Machine,
        "virtualization",
        sides,
        "interrupts, wake-ups and timers cost otherwise in a guest",
    );
    list.words(Kind::Frequency, "the first CPU's governor", (&a.governor, &b.governor), CLOCK);
    let matters = "reading the time may cost a system call";
    list.words(Kind::Kernel, "the clocksource", (&a.clocksource, &b.clocksource), matters);
    let ticks = |hz: &u32| format!("{hz} Hz");
    let matters = "threads take turns at other intervals";
    list.readings(Kind::Scheduler, "ticks", (&a.tick_hz, &b.tick_hz), ticks, matters);
    let slice = |ns: &u64| format!("{:.2} ms", *ns as f64 / 1e6);
    list.readings(Kind::Scheduler, "the base slice", (&a.base_slice_ns, &b.base_slice_ns), slice, matters);
    let matters =
        "interrupts are counted in a program's time in one and not in the other: costs do not compare";
    let (one, other) = (&a.regime, &b.regime);
    let sides = (&one.irq_time_accounting, &other.irq_time_accounting);
    list.switches(Kind::Kernel, "IRQ time accounting", sides, matters);
    let sides = (&one.paravirt_time_accounting, &other.paravirt_time_accounting);
    list.switches(Kind::Kernel, "steal time accounting", sides, matters);
    let matters =
        "caches are cold and memory lies elsewhere after a start; settings that nobody kept are gone";
    let short = |id: &String| id.chars().take(8).collect();
    list.readings(Kind::Boot, "the boot", (&a.boot_id, &b.boot_id), short, matters);
}

fn survey(a: &Survey, b: &Survey, list: &mut List) {
    let (one, other) = (&a.processor, &b.processor);
    let matters = "it carries mitigations and erratum fixes that cost cycles";
    list.words(Kind::Microcode, "microcode", (&one.microcode, &other.microcode), matters);
    let matters = "siblings share a core's units: a busy one slows the other";
    list.switches(Kind::Processor, "SMT", (&one.smt, &other.smt), matters);
    mitigations(&one.mitigations, &other.mitigations, list);
    frequency(&a.frequency, &b.frequency, list);
    scheduler(&a.scheduler, &b.scheduler, list);
    memory(&a.memory, &b.memory, list);
    let matters = "connections wait here for accept; beyond it they are dropped";
    let sides = (&a.network.somaxconn, &b.network.somaxconn);
    list.readings(Kind::Kernel, "somaxconn", sides, u64::to_string, matters);
    let container = (&a.host.container, &b.host.container);
    list.words(
        Kind::Machine,
        "the container",
        container,
        "its network and file system have layers of their own",
    );
}

fn mitigations(a: &Reading<Vec<Mitigation>>, b: &Reading<Vec<Mitigation>>, list: &mut List) {
    let (Some(one), Some(other)) = (a.value(), b.value()) else { return };
    let matters = "it is paid at each system call, switch or indirect branch: shows as cost";
    for mine in one {
        if let Some(theirs) = other.iter().find(|theirs| theirs.name == mine.name) {
            list.words(Kind::Mitigations, &mine.name, (&mine.state, &theirs.state), matters);
        }
    }
}

/// What is said of a cpufreq policy.
type Reported = fn(&Policy) -> String;

fn frequency(a: &Frequency, b: &Frequency, list: &mut List) {
    list.switches(Kind::Frequency, "boost", (&a.boost, &b.boost), CLOCK);
    let matters = "deep idle states are slow to leave: shows as cost and latency at light load";
    list.words(Kind::Frequency, "the idle driver", (&a.idle_driver, &b.idle_driver), matters);
    list.words(Kind::Frequency, "the idle governor", (&a.idle_governor, &b.idle_governor), matters);
    let reported = |of: Reported, policies: &Reading<Vec<Policy>>| -> Reading<String> {
        let distinct = |policies: Vec<Policy>| {
            let mut reported: Vec<String> = policies.iter().map(of).collect();
            reported.dedup();
            reported.join(", ")
        };
        policies.clone().map(distinct)
    };
    let of: [(&str, Reported); 4] = [
        ("governors", |policy| or_unknown(policy.governor.value().cloned())),
        ("the cpufreq driver", |policy| or_unknown(policy.driver.value().cloned())),
        ("the lowest clock", |policy| or_unknown(policy.min_hz.value().map(|hz| megahertz(*hz)))),
        ("the highest clock", |policy| or_unknown(policy.max_hz.value().map(|hz| megahertz(*hz)))),
    ];
    for (name, of) in of {
        list.words(Kind::Frequency, name, (&reported(of, &a.policies), &reported(of, &b.policies)), CLOCK);
    }
}

fn or_unknown(reported: Option<String>) -> String {
    reported.unwrap_or_else(|| "?".to_owned())
}

fn megahertz(hz: u64) -> String {
    format!("{} MHz", hz / 1_000_000)
}

fn scheduler(a: &Scheduler, b: &Scheduler, list: &mut List) {
    let matters = "threads are woken and take turns by other rules";
    let name = |discipline: &Discipline| match discipline {
        Discipline::Cfs => "CFS".to_owned(),
        Discipline::Eevdf => "EEVDF".to_owned(),
    };
    list.readings(Kind::Scheduler, "the scheduler", (&a.discipline, &b.discipline), name, matters);
    list.words(Kind::Scheduler, "preemption", (&a.preemption, &b.preemption), matters);
    list.switches(Kind::Scheduler, "autogroup", (&a.autogroup, &b.autogroup), matters);
}

fn memory(a: &Memory, b: &Memory, list: &mut List) {
    let matters = "large pages save TLB misses, and making them stops the program: shows as cost";
    list.words(Kind::Memory, "transparent huge pages", (&a.thp, &b.thp), matters);
    list.words(Kind::Memory, "when they are made", (&a.thp_defrag, &b.thp_defrag), matters);
    let matters = "the kernel unmaps pages to see who uses them: shows as cost";
    list.switches(Kind::Memory, "NUMA balancing", (&a.numa_balancing, &b.numa_balancing), matters);
    let matters = "memory that was swapped out comes back at the speed of a disk";
    list.readings(Kind::Memory, "swappiness", (&a.swappiness, &b.swappiness), u32::to_string, matters);
}
