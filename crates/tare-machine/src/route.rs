//! Which network interface leads to an address: the kernel's main routing table.

use crate::root::Root;
use std::net::{IpAddr, Ipv4Addr};
use tare_model::Missing;

/// `RTF_UP` and `RTF_REJECT` of `linux/route.h`.
const UP: u32 = 1;
const REJECT: u32 = 0x200;
/// Routes beyond this are a router's: the table is not gone through then.
const ROUTES_MAX: usize = 10_000;

/// The interface that packets to `address` leave by: the route with the longest mask, of those the one with the lowest metric.
///
/// # Errors
/// There is no such route, it cannot be read, or the address is not of IPv4.
pub fn interface_to(root: &Root, address: IpAddr) -> Result<String, Missing> {
    let IpAddr::V4(address) = address else {
        return Err(Missing::new("routes of IPv6 are not looked at"));
    };
    let text = root.text("/proc/net/route")?;
    let routes = text.lines().skip(1).take(ROUTES_MAX).filter_map(Route::parse);
    let leading = routes.filter(|route| route.leads_to(address));
    let best = leading.max_by_key(|route| (route.mask.count_ones(), std::cmp::Reverse(route.metric)));
    best.map(|route| route.interface).ok_or_else(|| Missing::new(format!("no route leads to {address}")))
}

struct Route {
    interface: String,
    destination: u32,
    mask: u32,
    metric: u32,
}

impl Route {
    /// `eth0 00000000 0100A8C0 0003 0 0 100 00000000 …`: the addresses as the machine has them in memory.
    fn parse(line: &str) -> Option<Route> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let hexadecimal = |at: usize| u32::from_str_radix(fields.get(at)?, 16).ok();
        let flags = hexadecimal(3)?;
        (flags & UP != 0 && flags & REJECT == 0).then_some(Route {
            interface: (*fields.first()?).to_owned(),
            destination: hexadecimal(1)?,
            mask: hexadecimal(7)?,
            metric: fields.get(6)?.parse().ok()?,
        })
    }

    fn leads_to(&self, address: Ipv4Addr) -> bool {
        u32::from_ne_bytes(address.octets()) & self.mask == self.destination
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mask_and_then_the_lowest_metric_decide() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("proc/net")).unwrap();
        let hexadecimal = |octets: [u8; 4]| format!("{:08X}", u32::from_ne_bytes(octets));
        let route = |interface: &str, to: [u8; 4], mask: [u8; 4], flags: &str, metric: u32| {
            format!(
                "{interface}\t{}\t00000000\t{flags}\t0\t0\t{metric}\t{}\t0\t0\t0\n",
                hexadecimal(to),
                hexadecimal(mask)
            )
        };
        let table = [
            "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
                .to_owned(),
            route("wlan0", [0; 4], [0; 4], "0003", 600),
            route("eth0", [0; 4], [0; 4], "0003", 100),
            route("docker0", [172, 17, 0, 0], [255, 255, 0, 0], "0001", 0),
            route("down0", [10, 0, 0, 0], [255, 0, 0, 0], "0000", 0),
            "nonsense\n".to_owned(),
        ];
        std::fs::write(dir.path().join("proc/net/route"), table.concat()).unwrap();
        let root = Root::at(dir.path());
        let to = |address: [u8; 4]| interface_to(&root, IpAddr::from(address));
        assert_eq!(to([192, 0, 2, 7]).as_deref(), Ok("eth0"));
        assert_eq!(to([172, 17, 3, 1]).as_deref(), Ok("docker0"));
        assert_eq!(to([10, 1, 1, 1]).as_deref(), Ok("eth0"));
        assert!(interface_to(&root, "::1".parse().unwrap()).is_err());
    }
}
