//! A table of n and x as text.

use anyhow::{Context, anyhow, bail};
use tare_stats::scaling::{LEVELS_MAX, SAMPLES_MAX};

/// What stands in a table.
#[derive(Debug, PartialEq)]
pub struct Table {
    /// Name of the first column.
    pub factor: String,
    /// Name of the second.
    pub figure: String,
    /// Every n, ascending, with its samples in the order of the file.
    pub levels: Vec<(f64, Vec<f64>)>,
}

/// Whether a text begins as such a table: a header of two names, one that has n and x, or two numbers.
pub fn is_table(text: &str) -> bool {
    let first = rows(text).next();
    first.is_some_and(|(_, line)| {
        let fields = fields(line);
        columns(&fields).is_some() && !line.starts_with(['{', '[', '<'])
    })
}

/// Reads a table.
///
/// # Errors
/// A line that holds something else, with its number.
pub fn read(text: &str) -> anyhow::Result<Table> {
    let mut lines = rows(text).peekable();
    let empty = || anyhow!("it holds no figures (hint: a header n,x and a row for each sample)");
    let (_, first) = lines.peek().ok_or_else(empty)?;
    let head = fields(first);
    let [n, x] = columns(&head)
        .ok_or_else(|| anyhow!("it is no table (hint: the header is n,x, or two other names)"))?;
    let is_header = head[n].parse::<f64>().is_err();
    let name = |at: usize, other: &str| if is_header { head[at].to_owned() } else { other.to_owned() };
    let mut table = Table { factor: name(n, "n"), figure: name(x, "x"), levels: Vec::new() };
    let count = head.len();
    let mut samples: Vec<(f64, f64)> = Vec::new();
    for (number, line) in lines.skip(usize::from(is_header)) {
        let row = fields(line);
        if row.len() != count {
            bail!(
                "line {number}: {} fields, and the first line has {count} (hint: a row is {})",
                row.len(),
                head.join(",")
            );
        }
        let value = |at: usize, name: &str| size(row[at]).with_context(|| format!("line {number}: {name}"));
        samples.push((value(n, &table.factor)?, value(x, &table.figure)?));
        if samples.len() > SAMPLES_MAX {
            bail!("line {number}: more than {SAMPLES_MAX} samples (hint: a part of them is enough)");
        }
    }
    if samples.is_empty() {
        return Err(empty());
    }
    table.levels = grouped(samples)?;
    Ok(table)
}

/// The samples of each n, ascending.
///
/// # Errors
/// More levels than are taken.
pub fn grouped(mut samples: Vec<(f64, f64)>) -> anyhow::Result<Vec<(f64, Vec<f64>)>> {
    samples.sort_by(|one, other| one.0.total_cmp(&other.0));
    let levels: Vec<(f64, Vec<f64>)> = samples
        .chunk_by(|one, other| one.0 == other.0)
        .map(|chunk| (chunk[0].0, chunk.iter().map(|(_, x)| *x).collect()))
        .collect();
    if levels.len() > LEVELS_MAX {
        bail!("{} different values of n (hint: {LEVELS_MAX} are taken at most)", levels.len());
    }
    Ok(levels)
}

/// Lines that say something, with their numbers.
fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.trim_start_matches('\u{feff}').lines().enumerate();
    lines
        .map(|(at, line)| (at + 1, line.trim()))
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
}

/// Fields between commas; semicolons or tabs where there is none.
fn fields(line: &str) -> Vec<&str> {
    let by = [',', ';', '\t'].into_iter().find(|by| line.contains(*by)).unwrap_or(',');
    line.split(by).map(|field| field.trim().trim_matches('"').trim()).collect()
}

/// Where n and x stand.
fn columns(head: &[&str]) -> Option<[usize; 2]> {
    let of = |name: &str| head.iter().position(|field| field.eq_ignore_ascii_case(name));
    let are_numbers = head.iter().filter(|field| field.parse::<f64>().is_ok()).count();
    match (of("n"), of("x")) {
        (Some(n), Some(x)) => Some([n, x]),
        _ if head.len() == 2 && head.iter().all(|field| !field.is_empty()) && are_numbers != 1 => {
            Some([0, 1])
        }
        _ => None,
    }
}

/// A number above zero.
fn size(text: &str) -> anyhow::Result<f64> {
    let shown: String = text.chars().take(40).collect();
    let value: f64 =
        text.parse().map_err(|_| anyhow!("'{shown}' is not a number (hint: a row is n,x as 8,1250.5)"))?;
    if !value.is_finite() || value <= 0.0 {
        bail!(
            "{shown} is not above zero (hint: the laws are of figures above zero; leave out a row that failed)"
        );
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_people_write_it() {
        let text = "\u{feff}# sweep\r\nthreads,qps\r\n\r\n8, 700\r\n1,100\r\n8,710 \r\n";
        let table = read(text).unwrap();
        assert_eq!((table.factor.as_str(), table.figure.as_str()), ("threads", "qps"));
        assert_eq!(table.levels, [(1.0, vec![100.0]), (8.0, vec![700.0, 710.0])]);
        let more = read("date,x,n\nmonday,5,1\ntuesday,9,2\n").unwrap();
        assert_eq!(more.levels, [(1.0, vec![5.0]), (2.0, vec![9.0])]);
        let bare = read("1;10\n2;20\n").unwrap();
        assert_eq!((bare.factor.as_str(), bare.levels.len()), ("n", 2));
    }

    #[test]
    fn what_is_no_table_is_said_with_its_line() {
        for (text, said) in [
            ("", "no figures"),
            ("n,x\n", "no figures"),
            ("n,x\n1,2,3\n", "line 2: 3 fields"),
            ("n,x\n1,y\n", "line 2"),
            ("n,x\n0,1\n", "line 2"),
            ("n,x\n1,-4\n", "line 2"),
            ("n,x\n1,NaN\n", "line 2"),
            ("n,x\n1,inf\n", "line 2"),
            ("n,x\n1,1e999\n", "line 2"),
            ("a,b,c\n1,2,3\n", "no table"),
        ] {
            let why = format!("{:#}", read(text).unwrap_err());
            assert!(why.contains(said) && why.contains("hint"), "{text:?}: {why}");
        }
        assert!(
            !is_table("{\"a\":1,\"b\":2}") && !is_table("hello") && is_table("n,x\n") && is_table("1,2\n")
        );
    }
}
