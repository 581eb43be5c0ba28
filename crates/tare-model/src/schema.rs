//! The JSON schema of what each command prints with `--json`, generated from the types.

use crate::{calibration, cause_page, check, comparison, gate, load, outcome, steady, study, why};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// One kind of output.
#[derive(Debug)]
pub struct Output {
    /// Its name: that of the command that prints it.
    pub name: &'static str,
    /// Which commands print it, and when.
    pub printed_by: &'static str,
    make: fn() -> Schema,
}

/// All kinds of output.
pub static OUTPUTS: &[Output] = &[
    Output { name: "run", printed_by: "run, show, why FILE", make: of::<outcome::Outcome> },
    Output { name: "load", printed_by: "load", make: of::<load::LoadOutcome> },
    Output { name: "compare", printed_by: "compare", make: of::<comparison::Comparison> },
    Output { name: "compare-records", printed_by: "compare FILE FILE", make: of::<Vec<gate::Gate>> },
    Output { name: "gate", printed_by: "gate", make: of::<gate::Gate> },
    Output { name: "plan", printed_by: "plan", make: of::<study::StudyOutcome> },
    Output { name: "why", printed_by: "why FILE FILE", make: of::<why::Why> },
    Output { name: "doctor", printed_by: "doctor", make: of::<check::Examination> },
    Output {
        name: "steady",
        printed_by: "steady (one line of it for each series)",
        make: of::<steady::Series>,
    },
    Output { name: "calibrate", printed_by: "calibrate", make: of::<calibration::Calibration> },
    Output { name: "injections", printed_by: "calibrate --list", make: of::<Vec<calibration::Injection>> },
    Output { name: "explain", printed_by: "explain CAUSE", make: of::<cause_page::CausePage> },
    Output { name: "causes", printed_by: "explain", make: of::<Vec<cause_page::CausePage>> },
];

/// The output of this name.
pub fn find(name: &str) -> Option<&'static Output> {
    OUTPUTS.iter().find(|output| output.name == name)
}

impl Output {
    /// Its schema, indented, with a line's end.
    ///
    /// # Errors
    /// None that is known: a schema has strings for keys.
    pub fn text(&self) -> Result<String, serde_json::Error> {
        let mut schema = (self.make)();
        schema.insert("title".into(), format!("tare {}", self.printed_by).into());
        serde_json::to_string_pretty(&schema).map(|text| text + "\n")
    }
}

/// The schema of a type as it is written.
fn of<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}
