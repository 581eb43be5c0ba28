use super::*;
use proptest::prelude::*;

/// Every expectation of the tables that the words were made for.
#[test]
fn what_must_be_sayable_is() {
    let tables = [
        "p99 up; sut.voluntary_switches up; load.involuntary_switches = 25",
        "sut.voluntary_switches = 0; sut.involuntary_switches up; load.voluntary_switches up; p99 up; throughput down",
        "sut.voluntary_switches = 0; load.voluntary_switches up by 50%",
        "p99 same within 20%; throughput down by 5%; sut.voluntary_switches = 0",
        "throughput > 300k; sut.busy = 90%; load.busy=100%; bottleneck = load-generator-bound",
        "sut.lock_contention > 3%; sut.softirq < 0.15; sut.cross_cpu_wakeups up by 50%",
        "p99.9 < 2ms; p50 <= 150us; cpu_per_request < 5µs; net same;",
    ];
    for table in tables {
        let parsed = parse(table).unwrap();
        assert_eq!(parsed.len(), table.split(';').filter(|part| !part.trim().is_empty()).count(), "{table}");
    }
    let value = |text: &str| match parse(text).unwrap()[0].claim {
        Claim::Value { value, .. } => value,
        _ => f64::NAN,
    };
    assert!((value("p99 < 2ms") - 2e-3).abs() < 1e-12);
    assert!((value("p50 < 150 us") - 150e-6).abs() < 1e-12);
    assert!((value("throughput > 300k") - 3e5).abs() < 1e-6);
    assert!((value("sut.busy = 90%") - 0.9).abs() < 1e-12);
    let traced = parse("sut.lock_contention > 3%; sut.softirq < 15%; p99 up").unwrap();
    assert_eq!(traced.iter().map(Expectation::needs_trace).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(
        parse("bottleneck=server-cpu-bound").unwrap()[0].claim,
        Claim::Bottleneck(Cause::ServerCpuBound)
    );
}

#[test]
fn what_is_wrong_is_said_with_a_way_out() {
    let said = |text: &str| parse(text).unwrap_err().to_string();
    assert_eq!(said("p98 up"), "'p98 up': there is no figure 'p98' (hint: did you mean 'p90'?)");
    assert_eq!(
        said("sut.voluntary_switch = 0"),
        "'sut.voluntary_switch = 0': there is no figure 'sut.voluntary_switch' (hint: did you mean 'sut.voluntary_switches'?)"
    );
    assert_eq!(
        said("p99 rises"),
        "'p99 rises' says nothing of 'p99' (hint: write up, down or same, <, > or = and a number)"
    );
    assert_eq!(said("p99 < 5"), "'p99 < 5': no number stands after '<' (hint: write a time, as 2ms)");
    assert_eq!(said("p99 up by much"), "'p99 up by much': 'much' is no share (hint: write it as by 20%)");
    assert_eq!(
        said("throughput down by 100%"),
        "'throughput down by 100%': nothing falls by 100 % (hint: write less than 100%)"
    );
    assert_eq!(said("p99 => 5ms"), "'p99 => 5ms': '=>' compares nothing (hint: write <, > or =)");
    assert_eq!(
        said("bottleneck = network"),
        "'bottleneck = network': there is no cause 'network' (hint: write one that 'tare run' names, as bottleneck = load-generator-bound)"
    );
}

proptest! {
    #[test]
    fn nothing_is_too_strange_to_be_refused(text in ".{0,80}") {
        let _ = parse(&text);
    }

    #[test]
    fn near_misses_are_refused_or_read(text in "(p99|net|limit|sut.busy)? ?(up|down|=|<|>|by|within)? ?[0-9.]{0,3}(%|k|ms|s)?;?") {
        if let Ok(parsed) = parse(&text) {
            prop_assert!(parsed.len() <= 2);
        }
    }
}
