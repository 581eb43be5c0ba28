//! What a case can set.

use tare_model::CpuSet;
use tare_model::placement::Policy;
use toml::de::DeValue;

/// Most connections, as of `tare load`.
const CONNECTIONS_MAX: u32 = 1_000_000;
/// Most threads, or requests at once.
const AT_ONCE_MAX: u32 = 1024;
/// Most requests a second that anybody asks for.
const RATE_HZ_MAX: f64 = 1e9;

/// Stands for no settings, or no command beside: what the plan sets for all is not for this one.
const NONE: &str = "none";
/// Most settings of the machine in one cell, as of `--set-b`.
const TUNED_MAX: usize = 32;

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
    /// How the CPUs of a server that is started are chosen.
    pub placement: Option<Policy>,
    /// Settings of the machine that it is measured with, as `compare --set-b` has them: `thp=never`.
    pub tuned: Option<Vec<String>>,
    /// A command that runs meanwhile, through sh; empty: none.
    pub beside: Option<String>,
}

impl Settings {
    /// The keys, as a plan writes them.
    pub(super) const KEYS: [&str; 12] = [
        "sut",
        "url",
        "sut_cpus",
        "load_cpus",
        "connections",
        "threads",
        "rate",
        "pipeline",
        "header",
        "placement",
        "set",
        "beside",
    ];

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
            "placement" => self.placement = Some(placement(value)?),
            "set" => self.tuned = Some(tuned(value)?),
            "beside" => {
                self.beside = Some(text(value)?).map(|text| if text == NONE { String::new() } else { text })
            }
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
            placement: self.placement.or(base.placement),
            tuned: self.tuned.clone().or_else(|| base.tuned.clone()),
            beside: self.beside.clone().or_else(|| base.beside.clone()),
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

fn placement(value: &DeValue<'_>) -> Result<Policy, String> {
    let policy = value.as_str().and_then(|text| text.trim().parse().ok());
    policy.ok_or_else(|| "auto, spread, same-node, smt-pairs or random:SEED".to_owned())
}

/// A setting in quotes, or a list of them. What each name stands for is judged by who knows the settings.
fn tuned(value: &DeValue<'_>) -> Result<Vec<String>, String> {
    let wrong = || format!("a setting, as \"thp=never\", a list of them, or \"{NONE}\"");
    let one = |value: &DeValue<'_>| text(value).ok().filter(|text| text.contains('=')).ok_or_else(wrong);
    match value {
        DeValue::String(text) if text.trim() == NONE => Ok(Vec::new()),
        DeValue::Array(list) if (1..=TUNED_MAX).contains(&list.len()) => {
            list.iter().map(|value| one(value.get_ref())).collect()
        }
        value => one(value).map(|one| vec![one]),
    }
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
