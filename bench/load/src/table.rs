//! What was measured under one load.

use crate::load::Load;
use crate::trial::Trial;

/// Every trial of one generator under one load, one a round; `None` where it failed.
pub struct Row {
    pub generator: &'static str,
    pub trials: Vec<Option<Trial>>,
}

/// One load and the generators that could make it.
pub struct Table {
    pub load: &'static Load,
    pub rows: Vec<Row>,
}
