//! [Divan](https://github.com/nvzqz/divan): the tree that it prints.

use super::fields::Launches;
use crate::metrics::{Kind, Metrics, Sample};
use crate::reader::{Input, Reader};
use crate::units::{in_base, prefix};
use tare_model::outcome::Better;

pub(crate) const READER: Reader = Reader {
    name: "divan",
    gets_wrong: &[
        "it prints the fastest, slowest, median and mean of samples of one process, and no interval: how two runs differ is not seen",
        "it takes off what its loop and its own counting of allocations cost: of short work that is most of the time, and the figure is what is left",
        "the fastest sample stands first and is the luckiest one",
    ],
    detect: |input| input.head().any(is_head),
    read,
};

/// The columns, in the order in which they are printed; the last two are numbers of samples and iterations.
const COLUMNS: [&str; 4] = ["fastest", "slowest", "median", "mean"];

/// `PROGRAM  fastest │ slowest │ median │ mean │ samples │ iters`.
fn is_head(line: &str) -> bool {
    let mut cells = line.split('│').map(str::trim);
    cells.next().is_some_and(|cell| cell.ends_with("fastest"))
        && cells.eq(["slowest", "median", "mean", "samples", "iters"])
}

fn read(input: &Input<'_>, metrics: &mut Metrics) {
    let mut launches = Launches::default();
    let mut table: Option<Table> = None;
    for (line, number) in input.text.lines().zip(1..) {
        let line = line.trim_end();
        if is_head(line) {
            table = Some(Table::of(line));
        } else if let Some((_, precision)) = line.split_once("Timer precision: ") {
            metrics.set("Timer precision", precision);
        } else if let Some(table) = &mut table {
            table.row(number, line, &mut launches, metrics);
        }
    }
    if let Some(table) = table.filter(|table| table.is_open) {
        let line = input.text.lines().count() as u64;
        metrics.skip(line, &format!("{} {}", table.benchmark(), table.heading), "the output is cut off");
    }
}

/// The tree of one program.
struct Table {
    program: String,
    /// In characters: where the first column begins.
    width: usize,
    /// Names from the root to the last row.
    path: Vec<String>,
    launch: u32,
    /// What the figures below are of: `alloc:`.
    heading: String,
    /// No figure is below that yet.
    is_open: bool,
}

impl Table {
    fn of(head: &str) -> Table {
        let cell = head.split('│').next().unwrap_or_default();
        let before = cell.trim_end().strip_suffix("fastest").unwrap_or_default();
        Table {
            program: before.trim().to_owned(),
            width: before.chars().count(),
            path: Vec::new(),
            launch: 0,
            heading: String::new(),
            is_open: false,
        }
    }

    fn row(&mut self, number: u64, line: &str, launches: &mut Launches, metrics: &mut Metrics) {
        let at = line.char_indices().nth(self.width).map_or(line.len(), |(at, _)| at);
        let (tree, cells) = line.split_at(at);
        let name = tree.trim_start_matches([' ', '│']);
        let cells: Vec<&str> = cells.split('│').map(str::trim).collect();
        let is_named = name.strip_prefix("├─ ").or_else(|| name.strip_prefix("╰─ "));
        if let Some(name) = is_named {
            // Three characters for each level.
            let depth = tree.chars().position(|c| "├╰".contains(c)).unwrap_or(0) / 3;
            self.path.truncate(depth);
            self.path.push(name.trim().to_owned());
            self.heading.clear();
            return self.figures(number, name.trim(), &cells, launches, metrics);
        }
        if self.path.is_empty() || !line.contains('│') {
            return;
        }
        match cells.first().copied().unwrap_or_default() {
            "" => {}
            heading if heading.ends_with(':') => {
                self.heading = heading.trim_end_matches(':').to_owned();
                self.is_open = true;
            }
            _ => {
                self.is_open = false;
                self.counts(number, &cells, metrics);
            }
        }
    }

    fn benchmark(&self) -> String {
        format!("{}::{}", self.program, self.path.join("::"))
    }

    /// The row of times.
    fn figures(
        &mut self,
        number: u64,
        name: &str,
        cells: &[&str],
        launches: &mut Launches,
        metrics: &mut Metrics,
    ) {
        match cells.first().copied().unwrap_or_default() {
            "" => return,
            "(ignored)" => return metrics.skip(number, name, "the benchmark was ignored"),
            _ => {}
        }
        let benchmark = self.benchmark();
        self.launch = launches.next(&benchmark, 1);
        self.each(number, cells, "time", metrics);
        let kind = Kind { benchmark: &benchmark, name: "time fastest", unit: "s", better: None };
        for (column, setting) in [(4, "samples"), (5, "iters")] {
            match cells.get(column) {
                Some(count) if !count.is_empty() => metrics.set_of(kind, setting, count),
                _ => metrics.skip(number, &benchmark, "the row is cut off"),
            }
        }
    }

    /// A row of throughputs or of allocations.
    fn counts(&self, number: u64, cells: &[&str], metrics: &mut Metrics) {
        let is_size = cells.first().is_some_and(|cell| cell.ends_with('B'));
        let name = match (self.heading.as_str(), is_size) {
            ("", _) => "throughput".to_owned(),
            (heading, true) => format!("{heading} size"),
            (heading, false) => format!("{heading} count"),
        };
        self.each(number, cells, &name, metrics);
    }

    fn each(&self, number: u64, cells: &[&str], what: &str, metrics: &mut Metrics) {
        let benchmark = self.benchmark();
        for (column, cell) in COLUMNS.iter().zip(cells) {
            let Some((value, unit)) = value(cell) else {
                let why = "the row is cut off, or has no number where one should be";
                metrics.skip(number, &format!("{benchmark} {what} {column} {cell}"), why);
                continue;
            };
            let better = if unit.ends_with("/s") { Better::Higher } else { Better::Lower };
            let name = format!("{what} {column}");
            let kind = Kind { benchmark: &benchmark, name: &name, unit: &unit, better: Some(better) };
            metrics.sample(number, kind, Sample { value, launch: self.launch, ..Sample::default() });
        }
    }
}

/// `1.5 µs`, `1.4 GB/s`, `2 Mitem/s`, `10 B` or a number alone, in base units.
fn value(cell: &str) -> Option<(f64, String)> {
    let (value, unit) = cell.split_once(' ').unwrap_or((cell, ""));
    let value: f64 = value.parse().ok()?;
    let (scaled, base) = in_base(value, unit);
    if base == "s" || unit.is_empty() {
        return Some((scaled, base.to_owned()));
    }
    let base_units = ["B/s", "B", "item/s", "char/s", "Hz"];
    let base = base_units.into_iter().find(|base| unit.ends_with(base))?;
    let factor = prefix(unit.strip_suffix(base)?)?;
    Some((value * factor, if base == "Hz" { "cycle/s".to_owned() } else { base.to_owned() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "prog      fastest       │ slowest  │ median   │ mean     │ samples │ iters\n";

    #[test]
    fn the_path_of_a_row_is_its_name() {
        let text = format!(
            "{HEAD}├─ a                     │          │          │          │         │\n\
             │  ╰─ 1   1.5 µs        │ 2 µs     │ 1.75 µs  │ 1.8 µs   │ 100     │ 200\n\
             │         2 GB/s        │ 1 MB/s   │ 1 GB/s   │ 1 GB/s   │         │\n\
             ╰─ b      3 ns          │ x\n"
        );
        let read = READER.read(&Input::of_text(&text));
        let first = &read.metrics[0];
        assert_eq!(
            (first.benchmark.as_str(), first.name.as_str(), first.samples[0]),
            ("prog::a::1", "time fastest", 1.5e-6)
        );
        let rate = read.metrics.iter().find(|metric| metric.name == "throughput slowest").unwrap();
        assert_eq!((rate.samples[0], rate.unit.as_str(), rate.better), (1e6, "B/s", Some(Better::Higher)));
        assert_eq!(read.metrics.last().unwrap().benchmark, "prog::b");
        assert_eq!(read.skipped_count, 3, "{:?}", read.skipped);
    }

    #[test]
    fn units_are_base_units() {
        assert_eq!(value("1.5 Mitem/s"), Some((1.5e6, "item/s".to_owned())));
        assert_eq!(value("2 KiB"), Some((2048.0, "B".to_owned())));
        assert_eq!(value("7"), Some((7.0, String::new())));
        assert_eq!(value("7 horses"), None);
    }
}
