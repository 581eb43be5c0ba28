//! [wrk2](https://github.com/giltene/wrk2): wrk at a given rate, latencies from the intended send times.

use super::wrk;
use crate::format::Format;
use crate::generator::Generator;

/// wrk2's summary, in the form of wrk's.
pub(crate) const FORMAT: Format = Format {
    name: "wrk2",
    gets_wrong: &[
        "its latencies leave out the first 10 s of each thread, in which it calibrates; its rate does not",
        "a rate that it cannot reach is printed without a warning",
    ],
    detect: |printed| wrk::is_summary(printed) && wrk::is_of_wrk2(printed),
    read: |printed| wrk::read("wrk2", printed),
    shapes: wrk::SHAPES,
};

/// It sends at its rate while it calibrates: that is load and no set-up.
pub(crate) const GENERATOR: Generator =
    Generator { program: "wrk2", rate_options: &["-R", "--rate"], format: Some(&FORMAT), ..wrk::GENERATOR };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spectrum_is_read_and_that_without_waiting_is_not() {
        let rows = |title: &str, ms: &str| {
            format!(
                "  Latency Distribution (HdrHistogram - {title})\n 50.000%  {ms}ms\n\n  Detailed Percentile spectrum:\n\
                       Value   Percentile   TotalCount 1/(1-Percentile)\n\n  {ms}     0.500000   10   2.00\n  {ms}9   0.999000   19  1000.00\n\
                 #[Mean    =        1.210, StdDeviation   =        0.540]\n----------------------------------------------------------\n"
            )
        };
        let text = rows("Recorded Latency", "2.125")
            + &rows("Uncorrected Latency (measured without taking delayed starts into account)", "1.0")
            + "  100 requests in 2.00s, 1.00KB read\n";
        let [result] = &FORMAT.read(&text).results[..] else { panic!() };
        assert_eq!(result.latency.value().unwrap().quantiles_ns, [(0.5, 2_125_000), (0.999, 2_125_900)]);
        assert_eq!(result.operations.value(), Some(&100));
    }

    #[test]
    fn some_builds_of_wrk2_print_another_column() {
        let text = "  Thread Stats   Avg      Stdev     99%   +/- Stdev\n    Latency     2.42ms    1.72ms   8.05ms   72.54%\n  \
                100 requests in 2.00s, 1.00KB read\n";
        let [result] = &FORMAT.read(text).results[..] else { panic!() };
        assert_eq!(result.latency.value().unwrap().quantiles_ns, [(0.99, 8_050_000)]);
    }
}
