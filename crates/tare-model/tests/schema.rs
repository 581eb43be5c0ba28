//! The schemas under `docs/schema` are those of the types.
//!
//! `TARE_WRITE_SCHEMAS=1 cargo test -p tare-model --test schema` writes them anew. The file of a
//! new output must be there first, empty.

use std::collections::BTreeSet;
use std::path::PathBuf;
use tare_model::schema::{OUTPUTS, generate};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema")
}

#[test]
fn what_is_checked_in_is_what_the_types_say() {
    let write = std::env::var_os("TARE_WRITE_SCHEMAS").is_some();
    for output in OUTPUTS {
        let path = folder().join(output.name).with_extension("json");
        let made = generate(output.name).unwrap().unwrap();
        if write {
            std::fs::create_dir_all(folder()).unwrap();
            std::fs::write(&path, &made).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(kept == made, "{} is not what the types say (see the head of this test)", path.display());
    }
    let kept: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".json"))
        .collect();
    let made: BTreeSet<String> = OUTPUTS.iter().map(|output| format!("{}.json", output.name)).collect();
    assert_eq!(kept, made);
}
