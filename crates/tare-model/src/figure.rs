//! The figures that servers and commands are compared by. Each is described once, in [`TABLE`]: `compare`, `gate`, `plan` and `why` take its
//! name, its words, its unit and what it is made of from there. One more is a variant and a row.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Answers in its own turns over their time, 1/s.
    Throughput,
    /// What it would do with nothing in the way, 1/s. In a comparison of servers that is its CPUs over the CPU time of a request, for each
    /// CPU: it says what that says, the other way round.
    Net,
    /// CPU time of its processes over answers, seconds.
    CpuPerRequest,
    /// Median latency, seconds.
    P50,
    /// 90th percentile of latency, seconds.
    P90,
    /// 99th percentile of latency, seconds.
    P99,
    /// 99.9th percentile of latency, seconds; where each launch has ten thousand answers of each server.
    #[serde(rename = "p99.9")]
    P999,
    /// From the start of a command to its end, seconds.
    Time,
    /// CPU time of a command and of what it waited for, user and system, seconds.
    CpuTime,
}

/// What a figure is counted in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub enum Unit {
    /// Seconds.
    #[serde(rename = "s")]
    Time,
    /// Events per second.
    #[serde(rename = "1/s")]
    Rate,
    /// Busy CPUs.
    #[serde(rename = "CPUs")]
    Cpus,
    /// Of a whole, 0..=1.
    #[serde(rename = "share")]
    Share,
}

/// What a figure is made of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Source {
    /// Answers of a server over time.
    Rate,
    /// The same with nothing in the way.
    Net,
    /// CPU time of a server over its answers.
    CpuPerRequest,
    /// Latency of a server at this quantile.
    Latency(f64),
    /// Wall time of a command.
    Time,
    /// CPU time of a command.
    CpuTime,
}

/// What there is to know of a figure.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Description {
    /// Which one.
    pub figure: Figure,
    /// Its key in data, which is also how people write it.
    pub name: &'static str,
    /// What a reader calls it.
    pub title: &'static str,
    /// How soon it gives way in a narrow table.
    pub rank: u8,
    /// What it is counted in.
    pub unit: Unit,
    /// What it is made of.
    pub source: Source,
    /// Of a server that gave fewer answers it is not known.
    pub answers_min: u64,
    /// Whether a comparison goes on until it is known: a percentile may never be.
    pub is_firm: bool,
}

/// All figures, in the order of reports.
pub const TABLE: [Description; 9] = {
    use Figure::*;
    const fn of(figure: Figure, [name, title]: [&'static str; 2], rank: u8, source: Source) -> Description {
        let unit = match source {
            Source::Rate | Source::Net => Unit::Rate,
            _ => Unit::Time,
        };
        Description { figure, name, title, rank, unit, source, answers_min: 0, is_firm: false }
    }
    const fn firm(description: Description) -> Description {
        Description { is_firm: true, ..description }
    }
    [
        firm(of(Throughput, ["throughput", "throughput"], 0, Source::Rate)),
        of(Net, ["net", "net"], 4, Source::Net),
        firm(of(CpuPerRequest, ["cpu_per_request", "CPU time of a request"], 2, Source::CpuPerRequest)),
        of(P50, ["p50", "p50"], 3, Source::Latency(0.5)),
        of(P90, ["p90", "p90"], 6, Source::Latency(0.9)),
        of(P99, ["p99", "p99"], 1, Source::Latency(0.99)),
        // A tail of 0.1 % shows in ten answers or more.
        Description { answers_min: 10_000, ..of(P999, ["p99.9", "p99.9"], 5, Source::Latency(0.999)) },
        firm(of(Time, ["time", "time"], 0, Source::Time)),
        firm(of(CpuTime, ["cpu_time", "CPU time"], 0, Source::CpuTime)),
    ]
};

impl Figure {
    /// All, in the order of reports.
    pub fn all() -> impl Iterator<Item = Figure> + Clone {
        TABLE.iter().map(|description| description.figure)
    }

    /// Those of a server under load.
    pub fn of_servers() -> impl Iterator<Item = Figure> + Clone {
        Figure::all().filter(|figure| !figure.is_of_commands())
    }

    /// Those of a command that ends.
    pub fn of_commands() -> impl Iterator<Item = Figure> + Clone {
        Figure::all().filter(|figure| figure.is_of_commands())
    }

    fn is_of_commands(self) -> bool {
        matches!(self.describe().source, Source::Time | Source::CpuTime)
    }

    /// What there is to know of it.
    pub fn describe(self) -> &'static Description {
        &TABLE[self as usize]
    }

    /// Its key in data.
    pub fn name(self) -> &'static str {
        self.describe().name
    }

    /// What a reader calls it.
    pub fn title(self) -> &'static str {
        self.describe().title
    }

    /// Whether it is one more chance to be wrong in a comparison; net is the CPU time of a request turned round.
    pub fn is_of_its_own(self) -> bool {
        self != Figure::Net
    }

    /// Whether more of it is better.
    pub fn higher_is_better(self) -> bool {
        self.describe().unit == Unit::Rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_in_its_own_row_and_written_as_it_is_called() {
        for (at, description) in TABLE.iter().enumerate() {
            assert_eq!(description.figure as usize, at);
            assert_eq!(serde_json::to_value(description.figure).unwrap(), description.name);
        }
        assert_eq!(Figure::of_servers().count() + Figure::of_commands().count(), TABLE.len());
    }
}
