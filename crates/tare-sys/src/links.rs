//! The network interfaces of a namespace: counters that a card's driver keeps (`ethtool -S`), and the queues in front of each
//! (`tc -s qdisc`).

use crate::netlink::{self, HEADER_BYTES, attribute, messages, read};
use crate::nftables::Nftables;
use std::ffi::CStr;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// Interfaces that are looked at.
const INTERFACES_MAX: usize = 64;
/// Counters of a card: one with more is not read. The buffers have twice the room, since the kernel writes as many as there are by then.
const COUNTERS_MAX: usize = 2048;
const COUNTERS_ROOM: usize = 2 * COUNTERS_MAX;
/// Room for the chains of the packet filter: some 1,000.
const CHAINS_BYTES_MAX: usize = 256 << 10;
/// `ETH_GSTRING_LEN`.
const NAME_BYTES: usize = 32;
/// `ETHTOOL_GSSET_INFO`, `ETHTOOL_GSTRINGS`, `ETHTOOL_GSTATS`, and `ETH_SS_STATS`.
const GET_COUNTS: u32 = 0x37;
const GET_NAMES: u32 = 0x1b;
const GET_VALUES: u32 = 0x1d;
const OF_COUNTERS: u32 = 1;

const GET_QDISC: u16 = 38;
const NEW_QDISC: u16 = 36;
const TC_MESSAGE_BYTES: usize = 20;
const TCA_KIND: u16 = 1;
const TCA_STATS2: u16 = 7;
const TCA_STATS_QUEUE: u16 = 3;

/// The interfaces of one network namespace.
#[derive(Debug)]
pub struct Links {
    netlink: OwnedFd,
    /// Index and name of each.
    names: Vec<(u32, String)>,
    /// The cards that keep counters of the wanted names.
    pub cards: Vec<Card>,
    /// The packet filter, or why it is not asked: there is none, or only root may.
    pub nftables: io::Result<Nftables>,
}

impl Links {
    /// In the namespace of the thread that calls; of the cards' counters those that are `wanted` by name.
    ///
    /// # Errors
    /// As the kernel says. A card that tells nothing is left out.
    pub fn open(wanted: fn(&str) -> bool) -> io::Result<Links> {
        let netlink = netlink::open(libc::NETLINK_ROUTE)?;
        let names = names()?;
        let card = |(_, name): &(u32, String)| Card::open(name, wanted).ok();
        let cards = names.iter().filter_map(card).filter(|card| !card.counters.is_empty()).collect();
        let nftables = Nftables::open(&mut vec![0; CHAINS_BYTES_MAX]);
        Ok(Links { netlink, names, cards, nftables })
    }

    /// In the namespace that `/proc/PID/ns/net` is open as.
    ///
    /// # Errors
    /// Mostly: only root may.
    pub fn open_in(namespace: BorrowedFd<'_>, wanted: fn(&str) -> bool) -> io::Result<Links> {
        netlink::within(namespace, || Links::open(wanted))
    }

    /// All queueing disciplines, into `buffer`; how much of that they fill. See [`qdiscs`].
    ///
    /// # Errors
    /// `FileTooLarge` where the buffer has no room for them; else as the kernel says.
    pub fn dump_qdiscs(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut request = [0u8; HEADER_BYTES + TC_MESSAGE_BYTES];
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
        request[0..4].copy_from_slice(&((HEADER_BYTES + TC_MESSAGE_BYTES) as u32).to_ne_bytes());
        request[4..6].copy_from_slice(&GET_QDISC.to_ne_bytes());
        request[6..8].copy_from_slice(&flags.to_ne_bytes());
        netlink::ask(&self.netlink, &request, buffer)
    }

    /// The name of an interface.
    pub fn name(&self, index: u32) -> Option<&str> {
        self.names.iter().find(|(known, _)| *known == index).map(|(_, name)| name.as_str())
    }
}

/// What one queueing discipline counted since it was made. The counters go round at 2^32.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qdisc {
    /// The index of its interface.
    pub interface: u32,
    /// `tbf`, `htb`, `fq_codel` …
    pub kind: String,
    /// Packets that it dropped.
    pub drops: u32,
    /// Times that it let a packet wait, since its rate was used up.
    pub overlimits: u32,
}

/// The queueing disciplines of a dump.
pub fn qdiscs(dump: &[u8]) -> impl Iterator<Item = Qdisc> + '_ {
    messages(dump).filter(|(kind, _)| *kind == NEW_QDISC).filter_map(|(_, message)| {
        let attributes = message.get(TC_MESSAGE_BYTES..)?;
        let name = attribute(attributes, TCA_KIND)?;
        // `struct gnet_stats_queue`.
        let queue = attribute(attribute(attributes, TCA_STATS2)?, TCA_STATS_QUEUE)?;
        Some(Qdisc {
            interface: u32::from_ne_bytes(read(message, 4)?),
            kind: String::from_utf8_lossy(name.strip_suffix(&[0]).unwrap_or(name)).into_owned(),
            drops: u32::from_ne_bytes(read(queue, 8)?),
            overlimits: u32::from_ne_bytes(read(queue, 16)?),
        })
    })
}

/// A network card and the counters of its driver that are wanted.
#[derive(Debug)]
pub struct Card {
    /// Its interface: `eth0`.
    pub name: String,
    /// The counters, in the order of [`Card::read`].
    pub counters: Vec<String>,
    socket: UdpSocket,
    at: Vec<usize>,
    count: usize,
}

impl Card {
    fn open(interface: &str, wanted: fn(&str) -> bool) -> io::Result<Card> {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let count = count(&socket, interface)?;
        if count == 0 || count > COUNTERS_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut buffer = vec![0u32; 3 + COUNTERS_ROOM * NAME_BYTES / 4];
        buffer[..3].copy_from_slice(&[GET_NAMES, OF_COUNTERS, count as u32]);
        ask(&socket, interface, buffer.as_mut_ptr().cast())?;
        let bytes: Vec<u8> = buffer.iter().skip(3).flat_map(|word| word.to_ne_bytes()).collect();
        let all = bytes.chunks_exact(NAME_BYTES).take(count).map(|name| {
            let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
            String::from_utf8_lossy(&name[..end]).trim().to_owned()
        });
        let (at, counters) = all.enumerate().filter(|(_, name)| wanted(name)).unzip();
        Ok(Card { name: interface.to_owned(), counters, socket, at, count })
    }

    /// The counters as they are now, eight bytes each in the machine's order; how much of `buffer` they fill.
    ///
    /// # Errors
    /// As the kernel says, or that the card has others by now.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // The kernel writes as many as the card has now, whatever is asked for: room is for those that it had.
        if count(&self.socket, &self.name)? != self.count {
            return Err(io::Error::other("the card's counters are others by now"));
        }
        let mut values = vec![0u64; 1 + COUNTERS_ROOM];
        let [a, b, c, d] = GET_VALUES.to_ne_bytes();
        let [e, f, g, h] = (self.count as u32).to_ne_bytes();
        values[0] = u64::from_ne_bytes([a, b, c, d, e, f, g, h]);
        ask(&self.socket, &self.name, values.as_mut_ptr().cast())?;
        let [.., e, f, g, h] = values[0].to_ne_bytes();
        if u32::from_ne_bytes([e, f, g, h]) as usize != self.count {
            return Err(io::Error::other("the card's counters are others by now"));
        }
        let wanted = self.at.iter().filter_map(|at| values.get(1 + at));
        let mut filled = 0;
        for (to, value) in buffer.chunks_exact_mut(size_of::<u64>()).zip(wanted) {
            to.copy_from_slice(&value.to_ne_bytes());
            filled += size_of::<u64>();
        }
        Ok(filled)
    }
}

/// `struct ethtool_sset_info` with room for the one count that is asked for.
#[repr(C)]
struct Counts {
    command: u32,
    reserved: u32,
    sets: u64,
    data: [u32; 1],
}

fn count(socket: &UdpSocket, interface: &str) -> io::Result<usize> {
    let mut counts = Counts { command: GET_COUNTS, reserved: 0, sets: 1 << OF_COUNTERS, data: [0] };
    ask(socket, interface, (&raw mut counts).cast())?;
    Ok(if counts.sets == 0 { 0 } else { counts.data[0] as usize })
}

/// `data` points to what the command in its first word reads and writes, with room for all that it may write.
fn ask(socket: &UdpSocket, interface: &str, data: *mut libc::c_char) -> io::Result<()> {
    let mut name: [libc::c_char; libc::IFNAMSIZ] = [0; libc::IFNAMSIZ];
    if interface.len() >= name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    let mut request =
        libc::ifreq { ifr_name: name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_data: data } };
    // SAFETY: `request` holds a name that ends with a zero and the pointer, which the callers made from a buffer of theirs that lives
    // through the call and has room for what the command writes: twice the counters that the card had when it was opened or, microseconds
    // ago, still had (see `COUNTERS_ROOM`).
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn names() -> io::Result<Vec<(u32, String)>> {
    // SAFETY: no pointers are passed; the list is freed below.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return Err(io::Error::last_os_error());
    }
    let mut found = Vec::new();
    for at in 0..INTERFACES_MAX {
        // SAFETY: the list ends with an entry whose index is zero, and is not read beyond that.
        let entry = unsafe { &*list.add(at) };
        if entry.if_index == 0 || entry.if_name.is_null() {
            break;
        }
        // SAFETY: the name ends with a zero, and lives until the list is freed.
        let name = unsafe { CStr::from_ptr(entry.if_name) };
        found.push((entry.if_index, name.to_string_lossy().into_owned()));
    }
    // SAFETY: the list is from if_nameindex, is freed once, and nothing refers to it any more.
    unsafe { libc::if_freenameindex(list) };
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_there_with_its_queue_and_no_card() {
        let links = Links::open(|_| true).unwrap();
        let index = links.names.iter().find(|(_, name)| name == "lo").map(|(index, _)| *index).unwrap();
        assert_eq!(links.name(index), Some("lo"));
        assert!(links.cards.iter().all(|card| card.name != "lo"));
        let mut buffer = vec![0; 1 << 20];
        let filled = links.dump_qdiscs(&mut buffer).unwrap();
        // Some kernels list noqueue, others do not: what is listed is of an interface and has a kind.
        assert!(qdiscs(&buffer[..filled]).all(|qdisc| qdisc.interface > 0 && !qdisc.kind.is_empty()));
        for card in &links.cards {
            let filled = card.read(&mut vec![0; 8 * COUNTERS_MAX]).unwrap();
            assert_eq!(filled, 8 * card.counters.len());
        }
    }

    /// A message as the kernel makes it: header, `tcmsg`, kind, and the queue's counters within the nested attribute.
    fn message(interface: u32, kind: &str, drops: u32, overlimits: u32) -> Vec<u8> {
        let attribute = |kind: u16, content: &[u8]| {
            let length = (4 + content.len()) as u16;
            let mut bytes = [length.to_ne_bytes(), kind.to_ne_bytes()].concat();
            bytes.extend(content);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            bytes
        };
        let queue: Vec<u8> = [1, 2, drops, 3, overlimits].into_iter().flat_map(u32::to_ne_bytes).collect();
        let mut content = vec![0; TC_MESSAGE_BYTES];
        content[4..8].copy_from_slice(&interface.to_ne_bytes());
        content.extend(attribute(TCA_KIND, &[kind.as_bytes(), &[0]].concat()));
        content.extend(attribute(TCA_STATS2 | 0x8000, &attribute(TCA_STATS_QUEUE, &queue)));
        let length = (HEADER_BYTES + content.len()) as u32;
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(NEW_QDISC.to_ne_bytes());
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend(content);
        bytes
    }

    #[test]
    fn counters_of_queues_are_read_from_a_dump() {
        let dump = [message(7, "tbf", 11, 222), message(8, "fq_codel", 0, 0)].concat();
        let found: Vec<Qdisc> = qdiscs(&dump).collect();
        let tbf = Qdisc { interface: 7, kind: "tbf".to_owned(), drops: 11, overlimits: 222 };
        assert!(found.len() == 2 && found[0] == tbf, "{found:?}");
        let whole = message(7, "tbf", 11, 222).len();
        assert_eq!(qdiscs(&dump[..whole - 3]).count(), 0);
        assert_eq!(qdiscs(&[0xff; 64]).count(), 0);
    }
}
