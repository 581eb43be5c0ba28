//! What the tests share.

use std::sync::{Mutex, MutexGuard};

/// One test at a time: whoever reads is held up by the loops of another, at an edge by a slice of each.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
