//! What follows from the cells: spreads, pairs of nets, largest parts.

use crate::cell::Cell;
use crate::place;
use crate::rows::Row;
use crate::servers::Kind;
use crate::{Results, Slice};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use tare_stats::{mean_interval, median, trimmed_mean_interval};

/// Nets of two rows within this are the same.
const SAME_LN: f64 = 0.03;
/// With one connection they are within this.
const SAME_ONE_LN: f64 = 0.05;
/// Below this a largest part is nothing.
const NOTHING_LN: f64 = 0.05;

/// A ratio with its 95 % interval.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Ratio {
    pub value: f64,
    pub low: f64,
    pub high: f64,
    pub rounds: usize,
}

impl Ratio {
    /// Of the trimmed mean of logarithms: bursts of the host fall on single cells.
    fn of(logs: &[f64]) -> Option<Ratio> {
        let estimate = trimmed_mean_interval(logs)?;
        let (low, high) = estimate.ci95.map_or((f64::NEG_INFINITY, f64::INFINITY), |ci| (ci.lo, ci.hi));
        Some(Ratio { value: estimate.value.exp(), low: low.exp(), high: high.exp(), rounds: logs.len() })
    }

    fn within(&self, ln: f64) -> bool {
        self.low.ln() >= -ln && self.high.ln() <= ln
    }
}

/// One row of a server.
#[derive(Debug, Serialize)]
pub struct RowSummary {
    pub server: Kind,
    pub row: Row,
    pub rounds: usize,
    pub gross_hz: f64,
    /// Over the reference's in the same windows.
    pub over_reference: Ratio,
    pub largest: BTreeMap<String, usize>,
    pub limits: BTreeMap<String, usize>,
    pub right: bool,
}

/// Two rows of a server.
#[derive(Debug, Serialize)]
pub struct Pair {
    pub server: Kind,
    pub rows: [Row; 2],
    /// Each over the reference in its own windows.
    pub ratio: Ratio,
    pub within: bool,
}

/// Everything that is reported.
#[derive(Debug, Serialize)]
pub struct Summary {
    pub rows: Vec<RowSummary>,
    pub pairs: Vec<Pair>,
    /// Largest gross over the smallest, by server, over the rows in which the server stays the same.
    pub gross_spread: BTreeMap<String, f64>,
    pub reference_hz: f64,
    /// Cells in which the host had the CPUs in another place than in most: not in the figures.
    pub elsewhere: usize,
    /// Pairs of the first six rows, by server: how many there are, how many are shown to be within 3 %, and how many with all cells.
    pub shown: BTreeMap<String, [usize; 3]>,
}

/// Works out all of it.
pub fn summary(cells: &[Cell]) -> Summary {
    let usual: Vec<Cell> = cells.iter().filter(|cell| place::is_usual(cell, cells)).cloned().collect();
    let (all, mut found) = (of_cells(cells), of_cells(&usual));
    found.elsewhere = cells.len() - usual.len();
    for server in Kind::ALL {
        let of = |summary: &Summary| -> Vec<bool> {
            let still = |pair: &&Pair| pair.server == server && pair.rows.iter().all(|row| row.holds_still());
            summary.pairs.iter().filter(still).map(|pair| pair.within).collect()
        };
        let count = |pairs: &[bool]| pairs.iter().filter(|within| **within).count();
        let (pairs, with_all) = (of(&found), of(&all));
        found.shown.insert(server.name().to_owned(), [pairs.len(), count(&pairs), count(&with_all)]);
    }
    found
}

fn of_cells(cells: &[Cell]) -> Summary {
    // With the generator on its CPU the reference is another server too.
    let references: Vec<f64> =
        cells.iter().filter(|cell| cell.row != Row::Shared).map(|cell| cell.reference_ns.ln()).collect();
    let reference_ns = mean_interval(&references).map_or(f64::NAN, |mean| mean.value.exp());
    let of = |server: Kind, row: Row| -> BTreeMap<u32, &Cell> {
        let mine = cells.iter().filter(|cell| cell.server == server && cell.row == row);
        mine.map(|cell| (cell.round, cell)).collect()
    };
    let (mut rows, mut pairs, mut gross_spread) = (Vec::new(), Vec::new(), BTreeMap::new());
    for server in Kind::ALL {
        for row in Row::ALL {
            rows.extend(row_summary(server, row, &of(server, row)));
        }
        for (place, one) in Row::ALL.into_iter().enumerate() {
            for other in Row::ALL.into_iter().skip(place + 1) {
                pairs.extend(pair(server, [one, other], &of(server, one), &of(server, other)));
            }
        }
        let gross = rows.iter().filter(|row| row.server == server && row.row.holds_still());
        let gross: Vec<f64> = gross.map(|row| row.gross_hz).collect();
        let (low, high) =
            (gross.iter().copied().fold(f64::INFINITY, f64::min), gross.iter().copied().fold(0.0, f64::max));
        gross_spread.insert(server.name().to_owned(), high / low);
    }
    Summary {
        rows,
        pairs,
        gross_spread,
        reference_hz: 1e9 / reference_ns,
        elsewhere: 0,
        shown: BTreeMap::new(),
    }
}

fn row_summary(server: Kind, row: Row, cells: &BTreeMap<u32, &Cell>) -> Option<RowSummary> {
    let over: Vec<f64> = cells.values().map(|cell| cell.net_over_reference.ln()).collect();
    let mut largest: BTreeMap<String, usize> = BTreeMap::new();
    let mut limits: BTreeMap<String, usize> = BTreeMap::new();
    let mut right = 0;
    for cell in cells.values() {
        let (cause, ln) = cell.largest().unwrap_or(("none", 0.0));
        let nothing = row.bottleneck().is_none() && ln < NOTHING_LN;
        let cause = if nothing { "below 5 %" } else { cause };
        right += usize::from(nothing || row.causes().contains(&cause));
        *largest.entry(cause.to_owned()).or_default() += 1;
        *limits.entry(cell.bottleneck.clone()).or_default() += 1;
    }
    let gross: Vec<f64> = cells.values().map(|cell| cell.gross_hz).collect();
    Some(RowSummary {
        server,
        row,
        rounds: cells.len(),
        gross_hz: median(&gross)?,
        over_reference: Ratio::of(&over)?,
        largest,
        right: 2 * right > cells.len()
            && row
                .bottleneck()
                .is_none_or(|bottleneck| limits.get(bottleneck).is_some_and(|count| 2 * count > cells.len())),
        limits,
    })
}

/// By round, so that interference which lasts longer than a round falls out.
fn pair(
    server: Kind,
    rows: [Row; 2],
    one: &BTreeMap<u32, &Cell>,
    other: &BTreeMap<u32, &Cell>,
) -> Option<Pair> {
    let both = |of: fn(&Cell) -> f64| -> Vec<f64> {
        let pairs = one.iter().filter_map(|(round, cell)| Some((cell, other.get(round)?)));
        pairs.map(|(one, other)| (of(other) / of(one)).ln()).collect()
    };
    let ratio = Ratio::of(&both(|cell| cell.net_over_reference))?;
    let bound = if rows.contains(&Row::One) { SAME_ONE_LN } else { SAME_LN };
    Some(Pair { server, rows, ratio, within: ratio.within(bound) })
}

/// The tables.
pub fn markdown(results: &Results, summary: &Summary) -> String {
    let length = |slice: &Slice| match (slice.long, slice.trials) {
        (true, _) => "sessions as `tare run` makes them by itself".to_owned(),
        (false, 1) => "one trial of each level".to_owned(),
        (false, several) => format!("{several} trials of each level"),
    };
    let mut lengths: Vec<String> = results.slices.iter().map(length).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let mut text = format!(
        "# Net holds still\n\n\
         Two servers on CPU 0 under eight things that are done to them, in rounds whose order is drawn at random, fresh processes in each\n\
         cell, {}. Gross: medians. Net: what a CPU does over what it does for the reference server, which is loaded interleaved\n\
         with it, 5 ms each; in req/s where the reference does {:.0}k, its geometric mean here. Means of logarithms over rounds without the fifth at either\n\
         end, 95 % intervals by Student's t on the winsorised spread (Yuen 1974), pairs by round. Made by `bench/net`.\n\n\
         The host moved the CPUs: {} cells more were measured while a cache line took twice or half as long from server to generator as in most,\n\
         and are not in these figures.\n\n\
         Machine: {}, kernel {}.\n\n",
        lengths.join(" or "),
        summary.reference_hz / 1e3,
        summary.elsewhere,
        results.machine["cpu_model"].as_str().unwrap_or("?"),
        results.machine["kernel"].as_str().unwrap_or("?")
    );
    // Writing to a String cannot fail, here and below.
    let is_there = |server: &Kind| summary.rows.iter().any(|row| row.server == *server);
    let servers: Vec<Kind> = Kind::ALL.into_iter().filter(is_there).collect();
    let _ = overview(&mut text, summary, &servers);
    for server in servers {
        let spread = summary.gross_spread.get(server.name()).copied().unwrap_or(f64::NAN);
        let _ = writeln!(
            text,
            "\n## {}\n\nGross spreads {spread:.1}-fold over the first six rows.",
            server.name()
        );
        if let Some([pairs, shown, with_all]) = summary.shown.get(server.name()) {
            let _ = writeln!(
                text,
                "Of {pairs} pairs of these, {shown} are shown to be within 3 %; {with_all} with the cells that were left out.\n"
            );
        }
        let _ = parts(&mut text, summary, server);
        let _ = pairs(&mut text, summary, server);
    }
    text
}

fn overview(text: &mut String, summary: &Summary, servers: &[Kind]) -> std::fmt::Result {
    let heads = |figure: &str| {
        servers.iter().map(|server| format!(" {figure}, {} |", server.name())).collect::<String>()
    };
    writeln!(text, "| what was done to it |{}{}", heads("gross"), heads("net"))?;
    writeln!(text, "|---|{}", "---|".repeat(2 * servers.len()))?;
    for row in Row::ALL {
        let found = |server| summary.rows.iter().find(|found| found.server == server && found.row == row);
        let gross =
            |server| found(server).map_or("–".into(), |found| format!("{:.0}k", found.gross_hz / 1e3));
        let net = |server| {
            found(server).map_or("–".into(), |RowSummary { over_reference: over, .. }| {
                let [value, low, high] =
                    [over.value, over.low, over.high].map(|ratio| ratio * summary.reference_hz / 1e3);
                format!("{value:.0}k ({low:.0}–{high:.0})")
            })
        };
        let cells: Vec<String> =
            servers.iter().copied().map(gross).chain(servers.iter().copied().map(net)).collect();
        let cells = cells.join(" | ");
        writeln!(text, "| {} | {cells} |", row.words())?;
    }
    Ok(())
}

fn parts(text: &mut String, summary: &Summary, server: Kind) -> std::fmt::Result {
    writeln!(
        text,
        "| what was done to it | rounds | largest part (rounds) | limit (rounds) | as it should be |"
    )?;
    writeln!(text, "|---|---|---|---|---|")?;
    for row in summary.rows.iter().filter(|row| row.server == server) {
        writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            row.row.words(),
            row.rounds,
            counts(&row.largest),
            counts(&row.limits),
            if row.right { "yes" } else { "no" }
        )?;
    }
    Ok(())
}

fn pairs(text: &mut String, summary: &Summary, server: Kind) -> std::fmt::Result {
    writeln!(
        text,
        "\n| pair of rows | net of the second over the first | 95 % | within |\n|---|---|---|---|"
    )?;
    for pair in summary.pairs.iter().filter(|pair| pair.server == server) {
        let [one, other] = pair.rows;
        let within = match (one.holds_still() && other.holds_still(), pair.within) {
            (true, true) => "3 %",
            (false, true) => "yes",
            (true, false) => "not shown",
            (false, false) => "no, or not shown",
        };
        writeln!(
            text,
            "| {} → {} | {:.3} | {:.3}–{:.3} | {within} |",
            one.words(),
            other.words(),
            pair.ratio.value,
            pair.ratio.low,
            pair.ratio.high
        )?;
    }
    Ok(())
}

fn counts(of: &BTreeMap<String, usize>) -> String {
    let mut sorted: Vec<(&String, &usize)> = of.iter().collect();
    sorted.sort_by(|a, b| b.1.cmp(a.1));
    let words: Vec<String> = sorted.into_iter().map(|(name, count)| format!("{name} {count}")).collect();
    words.join(", ")
}
