//! What somebody else's generator reports, held against what the kernel counted on its connections.
//!
//! Nothing is said where an answer may be counted otherwise than in segments and bytes: several requests in flight share a segment, and
//! bodies may be counted as they were before compression. That both at once are above what was received has no such reason.

use crate::accounting::Readings;
use crate::capacity::levels::Accounting;
use tare_model::metric::{Descriptor, Subject};
use tare_model::metrics::load_connections::{BYTES_IN, SEGMENTS_IN};
use tare_model::observation::Sample;
use tare_model::outcome::OwnCount;
use tare_model::plan::Generator;
use tare_model::trial::{HttpSample, Measure, Trial};
use tare_model::{Missing, Reading};

/// So much more than was received is more than reading and rounding can be off by.
const MORE_RATIO: f64 = 1.1;
/// After the last reading the rate may have been so many times the highest one that was seen.
const UNREAD_RATIO: f64 = 2.0;
/// Fewer answers say little.
const ANSWERS_MIN: f64 = 1000.0;

/// Both counts, of all trials; `None`: tare's own generator, whose count is one of its own.
pub(crate) fn own_count(accounting: &Accounting) -> Option<OwnCount> {
    let http = accounting.http?;
    if matches!(http.generator, Generator::Own { .. }) || accounting.asked.trials.is_empty() {
        return None;
    }
    let trials: Vec<&Trial> = accounting.asked_trials().collect();
    let reported = |of: fn(&HttpSample) -> &Reading<u64>| -> Option<u64> {
        accounting.samples().map(|sample| of(sample).value().copied()).sum()
    };
    let counted = |metric: &Descriptor| -> Reading<u64> {
        let all = trials.iter().map(|trial| last(trial, metric).map(|sample| sample.value as u64));
        all.sum::<Result<u64, Missing>>().into()
    };
    let unread = trials.iter().map(|trial| Some(unread_s(trial, &last(trial, &SEGMENTS_IN).ok()?)));
    Some(OwnCount {
        reported_answers: reported(|sample| &sample.requests),
        reported_bytes: reported(|sample| &sample.bytes_in),
        segments: counted(&SEGMENTS_IN),
        bytes: counted(&BYTES_IN),
        unread_s: unread.sum(),
    })
}

/// A report of more than the generator's connections received.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct OtherCount {
    pub answers: f64,
    pub bytes: f64,
    pub segments: f64,
    pub bytes_received: f64,
}

/// The first trial with such a report.
pub(crate) fn other_count(accounting: &Accounting) -> Option<OtherCount> {
    accounting.asked_trials().find_map(|trial| {
        let Measure::Http(sample) = &trial.sample else { return None };
        trial.report.as_ref()?;
        let reported = |count: &Reading<u64>| count.value().map(|count| *count as f64);
        let (answers, bytes) = (reported(&sample.requests)?, reported(&sample.bytes_in)?);
        let elapsed_s = sample.elapsed_ns as f64 / 1e9;
        let is_more = |reported: f64, metric| exceeds(reported, elapsed_s, trial, metric);
        let differs = answers >= ANSWERS_MIN && is_more(answers, &SEGMENTS_IN)? && is_more(bytes, &BYTES_IN)?;
        let received = |metric| Some(last(trial, metric).ok()?.value);
        differs.then_some(OtherCount {
            answers,
            bytes,
            segments: received(&SEGMENTS_IN)?,
            bytes_received: received(&BYTES_IN)?,
        })
    })
}

/// Whether a report, of so many seconds, is above all that its connections ever received, and its rate above every rate that was seen.
fn exceeds(reported: f64, elapsed_s: f64, trial: &Trial, metric: &Descriptor) -> Option<bool> {
    let samples = Readings::new(&trial.observation).samples(metric, &Subject::Machine);
    let rate_hz = |pair: &[Sample]| {
        let length_s = pair[1].at_ns.saturating_sub(pair[0].at_ns) as f64 / 1e9;
        (length_s > 0.0).then(|| (pair[1].value - pair[0].value).max(0.0) / length_s)
    };
    let highest_hz = samples.windows(2).filter_map(rate_hz).reduce(f64::max)?;
    let last = samples.last()?;
    let most = last.value + UNREAD_RATIO * highest_hz * unread_s(trial, last);
    let is_faster = elapsed_s > 0.0 && reported / elapsed_s > MORE_RATIO * highest_hz;
    Some(is_faster && reported > MORE_RATIO * most)
}

fn last(trial: &Trial, metric: &Descriptor) -> Result<Sample, Missing> {
    let samples = Readings::new(&trial.observation).samples(metric, &Subject::Machine);
    samples.last().copied().ok_or_else(|| trial.observation.why_absent(metric, &Subject::Machine))
}

fn unread_s(trial: &Trial, last: &Sample) -> f64 {
    trial.observation.end_ns.saturating_sub(last.at_ns) as f64 / 1e9
}
