//! What somebody may have meant.

use strsim::osa_distance;

/// Letters of a word that are looked at.
const LETTERS_MAX: usize = 64;

/// The nearest of the words that are known, if it is near: at most a third of its letters away.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let word: String = word.chars().take(LETTERS_MAX).collect();
    let (distance, best) = known
        .iter()
        .map(|known| (osa_distance(&word, known), *known))
        .min_by_key(|(distance, _)| *distance)?;
    (3 * distance <= best.chars().count()).then_some(best)
}

/// `did you mean 'x'?`, or all that are known.
pub(crate) fn hint(word: &str, known: &[&str]) -> String {
    match (nearest(word, known), known) {
        (Some(best), _) => format!("did you mean '{best}'?"),
        (None, [only]) => format!("there is only '{only}'"),
        (None, _) => format!("there are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_recognised_and_other_words_are_not() {
        let known = ["threads", "connections", "sut_cpus", "load_cpus"];
        for (slip, meant) in [
            ("thread", "threads"),
            ("conections", "connections"),
            ("sut-cpus", "sut_cpus"),
            ("laod_cpus", "load_cpus"),
        ] {
            assert_eq!(nearest(slip, &known), Some(meant));
        }
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(nearest("", &known), None);
        assert_eq!(nearest("cnm", &["rate", "cpu"]), None, "two of three letters are another word");
        assert_eq!(nearest("b", &["a"]), None);
        assert_eq!(hint("b", &["a"]), "there is only 'a'");
        assert_eq!(hint("colour", &["a", "b"]), "there are a, b");
        assert_eq!(nearest("htreads", &known), Some("threads"), "two letters changed places");
    }
}
