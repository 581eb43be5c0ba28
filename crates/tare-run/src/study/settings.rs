//! What a case can set.

use tare_model::CpuSet;
use toml::de::DeValue;

/// Most connections, as of `tare load`.
const CONNECTIONS_MAX: u32 = 1_000_000;
/// Most threads, or requests at once.
const AT_ONCE_MAX: u32 = 1024;
/// Most requests a second that anybody asks for.
const RATE_HZ_MAX: f64 = 1e9;

/// Settings of a cell; what is `None` is as `tare run` has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Command that starts the server; `None`: the built-in one, or who answers at the URL.
    pub sut: Option<String>,
    /// Where the load goes.
    pub url: Option<String>,
    /// CPUs of the server.
    pub sut_cpus: Option<Vec<u32>>,
    /// CPUs of the generator.
    pub load_cpus: Option<Vec<u32>>,
    /// Open connections.
    pub connections: Option<u32>,
    /// Generator threads.
    pub threads: Option<u32>,
    /// Requests per second of an open loop.
    pub rate_hz: Option<f64>,
    /// Requests in flight on each connection.
    pub pipeline: Option<u32>,
    /// A header of every request: its name and its value.
    pub header: Option<(String, String)>,
}

impl Settings {
    /// The keys, as a plan writes them.
    pub(super) const KEYS: [&str; 9] =
        ["sut", "url", "sut_cpus", "load_cpus", "connections", "threads", "rate", "pipeline", "header"];

    /// Sets what `key` (one of [`Self::KEYS`]) stands for; `Err` says what its value must be.
    pub(super) fn set(&mut self, key: &str, value: &DeValue<'_>) -> Result<(), String> {
        match key {
            "sut" => self.sut = Some(text(value)?),
            "url" => self.url = Some(text(value)?),
            "sut_cpus" => self.sut_cpus = Some(cpus(value)?),
            "load_cpus" => self.load_cpus = Some(cpus(value)?),
            "connections" => self.connections = Some(whole(value, CONNECTIONS_MAX)?),
            "threads" => self.threads = Some(whole(value, AT_ONCE_MAX)?),
            "rate" => self.rate_hz = Some(rate_hz(value)?),
            "pipeline" => self.pipeline = Some(whole(value, AT_ONCE_MAX)?),
            "header" => self.header = Some(header(value)?),
            _ => return Err(format!("one of {}", Self::KEYS.join(", "))),
        }
        Ok(())
    }

    /// Only that `key` is `value`; `None` where that is no setting, or cannot be.
    pub(super) fn alone(key: &str, value: &DeValue<'_>) -> Option<Settings> {
        let mut alone = Settings::default();
        alone.set(key, value).ok().map(|()| alone)
    }

    /// Whether nothing of `base` shows below these.
    pub(super) fn hide(&self, base: &Settings) -> bool {
        self.over(base) == *self
    }

    /// These, and where they say nothing, what `base` says.
    pub(super) fn over(&self, base: &Settings) -> Settings {
        Settings {
            sut: self.sut.clone().or_else(|| base.sut.clone()),
            url: self.url.clone().or_else(|| base.url.clone()),
            sut_cpus: self.sut_cpus.clone().or_else(|| base.sut_cpus.clone()),
            load_cpus: self.load_cpus.clone().or_else(|| base.load_cpus.clone()),
            connections: self.connections.or(base.connections),
            threads: self.threads.or(base.threads),
            rate_hz: self.rate_hz.or(base.rate_hz),
            pipeline: self.pipeline.or(base.pipeline),
            header: self.header.clone().or_else(|| base.header.clone()),
        }
    }
}

/// A text that is not empty.
pub(super) fn text(value: &DeValue<'_>) -> Result<String, String> {
    let text = value.as_str().map(str::trim).filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or_else(|| "a text in quotes".to_owned())
}

/// A whole number from 1 to `max`.
pub(super) fn whole(value: &DeValue<'_>, max: u32) -> Result<u32, String> {
    integer(value)
        .and_then(|number| u32::try_from(number).ok())
        .filter(|number| (1..=max).contains(number))
        .ok_or_else(|| format!("a whole number from 1 to {max}"))
}

/// A whole number in any of TOML's ways to write one: 16, 0x10.
pub(super) fn integer(value: &DeValue<'_>) -> Option<u64> {
    match value {
        DeValue::Integer(digits) => u64::from_str_radix(digits.as_str(), digits.radix()).ok(),
        _ => None,
    }
}

/// CPUs in quotes, or a single one.
fn cpus(value: &DeValue<'_>) -> Result<Vec<u32>, String> {
    let list = match value {
        DeValue::String(list) => CpuSet::from_list(list),
        _ => integer(value).and_then(|cpu| CpuSet::from_list(&cpu.to_string())),
    };
    let list = list.filter(|cpus| !cpus.is_empty());
    list.map(|cpus| cpus.to_vec()).ok_or_else(|| "CPUs, as \"0-3,8\"".to_owned())
}

/// What a header may hold, the generator judges.
fn header(value: &DeValue<'_>) -> Result<(String, String), String> {
    let text = text(value).unwrap_or_default();
    let header = text.split_once(':').filter(|(name, _)| !name.trim().is_empty());
    let (name, value) = header.ok_or_else(|| "a header, as \"Connection: close\"".to_owned())?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn rate_hz(value: &DeValue<'_>) -> Result<f64, String> {
    let number: Option<f64> = match value {
        DeValue::Float(digits) => digits.as_str().parse().ok(),
        _ => integer(value).map(|number| number as f64),
    };
    let possible = number.filter(|rate| *rate > 0.0 && *rate <= RATE_HZ_MAX);
    possible.ok_or_else(|| "requests per second, a number above 0".to_owned())
}
