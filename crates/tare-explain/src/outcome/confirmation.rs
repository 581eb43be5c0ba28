//! What an intervention says of the cause that it was tried on: E = mean of ln(rate changed / rate before) over the pairs, divided by
//! ln(resource changed / resource before), with Student's interval over the pairs. Who is held up by one resource alone follows it
//! with E = 1, who has enough of it with 0; what else costs time, and how far the change reaches beyond what was short, leave a cause
//! that holds somewhat less than 1, so that each has a floor below it.

use tare_model::Missing;
use tare_model::intervention::{Blocks, Intervention};
use tare_model::outcome::{Confirmation, Confirmed, Tried};
use tare_stats::{Interval, paired_log_ratio};

pub(crate) fn confirmation(tried: &Intervention) -> Confirmation {
    let elasticity = tried.blocks.clone().ok().and_then(elasticity);
    Confirmation { cause: tried.cause, instead_of: tried.instead_of.clone(), tried: elasticity.into() }
}

fn elasticity(blocks: Blocks) -> Result<Tried, Missing> {
    let none =
        || Missing::with_remedy("a trial had no answers", "requests must be shorter than its half a second");
    let moved = (blocks.changed / blocks.before).ln();
    if !moved.is_normal() {
        return Err(Missing::new("nothing was changed"));
    }
    let [before, changed]: [Vec<f64>; 2] = [
        blocks.pairs.iter().map(|pair| pair.before_hz).collect(),
        blocks.pairs.iter().map(|pair| pair.changed_hz).collect(),
    ];
    let followed = paired_log_ratio(&before, &changed).ok_or_else(none)?;
    let interval = followed.ci95.and_then(|interval| interval.map(|ln| ln / moved)).ok_or_else(none)?;
    Ok(Tried {
        verdict: verdict(interval, blocks.floor),
        what: blocks.what,
        unit: blocks.unit,
        before: blocks.before,
        changed: blocks.changed,
        pairs: blocks.pairs.len(),
        elasticity: followed.value / moved,
        ci95: [interval.lo, interval.hi],
        floor: blocks.floor,
    })
}

fn verdict(interval: Interval, floor: f64) -> Confirmed {
    if interval.lo > floor {
        Confirmed::Confirmed
    } else if interval.hi < floor {
        Confirmed::Refuted
    } else {
        Confirmed::Undecided
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tare_model::Reading;
    use tare_model::intervention::Pair;
    use tare_model::outcome::Cause;

    fn tried(before: f64, changed: f64, pairs: Vec<Pair>) -> Result<Tried, Missing> {
        let (what, unit) = ("a quota".to_owned(), "CPUs".to_owned());
        let blocks = Blocks { what, unit, before, changed, floor: 0.5, pairs };
        let cause = Cause::CpuQuotaThrottled;
        confirmation(&Intervention { cause, instead_of: None, blocks: Reading::Measured(blocks) }).tried.ok()
    }

    /// Pairs whose rates follow a resource that is changed by `factor`, each off by so much, one up and one down.
    fn pairs(elasticity: f64, factor: f64, off: f64) -> Vec<Pair> {
        let pair = |at: i32| {
            let noise = if at % 2 == 0 { off } else { -off };
            let before_hz = 1000.0 * (1.0 + f64::from(at));
            Pair { before_hz, changed_hz: before_hz * (elasticity * f64::ln(factor) + noise).exp() }
        };
        (0..8).map(pair).collect()
    }

    proptest! {
        #[test]
        fn what_the_rates_follow_is_found_whether_given_or_taken(
            elasticity in -0.5f64..1.5, factor in prop::sample::select(vec![0.8, 1.2, 1.5, 2.0]), before in 0.1f64..64.0,
        ) {
            let found = tried(before, before * factor, pairs(elasticity, factor, 0.01)).unwrap();
            prop_assert!((found.elasticity - elasticity).abs() < 1e-9);
            let [lo, hi] = found.ci95;
            prop_assert!(lo < found.elasticity && found.elasticity < hi);
            let right = match found.verdict {
                Confirmed::Confirmed => lo > 0.5,
                Confirmed::Refuted => hi < 0.5,
                Confirmed::Undecided => lo <= 0.5 && 0.5 <= hi,
            };
            prop_assert!(right);
        }
    }

    #[test]
    fn the_verdict_heeds_how_sure_it_is() {
        let verdict = |elasticity, off| tried(1.0, 0.8, pairs(elasticity, 0.8, off)).unwrap().verdict;
        assert_eq!(verdict(1.0, 0.02), Confirmed::Confirmed);
        assert_eq!(verdict(0.0, 0.02), Confirmed::Refuted);
        // An interval that holds 0 and the floor says nothing; one about 0.3 says that it is not this.
        assert_eq!(verdict(0.0, 0.3), Confirmed::Undecided);
        assert_eq!(verdict(0.3, 0.01), Confirmed::Refuted);
    }

    #[test]
    fn what_is_not_known_is_missing() {
        let silent = vec![Pair { before_hz: 10.0, changed_hz: 0.0 }; 8];
        assert!(tried(1.0, 0.8, silent).unwrap_err().why.contains("no answers"));
        assert!(tried(1.0, 0.8, pairs(1.0, 0.8, 0.0)[..1].to_vec()).is_err());
        for (before, changed) in [(1.0, 1.0), (0.0, 1.0), (1.0, 0.0), (-1.0, 1.0), (f64::NAN, 1.0)] {
            assert!(tried(before, changed, pairs(1.0, 0.8, 0.0)).is_err(), "{before} {changed}");
        }
    }
}
