//! The JSON schema of what each command prints with `--json`: generated from the types, and kept under `docs/schema`.

use crate::{
    calibration, cause_page, ceiling, check, comparison, gate, load, outcome, probing, scaling, steady,
    study, tool, tool_comparison, tuning, why, zoo,
};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// One kind of output.
#[derive(Debug)]
pub struct Output {
    /// Its name: that of the command that prints it.
    pub name: &'static str,
    /// Which commands print it, and when.
    pub printed_by: &'static str,
    /// Its schema as it is kept, so that the binary need not carry what generates it.
    pub text: &'static str,
}

/// Name, who prints it, and type of every output.
macro_rules! outputs {
    ($($name:literal, $printed_by:literal, $type:ty;)*) => {
        /// All kinds of output.
        pub static OUTPUTS: &[Output] = &[$(Output {
            name: $name,
            printed_by: $printed_by,
            text: include_str!(concat!("../../../docs/schema/", $name, ".json")),
        }),*];

        /// The schema of the output of this name as its type says it, indented, with a line's end.
        ///
        /// # Errors
        /// None that is known: a schema has strings for keys.
        pub fn generate(name: &str) -> Option<Result<String, serde_json::Error>> {
            match name {
                $($name => Some(text($printed_by, of::<$type>())),)*
                _ => None,
            }
        }
    };
}

outputs! {
    "run", "run, show, why FILE", outcome::Outcome;
    "tool", "show, why FILE (results of another tool)", tool::ToolMetrics;
    "compare-tools", "compare, gate, why FILE FILE (results of another tool)", tool_comparison::ToolComparison;
    "load", "load", load::LoadOutcome;
    "compare", "compare", comparison::Comparison;
    "compare-records", "compare FILE FILE", Vec<gate::Gate>;
    "gate", "gate", gate::Gate;
    "plan", "plan", study::StudyOutcome;
    "scale", "scale", scaling::ScaleOutcome;
    "probe", "probe", probing::ProbingOutcome;
    "why", "why FILE FILE", why::Why;
    "doctor", "doctor", check::Examination;
    "steady", "steady (one line of it for each series)", steady::Series;
    "calibrate", "calibrate", calibration::Calibration;
    "injections", "calibrate --list", Vec<calibration::Injection>;
    "zoo", "calibrate --zoo", zoo::Zoo;
    "ceiling", "ceiling", ceiling::Ceilings;
    "ceilings", "ceiling --list", Vec<ceiling::ListedCeiling>;
    "tune", "tune", tuning::TuneReport;
    "explain", "explain CAUSE", cause_page::CausePage;
    "causes", "explain", Vec<cause_page::CausePage>;
}

/// The output of this name.
pub fn find(name: &str) -> Option<&'static Output> {
    OUTPUTS.iter().find(|output| output.name == name)
}

fn text(printed_by: &str, mut schema: Schema) -> Result<String, serde_json::Error> {
    schema.insert("title".into(), format!("tare {printed_by}").into());
    serde_json::to_string_pretty(&schema).map(|text| text + "\n")
}

/// The schema of a type as it is written.
fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}
