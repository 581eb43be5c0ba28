//! Ports, queues and interrupts.

use super::draft::{Draft, Examined, Topic, each, note, ok, several, unknown, warn};
use super::words::{percent, things};
use tare_model::check::Area;
use tare_model::survey::{Interface, Interrupt, LocalInterrupt, Network};
use tare_model::{CpuSet, Missing, Reading};

pub(super) static TOPIC: Topic = Topic {
    area: Area::Network,
    ids: &[
        "ports",
        "time-wait",
        "accept-queue",
        "syn-backlog",
        "conntrack",
        "receive-queues",
        "offloads",
        "interrupts",
        "irqbalance",
    ],
    look,
};

/// Fewer ports than this are used up in seconds.
const PORTS_FEW: u32 = 16_000;
/// `TCP_TIMEWAIT_LEN` of the kernel, seconds.
const TIME_WAIT_S: u32 = 60;
/// Bursts of new connections that a listener should hold.
const BACKLOG: u64 = 1024;
const NEARLY_FULL: f64 = 0.8;
/// Interrupts that have come so often are a device at work.
const BUSY_COUNT: u64 = 1000;

fn look(examined: &Examined) -> Vec<Draft> {
    let network = &examined.survey.network;
    let mut drafts = several("ports", &network.port_range, |range| ports(*range, network));
    drafts.extend(each("accept-queue", &network.somaxconn, |most| {
        queue("accept-queue", "connections wait for accept", *most).setting("somaxconn")
    }));
    drafts.extend(each("syn-backlog", &network.syn_backlog, |most| {
        queue("syn-backlog", "connections are half open", *most)
    }));
    drafts.extend(conntrack(network));
    drafts.extend(several("receive-queues", &network.interfaces, |all| {
        all.iter().flat_map(|interface| interface_of(examined, interface)).collect()
    }));
    drafts.extend(several("interrupts", &network.interrupts, |all| {
        let unnumbered = unnumbered(examined);
        interrupts(all, &unnumbered)
    }));
    if network.irqbalance.value() == Some(&true) {
        drafts.push(
            warn("irqbalance", "irqbalance moves interrupts about")
                .effect("a run may begin with a device on one CPU and end with it on the server's")
                .fix("stop it while measuring, and put interrupts where they shall be")
                .setting("irqs-off"),
        );
    }
    drafts
}

fn ports(range: [u32; 2], network: &Network) -> Vec<Draft> {
    let count = range[1].saturating_sub(range[0]) + 1;
    let found = format!("{count} ports for connections that go out ({}–{})", range[0], range[1]);
    let reuse = match network.tw_reuse.value() {
        Some(1) => " (those to the same place can be reused after 1 s: tcp_tw_reuse)",
        Some(2) => " (on loopback after 1 s: tcp_tw_reuse)",
        _ => "",
    };
    let effect = format!(
        "with a connection per request, {} requests a second to one address and port, then there are none for {TIME_WAIT_S} s{reuse}",
        count / TIME_WAIT_S
    );
    let draft = match count {
        count if count < PORTS_FEW => warn("ports", found),
        _ => note("ports", found),
    };
    let mut drafts = vec![
        draft
            .effect(effect)
            .fix("keep connections, several addresses, or a wider range")
            .setting("port-range"),
    ];
    if let Some(waiting) =
        network.time_wait.value().filter(|waiting| **waiting as f64 > NEARLY_FULL * f64::from(count))
    {
        drafts.push(
            warn("time-wait", format!("{waiting} closed connections still hold their ports"))
                .effect("the next run may find none and fail to connect")
                .fix("wait a minute, or keep connections"),
        );
    }
    drafts
}

fn queue(id: &str, what: &str, most: u64) -> Draft {
    let found = format!("{most} {what} at most");
    match most < BACKLOG {
        true => warn(id, found)
            .effect(
                "a burst of connections beyond it is dropped and comes back after 1 s, 3 s …: p99 shows it",
            )
            .fix("raise it, and the server's own backlog with it"),
        false => ok(id, found),
    }
}

fn conntrack(network: &Network) -> Option<Draft> {
    let (count, most) = (*network.conntrack_count.value()?, *network.conntrack_max.value()?);
    if count == 0 || most == 0 {
        return Some(ok("conntrack", "no connection is kept track of"));
    }
    let found = format!("the firewall keeps track of {count} of at most {most} connections");
    Some(match count as f64 > NEARLY_FULL * most as f64 {
        true => warn("conntrack", found)
            .effect("beyond the limit new connections are dropped")
            .fix("raise net.netfilter.nf_conntrack_max, or exempt the server's port (NOTRACK)"),
        false => note("conntrack", found)
            .effect(
                "each packet is looked up, each connection made and forgotten: part of the CPU time per request",
            )
            .fix("exempt the server's port (NOTRACK), or compare with the same rules only"),
    })
}

fn interface_of(examined: &Examined, interface: &Interface) -> Vec<Draft> {
    if interface.state.value().is_none_or(|state| state != "up") || interface.name == "lo" {
        return Vec::new();
    }
    let mut drafts = each("receive-queues", &interface.receive, |queues| {
        let cpus = examined.topology.online.value().map_or(1, CpuSet::len);
        let steered = queues.iter().any(|queue| queue.cpus.value().is_some_and(|cpus| cpus.len() > 1));
        let found = format!("{}: {}", interface.name, things(queues.len(), "receive queue"));
        match queues.len() <= 1 && cpus > 1 && !steered {
            true => note("receive-queues", format!("{found} for {cpus} CPUs"))
                .effect("one CPU takes in every packet from the wire, and is full long before the others")
                .fix(format!(
                    "more queues (ethtool -L), or RPS: a mask of CPUs into /sys/class/net/{}/queues/rx-0/rps_cpus",
                    interface.name
                )),
            false => ok("receive-queues", found),
        }
    });
    drafts.extend(match &interface.offloads {
        Reading::Measured(on) => {
            let off: Vec<&str> =
                ["tso", "gso", "gro"].into_iter().filter(|name| !on.iter().any(|on| on == name)).collect();
            match off.is_empty() {
                true => None,
                false => Some(
                    note("offloads", format!("{}: {} off", interface.name, off.join(", ")))
                        .effect("large answers cost a walk through the stack for each packet of 1,500 bytes")
                        .fix(format!("ethtool -K {} {} on", interface.name, off.join(" on "))),
                ),
            }
        }
        Reading::Missing(missing) => Some(unknown("offloads", missing)),
        Reading::NotApplicable { .. } => None,
    });
    drafts
}

/// Devices that interrupt without a number, so that no CPUs are shown for them: those of s390, and all that come through
/// Hyper-V.
fn unnumbered<'a>(examined: &'a Examined<'_>) -> Vec<&'a LocalInterrupt> {
    let kind = examined.survey.machine.virtualization.value().map_or("", String::as_str);
    // KVM calls with the same for what is no device, and Xen's events have numbers.
    let may_be_called = kind.starts_with("hyper-v") || kind.starts_with("wsl2");
    let is_device = |one: &&LocalInterrupt| match one.id.as_str() {
        "HYP" => may_be_called,
        // Totals of the lines below them.
        "I/O" | "AIO" => false,
        // Paravirtual disks and networks.
        "DSD" | "VRT" | "IUC" => one.name.starts_with("[EXT]"),
        _ => one.name.starts_with("[I/O]") || one.name.starts_with("[AIO]"),
    };
    let local = examined.survey.network.local_interrupts.value().map(Vec::as_slice).unwrap_or_default();
    local.iter().filter(is_device).collect()
}

/// Which CPUs serve the devices that are at work.
fn interrupts(numbered: &[Interrupt], unnumbered: &[&LocalInterrupt]) -> Vec<Draft> {
    let of_numbered = numbered.iter().map(|one| {
        let cpus = one.cpus.value().filter(|cpus| !cpus.is_empty());
        (one.name.as_str(), one.count, cpus)
    });
    let of_others = unnumbered.iter().map(|one| (one.name.as_str(), one.count, None));
    let busy: Vec<(&str, u64, Option<&CpuSet>)> =
        of_numbered.chain(of_others).filter(|(_, count, _)| *count >= BUSY_COUNT).collect();
    let Some((name, most, _)) = busy.iter().max_by_key(|(_, count, _)| *count) else {
        return vec![ok("interrupts", "no device has interrupted much")];
    };
    let sum = |all: &mut dyn Iterator<Item = u64>| all.fold(0u64, u64::saturating_add) as f64;
    let total = sum(&mut busy.iter().map(|(_, count, _)| *count));
    let hidden = sum(&mut busy.iter().filter(|(.., cpus)| cpus.is_none()).map(|(_, count, _)| *count));
    let most = format!("most for {name} ({})", percent(*most as f64 / total.max(1.0)));
    let cpus: CpuSet = busy.iter().filter_map(|(.., cpus)| *cpus).flat_map(CpuSet::iter).collect();
    if cpus.is_empty() {
        let why = format!("devices have interrupted, and nothing shows which CPUs serve them; {most}");
        return vec![unknown("interrupts", &Missing::new(why))];
    }
    let others = match hidden > 0.0 {
        true => format!("; for {} of them no CPU is shown", percent(hidden / total)),
        false => String::new(),
    };
    vec![
        note("interrupts", format!("devices interrupt CPUs {cpus}; {most}{others}"))
            .effect("packets and disk blocks of others are served on top of a server that runs there")
            .fix("keep them off the server's CPUs")
            .setting("irqs-off"),
    ]
}
