//! Ports, queues and interrupts.

use super::draft::{Draft, Examined, Topic, each, note, ok, several, unknown, warn};
use super::words::{percent, things};
use tare_model::check::Area;
use tare_model::survey::{Interface, Interrupt, Network};
use tare_model::{CpuSet, Reading};

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
    drafts.extend(several("interrupts", &network.interrupts, |all| interrupts(all)));
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

/// Which CPUs serve the devices that are at work.
fn interrupts(all: &[Interrupt]) -> Vec<Draft> {
    let busy: Vec<&Interrupt> = all.iter().filter(|interrupt| interrupt.count >= BUSY_COUNT).collect();
    let mut cpus = CpuSet::new();
    for interrupt in &busy {
        if let Some(set) = interrupt.cpus.value() {
            cpus.extend(set.iter());
        }
    }
    if cpus.is_empty() {
        return vec![ok("interrupts", "no device has interrupted much")];
    }
    let total = busy.iter().fold(0u64, |sum, interrupt| sum.saturating_add(interrupt.count));
    let most = busy.iter().max_by_key(|interrupt| interrupt.count);
    let most = most.map_or_else(String::new, |most| {
        format!("; most for {} ({})", most.name, percent(most.count as f64 / total.max(1) as f64))
    });
    vec![
        note("interrupts", format!("devices interrupt CPUs {cpus}{most}"))
            .effect("packets and disk blocks of others are served on top of a server that runs there")
            .fix("keep them off the server's CPUs")
            .setting("irqs-off"),
    ]
}
