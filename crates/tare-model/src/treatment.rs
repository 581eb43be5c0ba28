//! Settings as treatments: what one arm of a comparison was given that the other was not, whether it is in use, and what it did.

use crate::figure::Figure;
use crate::{Missing, Reading};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a program of a comparison was run with.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct Treatment {
    /// Which program: `A`, `B`.
    pub program: String,
    /// Its settings, in the order in which they were given.
    pub settings: Vec<TreatedSetting>,
    /// What all of them together did, in comparison with A; missing while that is not known, where they could not be applied, and of A.
    pub result: Reading<TreatmentResult>,
}

/// Whom a setting is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreatmentScope {
    /// The whole machine has it: it is applied before a start of the program and put back behind its end.
    Machine,
    /// The program alone has it: its environment, its CPUs.
    Process,
}

/// A setting of a program.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TreatedSetting {
    /// Its name: that of the option of `tare tune`, `placement`, `thp-process`, or a variable of the environment.
    pub name: String,
    /// What it was to be.
    pub value: String,
    /// Whom it is for.
    pub scope: TreatmentScope,
    /// What was changed for it, in words; or why it could not be applied.
    pub applied: Reading<String>,
    /// Whether the program has it in use; or why that is not known.
    pub verified: Reading<InUse>,
    /// What to know of it: what a program must be started with so that it uses it, what the kernel made of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Whether a setting is in use.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct InUse {
    /// Whether it is.
    pub in_use: bool,
    /// How that is known.
    pub evidence: String,
}

/// What can be said of a treatment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TreatmentVerdict {
    /// Better, by however little.
    Helped,
    /// Worse, by however little.
    Hurt,
    /// None that was shown: its interval holds 0.
    NoDifference,
    /// Its interval holds 0 and much more than that.
    NotKnown,
}

/// Who cannot rule out a difference of this share knows nothing to speak of.
const KNOWN_MAX: f64 = 0.5;

/// What a treatment did to the figure that it is judged by.
#[derive(Debug, Clone, PartialEq, JsonSchema, Serialize, Deserialize)]
pub struct TreatmentResult {
    /// What it did.
    pub verdict: TreatmentVerdict,
    /// `throughput` of servers, `time` of commands.
    pub figure: Figure,
    /// By how much it is better, as a share: more of a rate, less of a time; negative where it is worse.
    pub better: f64,
    /// Its interval, as that of the effect on the figure.
    pub ci95: [f64; 2],
    /// No difference above this share is possible by the interval: its end that is farther from 0.
    pub at_most: f64,
    /// The verdict in words: `helped 3.1 % (1.9 to 4.4)`, `no difference above 0.8 %`.
    pub words: String,
}

impl TreatmentResult {
    /// By the relative change of a figure and its interval; `None` where that is not finite.
    pub fn of(figure: Figure, change: f64, interval: [f64; 2]) -> Option<TreatmentResult> {
        let (better, [low, high]) = match figure.higher_is_better() {
            true => (change, interval),
            false => (-change, [-interval[1], -interval[0]]),
        };
        let at_most = low.abs().max(high.abs());
        if !(better.is_finite() && at_most.is_finite()) {
            return None;
        }
        let verdict = match () {
            () if low > 0.0 => TreatmentVerdict::Helped,
            () if high < 0.0 => TreatmentVerdict::Hurt,
            () if at_most > KNOWN_MAX => TreatmentVerdict::NotKnown,
            () => TreatmentVerdict::NoDifference,
        };
        let words = match verdict {
            TreatmentVerdict::Helped => by("helped", better, [low, high]),
            TreatmentVerdict::Hurt => by("hurt", -better, [-high, -low]),
            TreatmentVerdict::NotKnown => {
                format!("not known: a difference of more than {:.0}\u{a0}% is possible", KNOWN_MAX * 100.0)
            }
            // Never less than the interval allows.
            TreatmentVerdict::NoDifference => {
                format!("no difference above {:.1}\u{a0}%", (at_most * 1000.0).ceil() / 10.0)
            }
        };
        Some(TreatmentResult { verdict, figure, better, ci95: [low, high], at_most, words })
    }
}

/// `helped 3.1 % (1.9 to 4.4)`; two digits behind the point where one would say 0.0.
fn by(verb: &str, value: f64, ends: [f64; 2]) -> String {
    let digits = if ends[0] < 0.0015 { 2 } else { 1 };
    let [value, low, high] = [value, ends[0], ends[1]].map(|share| format!("{:.digits$}", share * 100.0));
    format!("{verb} {value}\u{a0}% ({low} to {high})")
}

impl Treatment {
    /// `thp=never, governor=performance`.
    pub fn name(&self) -> String {
        let each = self.settings.iter().map(|setting| format!("{}={}", setting.name, setting.value));
        each.collect::<Vec<_>>().join(", ")
    }

    /// Why a setting could not be applied; the first that could not.
    pub fn not_applied(&self) -> Option<&Missing> {
        self.settings.iter().find_map(|setting| match &setting.applied {
            Reading::Missing(missing) => Some(missing),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(figure: Figure, value: f64, interval: [f64; 2]) -> Option<TreatmentResult> {
        TreatmentResult::of(figure, value, interval)
    }

    fn words(figure: Figure, value: f64, interval: [f64; 2]) -> String {
        of(figure, value, interval).unwrap().words.replace('\u{a0}', " ")
    }

    #[test]
    fn less_time_and_more_throughput_is_help() {
        assert_eq!(words(Figure::Time, -0.031, [-0.044, -0.019]), "helped 3.1 % (1.9 to 4.4)");
        assert_eq!(words(Figure::Throughput, 0.031, [0.019, 0.044]), "helped 3.1 % (1.9 to 4.4)");
        assert_eq!(words(Figure::Time, 0.05, [0.001, 0.1]), "hurt 5.00 % (0.10 to 10.00)");
        assert_eq!(words(Figure::Throughput, -0.05, [-0.1, -0.02]), "hurt 5.0 % (2.0 to 10.0)");
        assert_eq!(words(Figure::Time, -0.002, [-0.0071, 0.004]), "no difference above 0.8 %");
        assert_eq!(
            of(Figure::Time, -0.002, [-0.007, 0.004]).unwrap().verdict,
            TreatmentVerdict::NoDifference
        );
        let wide = of(Figure::Time, 0.47, [-0.38, 2.51]).unwrap();
        assert_eq!(wide.verdict, TreatmentVerdict::NotKnown);
        assert_eq!(
            wide.words.replace('\u{a0}', " "),
            "not known: a difference of more than 50 % is possible"
        );
        assert_eq!(of(Figure::Time, f64::NAN, [0.0, 1.0]), None);
        assert_eq!(of(Figure::Time, 0.1, [0.0, f64::INFINITY]), None);
    }
}
