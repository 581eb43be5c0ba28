//! What somebody may have meant.

/// The nearest of the words that are known, if it is near: at most a third of its letters away.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let (distance, best) =
        known.iter().map(|known| (distance(word, known), *known)).min_by_key(|(distance, _)| *distance)?;
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

/// Letters to put in, take out, change or swap with their neighbour (optimal string alignment).
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let one: Vec<char> = one.chars().take(64).collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=other.len()).collect()];
    for (i, letter) in one.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, wanted) in other.iter().enumerate() {
            let changed = rows[i][j] + usize::from(letter != wanted);
            let mut best = changed.min(rows[i][j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && one[i - 1] == *wanted && *letter == other[j - 1] {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows.last().and_then(|row| row.last()).copied().unwrap_or(0)
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
        assert_eq!(distance("ab", "ba"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}
