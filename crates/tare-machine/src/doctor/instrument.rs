//! How often tare itself is right on this machine.

use super::draft::{Draft, Examined, Topic, each, note, ok, warn};
use super::words::{percent, things};
use tare_model::calibration::{AaControl, Calibration, NetSpread, Place, RIGHT_SHARE_MIN};
use tare_model::check::Area;

pub(super) static TOPIC: Topic = Topic { area: Area::Instrument, ids: &["calibration"], look };

/// Comparisons promise to call something different that is not in no more of them than this.
const CALLED_DIFFERENT_MAX: f64 = 0.05;

fn look(examined: &Examined) -> Vec<Draft> {
    each("calibration", examined.calibration, |calibration| reported(calibration, examined))
}

fn reported(calibration: &Calibration, examined: &Examined) -> Draft {
    let summary = &calibration.summary;
    let (measured, there) = calibration.covered();
    let part = match calibration.complete {
        true => String::new(),
        false => format!(", with {measured} of {} that can be injected here", things(there, "cause")),
    };
    let alarms = match summary.false_alarms {
        0 if summary.undisturbed == 0 && summary.disturbed > 0 => {
            format!("; the host disturbed all {} with nothing injected", things(summary.disturbed, "run"))
        }
        0 => String::new(),
        count => format!("; {} on undisturbed runs", things(count, "false alarm")),
    };
    let found = format!(
        "calibrated {}: {} of {} right{part}{alarms}; {}; {}",
        ago(examined.now_unix_s.saturating_sub(calibration.started_unix_s)),
        summary.right,
        summary.runs,
        itself(calibration.aa_control.as_ref()),
        spread(calibration.net_spread.as_ref()),
    );
    let fix = "tare calibrate";
    if calibration.machine != Place::of(&examined.survey.machine) {
        return warn("calibration", format!("{found}, on another kernel or processor"))
            .effect("how often a verdict is right here is not known")
            .fix(fix);
    }
    if !summary.is_good() {
        let wanted = percent(RIGHT_SHARE_MIN);
        return warn("calibration", found)
            .effect(format!(
                "fewer than {wanted} of the verdicts are right here, or causes are named that are not there"
            ))
            .fix(
                "see 'tare calibrate --json' for what was taken for what, and mind the evidence of a finding",
            );
    }
    let rate = calibration.aa_control.as_ref().and_then(|itself| itself.rate_ci95);
    if rate.is_some_and(|[low, _]| low > CALLED_DIFFERENT_MAX) {
        return warn("calibration", found)
            .effect(format!(
                "comparisons call the same server different more often than the {} that they promise",
                percent(CALLED_DIFFERENT_MAX)
            ))
            .fix("mind differences of 'tare compare' only where a second comparison finds them, too");
    }
    match calibration.complete {
        true => ok("calibration", found),
        false => note("calibration", found).fix(fix),
    }
}

/// How comparisons of a server with itself went.
fn itself(itself: Option<&AaControl>) -> String {
    let Some(itself) = itself else { return "not compared with itself".into() };
    let Some([low, high]) = itself.rate_ci95 else {
        return "no comparison with itself came to an end".into();
    };
    let [low, high] = [low, high].map(|share| percent((share * 100.0).round() / 100.0));
    let detectable = itself.detectable.map_or(String::new(), |share| {
        format!(", {} of throughput would show in {:.0} s", percent(share), itself.budget_s)
    });
    format!(
        "different from itself in {} of {} (95 %: {low} to {high}){detectable}",
        itself.different,
        things(itself.comparisons, "comparison")
    )
}

/// How much net moved.
fn spread(spread: Option<&NetSpread>) -> String {
    match spread.and_then(|spread| Some((spread.quartiles_apart?, spread.with_net))) {
        Some((apart, runs)) => format!("net of half of {} within {}", things(runs, "run"), percent(apart)),
        None => "spread of net not known".into(),
    }
}

/// `5 minutes ago`, `3 days ago`.
fn ago(age_s: u64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let (count, unit) = match age_s {
        0..HOUR => (age_s / MINUTE, "minute"),
        HOUR..172_800 => (age_s / HOUR, "hour"),
        _ => (age_s / DAY, "day"),
    };
    format!("{} ago", things(count as usize, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_said() {
        let reported = AaControl {
            budget_s: 10.0,
            comparisons: 3,
            failed: 1,
            different: 0,
            rate_ci95: Some([0.0, 0.7076]),
            largest: None,
            detectable: Some(0.041),
        };
        let silent = AaControl { comparisons: 0, rate_ci95: None, detectable: None, ..reported.clone() };
        assert_eq!(
            itself(Some(&reported)),
            "different from itself in 0 of 3 comparisons (95 %: 0 % to 71 %), 4.1 % of throughput would show in 10 s"
        );
        assert_eq!(itself(Some(&silent)), "no comparison with itself came to an end");
        assert_eq!(itself(None), "not compared with itself");
        let nets = NetSpread { runs: 12, with_net: 11, median_hz: Some(99e3), quartiles_apart: Some(0.032) };
        assert_eq!(spread(Some(&nets)), "net of half of 11 runs within 3.2 %");
        assert_eq!(spread(Some(&NetSpread { quartiles_apart: None, ..nets })), "spread of net not known");
        assert_eq!(spread(None), "spread of net not known");
    }

    #[test]
    fn how_long_ago() {
        let reported = [0, 61, 3599, 3600, 90_000, 3 * 86_400].map(ago);
        let wanted = ["0 minutes", "1 minute", "59 minutes", "1 hour", "25 hours", "3 days"];
        assert_eq!(reported, wanted.map(|text| format!("{text} ago")));
    }
}
