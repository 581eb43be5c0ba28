//! Prints to standard error how a result is reached, with `-v`, `-vv` or `TARE_LOG`.

use crate::failure::Failure;
use anyhow::anyhow;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// What can be printed.
const TOPICS: [&str; 4] = ["sut", "placement", "rules", "readings"];
const VARIABLE: &str = "TARE_LOG";

/// Prints decisions from now on: once `-v` the main ones, twice all; what `TARE_LOG` says counts more.
///
/// # Errors
/// `TARE_LOG` is not a list of topics and levels.
pub fn print(verbose: u8) -> Result<(), Failure> {
    let asked = std::env::var(VARIABLE).ok().filter(|text| !text.trim().is_empty());
    let level = match (&asked, verbose) {
        (None, 0) => return Ok(()),
        (None, 1) => LevelFilter::INFO,
        (None, _) | (Some(_), _) => LevelFilter::DEBUG,
    };
    let targets = match &asked {
        Some(text) => parsed(text)?,
        None => TOPICS.iter().map(|topic| (*topic, level)).collect(),
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_level(false)
        .without_time()
        .compact();
    // Nobody else sets one up in this program.
    tracing_subscriber::registry().with(targets).with(lines).try_init().ok();
    Ok(())
}

/// `debug`, `rules`, or `sut=info,rules=debug`.
fn parsed(text: &str) -> Result<Targets, Failure> {
    let mut targets = Targets::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (topic, level) = part.split_once('=').map_or((part, "debug"), |(topic, level)| (topic, level));
        targets = match (topic, level.parse::<LevelFilter>(), part.parse::<LevelFilter>()) {
            (_, _, Ok(level)) => targets.with_targets(TOPICS.map(|topic| (topic, level))),
            (topic, Ok(level), _) if TOPICS.contains(&topic) => targets.with_target(topic, level),
            _ => {
                return Err(Failure::usage(anyhow!(
                    "{VARIABLE}: {part:?} is no topic with a level (hint: {VARIABLE}=debug, or one of {} with a level, \
                     as in {VARIABLE}=sut=info,rules=debug)",
                    TOPICS.join(", ")
                )));
            }
        };
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn topics_and_levels_are_read() {
        let of =
            |text: &str, topic: &str, level| parsed(text).map(|all| all.would_enable(topic, &level)).ok();
        assert_eq!(of("debug", "rules", Level::DEBUG), Some(true));
        assert_eq!(of("rules", "rules", Level::DEBUG), Some(true));
        assert_eq!(of("rules", "sut", Level::INFO), Some(false));
        assert_eq!(of("sut=info, rules=debug", "sut", Level::DEBUG), Some(false));
        assert_eq!(of("sut=info, rules=debug", "rules", Level::DEBUG), Some(true));
        for bad in ["rule", "rules=loud", "h2=debug", "=info"] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}
