//! MySQL and MariaDB: `SELECT 1` by their common protocol
//! (<https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html>, <https://mariadb.com/kb/en/clientserver-protocol/>).

use super::client::Client;
use super::fault::{ProbeFault, printable};
use super::login::Login;
use super::wire::Wire;
use ring::digest::{Algorithm, SHA1_FOR_LEGACY_USE_ONLY as SHA1, SHA256, digest};
use std::net::SocketAddr;
use std::time::Instant;

const PROTOCOL: &str = "the protocol of MySQL";
const USER: &str = "root";
/// Longest packet that is taken, and most packets of one exchange.
const PACKET_BYTES_MAX: usize = 32 << 10;
const PACKETS_MAX: usize = 64;
const NATIVE: &str = "mysql_native_password";
const CACHING: &str = "caching_sha2_password";
/// Capabilities: long password, with a database, protocol 4.1, transactions, secure login, login by plugins.
const CAPABILITIES: u32 = 0x1 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
const WITH_DATABASE: u32 = 0x8;
const UTF8: u8 = 33;
const QUERY: u8 = 3;

/// A connection that is logged in.
pub(super) struct Mysql {
    wire: Wire,
    /// Number of the next packet of an exchange.
    sequence: u8,
}

impl Mysql {
    pub fn open(address: SocketAddr, login: &Login, deadline: Instant) -> Result<Mysql, ProbeFault> {
        let mut mysql = Mysql { wire: Wire::open(address, deadline)?, sequence: 0 };
        let greeting = Greeting::of(&mysql.packet()?)?;
        let password = login.password.as_deref().unwrap_or_default();
        let proof = proof(&greeting.plugin, password, &greeting.nonce).unwrap_or_default();
        let mut response = match &login.database {
            Some(_) => CAPABILITIES | WITH_DATABASE,
            None => CAPABILITIES,
        }
        .to_le_bytes()
        .to_vec();
        response.extend((PACKET_BYTES_MAX as u32).to_le_bytes());
        response.push(UTF8);
        response.extend([0; 23]);
        response.extend(terminated(login.user_or(USER)));
        response.push(proof.len() as u8);
        response.extend(proof);
        if let Some(database) = &login.database {
            response.extend(terminated(database));
        }
        response.extend(terminated(&greeting.plugin));
        mysql.send(&response)?;
        mysql.log_in(greeting, password)?;
        Ok(mysql)
    }

    fn log_in(&mut self, mut greeting: Greeting, password: &str) -> Result<(), ProbeFault> {
        for _ in 0..PACKETS_MAX {
            let packet = self.packet()?;
            match packet.split_first() {
                Some((0x00, _)) => return Ok(()),
                // More data: the password is known (3), or is wanted in the clear (4), which is for TLS alone.
                Some((0x01, [3])) => {}
                Some((0x01, [4])) => {
                    return Err(ProbeFault::Login(format!(
                        "{CACHING} without a cached password (log in once with the mysql client; until the server restarts, the short way \
                         then works)"
                    )));
                }
                Some((0xfe, rest)) => {
                    let (plugin, nonce) = until_zero(rest);
                    greeting.plugin = printable(plugin);
                    greeting.nonce = nonce.strip_suffix(&[0]).unwrap_or(nonce).to_vec();
                    let proof = proof(&greeting.plugin, password, &greeting.nonce)
                        .ok_or_else(|| ProbeFault::Login(greeting.plugin.clone()))?;
                    self.send(&proof)?;
                }
                _ => return Err(malformed("a packet that is none of the login's")),
            }
        }
        Err(malformed("a login without an end"))
    }

    /// The next packet; one that is an error is one.
    fn packet(&mut self) -> Result<Vec<u8>, ProbeFault> {
        let head = self.wire.take(4)?;
        let length = head[..3].iter().rev().fold(0usize, |length, byte| length << 8 | usize::from(*byte));
        if length > PACKET_BYTES_MAX || length == 0 {
            return Err(malformed("a packet of that size"));
        }
        self.sequence = head[3].wrapping_add(1);
        let packet = self.wire.take(length)?;
        match packet.split_first() {
            // Number (2 bytes), then the state behind a #.
            Some((0xff, rest)) => {
                let text = rest.get(2..).unwrap_or_default();
                let text = text.strip_prefix(b"#").and_then(|text| text.get(5..)).unwrap_or(text);
                Err(ProbeFault::said(text))
            }
            _ => Ok(packet),
        }
    }

    fn send(&mut self, body: &[u8]) -> Result<(), ProbeFault> {
        let mut packet = (body.len() as u32).to_le_bytes();
        packet[3] = self.sequence;
        self.wire.send(&[&packet, body].concat())
    }
}

impl Client for Mysql {
    fn ask(&mut self, deadline: Instant) -> Result<(), ProbeFault> {
        self.wire.until(deadline);
        self.sequence = 0;
        self.send(&[&[QUERY], b"SELECT 1".as_slice()].concat())?;
        if self.packet()? != [1] {
            return Err(malformed("a result that has not one column"));
        }
        // The column, an end, the row, an end.
        let (mut ends, mut rows) = (0, 0);
        for _ in 0..PACKETS_MAX {
            match self.packet()? {
                packet if packet[0] == 0xfe && packet.len() < 9 => ends += 1,
                packet if ends == 1 && packet == *b"\x011" => rows += 1,
                _ if ends == 0 => {}
                _ => return Err(malformed("a row that is not 1")),
            }
            if ends == 2 {
                return if rows == 1 { Ok(()) } else { Err(malformed("no row")) };
            }
        }
        Err(malformed("a result without an end"))
    }

    fn is_usable(&mut self) -> bool {
        !self.wire.is_stale()
    }
}

/// What the server begins with.
struct Greeting {
    plugin: String,
    nonce: Vec<u8>,
}

impl Greeting {
    /// Version 10: a text, a number (4), nonce (8), 0, capabilities (2), character set, status (2), capabilities (2), length of the nonce, 10
    /// bytes, the rest of the nonce (at least 13, the last 0), the plugin's name.
    fn of(packet: &[u8]) -> Result<Greeting, ProbeFault> {
        let (10, rest) = packet.split_first().ok_or_else(|| malformed("nothing"))? else {
            return Err(malformed(format!("a greeting of version {}", packet[0])));
        };
        let (_, rest) = until_zero(rest);
        let short = || malformed("a greeting that is cut short");
        let mut nonce = rest.get(4..12).ok_or_else(short)?.to_vec();
        let length = usize::from(*rest.get(20).ok_or_else(short)?);
        let second = length.saturating_sub(8).max(13);
        let after = rest.get(31..).ok_or_else(short)?;
        let part = after.get(..second).ok_or_else(short)?;
        nonce.extend(part.strip_suffix(&[0]).unwrap_or(part));
        let (plugin, _) = until_zero(&after[second..]);
        let plugin = match plugin {
            [] => NATIVE.to_owned(),
            name => printable(name),
        };
        Ok(Greeting { plugin, nonce })
    }
}

/// What proves that the password is known; `None`: a method that is not supported. An empty password is proven by nothing.
fn proof(plugin: &str, password: &str, nonce: &[u8]) -> Option<Vec<u8>> {
    let of = |algorithm: &'static Algorithm, parts: &[&[u8]]| digest(algorithm, &parts.concat());
    let masked = |one: &[u8], other: &[u8]| one.iter().zip(other).map(|(one, other)| one ^ other).collect();
    let password = password.as_bytes();
    match plugin {
        NATIVE | CACHING if password.is_empty() => Some(Vec::new()),
        // SHA1(password) xor SHA1(nonce, SHA1(SHA1(password))).
        NATIVE => {
            let once = of(&SHA1, &[password]);
            let twice = of(&SHA1, &[once.as_ref()]);
            Some(masked(once.as_ref(), of(&SHA1, &[nonce, twice.as_ref()]).as_ref()))
        }
        // SHA256(password) xor SHA256(SHA256(SHA256(password)), nonce).
        CACHING => {
            let once = of(&SHA256, &[password]);
            let twice = of(&SHA256, &[once.as_ref()]);
            Some(masked(once.as_ref(), of(&SHA256, &[twice.as_ref(), nonce]).as_ref()))
        }
        _ => None,
    }
}

fn until_zero(bytes: &[u8]) -> (&[u8], &[u8]) {
    match bytes.iter().position(|byte| *byte == 0) {
        Some(end) => (&bytes[..end], &bytes[end + 1..]),
        None => (bytes, &[]),
    }
}

fn terminated(text: &str) -> Vec<u8> {
    text.bytes().chain([0]).collect()
}

fn malformed(what: impl Into<String>) -> ProbeFault {
    ProbeFault::malformed(PROTOCOL, what)
}
