//! From comparisons to how often they were wrong.

use crate::{Question, Results, Row};
use tare_record::comparison::{Change, Effect, Figure, Verdict};

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
            let question = match question {
                Question::Aa => "against itself, 20 s",
                Question::Power2 => "2 % dearer, 60 s",
                Question::Power1 => "1 % dearer, 180 s",
            };
            text += &format!(
                "| {question} | {} | {} | {} | {} | {:.0} | {:.0} | {} | {} |\n",
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
    for planted in &results.calibrations {
        let [low, high] = planted.dearer.interval.map(|end| end * 100.0);
        text += &format!(
            "\n{:?} {}: {} ns more are {:+.2} % ({low:+.2} to {high:+.2}) of the CPU time of a request.\n",
            planted.question,
            planted.server.name(),
            planted.more_ns,
            planted.dearer.value * 100.0,
        );
    }
    text
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
