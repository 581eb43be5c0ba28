//! Shows a session's progress on standard error: a bar on a terminal, plain lines elsewhere, nothing with -q.

use crate::terminal::say;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};
use tare_run::progress::{Event, Progress, Silent};

/// Plain lines of live figures come at most this often.
const PLAIN_EVERY: Duration = Duration::from_secs(5);
/// Finished trials are shown at most this often: a short program has hundreds of them.
const DONE_EVERY: Duration = Duration::from_millis(500);

/// The progress display that fits where standard error goes.
pub fn display(quiet: bool) -> Box<dyn Progress> {
    if quiet {
        Box::new(Silent)
    } else if std::io::stderr().is_terminal() && !prints_decisions() {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        // Nothing is known of its length yet. A template that does not parse would be a defect of this line; the default then serves.
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Box::new(Bar { bar, total_s: None })
    } else {
        Box::new(Lines { last_live: Instant::now(), last_done: None, phase: None })
    }
}

/// A bar would be drawn over their lines.
fn prints_decisions() -> bool {
    tracing::level_filters::LevelFilter::current() != tracing::level_filters::LevelFilter::OFF
}

struct Bar {
    bar: ProgressBar,
    /// How long all of it takes, once that is known.
    total_s: Option<f64>,
}

impl Progress for Bar {
    fn show(&mut self, event: Event) {
        match event {
            Event::Step(text) | Event::Notice(text) => self.bar.println(text),
            Event::Expected { total_s } => {
                self.total_s = Some(total_s);
                self.bar.set_length((total_s * 1e3) as u64);
                // A template that does not parse would be a defect of this line; the default then serves.
                if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3}%  {msg}") {
                    self.bar.set_style(style);
                }
            }
            Event::Live { elapsed_s, rate_hz, phase } => {
                self.bar.set_position(position_ms(elapsed_s, self.total_s));
                let left = self.total_s.and_then(|total_s| left(total_s - elapsed_s)).unwrap_or_default();
                let parts = [phase, rate(rate_hz), left];
                let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                self.bar.set_message(parts.join("  "));
            }
            Event::TrialDone { .. } => {}
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

struct Lines {
    last_live: Instant,
    last_done: Option<Instant>,
    /// What was being done last.
    phase: Option<String>,
}

impl Progress for Lines {
    fn show(&mut self, event: Event) {
        match event {
            Event::Step(text) | Event::Notice(text) => say(&format!("tare: {text}")),
            Event::Expected { total_s } => say(&format!("tare: this takes about {total_s:.0} s")),
            Event::Live { rate_hz, phase, .. } => {
                if self.last_live.elapsed() >= PLAIN_EVERY {
                    self.last_live = Instant::now();
                    let rate = rate(rate_hz);
                    say(&format!("tare: {phase}{}{rate}", if rate.is_empty() { "" } else { ", " }));
                }
                self.phase = Some(phase);
            }
            Event::TrialDone { seq, value, unit } => {
                if self.last_done.is_some_and(|at| at.elapsed() < DONE_EVERY) {
                    return;
                }
                self.last_done = Some(Instant::now());
                let value = match (value, unit) {
                    (None, _) => "not counted".to_string(),
                    (Some(seconds), "s") => format!("{seconds:.4} s"),
                    (Some(value), unit) => format!("{value:.0} {unit}"),
                };
                // By the name that it had while it ran: trials of several levels are counted apart.
                let trial = self.phase.clone().unwrap_or_else(|| format!("trial {}", seq + 1));
                say(&format!("tare: {trial} done, {value}"));
            }
        }
    }
}

/// What takes longer than was expected has not ended: its bar stays short of full.
const FULL_BEFORE_END: f64 = 0.99;

fn position_ms(elapsed_s: f64, total_s: Option<f64>) -> u64 {
    (1e3 * elapsed_s.min(total_s.map_or(f64::INFINITY, |total_s| FULL_BEFORE_END * total_s))) as u64
}

/// Longer times are given in minutes.
const IN_MINUTES_S: f64 = 120.0;

/// `about 12 s left`; nothing where less than a second is left, or more time has passed than was expected.
fn left(left_s: f64) -> Option<String> {
    match left_s {
        left_s if left_s >= IN_MINUTES_S => Some(format!("about {:.0} min left", left_s / 60.0)),
        left_s if left_s >= 1.0 => Some(format!("about {left_s:.0} s left")),
        _ => None,
    }
}

fn rate(rate_hz: Option<f64>) -> String {
    rate_hz.map_or_else(String::new, |rate| format!("{rate:.0} req/s"))
}

#[cfg(test)]
mod tests {
    use super::{left, position_ms};

    #[test]
    fn a_bar_is_full_at_the_end_alone() {
        assert_eq!(position_ms(3.0, Some(10.0)), 3000);
        assert_eq!((position_ms(10.0, Some(10.0)), position_ms(25.0, Some(10.0))), (9900, 9900));
        assert_eq!(position_ms(25.0, None), 25_000);
    }

    #[test]
    fn time_left_is_said_while_there_is_some() {
        let of = |left_s: f64| left(left_s).unwrap_or_default();
        assert_eq!((of(12.4).as_str(), of(1.0).as_str()), ("about 12 s left", "about 1 s left"));
        assert_eq!((of(119.0).as_str(), of(150.0).as_str()), ("about 119 s left", "about 2 min left"));
        assert_eq!((of(0.9), of(-3.0), of(f64::NAN)), (String::new(), String::new(), String::new()));
    }
}
