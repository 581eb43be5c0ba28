//! Shares of ln(net/gross) as amounts and as parts of a whole.

use tare_model::outcome::{NetOrMissing, Outcome};

/// Turns a share of ln(net/gross) into an amount of the unit. The amounts add up to net − gross exactly,
/// because the logarithmic mean Λ is the one for which ln(net/gross) · Λ(net, gross) = net − gross.
pub(super) struct Scale {
    /// Λ and what shares are of: what the program could do (req/s), or all the time that it took (s).
    known: Option<(f64, f64)>,
    /// Throughput is lost, time is added.
    sign: f64,
}

impl Scale {
    pub fn of(outcome: &Outcome) -> Scale {
        let gross = outcome.figures.gross.value().unwrap_or(f64::NAN);
        let is_time = outcome.figures.gross.unit() == "s";
        let known = match &outcome.figures.net {
            NetOrMissing::Net(net) => tare_stats::log_mean(net.value, gross)
                .map(|mean| (mean, if is_time { gross } else { net.value })),
            NetOrMissing::Missing(_) => None,
        };
        Scale { known, sign: if is_time { 1.0 } else { -1.0 } }
    }

    /// What a share took of the unit, signed as it changes the figure; nothing without net.
    pub fn amount(&self, ln_share: f64) -> Option<f64> {
        self.known.map(|(mean, _)| self.sign * ln_share * mean)
    }

    /// What shares are of, as the end of a phrase.
    pub fn whole(&self) -> &'static str {
        match self.known {
            Some(_) if self.sign < 0.0 => " of the net",
            Some(_) => " of the time",
            None => "",
        }
    }

    /// The share of the whole; without net, what the part alone would take of it.
    pub fn share(&self, ln_share: f64) -> f64 {
        match self.known {
            Some((mean, whole)) => ln_share * mean / whole,
            None => 1.0 - (-ln_share).exp(),
        }
    }
}
