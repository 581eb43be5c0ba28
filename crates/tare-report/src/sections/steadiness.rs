//! What can be promised, what is usual, and what it can do for a moment; and how long it took to get there.

use super::source::{Medium, Section, Source};
use crate::block::{Block, Text};
use crate::format::{count, hertz, percent, seconds, with_unit};
use tare_model::outcome::{Stage, State, Timeline, WarmUpTimeline};

pub(crate) static SECTION: Section =
    Section { title: "Rate", media: &[Medium::Terminal, Medium::Markdown, Medium::Page], build };

/// What moves a figure by less is no news.
const NEWS: f64 = 0.02;
/// The same of mean latencies, which move by more.
const LATENCY_NEWS: f64 = 0.2;

fn build(source: &Source) -> Vec<Block> {
    let Some(timeline) = &source.outcome.over_time.timeline else { return Vec::new() };
    let mut lines = vec![rates(timeline)];
    lines.extend(timeline.state.and_then(unsteady).map(str::to_owned));
    lines.extend(stages(timeline, "clock", |stage| stage.clock_hz, &hertz));
    let cost =
        "CPU time per request of the reference server, over what is usual in this session (its median)";
    lines.extend(stages(timeline, cost, |stage| stage.interference, &percent));
    lines.extend(timeline.warm_up.as_ref().map(warm_up));
    lines.extend(timeline.warm_up.as_ref().and_then(latencies));
    lines.extend(timeline.warm_up.as_ref().and_then(compiled));
    lines.into_iter().map(|line| Block::Line(Text::plain(line))).collect()
}

fn rates(timeline: &Timeline) -> String {
    format!(
        "floor {} · typical {} · burst {} (5th, 50th and 95th percentile of {} slices)",
        count(timeline.floor.rate_hz),
        count(timeline.typical.rate_hz),
        with_unit(timeline.burst.rate_hz, "req/s"),
        timeline.slices
    )
}

/// What is to be known of a rate that is not at one level.
fn unsteady(state: State) -> Option<&'static str> {
    match state {
        State::Steady => None,
        State::NeverSteady => {
            Some("over the trials: never steady, the rates of its slices have no common level")
        }
        State::Drifting => Some("over the trials: drifting, the rate keeps rising or falling"),
        State::Bimodal => Some("over the trials: bimodal, the rate changes between two levels"),
    }
}

/// How the machine was then, where that differed.
fn stages(
    timeline: &Timeline,
    what: &str,
    pick: fn(&Stage) -> Option<f64>,
    reported: &dyn Fn(f64) -> String,
) -> Option<String> {
    let [floor, typical, burst] = [pick(&timeline.floor)?, pick(&timeline.typical)?, pick(&timeline.burst)?];
    let differs = [floor, burst].iter().any(|value| (value / typical - 1.0).abs() > NEWS);
    differs.then(|| {
        format!(
            "{what}: {} in trials at the floor, {} at the typical rate, {} in a burst",
            reported(floor),
            reported(typical),
            reported(burst)
        )
    })
}

/// What the load at a given rate shows instead.
fn latencies(warm_up: &WarmUpTimeline) -> Option<String> {
    let fall = warm_up.latency_fall.filter(|fall| fall.times > 1.0 + LATENCY_NEWS)?;
    Some(format!(
        "latencies before {} of it were {} of those after",
        seconds(fall.from_s),
        percent(fall.times)
    ))
}

/// How warm a runtime that compiles became.
fn compiled(warm_up: &WarmUpTimeline) -> Option<String> {
    let compiled = warm_up.compiled?;
    let mut said = Vec::new();
    said.extend(
        compiled
            .cost_fall
            .map(|times| format!("a request took {times:.1} times the CPU time before that level")),
    );
    let busy = compiled.compiling_share.filter(|share| *share > NEWS);
    said.extend(busy.map(|share| format!("its compilers still took {} of its CPU time", percent(share))));
    if !compiled.is_warm {
        said.push("it may become faster still: give a longer warm-up (-w)".to_owned());
    }
    (!said.is_empty()).then(|| said.join("; "))
}

fn warm_up(warm_up: &WarmUpTimeline) -> String {
    let length = seconds(warm_up.length_s);
    match (warm_up.steady_from_s, warm_up.growth) {
        (None, _) => format!("warm-up: came to no level in {length} of load before the first trial"),
        (Some(from_s), Some(growth)) if from_s > 0.0 => format!(
            "warm-up: at its level after {} of load (its rate {} of that before), of {length} in all",
            seconds(from_s),
            percent(growth)
        ),
        (Some(_), _) => {
            format!("warm-up: at its level from the start of {length} of load before the first trial")
        }
    }
}
