//! What was run, and when.

use super::source::{Medium, Section, Source};
use crate::block::{Block, Text};
use tare_model::Record;

pub(crate) static SECTION: Section = Section { title: "", media: &[Medium::Page], build };

fn build(source: &Source) -> Vec<Block> {
    let state = if source.outcome.verdict.valid { "valid" } else { "not valid" };
    vec![Block::Line(Text::dim(format!("{} · {state}", origin(source.record))))]
}

/// The command line, quoted so that a shell takes it again, and when it was given.
pub(crate) fn origin(record: &Record) -> String {
    let plan = &record.plan;
    // Where the program lies says nothing about the measurement.
    let mut words: Vec<&str> = plan.argv.iter().map(String::as_str).collect();
    if let Some(program) = words.first_mut() {
        *program = program.rsplit('/').next().unwrap_or(program);
    }
    format!("{} · {}", shell_words::join(words), utc(plan.started_unix_s))
}

/// Seconds since 1970 as a date and time of day in UTC.
///
/// The date is Howard Hinnant's `civil_from_days` (<https://howardhinnant.github.io/date_algorithms.html>).
pub(crate) fn utc(unix_s: u64) -> String {
    // Far beyond any clock; keeps the arithmetic within its range.
    let unix_s = unix_s.min(253_402_300_799);
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", second / 3600, second / 60 % 60)
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01 00:00 UTC");
        assert_eq!(utc(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(utc(1_795_299_240), "2026-11-21 22:14 UTC");
        assert_eq!(utc(u64::MAX), "9999-12-31 23:59 UTC");
    }
}
