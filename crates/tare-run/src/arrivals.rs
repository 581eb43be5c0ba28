//! When a program printed its lines, and so when it measured each of its results.

use tare_model::tool::{SampleWindow, ToolMetric, ToolMetrics};

/// Most stretches of output whose times are kept.
const KEPT_MAX: usize = 100_000;
/// What comes within so long of other output came with it.
const TOGETHER_NS: u64 = 1_000_000;
/// Of a run with more samples, of all metrics together, windows are not kept.
const WINDOWS_MAX: usize = 10_000;

/// When the lines of an output came.
#[derive(Debug, Default)]
pub(crate) struct Arrivals {
    kept: Vec<Arrival>,
    /// Lines that have ended.
    lines: u64,
    /// More came than is kept.
    is_cut: bool,
}

/// Output that came together.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    at_ns: u64,
    /// Lines that had ended after it.
    lines: u64,
}

impl Arrivals {
    /// More output came.
    pub fn note(&mut self, printed: &[u8], at_ns: u64) {
        self.lines += printed.iter().filter(|byte| **byte == b'\n').count() as u64;
        let is_full = self.kept.len() >= KEPT_MAX;
        match self.kept.last_mut() {
            Some(last) if at_ns.saturating_sub(last.at_ns) < TOGETHER_NS => last.lines = self.lines,
            _ if is_full => self.is_cut = true,
            _ => self.kept.push(Arrival { at_ns, lines: self.lines }),
        }
    }

    /// When the line before that came with earlier output ended, or the program began, and when this one did; `None` where that is not kept.
    /// What is printed of a line before it ends (a name, dots of progress) is no end of a measurement.
    fn of_line(&self, line: u32, begun_ns: u64) -> Option<[u64; 2]> {
        let first_with = |lines: u64| self.kept.partition_point(|arrival| arrival.lines < lines);
        let at = first_with(u64::from(line));
        // The last line need not end.
        let is_last = at == self.kept.len() && u64::from(line) == self.lines + 1 && !self.is_cut;
        let at = if is_last { at.checked_sub(1)? } else { at };
        let end_ns = self.kept.get(at)?.at_ns;
        let before = at.checked_sub(1).map_or(0, |before| self.kept[before].lines);
        let begin_ns = if before == 0 { begun_ns } else { self.kept[first_with(before)].at_ns };
        (line > 0).then_some([begin_ns, end_ns])
    }
}

/// Notes when each sample was measured, where the program printed them as it went. Without `arrivals` nothing is known.
pub(crate) fn set_windows(results: &mut ToolMetrics, arrivals: Option<&Arrivals>, begun_ns: u64) {
    let count: usize = results.metrics.iter().map(|metric| metric.samples.len()).sum();
    let arrivals = arrivals.filter(|_| count <= WINDOWS_MAX);
    for metric in &mut results.metrics {
        let lines = std::mem::take(&mut metric.lines);
        let windows = arrivals.and_then(|arrivals| windows(metric, &lines, arrivals, begun_ns));
        metric.windows = windows.unwrap_or_default();
    }
    let most = results.metrics.iter().map(ends).max().unwrap_or(0);
    let all: Vec<f64> =
        results.metrics.iter().flat_map(|metric| metric.windows.iter().map(|window| window.end_s)).collect();
    let are_at_once = all.windows(2).all(|pair| pair[0] == pair[1]);
    for metric in &mut results.metrics {
        // What comes once where others come again and again is a summary of all of them.
        if are_at_once || 2 * ends(metric) < most {
            metric.windows = Vec::new();
        }
    }
}

fn windows(
    metric: &ToolMetric,
    lines: &[u32],
    arrivals: &Arrivals,
    begun_ns: u64,
) -> Option<Vec<SampleWindow>> {
    if lines.len() != metric.samples.len() {
        return None;
    }
    let seconds = |at_ns: u64| at_ns.saturating_sub(begun_ns) as f64 / 1e9;
    let of_line = |line: &u32| {
        let [begin_s, end_s] = arrivals.of_line(*line, begun_ns)?.map(seconds);
        Some(SampleWindow { begin_s, end_s, ..SampleWindow::default() })
    };
    lines.iter().map(of_line).collect()
}

/// At how many moments samples of a metric came, in their order.
fn ends(metric: &ToolMetric) -> usize {
    let changes = metric.windows.windows(2).filter(|pair| pair[0].end_s != pair[1].end_s).count();
    if metric.windows.is_empty() { 0 } else { 1 + changes }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// What is printed, and after how many milliseconds.
    fn arrivals(printed: &[(u64, &str)]) -> Arrivals {
        let mut arrivals = Arrivals::default();
        for (at_ms, text) in printed {
            arrivals.note(text.as_bytes(), at_ms * MS);
        }
        arrivals
    }

    /// The windows of each metric of what a tool printed, in milliseconds.
    fn windows_of(printed: &[(u64, &str)]) -> Vec<(String, Vec<[u64; 2]>)> {
        let text: String = printed.iter().map(|(_, text)| *text).collect();
        let mut results = tare_formats::read_printed(&text).expect("results");
        set_windows(&mut results, Some(&arrivals(printed)), 0);
        let ms = |s: f64| (s * 1e3).round() as u64;
        let of = |metric: &ToolMetric| {
            metric.windows.iter().map(|window| [ms(window.begin_s), ms(window.end_s)]).collect()
        };
        results
            .metrics
            .iter()
            .map(|metric| (format!("{} {}", metric.benchmark, metric.name), of(metric)))
            .collect()
    }

    #[test]
    fn a_name_that_go_prints_before_it_measures_is_no_end() {
        let found = windows_of(&[
            (2000, "goos: linux\ngoarch: amd64\npkg: p\n"),
            (2001, "BenchmarkA-2   \t"),
            (3500, "    1000\t      1200 ns/op\t      16 B/op\n"),
            (3500, "BenchmarkB-2   \t"),
            (5000, "    2000\t      700 ns/op\t      0 B/op\n"),
            (5001, "PASS\nok  \tp\t3.1s\n"),
        ]);
        let of_a = found.iter().find(|(name, _)| name.contains("BenchmarkA") && name.ends_with("ns/op"));
        assert_eq!(of_a.map(|(_, windows)| windows.as_slice()), Some(&[[2000, 3500]][..]), "{found:?}");
        let of_b: Vec<_> = found.iter().filter(|(name, _)| name.contains("BenchmarkB")).collect();
        assert!(of_b.len() == 2 && of_b.iter().all(|(_, windows)| *windows == [[3500, 5000]]), "{found:?}");
    }

    #[test]
    fn dots_of_progress_cut_no_window_short() {
        let printed = arrivals(&[(5, "head\n"), (200, "."), (400, "."), (900, "."), (1000, "\nresult\n")]);
        assert_eq!(printed.of_line(3, 0), Some([5 * MS, 1000 * MS]));
    }

    #[test]
    fn a_summary_whose_lines_are_not_known_has_no_window() {
        let mut results = tare_formats::read_printed(
            "pkg: p\nBenchmarkA-2 \t 1000\t 1200 ns/op\nBenchmarkB-2 \t 9\t 7 ns/op\n",
        )
        .expect("results");
        results.metrics[0].lines = vec![0];
        let printed = arrivals(&[
            (5, "pkg: p\n"),
            (900, "BenchmarkA-2 \t 1000\t 1200 ns/op\n"),
            (1900, "BenchmarkB-2 \t 9\t 7 ns/op\n"),
        ]);
        set_windows(&mut results, Some(&printed), 0);
        assert!(results.metrics.iter().all(|metric| metric.windows.is_empty() && metric.lines.is_empty()));
    }

    #[test]
    fn what_is_printed_at_once_has_no_windows() {
        let found = windows_of(&[(
            9000,
            "pkg: p\nBenchmarkA-2 \t 1000\t 1200 ns/op\nBenchmarkB-2 \t 2000\t 700 ns/op\nPASS\n",
        )]);
        assert!(found.len() == 2 && found.iter().all(|(_, windows)| windows.is_empty()), "{found:?}");
    }

    #[test]
    fn a_summary_after_many_samples_has_no_window() {
        let found = windows_of(&[
            (
                100,
                "sysbench 1.0.20 (using system LuaJIT 2.1.0)\n\nRunning the test with following options:\nNumber of threads: 1\n",
            ),
            (
                100,
                "Report intermediate results every 1 second(s)\nInitializing random number generator from current time\n\n\n",
            ),
            (100, "Prime numbers limit: 10000\n\nInitializing worker threads...\n\nThreads started!\n\n"),
            (1100, "[ 1s ] thds: 1 eps: 1000.00 lat (ms,95%): 1.00\n"),
            (2100, "[ 2s ] thds: 1 eps: 1001.00 lat (ms,95%): 1.00\n"),
            (3100, "[ 3s ] thds: 1 eps: 1002.00 lat (ms,95%): 1.00\n"),
            (
                3102,
                "CPU speed:\n    events per second:  1001.00\n\nGeneral statistics:\n    total time:                          3.0005s\n    total number of events:              3003\n",
            ),
        ]);
        let with: Vec<_> = found.iter().filter(|(_, windows)| !windows.is_empty()).collect();
        assert!(!with.is_empty(), "{found:?}");
        assert!(
            with.iter().all(|(name, windows)| name.contains("interval")
                && *windows == [[100, 1100], [1100, 2100], [2100, 3100]]),
            "{found:?}"
        );
    }

    #[test]
    fn a_last_line_need_not_end_and_what_is_not_kept_is_not_known() {
        let printed = arrivals(&[(5, "a\n"), (50, "b\n"), (90, "c")]);
        assert_eq!(printed.of_line(1, MS), Some([MS, 5 * MS]));
        assert_eq!(printed.of_line(2, MS), Some([5 * MS, 50 * MS]));
        assert_eq!(printed.of_line(3, MS), Some([50 * MS, 90 * MS]));
        assert_eq!(printed.of_line(4, MS), None);
        assert_eq!(Arrivals::default().of_line(1, MS), None);
    }
}
