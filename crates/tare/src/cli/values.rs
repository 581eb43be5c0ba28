//! Values that arguments take: durations, CPU lists, rates.

use std::net::SocketAddr;
use std::time::Duration;
use tare_load::{Capture, CaptureFrom, Stage};
use tare_model::CpuSet;
pub use tare_run::duration;
use tare_server::BackendChoice;
use tare_server::architecture::{self, ARCHITECTURES, Architecture};

/// CPUs as given, ascending, without repeats.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(pub Vec<u32>);

/// Parses `0-3,8`.
pub fn cpu_list(text: &str) -> Result<CpuList, String> {
    match CpuSet::from_list(text) {
        Some(cpus) if !cpus.is_empty() => Ok(CpuList(cpus.to_vec())),
        _ => Err(no_cpus(text)),
    }
}

/// What is wrong in a list of CPUs.
fn no_cpus(text: &str) -> String {
    let is_list = |text: &str| CpuSet::from_list(text).is_some_and(|cpus| !cpus.is_empty());
    let is_number = |text: &str| is_list(text) && !text.contains('-');
    let wrong = text.split(',').find(|part| !is_list(part)).unwrap_or(text);
    let (first, last) = wrong.split_once('-').unwrap_or((wrong, wrong));
    match [first, last].iter().find(|number| !is_number(number)) {
        Some(number) => format!("'{number}' is not a CPU number; write CPUs as 0-3,8"),
        None => format!("'{wrong}' counts down; write it as {last}-{first}"),
    }
}

/// Parses an address with a port: `127.0.0.1:8080`, `[::1]:0`.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| {
        let port = text.rsplit_once(':').map(|(_, port)| port).filter(|port| port.parse::<u16>().is_ok());
        let port = port.unwrap_or("8080");
        format!("names are not looked up; write an address and a port, as 127.0.0.1:{port}, 0.0.0.0:{port} or [::1]:{port}")
    })
}

/// Finds a server architecture by name.
pub fn architecture(name: &str) -> Result<&'static dyn Architecture, String> {
    architecture::find(name).ok_or_else(|| {
        let names: Vec<&str> = ARCHITECTURES.iter().map(|known| known.name()).collect();
        format!("there is no architecture '{name}'; there are {}", names.join(", "))
    })
}

/// Finds a server backend by name.
pub fn backend(name: &str) -> Result<BackendChoice, String> {
    BackendChoice::find(name).ok_or_else(|| {
        let names: Vec<&str> = BackendChoice::ALL.iter().map(|known| known.name()).collect();
        format!("there is no backend '{name}'; there are {}", names.join(", "))
    })
}

/// A share in per cent, above zero and up to 100: `1%`, `0.5`.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>().ok();
    let share = number.map(|percent| percent / 100.0).filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| format!("'{text}' is not a share above 0 and up to 100 %; write it as 1%"))
}

/// By how much something is worse: as a percentage it may be beyond 100.
pub fn worse(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>().ok();
    let share = number.map(|percent| percent / 100.0).filter(|share| *share >= 0.0 && share.is_finite());
    share.ok_or_else(|| format!("'{text}' is no percentage of 0 or more; write it as 5%"))
}

/// A duration above zero.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration.is_zero() { Err("must be longer than 0".into()) } else { Ok(duration) }
}

/// Parses how many: `64`, and as wrk has it, `1k`, `2M`.
pub fn count(text: &str) -> Result<u64, String> {
    let whole = |value: &f64| value.fract() == 0.0;
    scaled(text, "64 or 1k", 1e15)
        .ok()
        .filter(whole)
        .map(|value| value as u64)
        .ok_or_else(|| format!("'{text}' is not a whole number above 0; write it as 64 or 1k"))
}

/// Parses how many connections.
pub fn connections(text: &str) -> Result<u32, String> {
    at_most(text, 1_000_000)
}

/// Parses how many threads, or requests at once.
pub fn at_once(text: &str) -> Result<u32, String> {
    at_most(text, 1024)
}

fn at_most(text: &str, max: u32) -> Result<u32, String> {
    let fits = u32::try_from(count(text)?).ok().filter(|count| *count <= max);
    fits.ok_or_else(|| format!("'{text}' is more than {max}"))
}

/// Parses requests per second: `5000`, `5k`, `1.2M`.
pub fn rate_hz(text: &str) -> Result<f64, String> {
    scaled(text, "5000 or 5k", 1e9)
}

/// Rates of an open loop, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Stages(pub Vec<Stage>);

/// Parses `1k:5s,1k-10k:20s`: a rate, or two with a ramp between them, for a time.
pub fn stages(text: &str) -> Result<Stages, String> {
    text.split(',').map(stage).collect::<Result<_, _>>().map(Stages)
}

fn stage(text: &str) -> Result<Stage, String> {
    let bad = || format!("'{text}' is not a stage; write it as 1k:5s, or 1k-10k:20s for a ramp");
    let (rates, length) = text.split_once(':').ok_or_else(bad)?;
    let (from, to) = rates.split_once('-').unwrap_or((rates, rates));
    let rate = |text: &str| if text.trim() == "0" { Ok(0.0) } else { rate_hz(text) };
    let for_ns = u64::try_from(positive_duration(length)?.as_nanos()).map_err(|_| bad())?;
    Ok(Stage { from_hz: rate(from)?, to_hz: rate(to)?, for_ns })
}

/// A path among several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WeightedPath {
    /// How often, among the others' weights.
    pub weight: u32,
    /// With its query; or a whole URL, which must then lead to the same server.
    pub path: String,
}

/// Parses `9:/cart?x=1`.
pub fn weighted_path(text: &str) -> Result<WeightedPath, String> {
    let bad = || format!("'{text}' is not a weight and a path; write it as 9:/cart");
    let (weight, path) = text.split_once(':').ok_or_else(bad)?;
    if !path.starts_with('/') && !path.contains("://") {
        return Err(bad());
    }
    Ok(WeightedPath { weight: weight.trim().parse().map_err(|_| bad())?, path: path.to_owned() })
}

/// Parses `token=header:X-Token`, `id=body:"id":".."`.
pub fn capture(text: &str) -> Result<Capture, String> {
    let bad = || format!("'{text}' is no capture; write it as NAME=header:HEADER or NAME=body:AFTER..BEFORE");
    let (name, from) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(bad)?;
    let from = match from.split_once(':').ok_or_else(bad)? {
        ("header", header) if !header.is_empty() => CaptureFrom::Header(header.to_owned()),
        ("body", between) => {
            let (after, before) = between.split_once("..").ok_or_else(bad)?;
            CaptureFrom::Body { after: after.to_owned(), before: before.to_owned() }
        }
        _ => return Err(bad()),
    };
    Ok(Capture { name: name.to_owned(), from })
}

/// What a capacity must hold: a quantile of the latencies below a time.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    /// 0..1.
    pub quantile: f64,
    /// Highest latency allowed there.
    pub latency: Duration,
    /// As given.
    pub text: String,
}

/// Parses `p99<5ms`, `p99.9<20ms`.
pub fn objective(text: &str) -> Result<Objective, String> {
    let bad = || format!("'{text}' is not an objective; write it as p99<5ms");
    let (percentile, latency) =
        text.strip_prefix('p').and_then(|rest| rest.split_once('<')).ok_or_else(bad)?;
    let quantile = percentile.trim().parse::<f64>().map_err(|_| bad())? / 100.0;
    if !(0.0..1.0).contains(&quantile) || quantile == 0.0 {
        return Err(bad());
    }
    Ok(Objective {
        quantile,
        latency: positive_duration(latency.trim().trim_start_matches('='))?,
        text: text.to_owned(),
    })
}

/// Parses a clock: `2.8GHz`, `2800MHz`, `2.8G`, or hertz.
pub fn clock_hz(text: &str) -> Result<f64, String> {
    scaled(text.trim_end_matches("Hz").trim_end_matches("hz"), "2.8GHz", 1e11)
}

fn scaled(text: &str, example: &str, max: f64) -> Result<f64, String> {
    let (digits, factor) = match text.char_indices().next_back() {
        Some((at, 'k' | 'K')) => (&text[..at], 1e3),
        Some((at, 'M' | 'm')) => (&text[..at], 1e6),
        Some((at, 'G' | 'g')) => (&text[..at], 1e9),
        _ => (text, 1.0),
    };
    let value = digits.trim().parse::<f64>().map(|number| number * factor);
    value
        .ok()
        .filter(|value| value.is_finite() && *value > 0.0 && *value <= max)
        .ok_or_else(|| format!("'{text}' is not a number above 0; write it as {example}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_lists() {
        assert_eq!(cpu_list("0-2,8,1").unwrap().0, [0, 1, 2, 8]);
        for bad in ["", "a", "3-1", "1-", "-1", "0,,1", "99999999999", "0-4294967295"] {
            assert!(cpu_list(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn reads_durations() {
        assert_eq!(duration("2").unwrap(), Duration::from_secs(2));
        assert_eq!(duration("1.5s").unwrap(), Duration::from_millis(1500));
        assert_eq!(duration("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(duration("2m").unwrap(), Duration::from_secs(120));
        for bad in ["", "s", "-1s", "1d", "nan", "inf", "1e99s", "25h", "é"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
        assert!(positive_duration("0").is_err());
    }

    #[test]
    fn reads_scaled_numbers() {
        assert_eq!(rate_hz("5k").unwrap(), 5000.0);
        assert_eq!(clock_hz("2.8GHz").unwrap(), 2.8e9);
        for bad in ["0", "-3", "k", "nan", "inf", "1e400", "é"] {
            assert!(rate_hz(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn reads_counts_with_the_units_of_wrk() {
        assert_eq!((count("64"), connections("1k"), count("2M")), (Ok(64), Ok(1000), Ok(2_000_000)));
        for bad in ["0", "-1", "1.5", "k", "1e3x", ""] {
            assert!(count(bad).is_err(), "{bad}");
        }
        assert!(connections("2M").is_err() && at_once("1025").is_err() && at_once("1k").is_ok());
    }

    #[test]
    fn reads_paths_and_captures() {
        assert_eq!(weighted_path("9:/a?b:c").unwrap(), WeightedPath { weight: 9, path: "/a?b:c".to_owned() });
        let from = CaptureFrom::Body { after: "id=".to_owned(), before: ";".to_owned() };
        assert_eq!(capture("x=body:id=..;").unwrap(), Capture { name: "x".to_owned(), from });
        assert_eq!(weighted_path("1:http://h/a").unwrap().path, "http://h/a");
        assert!(
            ["", "/a", "x:/a", "1:a", "-1:/", "http://h/a"].iter().all(|bad| weighted_path(bad).is_err())
        );
        assert!(
            ["", "x", "=header:y", "x=header:", "x=body:y", "x=z:y"].iter().all(|bad| capture(bad).is_err())
        );
    }

    #[test]
    fn reads_objectives() {
        let held = objective("p99.9<5ms").unwrap();
        assert!((held.quantile - 0.999).abs() < 1e-12 && held.latency == Duration::from_millis(5));
        let bad = ["", "99<5ms", "p99", "p100<1s", "p0<1s", "pnan<1s", "p99<0"];
        assert!(bad.iter().all(|bad| objective(bad).is_err()));
    }

    #[test]
    fn reads_stages() {
        let read = stages("1k:5s,0-2.5k:500ms").unwrap().0;
        assert_eq!(read[0], Stage { from_hz: 1e3, to_hz: 1e3, for_ns: 5_000_000_000 });
        assert_eq!(read[1], Stage { from_hz: 0.0, to_hz: 2.5e3, for_ns: 500_000_000 });
        assert!(
            ["", "1k", "1k:", ":5s", "1k:0", "1k-:5s", "1k:5s,", "-1:5s"]
                .iter()
                .all(|bad| stages(bad).is_err())
        );
    }

    proptest! {
        #[test]
        fn never_panics(text in "\\PC*") {
            let _ = (stages(&text), objective(&text), weighted_path(&text), capture(&text), cpu_list(&text), duration(&text), rate_hz(&text), clock_hz(&text));
        }
    }
}
