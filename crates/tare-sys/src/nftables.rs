//! Rules of nftables that drop what is above a rate (`limit rate over 1000/second … drop`), read from the kernel (`NETLINK_NETFILTER`).

use crate::netlink::{self, HEADER_BYTES, attribute, attributes, messages, read};
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::fd::OwnedFd;

const SUBSYSTEM: u16 = 10 << 8;
const GET_RULES: u16 = SUBSYSTEM | 7;
const NEW_RULE: u16 = SUBSYSTEM | 6;
const GET_CHAINS: u16 = SUBSYSTEM | 4;
const NEW_CHAIN: u16 = SUBSYSTEM | 3;
/// Bytes of `struct nfgenmsg`.
const MESSAGE_BYTES: usize = 4;
/// `NFTA_RULE_TABLE`, `_CHAIN`, `_EXPRESSIONS`.
const RULE: [u16; 3] = [1, 2, 4];
/// `NFTA_CHAIN_TABLE`, `_NAME`, `_HOOK`, and `NFTA_HOOK_HOOKNUM`.
const CHAIN: [u16; 3] = [1, 3, 4];
const HOOK_NUMBER: u16 = 1;
/// `NFTA_EXPR_NAME` and `_DATA`.
const EXPRESSION: [u16; 2] = [1, 2];
/// `NFTA_LIMIT_RATE`, `_UNIT`, `_TYPE`, `_FLAGS`; the flag that turns the match round.
const LIMIT: [u16; 4] = [1, 2, 4, 5];
const OVER: u32 = 1;
const OF_BYTES: u32 = 1;
/// `NFTA_COUNTER_PACKETS`.
const COUNTER_PACKETS: u16 = 2;
/// `NFTA_IMMEDIATE_DATA`, `NFTA_DATA_VERDICT`, `NFTA_VERDICT_CODE`, and the code that drops.
const VERDICT: [u16; 3] = [2, 2, 1];
const DROP: u32 = 0;
/// NFTA_CHAIN_TYPE, and NFPROTO_INET, NFPROTO_ARP, NFPROTO_NETDEV.
const CHAIN_TYPE: u16 = 7;
const INET: u8 = 1;
const ARP: u8 = 3;
const NETDEV: u8 = 5;

/// A way to ask, in one network namespace.
#[derive(Debug)]
pub struct Nftables {
    netlink: OwnedFd,
    /// Where the kernel comes to each chain, by table and chain.
    hooks: Hooks,
}

/// By family, table and chain.
type Hooks = HashMap<(u8, String, String), Hook>;

/// Where packets meet a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    /// They come in (`prerouting`, `input`, `ingress` alike).
    Incoming,
    /// They pass through (`forward`).
    Forwarded,
    /// They go out (`output`, `postrouting`).
    Outgoing,
}

/// A rule that drops what is above a rate.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// Its table and chain.
    pub name: (String, String),
    /// `None`: the chain is called by others.
    pub hook: Option<Hook>,
    /// Packets or bytes per second.
    pub per_s: f64,
    /// Whether bytes are counted.
    pub of_bytes: bool,
    /// Packets that it dropped, where it counts them.
    pub dropped: Option<u64>,
    /// Whether every packet that comes to the hook meets it: it has no other condition, is the first rule of its chain, and the chain filters
    /// (one that translates addresses sees the first packet of a connection alone).
    pub of_all: bool,
}

impl Nftables {
    /// In the namespace of the thread that calls; reads the chains there.
    ///
    /// # Errors
    /// As the kernel says: it has no nftables, or only root may.
    pub fn open(buffer: &mut [u8]) -> io::Result<Nftables> {
        let netlink = netlink::open(libc::NETLINK_NETFILTER)?;
        let filled = netlink::ask(&netlink, &request(GET_CHAINS), buffer)?;
        let hooks = hooks(buffer.get(..filled).unwrap_or_default());
        Ok(Nftables { netlink, hooks })
    }

    /// All rules, into `buffer`; how much of that they fill. After an error this way to ask should not be used again.
    ///
    /// # Errors
    /// `FileTooLarge` where the buffer has no room for them; else as the kernel says.
    pub fn dump(&self, buffer: &mut [u8]) -> io::Result<usize> {
        netlink::ask(&self.netlink, &request(GET_RULES), buffer)
    }

    /// The limits among the rules of a dump.
    pub fn limits<'a>(&'a self, dump: &'a [u8]) -> impl Iterator<Item = Limit> + 'a {
        let rules = messages(dump).filter(|(kind, _)| *kind == NEW_RULE);
        // A rule before it may have taken packets away; rules come in their order.
        let mut begun = HashSet::new();
        rules.filter_map(move |(_, message)| {
            let chain = chain_of(message)?;
            let hook = self.hooks.get(&chain).copied();
            let is_first = begun.insert(chain);
            let mut limit = limit(message)?;
            limit.hook = hook;
            limit.of_all &= is_first && hook.is_some();
            Some(limit)
        })
    }
}

fn request(kind: u16) -> [u8; HEADER_BYTES + MESSAGE_BYTES] {
    let mut request = [0u8; HEADER_BYTES + MESSAGE_BYTES];
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16;
    request[0..4].copy_from_slice(&((HEADER_BYTES + MESSAGE_BYTES) as u32).to_ne_bytes());
    request[4..6].copy_from_slice(&kind.to_ne_bytes());
    request[6..8].copy_from_slice(&flags.to_ne_bytes());
    request
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.strip_suffix(&[0]).unwrap_or(bytes)).into_owned()
}

fn short(bytes: &[u8], kind: u16) -> Option<u32> {
    read(attribute(bytes, kind)?, 0).map(u32::from_be_bytes)
}

fn long(bytes: &[u8], kind: u16) -> Option<u64> {
    read(attribute(bytes, kind)?, 0).map(u64::from_be_bytes)
}

/// The chain of a rule.
fn chain_of(message: &[u8]) -> Option<(u8, String, String)> {
    let [table, chain, _] = RULE.map(|kind| attribute(message.get(MESSAGE_BYTES..)?, kind));
    Some((*message.first()?, text(table?), text(chain?)))
}

/// Of chains that filter.
fn hooks(dump: &[u8]) -> Hooks {
    let hook = |message: &[u8]| {
        let family = *message.first()?;
        let chain = message.get(MESSAGE_BYTES..)?;
        let [table, name, hook] = CHAIN.map(|kind| attribute(chain, kind));
        // Numbers mean what the family says: `ingress` of `inet` is 5, `egress` of `netdev` 1, and `arp` has in and out alone.
        let hook = match (family, short(hook?, HOOK_NUMBER)?) {
            (NETDEV | ARP, 0) | (INET, 5) => Hook::Incoming,
            (NETDEV | ARP, _) => Hook::Outgoing,
            (_, 0 | 1) => Hook::Incoming,
            (_, 2) => Hook::Forwarded,
            _ => Hook::Outgoing,
        };
        let filters = attribute(chain, CHAIN_TYPE).is_some_and(|kind| text(kind) == "filter");
        filters.then_some(((family, text(table?), text(name?)), hook))
    };
    messages(dump).filter(|(kind, _)| *kind == NEW_CHAIN).filter_map(|(_, message)| hook(message)).collect()
}

fn limit(message: &[u8]) -> Option<Limit> {
    let [table, chain, expressions] = RULE.map(|kind| attribute(message.get(MESSAGE_BYTES..)?, kind));
    let (mut rate, mut dropped, mut drops, mut of_all) = (None, None, false, true);
    for expression in attributes(expressions?) {
        let [name, data] = EXPRESSION.map(|kind| attribute(expression, kind));
        let data = data.unwrap_or_default();
        match text(name?).as_str() {
            "limit" => {
                let [per, unit_s] = [LIMIT[0], LIMIT[1]].map(|kind| long(data, kind));
                if short(data, LIMIT[3])? & OVER == 0 {
                    return None;
                }
                let per_s = per? as f64 / unit_s.filter(|seconds| *seconds > 0)? as f64;
                rate = Some((per_s, short(data, LIMIT[2]).unwrap_or(0) == OF_BYTES));
            }
            // One before the limit counts what it lets through, too.
            "counter" if rate.is_some() => dropped = long(data, COUNTER_PACKETS),
            "counter" => {}
            "immediate" => {
                let verdict = attribute(data, VERDICT[0]).and_then(|value| attribute(value, VERDICT[1]));
                drops |= verdict.and_then(|verdict| short(verdict, VERDICT[2])) == Some(DROP);
            }
            _ => of_all = false,
        }
    }
    let (per_s, of_bytes) = rate.filter(|_| drops)?;
    Some(Limit { name: (text(table?), text(chain?)), hook: None, per_s, of_bytes, dropped, of_all })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn an(kind: u16, content: &[u8]) -> Vec<u8> {
        let mut bytes = [((4 + content.len()) as u16).to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message(kind: u16, content: &[u8]) -> Vec<u8> {
        let length = (HEADER_BYTES + MESSAGE_BYTES + content.len()) as u32;
        let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes()].concat();
        bytes.resize(HEADER_BYTES + MESSAGE_BYTES, 0);
        bytes.extend(content);
        bytes
    }

    fn expression(name: &str, data: &[u8]) -> Vec<u8> {
        an(1, &[an(1, &[name.as_bytes(), &[0]].concat()), an(2 | 0x8000, data)].concat())
    }

    fn limit_of(flags: u32) -> Vec<u8> {
        let rate = [an(1, &120u64.to_be_bytes()), an(2, &60u64.to_be_bytes())].concat();
        expression("limit", &[rate, an(4, &0u32.to_be_bytes()), an(5, &flags.to_be_bytes())].concat())
    }

    fn counter(packets: u64) -> Vec<u8> {
        expression("counter", &[an(1, &1u64.to_be_bytes()), an(2, &packets.to_be_bytes())].concat())
    }

    fn verdict(code: u32) -> Vec<u8> {
        let code = an(2, &an(2, &an(1, &code.to_be_bytes())));
        expression("immediate", &code)
    }

    fn rule(expressions: &[Vec<u8>]) -> Vec<u8> {
        message(NEW_RULE, &[an(1, b"t\0"), an(2, b"in\0"), an(4, &expressions.concat())].concat())
    }

    #[test]
    fn a_rule_that_drops_what_is_over_a_rate_is_a_limit() {
        let found = |expressions: &[Vec<u8>]| {
            let bytes = rule(expressions);
            messages(&bytes).find_map(|(_, message)| limit(message))
        };
        let all = found(&[limit_of(OVER), verdict(DROP)]).expect("a limit");
        assert!(all.per_s == 2.0 && all.of_all && !all.of_bytes && all.dropped.is_none(), "{all:?}");
        let counted =
            found(&[expression("cmp", &[]), limit_of(OVER), counter(7), verdict(DROP)]).expect("one");
        assert!(!counted.of_all && counted.dropped == Some(7), "{counted:?}");
        // A counter before it, one that lets the rate through, one that accepts.
        assert_eq!(found(&[counter(9), limit_of(OVER), verdict(DROP)]).and_then(|one| one.dropped), None);
        assert_eq!(found(&[limit_of(0), verdict(DROP)]), None);
        assert_eq!(found(&[limit_of(OVER), verdict(1)]), None);
        assert_eq!(found(&[verdict(DROP)]), None);
    }

    #[test]
    fn a_chain_is_where_its_hook_is() {
        let of = |family: u8, kind: &[u8], hook: u32| {
            let hook = an(4 | 0x8000, &an(1, &hook.to_be_bytes()));
            let mut bytes = message(NEW_CHAIN, &[an(1, b"t\0"), an(3, b"in\0"), hook, an(7, kind)].concat());
            bytes[HEADER_BYTES] = family;
            hooks(&bytes).get(&(family, "t".to_owned(), "in".to_owned())).copied()
        };
        let ip = |hook: u32| of(2, b"filter\0", hook);
        assert_eq!(
            (ip(0), ip(1), ip(2)),
            (Some(Hook::Incoming), Some(Hook::Incoming), Some(Hook::Forwarded))
        );
        assert_eq!((ip(3), ip(4)), (Some(Hook::Outgoing), Some(Hook::Outgoing)));
        // By family: ingress and egress of a card, ingress of inet, output of arp.
        let others = [(5, 0), (5, 1), (1, 5), (3, 1)].map(|(family, hook)| of(family, b"filter\0", hook));
        let expected = [Hook::Incoming, Hook::Outgoing, Hook::Incoming, Hook::Outgoing].map(Some);
        assert_eq!(others, expected);
        // It sees the first packet of a connection alone.
        assert_eq!(of(2, b"nat\0", 0), None);
        assert!(hooks(&[0xff; 40]).is_empty());
    }

    #[test]
    fn a_rule_behind_another_or_in_a_chain_that_is_called_is_not_met_by_all() {
        let netlink = netlink::open(libc::NETLINK_ROUTE).unwrap();
        let chain = (0, "t".to_owned(), "in".to_owned());
        let hooked = Nftables { netlink, hooks: Hooks::from([(chain, Hook::Incoming)]) };
        let limited = rule(&[limit_of(OVER), verdict(DROP)]);
        let of_all = |asked: &Nftables, dump: &[u8]| -> Vec<bool> {
            asked.limits(dump).map(|limit| limit.of_all).collect()
        };
        assert_eq!(of_all(&hooked, &limited), [true]);
        assert_eq!(of_all(&hooked, &[rule(&[verdict(1)]), limited.clone()].concat()), [false]);
        let called = Nftables { netlink: netlink::open(libc::NETLINK_ROUTE).unwrap(), hooks: Hooks::new() };
        assert_eq!(of_all(&called, &limited), [false]);
    }

    #[test]
    fn the_kernel_is_asked_where_it_may_be() {
        let mut buffer = vec![0; 256 << 10];
        // A kernel without nftables, or one that lets only root ask, says so.
        let Ok(asked) = Nftables::open(&mut buffer) else { return };
        if let Ok(filled) = asked.dump(&mut buffer) {
            assert!(asked.limits(&buffer[..filled]).all(|limit| limit.per_s > 0.0));
        }
    }
}
