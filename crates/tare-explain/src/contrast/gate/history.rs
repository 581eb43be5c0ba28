//! The level of a branch, and what one more run of it may differ from that.

use super::row::{Row, absolute, error, of_run};
use tare_model::Missing;
use tare_model::comparison::Figure;
use tare_model::gate::{Against, ChangePoint, FigureValue, RUNS_MIN, Run};
use tare_model::outcome::Warning;
use tare_stats::{Jackknife, level_change_points, mean, stdev};

/// Runs that are evaluated, the last ones: the search for change points takes a time that grows with their square.
const RUNS_MAX: usize = 500;

/// Whether the two are the same record, whatever it is called.
pub(super) fn is_same(one: &Run, other: &Run) -> bool {
    one.time_unix_s == other.time_unix_s && one.plan == other.plan && one.figures == other.figures
}

/// The runs that a new one can be held against.
pub(super) struct Past<'h> {
    runs: Vec<&'h Run>,
    other_plans: u32,
}

impl<'h> Past<'h> {
    pub fn of(new: &Run, all: &'h [Run], warnings: &mut Vec<Warning>) -> Past<'h> {
        let others = || all.iter().filter(|run| !is_same(new, run) && run.valid);
        let mut runs: Vec<&Run> = others().filter(|run| run.plan == new.plan).collect();
        let other_plans = others().count() - runs.len();
        runs.drain(..runs.len().saturating_sub(RUNS_MAX));
        let mut warn = |id: &str, text: String, hint: &str| {
            warnings.push(Warning { id: id.into(), text, hint: hint.into() });
        };
        if runs.is_empty() && other_plans > 0 {
            let text = format!("all {other_plans} runs of the history are of other plans than: {}", new.plan);
            warn("other-plan", text, "run with the same URL, connections and CPUs as the history's");
        }
        let foreign = runs.iter().filter(|run| run.machine != new.machine).count();
        if foreign > 0 {
            let text = format!(
                "{foreign} of {} runs are from other machines than {}: they count only where they were measured against the \
                 reference server",
                runs.len(),
                new.machine
            );
            warn("other-machine", text, "keep a history for each kind of machine");
        }
        if let Some(last) = runs.last().filter(|last| last.kernel != new.kernel) {
            let text =
                format!("the last run was under kernel {}, this one is under {}", last.kernel, new.kernel);
            warn("other-kernel", text, "what differs may be the kernel");
        }
        Past { runs, other_plans: other_plans as u32 }
    }

    pub fn against(&self) -> Against {
        Against::History { runs: self.runs.len() as u32, other_plans: self.other_plans }
    }

    /// The figure's level since its last change point with the new run beside it, and all change points.
    pub fn level(&self, figure: Figure, new: &Run) -> (Row, Vec<ChangePoint>) {
        let by_reference = |run: &Run| run.against_reference.get(&figure).copied().filter(is_usable);
        let here = |run: &Run| absolute(run, figure).ok().filter(|_| run.machine == new.machine);
        let measured = self.measured(by_reference);
        let plain = self.measured(here);
        // Older runs may not have been measured against the reference.
        let of_reference = by_reference(new).is_some() && measured.len() >= plain.len();
        let (value, past) = match of_reference {
            true => (by_reference(new).ok_or_else(|| Missing::new("it was not measured")), measured),
            false => (absolute(new, figure).map_err(|missing| of_run(new, missing)), plain),
        };
        let logarithms: Vec<f64> = past.iter().map(|(_, measured)| measured.value.ln()).collect();
        let starts = level_change_points(&logarithms);
        let change_points = change_points(figure, &past, &logarithms, &starts);
        let level = &logarithms[starts.last().copied().unwrap_or(0)..];
        let lacks = RUNS_MIN.saturating_sub(level.len());
        let spread = value.as_ref().map_err(Missing::clone).and_then(|value| match lacks {
            0 => one_more(level, *value),
            _ => Err(too_few(lacks, &change_points)),
        });
        let row = Row {
            figure,
            of_reference,
            baseline: mean(level).map(f64::exp),
            value: value.as_ref().ok().map(|measured| measured.value),
            runs: level.len() as u32,
            runs_missing: if value.is_ok() { lacks as u32 } else { 0 },
            spread,
        };
        (row, change_points)
    }

    fn measured(&self, of: impl Fn(&Run) -> Option<FigureValue>) -> Vec<(&'h Run, FigureValue)> {
        self.runs.iter().filter_map(|run| Some((*run, of(run)?))).collect()
    }
}

fn is_usable(measured: &FigureValue) -> bool {
    measured.value > 0.0 && measured.value.is_finite()
}

fn too_few(lacks: usize, change_points: &[ChangePoint]) -> Missing {
    let runs = if lacks == 1 { "run is" } else { "runs are" };
    let since = change_points
        .last()
        .map(|change| format!(" since it changed with {}", change.since))
        .unwrap_or_default();
    Missing::with_remedy(
        format!("{lacks} more {runs} needed{since}: {RUNS_MIN} show what runs differ by"),
        "keep each run of the branch with --keep",
    )
}

/// Where one more run of the level would lie: s·√(1 + 1/n) around its mean. A run that knows itself less well than those
/// differ from each other adds what it does not know.
fn one_more(level: &[f64], new: FigureValue) -> Result<[Jackknife; 2], Missing> {
    let missing = || Missing::new("the runs do not say how far they lie apart");
    let (centre, spread) = mean(level).zip(stdev(level)).ok_or_else(missing)?;
    let value = new.value.ln() - centre;
    let runs = level.len() as f64;
    let own = error(value, new).unwrap_or(Jackknife { value, se: 0.0, df: 1.0 });
    let more = (own.se * own.se - spread * spread).max(0.0).sqrt();
    Ok([
        Jackknife { value, se: spread * (1.0 + 1.0 / runs).sqrt(), df: runs - 1.0 },
        Jackknife { se: more, ..own },
    ])
}

fn change_points(
    figure: Figure,
    past: &[(&Run, FigureValue)],
    logarithms: &[f64],
    starts: &[usize],
) -> Vec<ChangePoint> {
    let edges: Vec<usize> =
        std::iter::once(0).chain(starts.iter().copied()).chain([logarithms.len()]).collect();
    let change_at = |edge: &[usize]| {
        let (before, after) = (&logarithms[edge[0]..edge[1]], &logarithms[edge[1]..edge[2]]);
        let (since, _) = past.get(edge[1])?;
        Some(ChangePoint {
            figure,
            since: since.label.clone(),
            time_unix_s: since.time_unix_s,
            change: (mean(after)? - mean(before)?).exp_m1(),
            runs: after.len() as u32,
        })
    };
    edges.windows(3).filter_map(change_at).collect()
}
