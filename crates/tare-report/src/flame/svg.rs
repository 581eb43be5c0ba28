//! Drawings, by `inferno`.

use super::choice::{Choice, FlameError, chosen, whose};
use super::folded::{facts, folded};
use inferno::differential;
use inferno::flamegraph::color::{BasicPalette, MultiPalette, Palette};
use inferno::flamegraph::{self, Options};
use tare_model::stacks::Stacks;

/// Width of a drawing, pixels; a browser scales it.
const WIDTH: usize = 1200;
/// Frames below this share of the width are left out, per cent.
const WIDTH_MIN_PERCENT: f64 = 0.1;
/// Least difference that colours are scaled by is inferno's own.
const NORMALISED: differential::Options = differential::Options { normalize: true, strip_hex: false };

/// The chosen stacks as a flame graph for a browser: frames can be clicked and searched.
///
/// # Errors
/// There are none.
pub fn svg(stacks: &Stacks, choice: &Choice, name: &str) -> Result<String, FlameError> {
    let mut options = options(choice, name);
    options.subtitle = Some(facts(stacks, choice)?);
    draw(&mut options, &folded(stacks, choice)?)
}

/// What the second has more of, red, and less of, blue, in a flame graph of the second. The first is scaled to the
/// second's total, so that shares are compared and not how long each was measured.
///
/// # Errors
/// Either has none.
pub fn difference(
    before: &Stacks,
    after: &Stacks,
    choice: &Choice,
    names: [&str; 2],
) -> Result<String, FlameError> {
    let lines = folded_difference(before, after, choice)?;
    let mut options = options(choice, &format!("{}, against {}", names[1], names[0]));
    options.subtitle = Some(format!("red: more than in {}; {}", names[0], facts(after, choice)?));
    draw(&mut options, &lines)
}

/// Both profiles in one text: stack, value in the first (scaled to the second's total), value in the second.
///
/// # Errors
/// Either has none.
pub fn folded_difference(before: &Stacks, after: &Stacks, choice: &Choice) -> Result<String, FlameError> {
    let (before, after) = (folded(before, choice)?, folded(after, choice)?);
    let mut lines = Vec::new();
    differential::from_readers(NORMALISED, before.as_bytes(), after.as_bytes(), &mut lines)
        .map_err(|error| FlameError::Drawing(error.to_string()))?;
    let lines = String::from_utf8_lossy(&lines).into_owned();
    // In the order of a hash table, which is another each time.
    let mut sorted: Vec<&str> = lines.lines().collect();
    sorted.sort_unstable();
    Ok(sorted.iter().map(|line| format!("{line}\n")).collect())
}

/// The drawing for a page that allows neither scripts nor links: only the frames of inferno's, in a frame of our own.
pub(crate) fn inline(stacks: &Stacks, choice: &Choice) -> Result<String, FlameError> {
    chosen(stacks, choice)?;
    let mut options = options(choice, "");
    options.no_javascript = true;
    let whole = draw(&mut options, &folded(stacks, choice)?)?;
    let attribute = |name: &str| {
        let (_, after) = whole.split_once(&format!(" {name}=\""))?;
        after.split_once('"').map(|(value, _)| value.to_owned())
    };
    let frames = whole.find("<svg id=\"frames\"").and_then(|at| whole.get(at..));
    let frames = frames.and_then(|rest| Some(&rest[..rest.find("</svg>")? + "</svg>".len()]));
    let (Some(frames), Some(view)) = (frames, attribute("viewBox")) else {
        return Err(FlameError::Drawing("inferno draws otherwise than it did".into()));
    };
    let frames = frames.replace(" fg:", " data-fg-").replace("<svg id=\"frames\"", "<svg");
    Ok(format!("<svg class=\"flame\" viewBox=\"{view}\" role=\"img\">{frames}</svg>"))
}

fn options(choice: &Choice, name: &str) -> Options<'static> {
    let mut options = Options::default();
    options.title = match choice.off_cpu {
        true => format!("Where {} waited: {name}", whose(choice.role)),
        false => format!("What {} ran: {name}", whose(choice.role)),
    };
    options.image_width = Some(WIDTH);
    options.min_width = WIDTH_MIN_PERCENT;
    // The same function has the same colour in every drawing.
    options.deterministic = true;
    (options.colors, options.count_name, options.factor) = match choice.off_cpu {
        true => (Palette::Basic(BasicPalette::Io), "ms".into(), 1e-6),
        false => (Palette::Multi(MultiPalette::Java), "samples".into(), 1.0),
    };
    options
}

fn draw(options: &mut Options, lines: &str) -> Result<String, FlameError> {
    let mut svg = Vec::new();
    flamegraph::from_lines(options, lines.lines(), &mut svg)
        .map_err(|error| FlameError::Drawing(error.to_string()))?;
    Ok(String::from_utf8_lossy(&svg).into_owned())
}
