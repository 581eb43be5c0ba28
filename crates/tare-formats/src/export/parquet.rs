//! A row for each sample, in Apache Parquet's columns: plain values, not compressed, so that every reader has what it needs.
//! <https://parquet.apache.org/docs/file-format/>

use super::format::{Export, Exported, without_samples};
use super::thrift::{Struct, varint};
use tare_model::outcome::Better;
use tare_model::tool::{ToolMetric, ToolMetrics};

pub(super) const EXPORT: Export = Export {
    name: "parquet",
    holds: "every sample with its launch, worker and time, in typed columns",
    write,
};

const MAGIC: &[u8] = b"PAR1";
/// Rows of a group: each of its columns is one page, which is read at once.
const GROUP_ROWS: usize = 100_000;

// Of the format's enumerations.
const DATA_PAGE: i32 = 0;
const PLAIN: i32 = 0;
const RLE: i32 = 3;
const UTF8: i32 = 0;
const UNCOMPRESSED: i32 = 0;
const REQUIRED: i32 = 0;
const OPTIONAL: i32 = 1;

/// What a column holds, by the format's numbers.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Integer = 2,
    Double = 5,
    Text = 6,
}

/// A column of a row: its name, its kind, whether a row may lack it, and how its value is written.
struct Column {
    name: &'static str,
    kind: Kind,
    is_optional: bool,
    /// Writes the value of a sample; false: it has none.
    put: fn(&mut Vec<u8>, &ToolMetric, usize) -> bool,
}

const COLUMNS: [Column; 8] = [
    Column {
        name: "benchmark",
        kind: Kind::Text,
        is_optional: false,
        put: |page, metric, _| text(page, &metric.benchmark),
    },
    Column {
        name: "metric",
        kind: Kind::Text,
        is_optional: false,
        put: |page, metric, _| text(page, &metric.name),
    },
    Column {
        name: "unit",
        kind: Kind::Text,
        is_optional: false,
        put: |page, metric, _| text(page, &metric.unit),
    },
    Column { name: "better", kind: Kind::Text, is_optional: true, put: better },
    Column {
        name: "launch",
        kind: Kind::Integer,
        is_optional: true,
        put: |page, metric, at| integer(page, metric.launches.get(at)),
    },
    Column {
        name: "worker",
        kind: Kind::Integer,
        is_optional: true,
        put: |page, metric, at| integer(page, metric.workers.get(at)),
    },
    Column {
        name: "at_s",
        kind: Kind::Double,
        is_optional: true,
        put: |page, metric, at| double(page, metric.at_s.get(at)),
    },
    Column {
        name: "value",
        kind: Kind::Double,
        is_optional: false,
        put: |page, metric, at| double(page, metric.samples.get(at)),
    },
];

fn text(page: &mut Vec<u8>, text: &str) -> bool {
    page.extend((text.len() as u32).to_le_bytes());
    page.extend(text.as_bytes());
    true
}

fn better(page: &mut Vec<u8>, metric: &ToolMetric, _at: usize) -> bool {
    match metric.better {
        Some(Better::Higher) => text(page, "higher"),
        Some(Better::Lower) => text(page, "lower"),
        None => false,
    }
}

fn integer(page: &mut Vec<u8>, value: Option<&u32>) -> bool {
    // The format's plain integers have a sign: 64 bits have room for all of these.
    value.map(|value| page.extend(i64::from(*value).to_le_bytes())).is_some()
}

fn double(page: &mut Vec<u8>, value: Option<&f64>) -> bool {
    value.map(|value| page.extend(value.to_le_bytes())).is_some()
}

fn write(read: &ToolMetrics) -> Exported {
    let rows: Vec<(&ToolMetric, usize)> = read
        .metrics
        .iter()
        .flat_map(|metric| (0..metric.samples.len()).map(move |at| (metric, at)))
        .collect();
    let mut content = MAGIC.to_vec();
    let groups: Vec<Struct> = rows.chunks(GROUP_ROWS).map(|rows| group(&mut content, rows)).collect();
    let footer = Struct::default()
        .i32(1, 1)
        .structs(2, schema())
        .i64(3, rows.len() as i64)
        .structs(4, groups)
        .text(6, "tare")
        .end();
    let length = (footer.len() as u32).to_le_bytes();
    content.extend(footer);
    content.extend(length);
    content.extend(MAGIC);
    Exported { content, left_out: without_samples(read) }
}

fn schema() -> Vec<Struct> {
    let root = Struct::default().text(4, "sample").i32(5, COLUMNS.len() as i32);
    let column = |column: &Column| {
        let repetition = if column.is_optional { OPTIONAL } else { REQUIRED };
        let element = Struct::default().i32(1, column.kind as i32).i32(3, repetition).text(4, column.name);
        match column.kind {
            Kind::Text => element.i32(6, UTF8),
            Kind::Integer | Kind::Double => element,
        }
    };
    std::iter::once(root).chain(COLUMNS.iter().map(column)).collect()
}

/// Writes the pages of some rows, and says where they are.
fn group(content: &mut Vec<u8>, rows: &[(&ToolMetric, usize)]) -> Struct {
    let begin = content.len();
    let columns: Vec<Struct> = COLUMNS.iter().map(|column| chunk(content, column, rows)).collect();
    Struct::default().structs(1, columns).i64(2, (content.len() - begin) as i64).i64(3, rows.len() as i64)
}

fn chunk(content: &mut Vec<u8>, column: &Column, rows: &[(&ToolMetric, usize)]) -> Struct {
    let (mut values, mut is_there) = (Vec::new(), Vec::new());
    for (metric, at) in rows {
        is_there.push((column.put)(&mut values, metric, *at));
    }
    let mut page = if column.is_optional { levels(&is_there) } else { Vec::new() };
    page.extend(values);
    let head = Struct::default().i32(1, rows.len() as i32).i32(2, PLAIN).i32(3, RLE).i32(4, RLE);
    let size = page.len() as i32;
    let header = Struct::default().i32(1, DATA_PAGE).i32(2, size).i32(3, size).inner(5, head).end();
    let begin = content.len() as i64;
    content.extend(header);
    content.extend(page);
    let size = content.len() as i64 - begin;
    let meta = Struct::default()
        .i32(1, column.kind as i32)
        .i32s(2, &[PLAIN, RLE])
        .texts(3, &[column.name])
        .i32(4, UNCOMPRESSED)
        .i64(5, rows.len() as i64)
        .i64(6, size)
        .i64(7, size)
        .i64(9, begin);
    Struct::default().i64(2, begin).inner(3, meta)
}

/// Which rows have a value: runs of the same answer, with the length of all in front.
fn levels(is_there: &[bool]) -> Vec<u8> {
    let mut runs = Vec::new();
    for run in is_there.chunk_by(|one, other| one == other) {
        varint(&mut runs, (run.len() as u64) << 1);
        runs.push(u8::from(run[0]));
    }
    let mut levels = (runs.len() as u32).to_le_bytes().to_vec();
    levels.extend(runs);
    levels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Input, read};

    /// These bytes were read by pyarrow 26 (`pyarrow.parquet.read_table(FILE).to_pylist()`), with every value and null in its place.
    #[test]
    fn a_small_file_is_as_another_reader_has_read_it() {
        let text = "BenchmarkX-2 100 12.5 ns/op 3 things\nBenchmarkX-2 100 13.1 ns/op 2 things\n";
        let content = write(&read(&Input::of_text(text)).unwrap()).content;
        assert!(content.starts_with(MAGIC) && content.ends_with(MAGIC));
        let length = content.len() - 8;
        let footer = u32::from_le_bytes(content[length..length + 4].try_into().unwrap()) as usize;
        assert!(footer < length - 4);
        let hexadecimal: Vec<String> =
            content.chunks(32).map(|line| line.iter().map(|byte| format!("{byte:02x}")).collect()).collect();
        insta::assert_snapshot!("parquet", hexadecimal.join("\n"));
    }

    #[test]
    fn levels_are_runs() {
        assert_eq!(levels(&[true, true, false]), [4, 0, 0, 0, 4, 1, 2, 0]);
        assert_eq!(levels(&[true; 100]), [3, 0, 0, 0, 0xc8, 1, 1]);
    }
}
