//! What Google Benchmark says of one run, whichever way it prints it.

use serde_json::{Map, Value};

/// One run: an entry of the list in JSON.
pub(super) type Run = Map<String, Value>;
