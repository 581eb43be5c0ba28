//! Ports, queues, interfaces and interrupts.

use super::{files, interrupts};
use crate::root::{Root, nonsense};
use tare_model::Missing;
use tare_model::survey::{Interface, Network, Queue};

const NET: &str = "/sys/class/net";
const IPV4: &str = "/proc/sys/net/ipv4";
const CORE: &str = "/proc/sys/net/core";
/// Interfaces beyond this are a host full of containers: what is said of the first holds for all.
const INTERFACES_MAX: usize = 64;
/// Queues of one interface that are looked at.
const QUEUES_MAX: usize = 256;

pub(super) fn read(root: &Root) -> Network {
    let conntrack = |file: &str| root.value(format!("/proc/sys/net/netfilter/{file}")).into();
    let interrupts = interrupts::read(root);
    Network {
        port_range: port_range(root).into(),
        somaxconn: root.value(format!("{CORE}/somaxconn")).into(),
        syn_backlog: root.value(format!("{IPV4}/tcp_max_syn_backlog")).into(),
        tw_reuse: root.value(format!("{IPV4}/tcp_tw_reuse")).into(),
        syn_cookies: root.value(format!("{IPV4}/tcp_syncookies")).into(),
        backlog: root.value(format!("{CORE}/netdev_max_backlog")).into(),
        conntrack_count: conntrack("nf_conntrack_count"),
        conntrack_max: conntrack("nf_conntrack_max"),
        time_wait: time_wait(root).into(),
        interfaces: interfaces(root).into(),
        interrupts: interrupts.clone().map(|all| all.devices).into(),
        local_interrupts: interrupts.map(|all| all.local).into(),
        irqbalance: irqbalance(root).into(),
    }
}

fn port_range(root: &Root) -> Result<[u32; 2], Missing> {
    let path = format!("{IPV4}/ip_local_port_range");
    let text = root.text(&path)?;
    let ports: Option<Vec<u32>> = text.split_ascii_whitespace().map(|port| port.parse().ok()).collect();
    match ports.as_deref() {
        Some(&[first, last]) if 0 < first && first <= last && last <= 65_535 => Ok([first, last]),
        _ => Err(nonsense(path.as_ref(), &text)),
    }
}

fn time_wait(root: &Root) -> Result<u64, Missing> {
    let text = root.text("/proc/self/net/sockstat").or_else(|_| root.text("/proc/net/sockstat"))?;
    let mut fields = files::field(&text, "TCP:").unwrap_or_default().split_ascii_whitespace();
    let count = fields.find(|field| *field == "tw").and_then(|_| fields.next()?.parse().ok());
    count.ok_or_else(|| Missing::new("/proc/net/sockstat counts no sockets in TIME_WAIT"))
}

fn interfaces(root: &Root) -> Result<Vec<Interface>, Missing> {
    let names = root.names(NET)?;
    // `bonding_masters` and its like are files among the interfaces.
    let real = names.into_iter().filter(|name| root.exists(format!("{NET}/{name}/mtu")));
    Ok(real.take(INTERFACES_MAX).map(|name| interface(root, name)).collect())
}

fn interface(root: &Root, name: String) -> Interface {
    let file = |file: &str| format!("{NET}/{name}/{file}");
    let count = |name: &str| root.value::<u64>(file(&format!("statistics/{name}")));
    let dropped = count("rx_dropped").and_then(|rx| Ok(rx.saturating_add(count("tx_dropped")?)));
    Interface {
        state: files::word(root, &file("operstate")).into(),
        speed_bits_per_s: speed(root, &file("speed")).into(),
        mtu_bytes: root.value(file("mtu")).into(),
        driver: driver(root, &file("device/uevent")).into(),
        node: root.value(file("device/numa_node")).into(),
        receive: queues(root, &file("queues"), "rx-", "rps_cpus").into(),
        send: queues(root, &file("queues"), "tx-", "xps_cpus").into(),
        offloads: offloads(root, &name).into(),
        dropped: dropped.into(),
        name,
    }
}

/// Megabits; −1 where the driver does not know, and an error where there is no carrier.
fn speed(root: &Root, path: &str) -> Result<u64, Missing> {
    let megabits: i64 = root.value(path)?;
    match u64::try_from(megabits) {
        Ok(megabits) if megabits > 0 => Ok(megabits.saturating_mul(1_000_000)),
        _ => Err(Missing::new(format!("{path} holds {megabits}: the driver does not know"))),
    }
}

fn driver(root: &Root, path: &str) -> Result<String, Missing> {
    let text = root.text(path)?;
    let driver = files::field(&text, "DRIVER=").filter(|driver| !driver.is_empty());
    driver.map(str::to_string).ok_or_else(|| Missing::new(format!("{path} names no driver")))
}

fn queues(root: &Root, dir: &str, prefix: &str, file: &str) -> Result<Vec<Queue>, Missing> {
    let names = files::numbered(root, dir, prefix)?.into_iter().take(QUEUES_MAX);
    let queue = |(id, name): (u32, String)| {
        let cpus = files::mask(root, &format!("{dir}/{name}/{file}"));
        Queue { id, cpus: cpus.into() }
    };
    Ok(names.map(queue).collect())
}

fn offloads(root: &Root, name: &str) -> Result<Vec<String>, Missing> {
    if !root.is_live() {
        return Err(Missing::new("offloads are known from a system call only, not by a captured tree"));
    }
    let offloads = tare_sys::offloads::read(name)
        .map_err(|error| Missing::new(format!("{name} does not tell its offloads: {error}")))?;
    Ok(offloads.into_iter().filter(|(_, on)| *on).map(|(name, _)| name.to_string()).collect())
}

fn irqbalance(root: &Root) -> Result<bool, Missing> {
    if !root.is_live() {
        return Err(Missing::new("a captured tree does not tell what runs"));
    }
    Ok(crate::procs::all(root)?.iter().any(|process| process.name == "irqbalance"))
}
