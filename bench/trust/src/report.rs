//! From comparisons to how often they were wrong.

use crate::today::{self, Tool};
use crate::{Question, Results, Row, median};
use tare_model::comparison::{Change, Effect, Figure, Verdict};

/// A difference of a server from itself by more than this is a grave error.
const GRAVE: f64 = 0.02;

fn differs(effect: &Effect) -> bool {
    matches!(effect.verdict, Verdict::Faster | Verdict::Slower)
}

/// What a row was to tell.
fn is_right(row: &Row) -> bool {
    match row.question {
        Question::Aa => !row.effects.iter().any(differs),
        // Dearer by what is known is slower; all else is wrong.
        Question::Power2 | Question::Power1 => {
            let slower = |effect: &Effect| effect.verdict == Verdict::Slower;
            row.effects.iter().any(slower)
                && row.effects.iter().all(|effect| slower(effect) || !differs(effect))
        }
    }
}

fn is_grave(row: &Row) -> bool {
    let by = |effect: &Effect| effect.change.map_or(0.0, |change| change.value.abs());
    row.question == Question::Aa && row.effects.iter().any(|effect| differs(effect) && by(effect) > GRAVE)
}

/// A row as it comes.
pub fn line(row: &Row) -> String {
    let told = row.effects.iter().map(|effect| {
        let change = effect.change.map_or("–".to_owned(), |Change { value, interval: [low, high] }| {
            format!("{:+.2} ({:+.2} to {:+.2})", value * 100.0, low * 100.0, high * 100.0)
        });
        format!("{} {change}{}", effect.figure.name(), if differs(effect) { " !" } else { "" })
    });
    let word = if is_right(row) { "right" } else { "wrong" };
    let told = told.collect::<Vec<_>>().join(", ");
    let name = row.server.name();
    format!("{:?} {name}: {word}, {} launches in {:.0} s: {told}", row.question, row.launches, row.elapsed_s)
}

/// A row for each question and server.
pub fn markdown(results: &Results) -> String {
    let mut text = "| question | server | right | of | told by more than 2 % | median s | median launches | ± throughput | ± CPU of a request |\n\
                    |---|---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for question in Question::ALL {
        let asked: Vec<&Row> = results.rows.iter().filter(|row| row.question == question).collect();
        let servers = crate::servers::Server::ALL.map(Some).into_iter().chain([None]);
        for server in servers {
            let rows: Vec<&Row> = asked
                .iter()
                .filter(|row| server.is_none_or(|server| row.server == server))
                .copied()
                .collect();
            if rows.is_empty() {
                continue;
            }
            let half = |figure: Figure| {
                let of = |row: &&Row| {
                    let change = row.effects.iter().find(|effect| effect.figure == figure)?.change?;
                    Some((change.interval[1] - change.interval[0]) / 2.0)
                };
                let halves: Vec<f64> = rows.iter().filter_map(of).collect();
                median(halves).map_or("–".to_owned(), |half| format!("{:.2} %", half * 100.0))
            };
            text += &format!(
                "| {}, {} s | {} | {} | {} | {} | {:.0} | {:.0} | {} | {} |\n",
                asked_of(question),
                question.budget_s(false),
                server.map_or("all", |server| server.name()),
                rows.iter().filter(|row| is_right(row)).count(),
                rows.len(),
                rows.iter().filter(|row| is_grave(row)).count(),
                median(rows.iter().map(|row| row.elapsed_s).collect()).unwrap_or(0.0),
                median(rows.iter().map(|row| row.launches as f64).collect()).unwrap_or(0.0),
                half(Figure::Throughput),
                half(Figure::CpuPerRequest),
            );
        }
    }
    text += &of_today(&results.today);
    text += &crate::work::markdown(results);
    for planted in &results.calibrations {
        let [low, high] = planted.costlier.interval.map(|end| end * 100.0);
        text += &format!(
            "\n{}: {} ns more are {:+.1} % ({low:+.1} to {high:+.1}) of the CPU time of a request; {} ns are taken for 2 %, {} ns for 1 %.\n",
            planted.server.name(),
            planted.lever_ns,
            planted.costlier.value * 100.0,
            planted.more_ns(0.02),
            planted.more_ns(0.01),
        );
    }
    text
}

fn asked_of(question: Question) -> &'static str {
    match question {
        Question::Aa => "against itself",
        Question::Power2 => "2 % dearer",
        Question::Power1 => "1 % dearer",
    }
}

/// What people do today, beside `tare compare` of the same commands.
fn of_today(rows: &[today::Row]) -> String {
    let mut text = String::new();
    for question in Question::ALL {
        for (tool, name) in [
            (Tool::Wrk, "wrk, three runs at each of two launches, Welch's t"),
            (Tool::Hyperfine, "hyperfine, Welch's t"),
            (Tool::Tare, "tare compare --command"),
        ] {
            let of = |row: &&today::Row| row.tool == tool && row.question == question;
            let asked: Vec<&today::Row> = rows.iter().filter(of).collect();
            if asked.is_empty() {
                continue;
            }
            if text.is_empty() {
                text += "\n| with | question | right | of | called different by more than 2 % | largest difference | median s |\n|---|---|---|---|---|---|---|\n";
            }
            let apart = |row: &today::Row| (row.ratio - 1.0).abs();
            text += &format!(
                "| {name} | {} | {} | {} | {} | {:.1} % | {:.0} |\n",
                asked_of(question),
                asked.iter().filter(|row| row.is_right()).count(),
                asked.len(),
                asked.iter().filter(|row| row.differs && apart(row) > GRAVE).count(),
                asked.iter().map(|row| apart(row)).fold(0.0, f64::max) * 100.0,
                median(asked.iter().map(|row| row.elapsed_s).collect()).unwrap_or(0.0),
            );
        }
    }
    text
}
