//! The built-in server compared with itself, by all that `tare compare` does: whatever it calls different then is a false alarm.

use super::live::Live;
use crate::compare::{self, Asked, EMBEDDED, PORT};
use crate::error::LabError;
use crate::running::Session;
use std::path::Path;
use std::time::Duration;
use tare_load::{CONNECTIONS_DEFAULT, LoadSpec, Target};
use tare_model::calibration::{CalledDifferent, Compared, SelfResult};
use tare_model::comparison::{Comparison, Effect, Figure, Verdict};

/// How long each may take.
pub(super) const BUDGET: Duration = Duration::from_secs(10);
/// As `tare compare` does by default.
const PRECISION: f64 = 0.01;
const MARGIN: f64 = 0.02;
/// Stands for the servers until they are up and their ports known.
const ANYWHERE: &str = "http://127.0.0.1/";

/// What `tare compare --budget 10s /plaintext /plaintext` asks for.
///
/// # Errors
/// None that is known: its address is one.
pub fn request(argv: &[String], program: &Path, seed: u64) -> Result<compare::Request, LabError> {
    let target = Target::parse(ANYWHERE).map_err(|error| LabError::usage(error.to_string(), ""))?;
    let server = Asked { command: EMBEDDED.to_owned(), url: format!("http://127.0.0.1:{PORT}/plaintext") };
    Ok(compare::Request {
        argv: argv.to_vec(),
        programs: vec![server.clone(), server],
        traffic: LoadSpec { connections: CONNECTIONS_DEFAULT, ..LoadSpec::new(target) },
        connections: None,
        threads: None,
        budget: BUDGET,
        precision: PRECISION,
        margin: MARGIN,
        seed: Some(seed),
        window: None,
        warmup: Some(compare::WARMUP),
        start_timeout: None,
        sut_cpus: None,
        load_cpus: None,
        embedded_program: program.to_path_buf(),
        treatments: Vec::new(),
    })
}

/// Compares. One that was cut short tells of another budget: it is not counted.
pub(super) fn compare(
    request: &compare::Request,
    session: &Session,
    live: &mut Live<'_>,
) -> Result<SelfResult, LabError> {
    let compared = compare::compare(request, session, live);
    match (compared.end, compared.comparison) {
        (Err(LabError::Interrupted), _) => Err(LabError::Interrupted),
        (Err(error), _) => Ok(SelfResult::Failed { why: error.to_string() }),
        (Ok(()), None) => Ok(SelfResult::Failed { why: "nothing was launched".into() }),
        (Ok(()), Some(comparison)) => Ok(judge(&comparison)),
    }
}

/// What a comparison says of two that do not differ. Where nothing could have been called different, that proves nothing.
pub(super) fn judge(comparison: &Comparison) -> SelfResult {
    let reported = comparison.effects.iter().any(|effect| effect.change.is_some());
    if !reported || !compare::is_valid(comparison) {
        let explains = |id: &str| ["errors", "too-few-launches"].contains(&id);
        let warnings = comparison.warnings.iter().filter(|warning| explains(&warning.id));
        let why = warnings.map(|warning| warning.text.as_str()).collect::<Vec<_>>().join("; ");
        let launches = comparison.launches.len();
        let why = if why.is_empty() { format!("{launches} launches gave no interval") } else { why };
        return SelfResult::Failed { why };
    }
    let different = |effect: &Effect| {
        let is_called = matches!(effect.verdict, Verdict::Faster | Verdict::Slower);
        Some(CalledDifferent { figure: effect.figure, change: effect.change.filter(|_| is_called)? })
    };
    let throughput = comparison.effects.iter().find(|effect| effect.figure == Figure::Throughput);
    SelfResult::Compared(Compared {
        seed: comparison.seed,
        launches: comparison.launches.len(),
        different: comparison.effects.iter().filter_map(different).collect(),
        detectable: throughput.and_then(|effect| effect.detectable),
    })
}
