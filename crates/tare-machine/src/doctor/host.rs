//! The host and the hypervisor: what cannot be seen from inside, and what was measured of it.

use super::draft::{Draft, Examined, Topic, bad, each, note, ok, several, unknown, warn};
use super::words::{bytes, clock, percent, short, time};
use tare_model::Reading;
use tare_model::check::Area;
use tare_model::probes::{ClockAudit, CpuReading, Gaps, Probes};
use tare_model::survey::{Survey, WindowsHost};

pub(super) static TOPIC: Topic = Topic {
    area: Area::Host,
    ids: &[
        "virtual",
        "container",
        "steal",
        "uptime",
        "clocksource",
        "windows",
        "power-plan",
        "windows-clock",
        "windows-heat",
        "wslconfig",
        "lost-time",
        "exits",
        "clock-audit",
    ],
    look,
};

/// Clock sources that are devices or registers of the hypervisor's: each reading goes there by way of the kernel.
const TRAPPING: [&str; 9] = [
    "hpet",
    "acpi_pm",
    "jiffies",
    "refined-jiffies",
    "pit",
    "hyperv_clocksource",
    "hyperv_clocksource_msr",
    "arch_mem_counter",
    "dummy_timer",
];
/// Counters that programs read by themselves (vDSO).
const READABLE: [&str; 10] = [
    "tsc",
    "tsc-early",
    "kvm-clock",
    "hyperv_clocksource_tsc_page",
    "arch_sys_counter",
    "timebase",
    "tod",
    "riscv_clocksource",
    "Constant",
    "MIPS",
];
/// Share of time since boot that was given to others.
const STEAL: f64 = 0.01;
/// Share of a spinning thread's time that may go missing in interrupts alone.
const LOST: f64 = 0.005;
/// Below this an exit is the bare instruction and little else.
const EXIT_NS: f64 = 5_000.0;
/// A system does its own things for so long after it started.
const SETTLED_NS: u64 = 300_000_000_000;

fn look(examined: &Examined) -> Vec<Draft> {
    let survey = examined.survey;
    let mut drafts = each("virtual", &survey.machine.virtualization, |kind| virtual_machine(kind));
    drafts.extend(each("container", &survey.host.container, |kind| {
        note("container", format!("this is a container ({kind})"))
            .effect("quotas, limits and neighbours of the host are partly out of sight")
            .fix("run tare on the host for the whole picture")
    }));
    drafts.extend(each("steal", &survey.host.steal_share, |share| steal(*share)));
    drafts.extend(survey.host.uptime_ns.value().filter(|ns| **ns < SETTLED_NS).map(|ns| {
        note("uptime", format!("started {} ago", time(*ns as f64)))
            .effect("services still start and caches are cold: the first runs differ from later ones")
            .fix("wait some minutes, or leave the first runs out")
    }));
    drafts.extend(each("clocksource", &survey.machine.clocksource, |name| clocksource(name, survey)));
    drafts.extend(several("windows", &survey.host.windows, windows));
    drafts.extend(examined.probes.map_or_else(Vec::new, probed));
    drafts
}

fn virtual_machine(kind: &str) -> Draft {
    let host = kind.split(' ').next().unwrap_or(kind);
    match host {
        "bare-metal" => ok("virtual", "bare metal"),
        "wsl" => bad("virtual", "WSL 1: no Linux kernel runs here, Windows imitates its system calls")
            .effect("nothing that is measured here holds for Linux")
            .fix("wsl --set-version DISTRIBUTION 2, or a Linux machine"),
        "wsl2" => warn("virtual", "WSL 2: clock, heat and the other programs of Windows cannot be seen or set from inside")
            .effect(
                "a governor that is set here has no effect; Windows' power plan moves the clock (1.2–3.4 GHz seen), wake-ups \
                 take 4–8 times as long as on metal, and a guest that was not shut down keeps its memory (11 % slower seen)",
            )
            .fix(
                "on Windows: power plan High performance, processors= and memory= in .wslconfig, wsl --shutdown before a series",
            ),
        "xen-dom0" => note("virtual", "Xen's own domain (dom0): it has the devices, and Xen schedules its CPUs like any guest's")
            .effect("other domains take CPU time that shows as steal, and the clock is Xen's to set")
            .fix("xl vcpu-pin for dom0, other domains paused while measuring"),
        "lpar" | "powervm" => note("virtual", format!("a partition of a machine ({host}): clock and neighbours are the machine's"))
            .effect("partitions that share processors take CPU time from each other, which shows as steal")
            .fix("dedicated processors for the partition; alternate what is compared"),
        "tcg" => bad("virtual", "an emulated processor (QEMU without hardware virtualization)")
            .effect("each instruction is translated: no figure holds for a real processor, and ratios of figures neither")
            .fix("QEMU with -accel kvm, or a real machine"),
        "qemu" => note("virtual", "a virtual machine (QEMU; whether its processor is emulated is not known)")
            .effect("on an emulated processor no figure holds for a real one")
            .fix("QEMU with -accel kvm and a processor that shows kvm-clock"),
        _ => note("virtual", format!("a virtual machine ({host}): clock, heat, SMT pairs and neighbours are the host's"))
            .effect("figures hold for this host and this hour; the same image elsewhere may differ by a third")
            .fix("on the host: pin the vCPUs, fix the clock; here: alternate what is compared"),
    }
}

fn steal(share: f64) -> Draft {
    let found = format!("the hypervisor took {} of CPU time since boot", percent(share));
    if share <= STEAL {
        return ok("steal", found);
    }
    warn("steal", found)
        .effect("as much is missing from throughput on average, in pauses of milliseconds that show in p99")
        .fix("another host, or dedicated CPUs")
}

fn clocksource(name: &str, survey: &Survey) -> Draft {
    let names = survey.clocksources.value().map(Vec::as_slice).unwrap_or_default();
    // Where no list is there, the processor tells; no other than x86 has it.
    let features = survey.processor.features.value().map(Vec::as_slice).unwrap_or_default();
    let has_tsc = (if names.is_empty() { features } else { names }).iter().any(|name| name == "tsc");
    let available = if names.is_empty() { "not known".to_owned() } else { names.join(", ") };
    match name {
        name if TRAPPING.contains(&name) => bad("clocksource", format!("time comes from {name}"))
            .effect("each reading of the clock is a system call of a microsecond or more: servers that time requests slow down")
            .fix(match has_tsc {
                true => format!("clocksource=tsc on the kernel's command line, once dmesg says why it was given up (available: {available})"),
                false => format!("a machine or a hypervisor with a clock that programs may read (available here: {available})"),
            }),
        "xen" => warn("clocksource", "time comes from xen")
            .effect("each reading of the clock is a system call of some 100 ns")
            .fix("echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource"),
        name if READABLE.contains(&name) => ok("clocksource", format!("time comes from {name}, read without a system call")),
        _ => note("clocksource", format!("time comes from {name}: whether programs read it without a system call is not known")),
    }
}

fn windows(host: &WindowsHost) -> Vec<Draft> {
    let mut drafts = each("power-plan", &host.power_plan, |plan| power_plan(plan));
    drafts.extend(match (&host.clock_hz, &host.rated_hz) {
        (Reading::Measured(now), Reading::Measured(rated)) => vec![windows_clock(*now as f64, *rated as f64)],
        (Reading::Missing(missing), _) | (_, Reading::Missing(missing)) => {
            vec![unknown("windows-clock", missing)]
        }
        _ => Vec::new(),
    });
    drafts.extend(each("windows-heat", &host.celsius, |celsius| {
        let found = format!("the host's hottest zone has {} °C", short(*celsius));
        match *celsius {
            celsius if celsius >= 90.0 => warn("windows-heat", found)
                .effect("above 95 °C a laptop's clock falls below half (95k instead of 317k req/s seen)")
                .fix("let it cool, and leave pauses between runs"),
            _ => ok("windows-heat", found),
        }
    }));
    drafts.extend(each("wslconfig", &host.wslconfig, |text| wslconfig(text, host)));
    drafts
}

/// Names of the plan in English; in other languages the plan is shown and not judged.
fn power_plan(plan: &str) -> Draft {
    let found = format!("the host's power plan is {plan}");
    let lower = plan.to_lowercase();
    match () {
        () if lower.contains("performance") => ok("power-plan", found),
        () if lower.contains("balanced") || lower.contains("saver") => warn("power-plan", found)
            .effect("the clock follows the load with a delay (balanced) or stays low (saver: 40 % of the throughput seen)")
            .fix("on Windows: powercfg /setactive SCHEME_MIN"),
        () => note("power-plan", found).fix("on Windows, choose High performance: powercfg /setactive SCHEME_MIN"),
    }
}

fn windows_clock(now: f64, rated: f64) -> Draft {
    let found = format!("the host's clock is {} of a rated {}", clock(now), clock(rated));
    if now >= 0.9 * rated {
        return ok("windows-clock", found);
    }
    warn("windows-clock", found)
        .effect(format!("CPU-bound work loses about {}", percent(1.0 - now / rated)))
        .fix("mains, power plan High performance, and a cool machine")
}

fn wslconfig(text: &str, host: &WindowsHost) -> Draft {
    let set = |key: &str| text.split([';', '\n']).any(|line| line.trim().to_lowercase().starts_with(key));
    if set("processors") && set("memory") {
        return ok("wslconfig", ".wslconfig sets processors and memory");
    }
    let processors = host.processors.value().map_or_else(|| "all".to_owned(), u32::to_string);
    let memory = host.memory_bytes.value().map_or_else(String::new, |total| format!(" of {}", bytes(*total)));
    note("wslconfig", ".wslconfig sets not both processors and memory")
        .effect(format!(
            "WSL takes {processors} processors and half the memory{memory}, and shares them with Windows"
        ))
        .fix("[wsl2] processors= and memory= in .wslconfig, then wsl --shutdown")
}

fn probed(probes: &Probes) -> Vec<Draft> {
    let mut drafts = several("lost-time", &probes.gaps.found, |cpus| lost_time(cpus));
    drafts.extend(each("exits", &probes.exit.found, |exit| {
        let latency = exit.latency;
        let found = format!(
            "an exit to the hypervisor takes {} (p99 {})",
            time(latency.p50_ns),
            time(latency.p99_ns)
        );
        match exit.hypervisor {
            false => ok("exits", format!("no hypervisor in the way (CPUID takes {})", time(latency.p50_ns))),
            true if latency.p50_ns < EXIT_NS => ok("exits", found),
            true => note("exits", found)
                .effect("each timer, each wake-up of a sleeping CPU and each packet costs one or more"),
        }
    }));
    drafts.extend(several("clock-audit", &probes.clock_audit.found, audit));
    drafts
}

fn lost_time(cpus: &[CpuReading<Gaps>]) -> Vec<Draft> {
    let lost: Vec<(u32, &Gaps)> = cpus.iter().filter_map(|cpu| Some((cpu.cpu, cpu.found.value()?))).collect();
    let Some((cpu, worst)) =
        lost.iter().max_by(|a, b| a.1.unseen.lost_ratio.total_cmp(&b.1.unseen.lost_ratio))
    else {
        let missing = cpus.iter().find_map(|cpu| match &cpu.found {
            Reading::Missing(missing) => Some(missing),
            _ => None,
        });
        return missing.map(|missing| unknown("lost-time", missing)).into_iter().collect();
    };
    let found = format!(
        "CPU {cpu} lost {} of a spinning thread's time unseen, {} at most",
        percent(worst.unseen.lost_ratio),
        time(worst.unseen.longest_ns as f64)
    );
    if worst.unseen.lost_ratio <= LOST {
        return vec![ok("lost-time", found)];
    }
    vec![
        warn("lost-time", found)
            .effect("interrupts, firmware or a hypervisor that does not count as steal: missing from throughput, and in p99")
            .fix("look at /proc/interrupts for what grows; on a virtual machine, another host"),
    ]
}

fn audit(audit: &ClockAudit) -> Vec<Draft> {
    let suspects: Vec<String> = audit
        .pairs
        .iter()
        .filter_map(|pair| {
            let drift = pair.drift.value().filter(|drift| drift.is_suspect())?;
            Some(format!("{:?} against {:?} {:+.0} ppm", pair.clock, pair.against, drift.ppm))
        })
        .collect();
    let found = format!("clocks watched for {}", time(audit.window_ns as f64));
    if suspects.is_empty() {
        return vec![ok("clock-audit", format!("the clocks go at the same rate ({found})"))];
    }
    vec![
        bad("clock-audit", format!("clocks go at different rates: {}", suspects.join("; ")))
            .effect("every rate and every latency is off by as much (10,000 ppm are 1 %)")
            .fix("restart the time synchronisation; under WSL 2, wsl --shutdown; compare with a clock from outside"),
    ]
}
