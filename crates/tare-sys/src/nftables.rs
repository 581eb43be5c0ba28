//! Rules of nftables that drop what is above a rate (`limit rate over 1000/second … drop`), read from the kernel (`NETLINK_NETFILTER`).

use crate::netlink::{self, HEADER_BYTES, attribute, attributes, messages, read};
use std::collections::HashMap;
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

/// A way to ask, in one network namespace.
#[derive(Debug)]
pub struct Nftables {
    netlink: OwnedFd,
    /// Where the kernel comes to each chain, by table and chain.
    hooks: HashMap<(String, String), Hook>,
}

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
    /// Whether every packet of the chain meets it: it has no other condition.
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
        rules.filter_map(|(_, message)| {
            let mut limit = limit(message)?;
            limit.hook = self.hooks.get(&limit.name).copied();
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

fn hooks(dump: &[u8]) -> HashMap<(String, String), Hook> {
    let hook = |message: &[u8]| {
        let chain = message.get(MESSAGE_BYTES..)?;
        let [table, name, hook] = CHAIN.map(|kind| attribute(chain, kind));
        let hook = match short(hook?, HOOK_NUMBER)? {
            0 | 1 => Hook::Incoming,
            2 => Hook::Forwarded,
            _ => Hook::Outgoing,
        };
        Some(((text(table?), text(name?)), hook))
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
        let chain = |name: &[u8], hook: u32| {
            let hook = an(4 | 0x8000, &an(1, &hook.to_be_bytes()));
            message(NEW_CHAIN, &[an(1, b"t\0"), an(3, name), hook].concat())
        };
        let found = hooks(&[chain(b"in\0", 0), chain(b"out\0", 4), chain(b"through\0", 2)].concat());
        let of = |name: &str| found.get(&("t".to_owned(), name.to_owned())).copied();
        assert_eq!(of("in"), Some(Hook::Incoming));
        assert_eq!((of("out"), of("through"), of("x")), (Some(Hook::Outgoing), Some(Hook::Forwarded), None));
        assert!(hooks(&[0xff; 40]).is_empty());
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
