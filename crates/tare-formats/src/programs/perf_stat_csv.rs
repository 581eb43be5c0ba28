//! The lines of `perf stat -x`: which columns there are depends on other options, and no line says it.

use super::perf_stat_count::Count;
use std::borrow::Cow;

/// A line of fields.
pub(super) struct Line;

/// The event's name and the figures behind it are searched in so many fields.
const FIELDS_MAX: usize = 40;
/// Before the count: time, place, number of CPUs.
const BEFORE_MAX: usize = 3;
/// Units that the kernel and its drivers have for counts.
const UNITS: [&str; 6] = ["", "msec", "ns", "Joules", "MiB", "Bytes"];

impl Line {
    /// The count in it, whichever character parts its fields.
    pub fn of(line: &str) -> Option<Count<'_>> {
        [',', ';', '\t', '|'].into_iter().find_map(|separator| count(line, separator))
    }
}

fn count(line: &str, separator: char) -> Option<Count<'_>> {
    if line.starts_with('#') || !line.contains(separator) {
        return None;
    }
    let fields: Vec<&str> = line.split(separator).map(str::trim).take(FIELDS_MAX).collect();
    let (at, shape) = (0..=BEFORE_MAX).find_map(|at| Some((at, shape_at(&fields, at, separator)?)))?;
    let number = |text: &str| decimal(text, separator).and_then(|text| text.parse::<f64>().ok());
    let (before, rest) = (fields.get(..at)?, fields.get(at..)?);
    let (value, unit) = (*rest.first()?, *rest.get(1)?);
    let mut count = Count {
        value: decimal(value, separator).unwrap_or(Cow::Borrowed(value)),
        unit: Cow::Borrowed(unit),
        event: shape.event(rest, separator),
        cgroup: shape.cgroup.and_then(|at| rest.get(at).copied()),
        variance: shape.variance.and_then(|at| number(rest.get(at)?.trim_end_matches('%'))),
        running: rest.get(shape.runtime + 1).and_then(|percent| number(percent)),
        ..Count::default()
    };
    let derived = rest.get(shape.runtime + 2).copied().and_then(number);
    let what = rest.get(shape.runtime + 3).copied().unwrap_or_default();
    count.derived = derived.map(|value| (value, Cow::Borrowed(what)));
    for field in before {
        match number(field) {
            Some(at_s) if field.contains(['.', ',']) => count.at_s = Some(at_s),
            // How many CPUs the place has.
            Some(_) => {}
            None if *field == "summary" => count.is_total = true,
            None => count.place = Some(Cow::Borrowed(*field)),
        }
    }
    Some(count)
}

/// Where in the fields from the count on the others stand.
struct Shape {
    /// Last field of the event's name.
    event_end: usize,
    cgroup: Option<usize>,
    variance: Option<usize>,
    runtime: usize,
}

impl Shape {
    /// The run time in nanoseconds and the per cent of it are what every line has: a whole number and one with two decimals.
    fn of(rest: &[&str], separator: char) -> Option<Shape> {
        let is_whole = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let is_percent = |text: &str| {
            decimal(text, separator).is_some_and(|text| {
                text.split_once('.').is_some_and(|(_, decimals)| decimals.len() == 2)
                    && text.parse::<f64>().is_ok_and(|percent| (0.0..=100.0).contains(&percent))
            })
        };
        let runtime = (3..rest.len().saturating_sub(1)).find(|at| {
            rest.get(*at).is_some_and(|text| is_whole(text))
                && rest.get(at + 1).is_some_and(|text| is_percent(text))
        })?;
        if !is_behind(rest.get(runtime + 2..)?, rest.get(1)?, separator) {
            return None;
        }
        let mut end = runtime;
        let is_variance = |at: usize| rest.get(at).is_some_and(|text| text.len() > 1 && text.ends_with('%'));
        let variance = (end > 3 && is_variance(end - 1)).then(|| end - 1);
        end = variance.unwrap_or(end);
        // An event of a unit has its commas between slashes; what stands behind the last slash is a control group.
        let named = rest.get(2..end)?;
        let slashes = named.iter().map(|part| part.matches('/').count()).sum::<usize>();
        let is_of_unit = named.len() > 1 && named.first().is_some_and(|part| part.contains('/'));
        let closing = named.iter().skip(1).position(|part| part.contains('/')).map(|at| at + 1);
        let event_end = match closing {
            Some(closing)
                if is_of_unit
                    && slashes >= 2
                    && named.first().is_some_and(|p| p.matches('/').count() == 1) =>
            {
                2 + closing
            }
            _ => 2,
        };
        match end - 1 - event_end {
            0 => Some(Shape { event_end, cgroup: None, variance, runtime }),
            1 => Some(Shape { event_end, cgroup: Some(end - 1), variance, runtime }),
            _ => None,
        }
    }

    fn event<'a>(&self, rest: &[&'a str], separator: char) -> Cow<'a, str> {
        match rest.get(2..=self.event_end).unwrap_or_default() {
            [event] => Cow::Borrowed(*event),
            parts => Cow::Owned(parts.join(&separator.to_string())),
        }
    }
}

/// What stands where, if the count stands in this field: what is before it, itself, its unit and the event's name have their shapes.
fn shape_at(fields: &[&str], at: usize, separator: char) -> Option<Shape> {
    let (before, rest) = (fields.get(..at)?, fields.get(at..)?);
    let (value, unit, event) = (rest.first()?, rest.get(1)?, rest.get(2)?);
    let is_value = value.starts_with("<not ")
        || decimal(value, separator).is_some_and(|value| value.parse::<f64>().is_ok_and(f64::is_finite));
    let is_unit = !unit.starts_with(|c: char| c.is_ascii_digit() || c == '<');
    let is_event = event.starts_with(|c: char| c.is_ascii_alphabetic() || c == '{');
    if is_event && is_unit && is_value && is_before(before, separator) {
        Shape::of(rest, separator)
    } else {
        None
    }
}

/// Whether such fields stand behind the per cent: another figure and what it is, maybe both empty. Before version 4.6, and in a line that is cut
/// off, there may be none: what has a unit that perf does not know is then a table of others.
fn is_behind(fields: &[&str], unit: &str, separator: char) -> bool {
    let is_figure = |text: &str| {
        text.is_empty() || decimal(text, separator).is_some_and(|text| text.parse::<f64>().is_ok())
    };
    match fields {
        [] => UNITS.contains(&unit),
        [figure] => UNITS.contains(&unit) && is_figure(figure),
        [figure, what, ..] => is_figure(figure) && !what.starts_with(|c: char| c.is_ascii_digit()),
    }
}

/// Nothing, the time, the place, or the place and how many CPUs it has.
fn is_before(fields: &[&str], separator: char) -> bool {
    let is_time = |text: &str| {
        *text == *"summary"
            || decimal(text, separator).is_some_and(|text| text.contains('.') && text.parse::<f64>().is_ok())
    };
    let is_place = |text: &str| text.starts_with(|c: char| c.is_ascii_alphabetic()) || text.contains('-');
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    let rest = match fields {
        [first, rest @ ..] if is_time(first) => rest,
        rest => rest,
    };
    match rest {
        [] => true,
        [place] => is_place(place),
        [place, count] => is_place(place) && is_number(count),
        _ => false,
    }
}

/// With a point, where a comma can be nothing else.
fn decimal(text: &str, separator: char) -> Option<Cow<'_, str>> {
    match text.matches(',').count() {
        0 => Some(Cow::Borrowed(text)),
        1 if separator != ',' && !text.contains('.') => Some(Cow::Owned(text.replace(',', "."))),
        _ => None,
    }
}

/// A second figure of the event in the line before: nothing but places before it, and its name last.
pub(super) fn derived(line: &str) -> Option<Count<'_>> {
    let separator = [',', ';'].into_iter().find(|separator| line.matches(*separator).count() >= 5)?;
    let fields: Vec<&str> = line.split(separator).map(str::trim).take(FIELDS_MAX).collect();
    let [before @ .., value, what] = fields.as_slice() else { return None };
    let empty = before.iter().rev().take_while(|field| field.is_empty()).count();
    let places = before.get(..before.len() - empty)?;
    let value: f64 = decimal(value, separator)?.parse().ok()?;
    if empty < 4 || what.is_empty() || !is_before(places, separator) {
        return None;
    }
    let mut count = Count { derived: Some((value, Cow::Borrowed(*what))), ..Count::default() };
    for place in places {
        match place.parse::<f64>() {
            Ok(at_s) if place.contains('.') => count.at_s = Some(at_s),
            Ok(_) => {}
            Err(_) if *place == "summary" => count.is_total = true,
            Err(_) => count.place = Some(Cow::Borrowed(*place)),
        }
    }
    Some(count)
}

/// Whether it was to be such a line: a number and a comma, and the unit or event of one.
pub(super) fn is_broken(line: &str) -> bool {
    let line = line.trim_start();
    let begins = line.starts_with("<not ") || line.starts_with(|c: char| c.is_ascii_digit());
    let fields = line.split([',', ';']).count();
    // Lines that only go on with a metric of the event before have no count.
    begins
        && fields >= 3
        && line.split([',', ';']).any(|field| matches!(field, "msec" | "" | "ns" | "Joules"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_another_table_is_no_count() {
        for line in [
            "4.2,ms,login,1000,99.5",
            "4.2,ms,login,1000,99.50",
            "4.2,ms,login,1000,99.50,yes,no",
            "4.2,ms,login,1000,99.50,1.5,200",
            "4.2,ms,login,1000,-1.00,,",
            "latency,unit,endpoint,count,percent",
        ] {
            assert!(Line::of(line).is_none(), "{line}");
        }
    }

    #[test]
    fn rows_of_perf_are_counts_whatever_stands_behind() {
        for line in [
            "1234,,cycles,831875,100.00",
            "0.81,msec,task-clock,809510,100.00,0.132,CPUs utilized",
            "0.81;msec;task-clock;809510;100,00;0,132;CPUs utilized",
            "12.5,W,power/energy/,809510,100.00,,",
            "7,,instructions,831875,99.00,,insn per cycle",
            "49,,page-faults,809510,100.00,60.5",
        ] {
            assert!(Line::of(line).is_some(), "{line}");
        }
    }
}
