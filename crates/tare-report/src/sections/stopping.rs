//! How well net or gross is known, where that or a budget ended the trials; and what more of them would tell.

use super::source::{Medium, Section, Source};
use crate::block::Block;
use crate::format::{percent, seconds};
use crate::words::things;
use tare_model::comparison::Ended;
use tare_model::outcome::{Stopped, Target};

pub(crate) static SECTION: Section =
    Section { title: "Precision", media: &[Medium::Terminal, Medium::Markdown, Medium::Page], build };

/// Less than this is no news to anybody.
const FLOOR_MIN: f64 = 0.015;

fn build(source: &Source) -> Vec<Block> {
    let outcome = source.outcome;
    match (&outcome.figures.stopping, outcome.answers.commands.len()) {
        (Some(stopped), 0) => vec![Block::Pairs(pairs(stopped, "trial", "runs"))],
        (Some(stopped), 1) => vec![Block::Pairs(pairs(stopped, "run", "sessions"))],
        // Of several commands each says it itself.
        _ => Vec::new(),
    }
}

fn pairs(stopped: &Stopped, trial: &str, sessions: &str) -> Vec<(String, String)> {
    let shows = stopped.detectable.map(|share| {
        let change = percent(share);
        format!(
            "a change of {change} between two such {sessions}, in nine of ten cases, if launches are alike"
        )
    });
    let takes = stopped.one_percent_s.map(|took_s| format!("about {}", seconds(took_s)));
    let asked = stopped.precision.unwrap_or(0.0);
    let floor = stopped.between_sessions.filter(|share| *share >= asked.max(FLOOR_MIN)).map(|share| {
        format!(
            "±{}: this machine's host treats programs unlike by that, however long a session is",
            percent(share)
        )
    });
    let figure = match stopped.target {
        Target::Gross => "gross",
        Target::Net => "net",
        Target::Results => "results",
    };
    let reported = [
        (figure, Some(known(stopped, trial))),
        ("not below", floor),
        ("would show", shows),
        ("±1 % takes", takes),
    ];
    reported.into_iter().filter_map(|(label, text)| Some((label.to_owned(), text?))).collect()
}

/// How well, after how many trials, and why there were no more.
pub(super) fn known(stopped: &Stopped, trial: &str) -> String {
    let known = match stopped.reached {
        Some(reached) => format!("known to ±{} (95 %, whenever it ended)", percent(reached)),
        None => "not known to any precision".to_owned(),
    };
    let asked = stopped.precision.map(|share| format!("; ±{} was asked", percent(share)));
    let ended = match stopped.ended {
        Some(Ended::Precise) => String::new(),
        Some(Ended::Budget) => format!(", no more were to be taken in {}", seconds(stopped.budget_s)),
        None => ", cut short".to_owned(),
    };
    let after = format!("after {} in {}", things(stopped.trials, trial), seconds(stopped.elapsed_s));
    format!("{known} {after}{ended}{}", asked.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(stopped: &Stopped) -> String {
        let lines = pairs(stopped, "trial", "runs").into_iter();
        lines.map(|(label, text)| format!("{label}: {text}\n")).collect::<String>().replace('\u{a0}', " ")
    }

    #[test]
    fn says_what_is_known_and_what_more_would_tell() {
        let stopped = Stopped {
            target: Target::Gross,
            precision: Some(0.01),
            budget_s: 60.0,
            elapsed_s: 21.4,
            trials: 12,
            planned: Some(30),
            ended: Some(Ended::Precise),
            reached: Some(0.0094),
            detectable: Some(0.0123),
            one_percent_s: Some(20.5),
            between_sessions: None,
        };
        assert_eq!(
            said(&stopped),
            "gross: known to ±0.94 % (95 %, whenever it ended) after 12 trials in 21.4 s; ±1.0 % was asked\n\
             would show: a change of 1.2 % between two such runs, in nine of ten cases, if launches are alike\n\
             ±1 % takes: about 20.5 s\n"
        );
        let whole = Stopped { precision: None, ended: Some(Ended::Budget), trials: 30, ..stopped };
        assert!(said(&whole).contains("after 30 trials in 21.4 s, no more were to be taken in 60 s\n"));
        let of_net = Stopped { target: Target::Net, ..stopped };
        assert!(said(&of_net).starts_with("net: known to ±0.94 % (95 %, whenever it ended)"));
        let of_results = Stopped { target: Target::Results, ..stopped };
        assert!(said(&of_results).starts_with("results: known to ±0.94 % (95 %, whenever it ended)"));
        let unlike = Stopped { one_percent_s: None, between_sessions: Some(0.053), ..of_net };
        assert!(
            said(&unlike).contains(
                "not below: ±5.3 %: this machine's host treats programs unlike by that, however long a session is\n"
            ),
            "{}",
            said(&unlike)
        );
        let few = Stopped {
            ended: None,
            trials: 1,
            reached: None,
            detectable: None,
            one_percent_s: None,
            ..stopped
        };
        assert_eq!(
            said(&few),
            "gross: not known to any precision after 1 trial in 21.4 s, cut short; ±1.0 % was asked\n"
        );
    }
}
