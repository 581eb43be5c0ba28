//! Results as other tools' formats: one file each, and the list of all.

mod benchfmt;
mod bmf;
mod csv;
mod format;
mod github_action;
mod hyperfine;
mod openmetrics;
mod parquet;
mod thrift;

pub use format::{Export, Exported};

/// Every format that results can be written in.
pub const EXPORTS: &[&Export] = &[
    &benchfmt::EXPORT,
    &bmf::EXPORT,
    &github_action::SMALLER,
    &github_action::BIGGER,
    &hyperfine::EXPORT,
    &openmetrics::EXPORT,
    &csv::EXPORT,
    &parquet::EXPORT,
];

#[cfg(test)]
mod tests {
    use super::format::number;
    use super::*;
    use crate::{Input, read};
    use std::collections::BTreeSet;
    use tare_model::tool::ToolMetrics;

    const GO: &str = "goos: linux\npkg: a/b\nBenchmarkX-2 100 12.5 ns/op 3.3 MB/s 80 B/op\nBenchmarkX-2 100 13.1 ns/op 3.1 MB/s 80 B/op\n\
                      BenchmarkY-2 7 1000000 ns/op 2 things\n";

    fn results(text: &str) -> ToolMetrics {
        read(&Input::of_text(text)).unwrap()
    }

    fn export(name: &str) -> &'static Export {
        EXPORTS.iter().find(|export| export.name == name).unwrap()
    }

    #[test]
    fn names_are_their_own() {
        let names: BTreeSet<&str> = EXPORTS.iter().map(|export| export.name).collect();
        assert_eq!(names.len(), EXPORTS.len());
    }

    #[test]
    fn go_results_come_back_as_they_were() {
        let before = results(GO);
        let written = export("benchfmt").write(&before);
        assert_eq!(written.left_out, []);
        let text = String::from_utf8(written.content).unwrap();
        let after = results(&text);
        assert_eq!(before.metrics, after.metrics, "{text}");
        assert_eq!(before.configuration, after.configuration);
        assert!(text.contains("BenchmarkX-2 1 12.5 ns/op 3.3 MB/s 80 B/op\n"), "{text}");
    }

    #[test]
    fn go_results_of_several_packages_come_back_as_they_were() {
        let end = |package: &str| format!("PASS\nok  \t{package}\t0.341s\n");
        let one = "goos: linux\npkg: example.com/a\nBenchmarkX-2 100 12.5 ns/op 80 B/op\nBenchmarkX-2 100 13.1 ns/op 80 B/op\n";
        let other = "goos: linux\npkg: example.com/b\nBenchmarkX-2 100 2.5 ns/op 3 B/op\nBenchmarkY/n.Benchmark=1-2 100 3.5 ns/op\n";
        let text = [one, &end("example.com/a"), other, &end("example.com/b")].concat();
        let before = results(&text);
        let written = String::from_utf8(export("benchfmt").write(&before).content).unwrap();
        assert!(written.contains("pkg: example.com/a\nBenchmarkX-2 1 12.5 ns/op 80 B/op\n"), "{written}");
        let after = results(&written);
        assert_eq!(before.metrics, after.metrics, "{written}");
        assert_eq!(before.configuration, after.configuration);
        // Of packages that printed between each other each is written in one piece, and what is of none stays so.
        let mixed =
            ["BenchmarkX 1 1 ns/op\n", one, other, "pkg: example.com/a\nBenchmarkZ 1 1 ns/op\n"].concat();
        let before = results(&mixed);
        let written = String::from_utf8(export("benchfmt").write(&before).content).unwrap();
        let after = results(&written);
        let found = |read: &ToolMetrics| -> BTreeSet<String> {
            read.metrics.iter().map(|m| format!("{} {} {:?}", m.benchmark, m.name, m.samples)).collect()
        };
        assert_eq!(found(&before), found(&after), "{written}");
        assert_eq!(written.matches("pkg: example.com/a\n").count(), 1, "{written}");
    }

    #[test]
    fn a_table_of_samples_comes_back_as_it_was() {
        let mut before = results(&format!("{GO}Unit min better=higher\nBenchmarkZ 1 5 min 3 ms 0.5 ops/s\n"));
        for metric in before.metrics.iter_mut().filter(|metric| metric.benchmark == "a/b.BenchmarkX-2") {
            metric.launches = vec![0, 1];
            metric.workers = vec![3, 4];
            metric.at_s = vec![0.5, 1.25];
        }
        let written = String::from_utf8(export("csv").write(&before).content).unwrap();
        let after = results(&written);
        assert_eq!((after.format.as_str(), after.skipped_count, after.warnings.len()), ("csv", 0, 0));
        assert_eq!(before.metrics, after.metrics, "{written}");
        // One sample is a table too.
        let one = results("BenchmarkX 1 5 ns/op\n");
        let written = String::from_utf8(export("csv").write(&one).content).unwrap();
        assert_eq!(results(&written).metrics, one.metrics, "{written}");
    }

    #[test]
    fn every_format_of_every_result() {
        let mut results = results(GO);
        for metric in &mut results.metrics {
            metric.estimate = Some(tare_model::tool::ToolEstimate {
                value: metric.samples[0],
                unit: metric.unit.clone(),
                ci95: Some([metric.samples[0] * 0.5, metric.samples[0] * 2.0]),
            });
        }
        let texts: Vec<String> = EXPORTS
            .iter()
            // It is no text, and has a test of its own.
            .filter(|export| export.name != parquet::EXPORT.name)
            .map(|export| {
                let written = export.write(&results);
                let text = String::from_utf8(written.content).unwrap();
                assert!(text.ends_with('\n'), "{}", export.name);
                format!("== {}\n{text}left out: {:?}\n", export.name, written.left_out)
            })
            .collect();
        insta::assert_snapshot!("exports", texts.join("\n"));
    }

    #[test]
    fn a_change_of_units_leaves_no_digits() {
        assert_eq!(
            [number(1.25e-8 * 1e9), number(0.1 + 0.2), number(1e21), number(0.0)],
            ["12.5", "0.3", "1000000000000000000000", "0"]
        );
    }
}
