//! From text to a plan: TOML, known keys, values that can be.

use super::expect;
use super::nearest::hint;
use super::planfile::{Case, Factor, PlanFile};
use super::resolve::{BLOCKS_MAX, BLOCKS_MIN};
use super::settings::Settings;
use super::settings::{integer, text, whole};
use crate::error::LabError;
use crate::request::Warmup;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

/// The keys of a plan beside those of [`Settings`].
const PLAN_KEYS: [&str; 13] = [
    "name",
    "blocks",
    "reruns",
    "budget",
    "precision",
    "trials",
    "trial",
    "warmup",
    "start_timeout",
    "seed",
    "baseline",
    "factors",
    "case",
];
/// The keys of a case beside those of [`Settings`].
const CASE_KEYS: [&str; 4] = ["name", "baseline", "needs_cpus", "expect"];
/// Longest plan that is read, bytes.
const TEXT_MAX: usize = 1 << 20;
const TRIALS_MAX: u32 = 1000;
const CPUS_MAX: u32 = 65_536;

type Value<'i> = Spanned<DeValue<'i>>;

/// Reads a plan of one or more texts, of which later ones go before earlier ones, each with what the reader calls it; everything wrong is a
/// usage error of one line that begins with that and the line.
pub fn read(texts: &[(&str, &str)]) -> Result<PlanFile, LabError> {
    let mut plan = PlanFile::unwritten();
    let mut earlier = None;
    for &(text, file) in texts {
        let source = Source { plan: text, file };
        if text.len() > TEXT_MAX {
            return Err(source.wrong(0..0, format!("longer than {} KiB", TEXT_MAX >> 10), ""));
        }
        let table = DeTable::parse(text).map_err(|error| {
            let what = error.message().lines().collect::<Vec<_>>().join("; ");
            source.wrong(error.span().unwrap_or(0..0), what, "a plan is written in TOML")
        })?;
        if let Some(earlier) = earlier {
            source.goes_before(&plan, earlier, table.get_ref())?;
        }
        source.fill(&mut plan, table.get_ref())?;
        earlier = Some(file);
    }
    if plan.cases.is_empty() {
        plan.cases.push(Case::unnamed());
    }
    Ok(plan)
}

/// Where a plan came from, to say where it is wrong.
struct Source<'a> {
    plan: &'a str,
    file: &'a str,
}

impl Source<'_> {
    fn wrong(&self, at: Range<usize>, what: impl std::fmt::Display, hint: impl Into<String>) -> LabError {
        let before = self.plan.get(..at.start.min(self.plan.len())).unwrap_or("");
        let line = before.matches('\n').count() + 1;
        LabError::usage(format!("{}:{line}: {what}", self.file), hint)
    }

    fn must_be(&self, key: &str, value: &Value<'_>, what: impl std::fmt::Display) -> LabError {
        self.wrong(
            value.span(),
            format!("'{key}' must be {what}"),
            "'tare help plans' shows a plan with every key",
        )
    }

    fn unknown(&self, key: &Spanned<DeString<'_>>, known: &[&[&str]]) -> LabError {
        let known: Vec<&str> = known.concat();
        self.wrong(key.span(), format!("unknown key '{}'", key.get_ref()), hint(key.get_ref(), &known))
    }

    /// What a later text says must not be lost on what an earlier one has below it, nor take from its cases what makes them differ.
    fn goes_before(&self, plan: &PlanFile, earlier: &str, table: &DeTable<'_>) -> Result<(), LabError> {
        let set = table
            .iter()
            .filter_map(|(key, value)| Some((key, Settings::alone(key.get_ref(), value.get_ref())?, false)));
        let factors = table.get("factors").and_then(|factors| factors.get_ref().as_table());
        let varied = factors.into_iter().flatten().filter_map(|(key, levels)| {
            let level = levels.get_ref().as_array()?.first()?;
            Some((key, Settings::alone(key.get_ref(), level.get_ref())?, true))
        });
        for (key, settings, varied) in set.chain(varied) {
            let name = key.get_ref().as_ref();
            let case = plan.cases.iter().find(|case| case.settings.hide(&settings));
            let factor = plan.factors.iter().any(|factor| factor.key == name && !varied);
            let of = match case {
                Some(case) => format!("its case '{}' sets it", case.name),
                None if factor => "it varies it".to_owned(),
                None => continue,
            };
            let what = format!("'{name}' cannot go before what {earlier} says: {of}");
            return Err(self.wrong(key.span(), what, format!("change it in {earlier}")));
        }
        Ok(())
    }

    fn fill(&self, plan: &mut PlanFile, table: &DeTable<'_>) -> Result<(), LabError> {
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let of = |what: String| self.must_be(name, value, what);
            match name {
                "name" => plan.name = text(value.get_ref()).map_err(of)?,
                "blocks" => plan.blocks = Some(self.blocks(value)?),
                "reruns" => plan.reruns = whole(value.get_ref(), BLOCKS_MAX).map_err(of)?,
                "trials" => plan.trials = whole(value.get_ref(), TRIALS_MAX).map_err(of)?,
                "budget" => plan.budget = Some(duration(value.get_ref()).map_err(of)?),
                "precision" => plan.precision = Some(precision(value.get_ref()).map_err(of)?),
                "trial" => plan.trial = duration(value.get_ref()).map_err(of)?,
                "warmup" => plan.warmup = Warmup::Fixed(duration(value.get_ref()).map_err(of)?),
                "start_timeout" => plan.start_timeout = Some(duration(value.get_ref()).map_err(of)?),
                "seed" => plan.seed = Some(u64::from(whole(value.get_ref(), u32::MAX).map_err(of)?)),
                "baseline" => plan.baseline = Some(text(value.get_ref()).map_err(of)?),
                "factors" => {
                    let factors = self.factors(value)?;
                    plan.factors.retain(|old| factors.iter().all(|new| new.key != old.key));
                    plan.factors.extend(factors);
                }
                "case" => plan.cases = self.cases(value)?,
                _ if Settings::KEYS.contains(&name) => {
                    plan.settings.set(name, value.get_ref()).map_err(of)?;
                }
                _ => return Err(self.unknown(key, &[&PLAN_KEYS, &Settings::KEYS])),
            }
        }
        self.names(table, plan)
    }

    /// A single block has no spread: nothing that is expected could be judged by its figures.
    fn blocks(&self, value: &Value<'_>) -> Result<u32, LabError> {
        match whole(value.get_ref(), BLOCKS_MAX) {
            Ok(blocks) if blocks >= BLOCKS_MIN => Ok(blocks),
            _ => Err(self.wrong(
                value.span(),
                format!("'blocks' must be a whole number from {BLOCKS_MIN} to {BLOCKS_MAX}"),
                "one block has no spread, so that no interval is known; for a quick run take 2 with a shorter 'trial'",
            )),
        }
    }

    /// Names that are used must be there.
    fn names(&self, table: &DeTable<'_>, plan: &PlanFile) -> Result<(), LabError> {
        let names: Vec<&str> = plan.cases.iter().map(|case| case.name.as_str()).collect();
        let cases = table.get("case").and_then(|cases| cases.get_ref().as_array());
        let cases = cases.into_iter().flat_map(|cases| cases.iter());
        let tables = cases.filter_map(|case| case.get_ref().as_table()).chain([table]);
        for value in tables.filter_map(|table| table.get("baseline")) {
            let Some(name) = value.get_ref().as_str().filter(|name| !names.contains(name)) else { continue };
            let what = format!("there is no case '{name}' to be the baseline");
            return Err(self.wrong(value.span(), what, hint(name, &names)));
        }
        Ok(())
    }

    fn factors(&self, value: &Value<'_>) -> Result<Vec<Factor>, LabError> {
        let Some(table) = value.get_ref().as_table() else {
            return Err(self.must_be("factors", value, "a table of lists, as [factors] threads = [1, 2, 4]"));
        };
        let mut factors = Vec::new();
        for (key, levels) in table {
            let name = key.get_ref().as_ref();
            if !Settings::KEYS.contains(&name) {
                return Err(self.unknown(key, &[&Settings::KEYS]));
            }
            let Some(list) = levels.get_ref().as_array().filter(|list| !list.is_empty()) else {
                return Err(self.must_be(name, levels, "a list of its levels, as [1, 2, 4]"));
            };
            let mut factor = Factor { key: name.to_owned(), levels: Vec::new() };
            for level in list.iter() {
                let mut settings = Settings::default();
                settings.set(name, level.get_ref()).map_err(|what| self.must_be(name, level, what))?;
                let label = as_written(level.get_ref());
                if factor.levels.iter().any(|(_, other)| *other == settings) {
                    return Err(self.wrong(
                        level.span(),
                        format!("'{name}' has the level {label} twice"),
                        "leave one of them out",
                    ));
                }
                factor.levels.push((label, settings));
            }
            factors.push(factor);
        }
        Ok(factors)
    }

    fn cases(&self, value: &Value<'_>) -> Result<Vec<Case>, LabError> {
        let Some(list) = value.get_ref().as_array() else {
            return Err(self.must_be("case", value, "a list of tables, each under [[case]]"));
        };
        let mut names = BTreeSet::new();
        let mut cases = Vec::new();
        for value in list.iter() {
            let Some(table) = value.get_ref().as_table() else {
                return Err(self.must_be("case", value, "a list of tables, each under [[case]]"));
            };
            let case = self.case(table)?;
            if case.name.is_empty() {
                return Err(self.wrong(
                    value.span(),
                    "a case has no name",
                    "add name = \"…\" below [[case]]",
                ));
            }
            if !names.insert(case.name.clone()) {
                return Err(self.wrong(
                    value.span(),
                    format!("there are two cases '{}'", case.name),
                    "give each a name of its own",
                ));
            }
            cases.push(case);
        }
        Ok(cases)
    }

    fn case(&self, table: &DeTable<'_>) -> Result<Case, LabError> {
        let mut case = Case::unnamed();
        for (key, value) in table {
            let name = key.get_ref().as_ref();
            let of = |what: String| self.must_be(name, value, what);
            match name {
                "name" => case.name = text(value.get_ref()).map_err(of)?,
                "baseline" => case.baseline = Some(text(value.get_ref()).map_err(of)?),
                "needs_cpus" => case.needs_cpus = whole(value.get_ref(), CPUS_MAX).map_err(of)?,
                "expect" => {
                    let written = text(value.get_ref()).map_err(of)?;
                    case.expect = expect::parse(&written)
                        .map_err(|error| self.wrong(value.span(), &error.what, error.hint.clone()))?;
                }
                _ if Settings::KEYS.contains(&name) => {
                    case.settings.set(name, value.get_ref()).map_err(of)?;
                }
                _ => return Err(self.unknown(key, &[&CASE_KEYS, &Settings::KEYS])),
            }
        }
        Ok(case)
    }
}

fn duration(value: &DeValue<'_>) -> Result<Duration, String> {
    let length = match value {
        DeValue::String(text) => crate::duration(text).ok(),
        _ => integer(value).and_then(|seconds| crate::duration(&seconds.to_string()).ok()),
    };
    length
        .filter(|length| !length.is_zero())
        .ok_or_else(|| "a length of time, as \"500ms\", \"2s\" or \"5m\"".to_owned())
}

/// A share that an interval can reach to either side.
fn precision(value: &DeValue<'_>) -> Result<f64, String> {
    let share = value.as_str().and_then(|text| expect::percent(text.trim()));
    share
        .filter(|share| *share > 0.0 && *share < 1.0)
        .ok_or_else(|| "a share below 100 %, as \"2%\"".to_owned())
}

/// A level as its author wrote it, without quotes.
fn as_written(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(digits) => digits.to_string(),
        DeValue::Float(digits) => digits.as_str().to_owned(),
        DeValue::Array(list) => {
            list.iter().map(|value| as_written(value.get_ref())).collect::<Vec<_>>().join(" and ")
        }
        _ => String::new(),
    }
}
