//! SCRAM-SHA-256 (RFC 5802, RFC 7677) as a client, without channel binding.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac, pbkdf2};
use std::num::NonZeroU32;

/// Most rounds of hashing that a server may ask for: PostgreSQL asks for 4,096.
const ROUNDS_MAX: u32 = 1_000_000;

/// The first message, and what the others are made of.
pub(super) struct Scram {
    user: &'static str,
    nonce: String,
}

/// The last message of the client, and what the server must answer.
#[derive(Debug)]
pub(super) struct Proof {
    pub message: String,
    pub server_signature: String,
}

impl Scram {
    /// `nonce`: printable, without commas, never used before. PostgreSQL knows the user already: the name here is empty.
    pub fn new(nonce: String) -> Scram {
        Scram { user: "", nonce }
    }

    /// What the client begins with.
    pub fn first(&self) -> String {
        format!("n,,{}", self.bare())
    }

    fn bare(&self) -> String {
        format!("n={},r={}", self.user, self.nonce)
    }

    /// What the client answers to the server's first message; `Err` has what is wrong with that.
    pub fn proof(&self, password: &str, server_first: &str) -> Result<Proof, &'static str> {
        let mut parts = server_first.split(',');
        let mut part = |name: &str| parts.next().and_then(|part| part.strip_prefix(name));
        let nonce = part("r=").ok_or("no nonce")?;
        let salt = part("s=").and_then(|salt| STANDARD.decode(salt).ok()).ok_or("no salt")?;
        let rounds = part("i=").and_then(|rounds| rounds.parse::<u32>().ok()).ok_or("no count of rounds")?;
        if !nonce.starts_with(&self.nonce) || nonce.len() == self.nonce.len() {
            return Err("a nonce that is not ours");
        }
        let rounds = NonZeroU32::new(rounds).filter(|rounds| rounds.get() <= ROUNDS_MAX);
        let rounds = rounds.ok_or("a count of rounds out of range")?;
        let mut salted = [0; digest::SHA256_OUTPUT_LEN];
        pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, rounds, &salt, password.as_bytes(), &mut salted);
        let client_key = keyed(&salted, b"Client Key");
        let stored_key = digest::digest(&digest::SHA256, client_key.as_ref());
        let without_proof = format!("c={},r={nonce}", STANDARD.encode(b"n,,"));
        let exchanged = format!("{},{server_first},{without_proof}", self.bare());
        let signature = keyed(stored_key.as_ref(), exchanged.as_bytes());
        let proof: Vec<u8> =
            client_key.as_ref().iter().zip(signature.as_ref()).map(|(key, mask)| key ^ mask).collect();
        let server_key = keyed(&salted, b"Server Key");
        let server_signature = STANDARD.encode(keyed(server_key.as_ref(), exchanged.as_bytes()).as_ref());
        Ok(Proof { message: format!("{without_proof},p={}", STANDARD.encode(&proof)), server_signature })
    }
}

fn keyed(key: &[u8], message: &[u8]) -> hmac::Tag {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3.
    #[test]
    fn it_proves_what_the_rfc_proves() {
        let scram = Scram { user: "user", nonce: "rOprNGfwEbeRWgbNEkqO".into() };
        assert_eq!(scram.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let server_first =
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        let proof = scram.proof("pencil", server_first).unwrap();
        assert!(proof.message.ends_with(",p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="), "{proof:?}");
        assert_eq!(proof.server_signature, "6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn what_a_server_sends_is_checked() {
        let scram = Scram::new("rOprNGfwEbeRWgbNEkqO".into());
        for wrong in [
            "",
            "r=else,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096",
            "r=rOprNGfwEbeRWgbNEkqOx,s=!,i=4096",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=0",
            "r=rOprNGfwEbeRWgbNEkqOx,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4000000000",
        ] {
            assert!(scram.proof("pencil", wrong).is_err(), "{wrong}");
        }
    }
}
