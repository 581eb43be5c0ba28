//! Differences as they are found.

use tare_model::why::{Difference, Kind};
use tare_model::{Missing, Reading};

/// Entries of one kind that are listed, at most; the rest is counted.
const OF_A_KIND_MAX: usize = 24;

/// What has been found so far.
#[derive(Default)]
pub(super) struct List {
    differences: Vec<Difference>,
    uncompared: Vec<Missing>,
}

impl List {
    /// Two texts; `None` where a side has none.
    pub fn compare(&mut self, kind: Kind, name: &str, a: Option<String>, b: Option<String>, matters: &str) {
        if a == b {
            return;
        }
        self.differences.push(Difference { kind, name: name.to_owned(), a, b, matters: matters.to_owned() });
    }

    /// Two readings. What does not apply on a side is a difference to what does; what is missing on one is not
    /// compared, and on both not spoken of.
    pub fn readings<T: PartialEq>(
        &mut self,
        kind: Kind,
        name: &str,
        (a, b): (&Reading<T>, &Reading<T>),
        reported: impl Fn(&T) -> String,
        matters: &str,
    ) {
        let side = |reading: &Reading<T>| reading.value().map(&reported);
        match (a, b) {
            (Reading::Missing(_), Reading::Missing(_)) => {}
            (Reading::Missing(why), _) => self.missing(name, "A", why),
            (_, Reading::Missing(why)) => self.missing(name, "B", why),
            (a, b) if a.value() == b.value() => {}
            (a, b) => self.compare(kind, name, side(a), side(b), matters),
        }
    }

    pub fn words(
        &mut self,
        kind: Kind,
        name: &str,
        sides: (&Reading<String>, &Reading<String>),
        matters: &str,
    ) {
        self.readings(kind, name, sides, String::clone, matters);
    }

    pub fn switches(
        &mut self,
        kind: Kind,
        name: &str,
        sides: (&Reading<bool>, &Reading<bool>),
        matters: &str,
    ) {
        self.readings(kind, name, sides, |on| if *on { "on" } else { "off" }.to_owned(), matters);
    }

    pub fn missing(&mut self, name: &str, side: &str, missing: &Missing) {
        let why = format!("{name}: not known of {side} ({})", missing.why);
        self.not_compared(Missing { why, remedy: missing.remedy.clone() });
    }

    pub fn not_compared(&mut self, missing: Missing) {
        self.uncompared.push(missing);
    }

    pub fn finished(mut self) -> (Vec<Difference>, Vec<Missing>) {
        self.differences.sort_by_key(|difference| difference.kind);
        let mut kept: Vec<Difference> = Vec::new();
        let mut left_out = 0;
        for difference in self.differences {
            let same = kept.iter().filter(|known| known.kind == difference.kind).count();
            if same < OF_A_KIND_MAX {
                kept.push(difference);
            } else {
                left_out += 1;
            }
        }
        if left_out > 0 {
            self.uncompared
                .push(Missing::new(format!("{left_out} more differences of kinds that have many")));
        }
        (kept, self.uncompared)
    }
}
