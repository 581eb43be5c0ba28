//! The threads of each role, as pidstat shows them.

use super::source::{Medium, Section, Source};
use crate::block::{Bar, Bars, Block, Column, Hue, Row, Table, Text, Tone};
use crate::format::{NONE, count, hundredths, percent, seconds};
use crate::words;
use tare_model::observation::Role;
use tare_model::outcome::{RoleAccounting, ThreadRow};

pub(crate) static SECTION: Section =
    Section { title: "Threads", media: &[Medium::Terminal, Medium::Page], build };

/// Threads with a row of their own; the rest share one.
const ROWS_MAX: usize = 10;
/// From here on a thread is as good as always on a CPU, or always waiting for one.
const MOST: f64 = 0.9;
/// Tare's own threads are shown when they took more than this of one CPU.
const TARE_SHOWN: f64 = 0.001;

fn build(source: &Source) -> Vec<Block> {
    let accounting = &source.outcome.accounting;
    let roles = [
        ("server", Role::Sut, &accounting.sut),
        ("load generator", Role::Load, &accounting.load),
        ("tare's observers", Role::Tare, &accounting.tare),
    ];
    let mut rows = Vec::new();
    let mut bars = Vec::new();
    for (name, role, of) in roles {
        let threads = accounting.threads_of(role);
        let Some(role) = of.as_ref().filter(|_| !threads.is_empty()) else { continue };
        if name.starts_with("tare") && role.busy_cpus < TARE_SHOWN {
            continue;
        }
        let name = match source.http() {
            None if name == "server" => "program",
            _ => name,
        };
        bars.push(bar(name, role));
        rows.push(Row::Heading(Text::strong(heading(name, role, threads.len()))));
        rows.extend(role_rows(threads));
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let legend = PARTS.iter().map(|(hue, name, _)| (*hue, (*name).to_string())).collect();
    let bars = Bars { caption: "Where the threads' time went".into(), legend, rows: bars };
    vec![Block::Bars(bars), Block::Table(Table { columns: columns(), rows })]
}

/// A part of a role's time: its mark, its name, its seconds.
type Part = (Hue, &'static str, fn(&RoleAccounting) -> f64);

/// All parts of a role's time.
const PARTS: [Part; 6] = [
    (Hue::Server, "on a CPU", |role| role.run_s),
    (Hue::Throttled, "throttled", |role| role.wait_s.throttled),
    (Hue::Others, "others ran", |role| role.wait_s.preempted),
    (Hue::Load, "its own threads ran", |role| role.wait_s.self_contention),
    (Hue::Irq, "scheduler", |role| role.wait_s.scheduler),
    (Hue::Idle, "asleep", |role| role.blocked_s.values().sum()),
];

fn bar(name: &str, role: &RoleAccounting) -> Bar {
    let part = |(hue, part, seconds_of): &Part| {
        let (seconds_of, mut why) = (seconds_of(role), String::new());
        if *hue == Hue::Idle {
            let reasons = role.blocked_s.iter().map(|(reason, s)| format!("{reason} {}", seconds(*s)));
            why = format!(" ({})", reasons.collect::<Vec<_>>().join(", "));
        }
        let share = seconds_of / role.wall_s;
        (*hue, share, format!("{part} {} of the time, {}{why}", percent(share), seconds(seconds_of)))
    };
    Bar { label: name.into(), parts: PARTS.iter().map(part).collect() }
}

fn heading(name: &str, role: &RoleAccounting, threads: usize) -> String {
    let threads = match role.idle_threads {
        0 => words::things(threads, "thread"),
        idle => format!("{} and {idle} that did not run", words::things(threads, "thread")),
    };
    let busy = count(role.busy_cpus);
    match count(role.entitled_cpus).as_str() {
        // Threads that have no entitlement: tare's own.
        "0" => format!("{name}: {threads}, {busy} CPUs busy"),
        "1" => format!("{name}: {threads}, {busy} of 1 CPU busy"),
        cpus => format!("{name}: {threads}, {busy} of {cpus} CPUs busy"),
    }
}

fn columns() -> Vec<Column> {
    vec![
        Column::figures("pid", 2),
        Column::figures("tid", 0),
        Column::words("thread", 0),
        Column::figures("%user", 1),
        Column::figures("%kernel", 1),
        Column::figures("%run", 0),
        Column::figures("%wait", 0),
        Column::figures("vol/s", 0),
        Column::figures("invol/s", 0),
        Column::words("CPUs", 3),
    ]
}

fn role_rows(threads: Vec<&ThreadRow>) -> Vec<Row> {
    let (awake, asleep): (Vec<&ThreadRow>, Vec<&ThreadRow>) =
        threads.into_iter().partition(|one| stirred(one));
    // One thread too many is shown rather than folded: its row would be there either way.
    let shown = if awake.len() <= ROWS_MAX + 1 { awake.len() } else { ROWS_MAX };
    let (shown, folded) = awake.split_at(shown);
    let mut rows: Vec<Row> = shown.iter().map(|thread| row(thread)).collect();
    if !folded.is_empty() {
        rows.push(folded_row(&format!("{} more, summed", folded.len()), folded));
    }
    match asleep.as_slice() {
        [] => {}
        [one] => rows.push(row(one)),
        several => rows.push(folded_row(&format!("{} asleep", several.len()), several)),
    }
    rows
}

/// Whether a thread did anything that a table would show.
fn stirred(thread: &ThreadRow) -> bool {
    const SHARE_SHOWN: f64 = 0.0005;
    const RATE_SHOWN: f64 = 0.0005;
    thread.run + thread.wait >= SHARE_SHOWN || thread.voluntary_hz + thread.involuntary_hz >= RATE_SHOWN
}

fn row(thread: &ThreadRow) -> Row {
    let busy = if thread.run >= MOST { Tone::Strong } else { Tone::Plain };
    let waiting = if thread.wait >= MOST / 3.0 { Tone::Warn } else { Tone::Plain };
    Row::Cells(vec![
        Text::dim(id(thread.pid)),
        Text::plain(id(thread.tid)),
        Text::plain(&thread.name),
        Text::plain(hundredths(thread.user)),
        Text::plain(hundredths(thread.system)),
        Text::new(hundredths(thread.run), busy),
        Text::new(hundredths(thread.wait), waiting),
        Text::plain(count(thread.voluntary_hz)),
        Text::plain(count(thread.involuntary_hz)),
        Text::dim(ranges(&thread.cpus)),
    ])
}

/// Several that ended have no number.
fn id(number: u32) -> String {
    if number == 0 { NONE.into() } else { number.to_string() }
}

fn folded_row(name: &str, folded: &[&ThreadRow]) -> Row {
    // Of the window: threads that lived one after the other cannot have run for more than it together.
    let sum = |figure: fn(&ThreadRow) -> f64| {
        folded.iter().map(|thread| thread.lived * figure(thread)).sum::<f64>()
    };
    let shares = [sum(|one| one.user), sum(|one| one.system), sum(|one| one.run), sum(|one| one.wait)];
    let rates = [sum(|one| one.voluntary_hz), sum(|one| one.involuntary_hz)];
    let mut cpus: Vec<u32> = folded.iter().flat_map(|thread| thread.cpus.iter().copied()).collect();
    cpus.sort_unstable();
    cpus.dedup();
    let mut cells = vec![Text::plain(""), Text::plain(""), Text::dim(name)];
    cells.extend(shares.map(|share| Text::dim(hundredths(share))));
    cells.extend(rates.map(|rate| Text::dim(count(rate))));
    cells.push(Text::dim(ranges(&cpus)));
    Row::Cells(cells)
}

/// CPU numbers as the kernel writes lists of them: `0-3,8`.
pub(super) fn ranges(cpus: &[u32]) -> String {
    let mut text = String::new();
    let mut rest = cpus;
    while let Some(&first) = rest.first() {
        let length =
            rest.iter().zip(first..=u32::MAX).take_while(|(cpu, expected)| *cpu == expected).count().max(1);
        if !text.is_empty() {
            text.push(',');
        }
        text.push_str(&first.to_string());
        if length > 1 {
            text.push_str(&format!("-{}", rest[length - 1]));
        }
        rest = &rest[length..];
    }
    if text.is_empty() { NONE.into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::ranges;

    #[test]
    fn cpu_lists_are_short() {
        assert_eq!(ranges(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(ranges(&[5]), "5");
        assert_eq!(ranges(&[]), "–");
        assert_eq!(ranges(&[u32::MAX, 0, u32::MAX]), "4294967295,0,4294967295");
    }
}
