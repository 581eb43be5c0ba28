//! The arguments of `tare tune`.

use super::output::OutputArgs;
use super::values::{self, CpuList};
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;
use tare_machine::settings::{ClockWanted, Group, MemoryWanted, NetworkWanted, QuotaWanted, Wanted};

/// The forms of the status and of the plan: what is done has none.
const FORMS: [&str; 4] = ["json", "export_csv", "export_markdown", "html"];

/// `tare tune`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  tare tune                                  the settings of this machine, and why some are not here
  tare tune --apply -- ./bench.sh            applied while the command runs, then put back
  tare tune --apply                          applied until 'tare tune --restore', or a reboot
  tare tune --apply --max-frequency 2.8GHz --min-frequency 2.8GHz --irqs-off 2-3
  tare tune --apply --quota 200% --pid 4711
  tare tune --dry-run --huge-pages 2GiB")]
pub struct TuneArgs {
    #[command(flatten)]
    pub mode: ModeArgs,
    /// With --restore: also put back what others changed since.
    ///
    /// Without it, what somebody else has changed since is left, and named.
    #[arg(long, requires = "restore", conflicts_with_all = ["apply", "dry_run", "status", "systemd"])]
    pub force: bool,
    /// Read (and change) a captured tree instead of this machine.
    ///
    /// A folder with its own `proc` and `sys`.
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// With --apply: apply the settings only while this runs.
    ///
    /// The exit code is then COMMAND's own.
    #[arg(last = true, value_name = "COMMAND", num_args = 1.., allow_hyphen_values = true, requires = "apply",
          conflicts_with_all = ["restore", "dry_run", "status", "systemd"])]
    pub command: Vec<String>,
    #[command(flatten)]
    pub settings: SettingArgs,
    #[command(flatten)]
    pub exports: OutputArgs,
}

/// What is to be done.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct ModeArgs {
    /// Apply the settings.
    #[arg(long, conflicts_with_all = FORMS)]
    pub apply: bool,
    /// Put back what --apply has applied.
    #[arg(long, conflicts_with_all = FORMS)]
    pub restore: bool,
    /// Show what --apply would do, and do nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Show the values of the settings, and which tare has applied.
    #[arg(long)]
    pub status: bool,
    /// Print a systemd unit that holds the settings from boot on.
    ///
    /// Where no setting is named: the governor.
    #[arg(long, conflicts_with_all = FORMS)]
    pub systemd: bool,
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
}

/// The settings.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Settings")]
pub struct SettingArgs {
    /// Also the settings that are applied when none is named.
    ///
    /// The governor, boost and automatic NUMA balancing.
    #[arg(long)]
    pub defaults: bool,
    #[command(flatten)]
    pub clock: ClockArgs,
    #[command(flatten)]
    pub memory: MemoryArgs,
    /// Shortest time on a CPU before another runs, 100us to 1s.
    ///
    /// Before another thread may run.
    #[arg(long, value_name = "TIME", value_parser = values::positive_duration)]
    pub base_slice: Option<Duration>,
    /// Share CPU time between sessions, not threads: on or off.
    ///
    /// sched_autogroup_enabled. It does nothing for what is in a control group of its own.
    #[arg(long, value_name = "SWITCH")]
    pub autogroup: Option<Switch>,
    /// Have devices interrupt other CPUs than these, as 2-3.
    #[arg(long, value_name = "CPUS", value_parser = values::cpu_list)]
    pub irqs_off: Option<CpuList>,
    #[command(flatten)]
    pub network: NetworkArgs,
    #[command(flatten)]
    pub quota: QuotaArgs,
}

/// The clock of the CPUs.
#[derive(Debug, Clone, Args)]
pub struct ClockArgs {
    /// Who chooses the clock: performance, powersave, schedutil …
    #[arg(long, value_name = "NAME")]
    pub governor: Option<String>,
    /// Clocks above the nominal one: on or off.
    #[arg(long, value_name = "SWITCH")]
    pub boost: Option<Switch>,
    /// Lowest clock, as 2.8GHz.
    #[arg(long, value_name = "CLOCK", value_parser = values::clock_hz)]
    pub min_frequency: Option<f64>,
    /// Highest clock.
    ///
    /// The same as the lowest holds it at one rate.
    #[arg(long, value_name = "CLOCK", value_parser = values::clock_hz)]
    pub max_frequency: Option<f64>,
}

/// Memory.
#[derive(Debug, Clone, Args)]
pub struct MemoryArgs {
    /// Transparent huge pages: always, madvise or never.
    #[arg(long, value_name = "WHEN", value_parser = ["always", "madvise", "never"])]
    pub thp: Option<String>,
    /// Automatic moving of memory between NUMA nodes: on or off.
    #[arg(long, value_name = "SWITCH")]
    pub numa_balancing: Option<Switch>,
    /// A pool of huge pages of this size, as 2GiB.
    ///
    /// It is refused where it would leave too little for the rest.
    #[arg(long, value_name = "SIZE", value_parser = size_bytes)]
    pub huge_pages: Option<u64>,
    /// Write all to disk and forget the page cache, once.
    ///
    /// There is nothing to put back.
    #[arg(long)]
    pub drop_caches: bool,
}

/// The network.
#[derive(Debug, Clone, Args)]
pub struct NetworkArgs {
    /// Longest queue of connections that wait to be accepted.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=2_147_483_647))]
    pub somaxconn: Option<u32>,
    /// Ports that connections are made from, as 1024-65535.
    #[arg(long, value_name = "FIRST-LAST", value_parser = port_range)]
    pub port_range: Option<(u16, u16)>,
    /// Let readers ask the network device for so long, as 50us; or off.
    ///
    /// Before they sleep: net.core.busy_read and busy_poll. Loopback has no device to ask.
    #[arg(long, value_name = "TIME", value_parser = busy_poll)]
    pub busy_poll: Option<Duration>,
    /// Hand received packets to these CPUs, as 0-1; or off (RPS).
    ///
    /// rps_cpus of all receive queues, loopback's among them.
    #[arg(long, value_name = "CPUS", value_parser = cpus_or_off)]
    pub rps: Option<CpuList>,
    /// Flows that are handed to the CPU of their reader; 0: none (RFS).
    ///
    /// rps_sock_flow_entries, and rps_flow_cnt of each queue.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=8_388_608))]
    pub rps_flows: Option<u32>,
    /// Give these CPUs send queues of their own, as 0-7; or off (XPS).
    ///
    /// xps_cpus of devices with several send queues.
    #[arg(long, value_name = "CPUS", value_parser = cpus_or_off)]
    pub xps: Option<CpuList>,
}

/// The quota of a control group.
#[derive(Debug, Clone, Args)]
pub struct QuotaArgs {
    /// CPU time of a control group, as 200% (two CPUs), or none.
    ///
    /// 200% are two CPUs' worth; `none` is no limit. --pid or --cgroup says which group.
    #[arg(long, value_name = "PERCENT", value_parser = quota, requires = "group")]
    pub quota: Option<Quota>,
    /// The quota is for this process's control group.
    #[arg(long, value_name = "PID", requires = "quota", group = "group")]
    pub pid: Option<u32>,
    /// The quota is for this control group.
    ///
    /// Its path below the cpu controller, or its folder.
    #[arg(long, value_name = "PATH", requires = "quota", group = "group")]
    pub cgroup: Option<String>,
}

/// CPUs' worth of time; none is no limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quota(pub Option<f64>);

impl SettingArgs {
    /// What is asked for; of itself, nothing.
    pub fn wanted(&self) -> Wanted {
        let switch = |switch: Option<Switch>| switch.map(|switch| switch == Switch::On);
        let group = match (&self.quota.cgroup, self.quota.pid) {
            (Some(path), _) => Some(Group::At(path.clone())),
            (None, pid) => pid.map(Group::Of),
        };
        Wanted {
            clock: ClockWanted {
                governor: self.clock.governor.clone(),
                min_frequency_hz: self.clock.min_frequency.map(|hz| hz as u64),
                max_frequency_hz: self.clock.max_frequency.map(|hz| hz as u64),
                boost: switch(self.clock.boost),
            },
            memory: MemoryWanted {
                thp: self.memory.thp.clone(),
                numa_balancing: switch(self.memory.numa_balancing),
                drop_caches: self.memory.drop_caches,
                huge_pages_bytes: self.memory.huge_pages,
            },
            base_slice_ns: self.base_slice.map(nanoseconds),
            autogroup: switch(self.autogroup),
            irqs_off: self.irqs_off.clone().map(|list| list.0).unwrap_or_default(),
            network: self.network.wanted(),
            quota: self.quota.quota.zip(group).map(|(Quota(cpus), group)| QuotaWanted { group, cpus }),
        }
    }
}

impl NetworkArgs {
    fn wanted(&self) -> NetworkWanted {
        let cpus = |list: &Option<CpuList>| list.clone().map(|list| list.0);
        NetworkWanted {
            somaxconn: self.somaxconn,
            port_range: self.port_range,
            busy_poll_ns: self.busy_poll.map(nanoseconds),
            rps: cpus(&self.rps),
            rps_flows: self.rps_flows,
            xps: cpus(&self.xps),
        }
    }
}

fn nanoseconds(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

/// Parses `50us`, `off`.
fn busy_poll(text: &str) -> Result<Duration, String> {
    if text == "off" { Ok(Duration::ZERO) } else { values::positive_duration(text) }
}

/// Parses `0-3,8`, `off`; off is no CPU.
fn cpus_or_off(text: &str) -> Result<CpuList, String> {
    if text == "off" { Ok(CpuList(Vec::new())) } else { values::cpu_list(text) }
}

/// Parses a size: `2GiB`, `512MiB`, `2G`, or bytes. Powers of 1024 throughout, as memory comes in them.
fn size_bytes(text: &str) -> Result<u64, String> {
    let bad = || format!("'{text}' is not a size; write it as 2GiB or 512MiB");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "B" => 1.0,
        "k" | "K" | "KiB" => 1024.0,
        "M" | "MiB" => f64::from(1 << 20),
        "G" | "GiB" => f64::from(1 << 30),
        "T" | "TiB" => f64::from(1 << 20) * f64::from(1 << 20),
        _ => return Err(bad()),
    };
    let size = digits.trim().parse::<f64>().map_err(|_| bad())? * unit;
    // Up to 8 PiB every whole number of bytes is one of these.
    if (0.0..=9e15).contains(&size) { Ok(size as u64) } else { Err(bad()) }
}

/// Parses `1024-65535`.
fn port_range(text: &str) -> Result<(u16, u16), String> {
    let bad = || format!("'{text}' is not a range of ports; write it as 1024-65535");
    let (first, last) = text.split_once('-').ok_or_else(bad)?;
    let port = |text: &str| text.trim().parse::<u16>().ok().filter(|port| *port > 0).ok_or_else(bad);
    let (first, last) = (port(first)?, port(last)?);
    if first < last { Ok((first, last)) } else { Err(bad()) }
}

/// Parses `200%`, `none`.
fn quota(text: &str) -> Result<Quota, String> {
    const PERCENT_MAX: f64 = 1e6;
    if matches!(text, "none" | "max") {
        return Ok(Quota(None));
    }
    let percent = text.strip_suffix('%').and_then(|digits| digits.trim().parse::<f64>().ok());
    match percent {
        Some(percent) if percent > 0.0 && percent <= PERCENT_MAX => Ok(Quota(Some(percent / 100.0))),
        _ => Err(format!("'{text}' is not a quota; write it as 200% (two CPUs' worth) or none")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_sizes_ranges_and_quotas() {
        assert_eq!(size_bytes("2GiB"), Ok(2 << 30));
        assert_eq!((size_bytes("1.5M"), size_bytes("4096"), size_bytes("0")), (Ok(3 << 19), Ok(4096), Ok(0)));
        assert_eq!(port_range("1024-65535"), Ok((1024, 65_535)));
        assert_eq!((quota("200%"), quota("none")), (Ok(Quota(Some(2.0))), Ok(Quota(None))));
        let bad = ["", "GiB", "-1", "nan", "inf", "1e300G", "2GB", "2 Gi B", "é"];
        assert!(bad.iter().all(|bad| size_bytes(bad).is_err()));
        let bad = ["", "1", "0-5", "5-5", "6-5", "1-65536", "1-2-3", "a-b"];
        assert!(bad.iter().all(|bad| port_range(bad).is_err()));
        assert_eq!(
            (busy_poll("off"), busy_poll("50us")),
            (Ok(Duration::ZERO), Ok(Duration::from_micros(50)))
        );
        assert_eq!((cpus_or_off("off"), cpus_or_off("0-1")), (Ok(CpuList(vec![])), Ok(CpuList(vec![0, 1]))));
        assert!(busy_poll("0").is_err() && cpus_or_off("").is_err() && cpus_or_off("on").is_err());
        let bad = ["", "%", "2", "0%", "-5%", "nan%", "inf%", "1e9%"];
        assert!(bad.iter().all(|bad| quota(bad).is_err()));
    }

    proptest! {
        #[test]
        fn what_is_read_is_what_was_written(mib in 0u64..1 << 30, first in 1u16..30_000, width in 1u16..30_000, percent in 1u32..1_000_000) {
            prop_assert_eq!(size_bytes(&format!("{mib}MiB")), Ok(mib << 20));
            prop_assert_eq!(size_bytes(&(mib << 20).to_string()), Ok(mib << 20));
            prop_assert_eq!(port_range(&format!("{first}-{}", first + width)), Ok((first, first + width)));
            prop_assert_eq!(quota(&format!("{percent}%")), Ok(Quota(Some(f64::from(percent) / 100.0))));
        }

        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = (size_bytes(&text), port_range(&text), quota(&text));
        }
    }
}
