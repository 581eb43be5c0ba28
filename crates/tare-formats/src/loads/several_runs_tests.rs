//! The outputs of several runs in one file: each is a launch, so that what differs from run to run is in the interval.

use super::READERS;
use crate::reader::Input;

/// The launches of the first metric with samples, of the output once and twice.
fn launches(reader: &str, output: &str) -> [Vec<u32>; 2] {
    let reader = READERS.iter().find(|known| known.name == reader).unwrap();
    [output.to_owned(), output.repeat(2)].map(|text| {
        let read = reader.read(&Input::of_text(&text));
        let metric = read.metrics.into_iter().find(|metric| !metric.samples.is_empty()).unwrap();
        let mut launches = metric.launches;
        launches.dedup();
        launches
    })
}

#[test]
fn each_run_in_a_file_is_a_launch() {
    let point = |metric: &str, second: u32, value: f64| {
        format!(
            "{{\"type\":\"Point\",\"data\":{{\"time\":\"2024-05-13T08:00:0{second}Z\",\"value\":{value}}},\"metric\":\"{metric}\"}}\n"
        )
    };
    let declared = "{\"type\":\"Metric\",\"data\":{\"type\":\"trend\",\"contains\":\"time\"},\"metric\":\"http_req_duration\"}\n";
    let k6 = declared.to_owned() + &point("http_req_duration", 0, 3.5) + &point("http_req_duration", 1, 4.5);
    for (reader, output) in [
        ("k6-json", k6.as_str()),
        (
            "k6-csv",
            "metric_name,timestamp,metric_value,status\nhttp_req_duration,1715587200,3.5,200\nhttp_req_duration,1715587201,4.5,200\n",
        ),
        (
            "ycsb",
            "[OVERALL], RunTime(ms), 97\n[OVERALL], Throughput(ops/sec), 4123.7\n[READ], AverageLatency(us), 40\n",
        ),
        (
            "ycsb",
            "2026-11-28 02:54:05:559 0 sec: 0 operations; 10 current ops/sec; [READ: Count=1]\n2026-11-28 02:54:15:559 10 sec: 400 operations; 40.1 current ops/sec; [READ: Count=1]\n\
             [OVERALL], RunTime(ms), 97\n[OVERALL], Throughput(ops/sec), 4123.7\n",
        ),
        (
            "sockperf",
            "test was performed using the following parameters: --time=1\npacket, txTime(sec), rxTime(sec), rtt(usec)\n0, 2.41, 2.42, 50.6\n1, 2.43, 2.44, 51.5\n",
        ),
        (
            "neper",
            "time,tid,flow_id,bytes_read,transactions,latency_p50\n10.0,0,0,1,100,0.001\n11.0,0,0,1,300,0.002\n",
        ),
        (
            "pgbench",
            "progress: 1.0 s, 100.0 tps, lat 4.8 ms stddev 5.2\nprogress: 2.0 s, 110.0 tps, lat 4.7 ms stddev 5.1\n",
        ),
    ] {
        assert_eq!(launches(reader, output), [vec![0], vec![0, 1]], "{reader}: {output}");
    }
}

#[test]
fn each_json_report_in_a_file_is_a_launch() {
    for (reader, output) in [
        ("k6-summary", include_str!("../../tests/fixtures/k6-summary/export_1.8.json")),
        ("k6-summary", include_str!("../../tests/fixtures/k6-summary/machine_readable_1.8.json")),
        ("ghz-json", include_str!("../../tests/fixtures/ghz-json/plain.json")),
        ("locust-json", include_str!("../../tests/fixtures/locust-json/json_2.47.json")),
        ("memtier", include_str!("../../tests/fixtures/memtier/documented_2.json")),
        ("nighthawk", include_str!("../../tests/fixtures/nighthawk/documented_output.json")),
    ] {
        assert_eq!(launches(reader, &format!("a log\n{output}\n")), [vec![0], vec![0, 1]], "{reader}");
    }
}
