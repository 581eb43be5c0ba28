//! PostgreSQL: `SELECT 1` by the protocol 3.0 (<https://www.postgresql.org/docs/current/protocol-message-formats.html>).

use super::client::Client;
use super::fault::{ProbeFault, printable};
use super::login::Login;
use super::md5::hexadecimal;
use super::scram::Scram;
use super::wire::Wire;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::{SecureRandom, SystemRandom};
use std::net::SocketAddr;
use std::time::Instant;

const PROTOCOL: &str = "the protocol of PostgreSQL";
const USER: &str = "postgres";
const VERSION: u32 = 3 << 16;
/// Longest message that is taken, and most messages of one exchange.
const MESSAGE_BYTES_MAX: usize = 32 << 10;
const MESSAGES_MAX: usize = 200;

/// A connection that is logged in.
pub(super) struct Postgres(Wire);

impl Postgres {
    pub fn open(address: SocketAddr, login: &Login, deadline: Instant) -> Result<Postgres, ProbeFault> {
        let mut postgres = Postgres(Wire::open(address, deadline)?);
        let user = login.user_or(USER);
        let mut start = VERSION.to_be_bytes().to_vec();
        let database = login.database.as_deref().unwrap_or(user);
        for word in ["user", user, "database", database, "application_name", "tare probe", ""] {
            start.extend(word.as_bytes());
            start.push(0);
        }
        postgres.0.send(&framed(None, &start))?;
        postgres.log_in(user, login)?;
        postgres.until_ready(false)?;
        Ok(postgres)
    }

    fn log_in(&mut self, user: &str, login: &Login) -> Result<(), ProbeFault> {
        let password = || {
            let said = "it wants a password, and none was given";
            login.password.as_deref().ok_or_else(|| ProbeFault::Refused(said.into()))
        };
        let mut scram: Option<(Scram, Option<String>)> = None;
        for _ in 0..MESSAGES_MAX {
            let (kind, body) = self.message()?;
            if kind != b'R' {
                return Err(unexpected(kind));
            }
            let (method, rest) = number(&body)?;
            match (method, &mut scram) {
                (0, None | Some((_, Some(_)))) => return Ok(()),
                (3, None) => self.send(b'p', &terminated(password()?))?,
                (5, None) => {
                    let inner = hexadecimal(format!("{}{user}", password()?).as_bytes());
                    let mut salted = inner.into_bytes();
                    salted.extend(rest.get(..4).ok_or_else(|| short("salt"))?);
                    self.send(b'p', &terminated(&format!("md5{}", hexadecimal(&salted))))?;
                }
                (10, None) => {
                    if !rest.split(|byte| *byte == 0).any(|name| name == b"SCRAM-SHA-256") {
                        return Err(ProbeFault::Login(printable(rest)));
                    }
                    password()?;
                    let new = Scram::new(nonce()?);
                    let first = new.first();
                    let mut body = terminated("SCRAM-SHA-256");
                    body.extend((first.len() as u32).to_be_bytes());
                    body.extend(first.as_bytes());
                    self.send(b'p', &body)?;
                    scram = Some((new, None));
                }
                (11, Some((begun, signature @ None))) => {
                    let server_first = std::str::from_utf8(rest).map_err(|_| short("text"))?;
                    let proof = begun.proof(password()?, server_first);
                    let proof = proof.map_err(|what| ProbeFault::malformed(PROTOCOL, what))?;
                    self.send(b'p', proof.message.as_bytes())?;
                    *signature = Some(proof.server_signature);
                }
                (12, Some((_, Some(expected)))) => {
                    if rest.strip_prefix(b"v=") != Some(expected.as_bytes()) {
                        return Err(ProbeFault::Refused(
                            "it does not know the password that it asks for".into(),
                        ));
                    }
                }
                (method, _) => return Err(ProbeFault::Login(name_of(method))),
            }
        }
        Err(ProbeFault::malformed(PROTOCOL, "a login without an end"))
    }

    /// Reads until the server is ready for the next query.
    fn until_ready(&mut self, wants_row: bool) -> Result<(), ProbeFault> {
        let mut has_row = false;
        for _ in 0..MESSAGES_MAX {
            match self.message()?.0 {
                b'Z' if has_row || !wants_row => return Ok(()),
                b'Z' => return Err(ProbeFault::malformed(PROTOCOL, "no row came")),
                b'D' => has_row = true,
                // Parameters, keys, notices, the description of the row, the end of the command.
                b'S' | b'K' | b'N' | b'T' | b'C' => {}
                kind => return Err(unexpected(kind)),
            }
        }
        Err(ProbeFault::malformed(PROTOCOL, "an answer without an end"))
    }

    /// The next message; one that is an error is one.
    fn message(&mut self) -> Result<(u8, Vec<u8>), ProbeFault> {
        let head = self.0.take(5)?;
        let (length, _) = number(&head[1..])?;
        let length = (length as usize).checked_sub(4).filter(|length| *length <= MESSAGE_BYTES_MAX);
        let length = length.ok_or_else(|| unexpected(head[0]))?;
        let body = self.0.take(length)?;
        if head[0] != b'E' {
            return Ok((head[0], body));
        }
        // Fields: a letter and a text each. M is the message.
        let mut fields = body.split(|byte| *byte == 0);
        let said = fields.find_map(|field| field.strip_prefix(b"M")).unwrap_or(b"an error");
        Err(ProbeFault::said(said))
    }

    fn send(&mut self, kind: u8, body: &[u8]) -> Result<(), ProbeFault> {
        self.0.send(&framed(Some(kind), body))
    }
}

impl Client for Postgres {
    fn ask(&mut self, deadline: Instant) -> Result<(), ProbeFault> {
        self.0.until(deadline);
        self.send(b'Q', &terminated("SELECT 1"))?;
        self.until_ready(true)
    }

    fn is_usable(&mut self) -> bool {
        !self.0.is_stale()
    }
}

fn framed(kind: Option<u8>, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).saturating_add(4).to_be_bytes();
    kind.into_iter().chain(length).chain(body.iter().copied()).collect()
}

fn terminated(text: &str) -> Vec<u8> {
    text.bytes().chain([0]).collect()
}

fn number(bytes: &[u8]) -> Result<(u32, &[u8]), ProbeFault> {
    let (number, rest) = bytes.split_first_chunk::<4>().ok_or_else(|| short("number"))?;
    Ok((u32::from_be_bytes(*number), rest))
}

fn short(what: &str) -> ProbeFault {
    ProbeFault::malformed(PROTOCOL, format!("a {what} is cut short"))
}

fn unexpected(kind: u8) -> ProbeFault {
    ProbeFault::malformed(PROTOCOL, format!("a message of kind {:?}", char::from(kind)))
}

/// A text that was never used before.
fn nonce() -> Result<String, ProbeFault> {
    let mut bytes = [0; 18];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| ProbeFault::Io("the kernel gives no random numbers".into()))?;
    Ok(STANDARD.encode(bytes))
}

fn name_of(method: u32) -> String {
    match method {
        2 => "Kerberos".into(),
        7 | 8 => "GSSAPI".into(),
        9 => "SSPI".into(),
        other => format!("number {other}"),
    }
}
