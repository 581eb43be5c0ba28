//! The headline net, as `tare run` prints it, over all cells of a server: whether it repeats whatever is done, and whether its interval
//! holds what the others come to.

use crate::cell::Cell;
use crate::rows::Row;
use crate::servers::Kind;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use tare_stats::median;

/// Single nets shall be as near to their median.
const NEAR_LN: f64 = 0.05;

/// What came of the nets of a server.
#[derive(Debug, Serialize)]
pub struct Headline {
    pub server: Kind,
    pub cells: usize,
    /// Median of all nets.
    pub net_hz: f64,
    /// Median of each row over that of all.
    pub rows: BTreeMap<String, f64>,
    /// Largest median of gross over the smallest.
    pub gross_spread: f64,
    /// Share of nets that are near to the median.
    pub near: f64,
    /// Share of intervals that hold the median of the other cells; of those that have one.
    pub held: f64,
    /// Median of half an interval, as a share.
    pub half: f64,
}

/// Of each server that was measured.
pub fn of(cells: &[Cell]) -> Vec<Headline> {
    Kind::ALL.into_iter().filter_map(|server| of_server(server, cells)).collect()
}

fn of_server(server: Kind, cells: &[Cell]) -> Option<Headline> {
    let mine: Vec<&Cell> =
        cells.iter().filter(|cell| cell.server == server && cell.row.holds_still()).collect();
    let nets: Vec<f64> = mine.iter().map(|cell| cell.net_hz).collect();
    let net_hz = median(&nets)?;
    let of_row = |row: Row, figure: fn(&Cell) -> f64| {
        let mine = mine.iter().filter(|cell| cell.row == row);
        median(&mine.map(|cell| figure(cell)).collect::<Vec<f64>>())
    };
    let rows = Row::ALL
        .into_iter()
        .filter_map(|row| Some((row.words().to_owned(), of_row(row, |cell| cell.net_hz)? / net_hz)));
    let gross: Vec<f64> = Row::ALL.into_iter().filter_map(|row| of_row(row, |cell| cell.gross_hz)).collect();
    let intervals: Vec<(usize, [f64; 2])> =
        mine.iter().enumerate().filter_map(|(place, cell)| Some((place, cell.net_ci95?))).collect();
    let held = intervals.iter().filter(|(place, [low, high])| {
        let others = nets.iter().enumerate().filter(|(other, _)| other != place);
        let others: Vec<f64> = others.map(|(_, net)| *net).collect();
        median(&others).is_some_and(|net| (*low..=*high).contains(&net))
    });
    let halves: Vec<f64> = intervals.iter().map(|(_, [low, high])| 0.5 * (high / low).ln()).collect();
    let near = nets.iter().filter(|net| (*net / net_hz).ln().abs() <= NEAR_LN).count();
    Some(Headline {
        server,
        cells: mine.len(),
        net_hz,
        rows: rows.collect(),
        gross_spread: gross.iter().copied().fold(0.0, f64::max)
            / gross.iter().copied().fold(f64::INFINITY, f64::min),
        near: near as f64 / nets.len() as f64,
        held: held.count() as f64 / intervals.len().max(1) as f64,
        half: median(&halves).unwrap_or(f64::NAN),
    })
}

/// As a table.
pub fn markdown(headlines: &[Headline]) -> String {
    let mut text = "\n## The net that `tare run` prints\n\n\
        Of the cells in which the server and its CPUs stay the same, those with the CPUs in another place among them.\n\n\
        | server | cells | net | gross spreads | nets within 5 % of their median | intervals that hold the median of the others | half an interval | medians of the rows over that of all |\n\
        |---|---|---|---|---|---|---|---|\n"
        .to_owned();
    for one in headlines {
        let rows: Vec<String> = one.rows.iter().map(|(row, ratio)| format!("{row} {ratio:.3}")).collect();
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {:.1}k | {:.1} × | {:.0} % | {:.0} % | {:.1} % | {} |",
            one.server.name(),
            one.cells,
            one.net_hz / 1e3,
            one.gross_spread,
            100.0 * one.near,
            100.0 * one.held,
            100.0 * one.half,
            rows.join(", ")
        );
    }
    text
}
