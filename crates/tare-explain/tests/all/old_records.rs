//! Records of 0.1.0 open, and are explained as 0.1.0 explained them.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use tare_model::outcome::NetOrMissing;

/// Where 0.1.0 was wrong and the record shows what is right. `sh -c 'sleep 0.05; seq …'` used 5.6 % of a CPU: the time of its children was
/// "somebody whom no look at the processes caught", and that was named as the bottleneck.
const MENDED: [(&str, &str); 1] = [("program-trace", "program-idle")];

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tare-store/tests/fixtures/0.1.0")
}

fn alike(old: &Value, new: Option<f64>) -> bool {
    match (old.as_f64(), new) {
        (Some(old), Some(new)) => (new - old).abs() <= 1e-6 * old.abs(),
        (old, new) => old.is_none() && new.is_none(),
    }
}

#[test]
fn verdicts_are_those_of_then() {
    let said = std::fs::read_to_string(fixtures().join("said.json")).unwrap();
    let said: BTreeMap<String, Value> = serde_json::from_str(&said).unwrap();
    assert!(said.len() > 10);
    let mut wrong = Vec::new();
    for (name, then) in said {
        let record = tare_store::read(&fixtures().join(&name).with_extension("tare")).unwrap();
        let now = tare_explain::explain(&record);
        let net = match &now.figures.net {
            NetOrMissing::Net(net) => Some(net.value),
            NetOrMissing::Missing(_) => None,
        };
        let mended = MENDED.iter().find(|(record, _)| *record == name).map(|(_, cause)| *cause);
        let bottleneck = mended.or_else(|| then["bottleneck"].as_str());
        let same = bottleneck == Some(now.verdict.bottleneck.id().as_str())
            && then["valid"] == now.verdict.valid
            && alike(&then["gross"], now.figures.gross.value())
            && alike(&then["net"], net)
            && alike(&then["residual_ratio"], now.accounting.residual_ratio);
        if !same {
            wrong.push(format!(
                "{name}: {} {:?} {net:?}, then {then}",
                now.verdict.bottleneck.id(),
                now.figures.gross.value()
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
