//! Settings that programs were run with: what they did, and whether they were in use.

use crate::block::{Block, Column, Field, Row, Table, Text, Tone};
use crate::words;
use tare_model::Reading;
use tare_model::comparison::{Comparison, Program};
use tare_model::treatment::{TreatedSetting, Treatment, TreatmentResult, TreatmentVerdict};

/// What the settings of a program did; `None` where it has none. Where A alone has some they are its.
pub(super) fn headline(comparison: &Comparison, program: &Program) -> Option<Block> {
    let treatment = of(comparison, &program.name)?;
    let name = treatment.name();
    let text = match &treatment.result {
        Reading::Measured(TreatmentResult { verdict, figure, words, .. }) => {
            let tone = match verdict {
                TreatmentVerdict::Helped => Tone::Good,
                TreatmentVerdict::Hurt => Tone::Bad,
                TreatmentVerdict::NoDifference => Tone::Strong,
                TreatmentVerdict::NotKnown => Tone::Warn,
            };
            let is_shown = matches!(verdict, TreatmentVerdict::Helped | TreatmentVerdict::Hurt);
            let joint = if is_shown { " " } else { ": " };
            Text::new(format!("{name}{joint}{words} ({}).", figure.title()), tone)
        }
        Reading::Missing(missing) => {
            Text::new(format!("{name}: {}.", words::then_remedy(missing)), Tone::Warn)
        }
        Reading::NotApplicable { .. } => return None,
    };
    Some(Block::Headline(text))
}

fn of<'c>(comparison: &'c Comparison, program: &str) -> Option<&'c Treatment> {
    comparison.treatments.iter().find(|treatment| treatment.program == program)
}

/// `with thp=never`.
pub(super) fn with(comparison: &Comparison, program: &Program) -> Option<String> {
    of(comparison, &program.name).map(|treatment| format!("with {}", treatment.name()))
}

/// A row for each setting, and what to know of it below.
pub(super) fn table(comparison: &Comparison) -> Vec<Block> {
    let all = || {
        let of = |treatment| {
            let Treatment { program, settings, .. }: &Treatment = treatment;
            settings.iter().map(move |setting| (program, setting))
        };
        comparison.treatments.iter().flat_map(of)
    };
    if all().next().is_none() {
        return Vec::new();
    }
    let row = |(program, setting): (&String, &TreatedSetting)| {
        let applied = match &setting.applied {
            Reading::Measured(text) => Text::plain(text),
            Reading::Missing(missing) => Text::new(words::then_remedy(missing), Tone::Warn),
            Reading::NotApplicable { not_applicable } => Text::dim(not_applicable),
        };
        let in_use = match &setting.verified {
            Reading::Measured(found) if found.in_use => Text::new("yes", Tone::Good),
            Reading::Measured(_) => Text::new("no", Tone::Warn),
            Reading::Missing(_) | Reading::NotApplicable { .. } => Text::dim("not known"),
        };
        Row::Cells(vec![
            Text::plain(program),
            Text::strong(format!("{}={}", setting.name, setting.value)),
            in_use,
            applied,
        ])
    };
    let columns = vec![
        Column::words("", 0),
        Column::words("setting", 0),
        Column::words("in use", 0),
        Column::words("applied", 1),
    ];
    // How it is known is too long for a column.
    let notes = all().flat_map(|(program, setting)| {
        let evidence = match &setting.verified {
            Reading::Measured(found) => found.evidence.clone(),
            Reading::Missing(missing) => words::then_remedy(missing),
            Reading::NotApplicable { not_applicable } => not_applicable.clone(),
        };
        let all = std::iter::once(evidence).chain(setting.notes.iter().cloned());
        all.map(move |note| Block::Line(Text::dim(format!("{program} {}: {note}", setting.name))))
    });
    let table = Block::Table(Table { columns, rows: all().map(row).collect() });
    std::iter::once(table).chain(notes).collect()
}

/// A row for each treatment, as figures have them: what is better by how much, `before` and `after` are of the figure.
pub(super) fn rows(comparison: &Comparison) -> impl Iterator<Item = Vec<Field>> {
    let row = |treatment: &Treatment| {
        let result = treatment.result.value();
        let [low, high] = Field::ends(result.map(|result| result.ci95));
        let verdict = match &treatment.result {
            Reading::Measured(result) => words::id(result.verdict),
            Reading::Missing(missing) => missing.why.clone(),
            Reading::NotApplicable { .. } => String::new(),
        };
        vec![
            treatment.program.as_str().into(),
            treatment.name().into(),
            "false".to_owned().into(),
            None.into(),
            None.into(),
            result.map(|result| result.better).into(),
            low,
            high,
            verdict.into(),
            (comparison.launches.len() as f64).into(),
            result.map(|result| result.at_most).into(),
        ]
    };
    comparison.treatments.iter().map(row)
}
