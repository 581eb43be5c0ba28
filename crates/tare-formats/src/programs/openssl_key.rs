//! By what a line of `openssl speed` and the row of its table are known to be of the same measurement.

/// What was measured: the raw lines do not say which curve of several with as many bits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub benchmark: String,
    pub name: String,
}

impl Key {
    /// As a table has it, but for the curve: `rsa 2048 bits`, `256 bits ecdsa`.
    pub fn said(&self) -> String {
        match self.benchmark.split_once(' ') {
            Some((bits, alg @ ("rsa" | "dsa"))) => format!("{alg} {bits} bits"),
            Some((bits, alg)) if bits.parse::<u32>().is_ok() => format!("{bits} bits {alg}"),
            _ => self.benchmark.clone(),
        }
    }

    pub fn of_blocks(name: &str, size: &str) -> Key {
        Key { benchmark: name.trim().to_owned(), name: format!("{size} bytes") }
    }

    /// `2048 bits private rsa's`, `256 bits sign ecdsa ops`, `ML-KEM-768 keygen ops`.
    pub fn of_words(what: &str, label: &str) -> Key {
        let words: Vec<&str> = what
            .split_whitespace()
            .map(|word| word.trim_end_matches("'s"))
            .filter(|word| !matches!(*word, "bits" | "ops"))
            .collect();
        let said = |names: &[&str]| words.iter().any(|word| names.contains(word));
        let name = match () {
            () if said(&["encrypt"]) => "encrypt",
            () if said(&["decrypt"]) => "decrypt",
            () if said(&["keygen"]) => "keygen",
            () if said(&["encaps"]) => "encaps",
            () if said(&["decaps"]) => "decaps",
            () if said(&["sign", "signs", "private"]) => "sign",
            () if said(&["verify", "public"]) => "verify",
            () => "op",
        };
        let is_operation = |word: &str| {
            const OPERATIONS: &[&str] = &[
                "private", "public", "sign", "signs", "verify", "encrypt", "decrypt", "keygen", "encaps",
                "decaps",
            ];
            OPERATIONS.contains(&word)
        };
        let mut rest: Vec<String> =
            words.iter().filter(|word| !is_operation(word)).map(|word| (*word).to_owned()).collect();
        // Only of those without a number of bits it must be said for what the key is made.
        match ["KEM", "signature"].into_iter().find(|purpose| label.contains(purpose)) {
            Some(purpose) => rest.push(purpose.to_owned()),
            None => rest.iter_mut().for_each(|word| word.make_ascii_lowercase()),
        }
        Key { benchmark: rest.join(" "), name: name.to_owned() }
    }
}
