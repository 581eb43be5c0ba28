//! What the programs of this bench share.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tare_machine::{Root, facts};

/// Median and the distribution-free 95 % interval of the sign test: the order statistics n/2 ∓ 0.98·√n (Conover,
/// Practical Nonparametric Statistics, 3.2). `None` for no values.
pub fn median(values: &[f64]) -> Option<[f64; 3]> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let half = 0.98 * n.sqrt();
    let at = |rank: f64| sorted.get((rank.max(0.0) as usize).min(sorted.len().saturating_sub(1))).copied();
    Some([tare_stats::median(values)?, at((n / 2.0 - half).floor() - 1.0)?, at((n / 2.0 + half).ceil())?])
}

/// Writes what was found with the machine it was found on and the command that finds it again.
///
/// # Errors
/// The file cannot be written.
pub fn write(path: &Path, command: &str, found: &Value) -> Result<()> {
    let machine = facts::read(&Root::live());
    let result = json!({ "command": command, "machine": machine, "found": found });
    std::fs::write(path, serde_json::to_string_pretty(&result)? + "\n")
        .with_context(|| format!("cannot write {}", path.display()))
}

/// A busy loop on a CPU, until dropped.
pub struct Busy {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Busy {
    /// Starts it.
    pub fn start(cpu: u32) -> Busy {
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let stop = Arc::clone(&stop);
            move || {
                let pinned = tare_sys::affinity::set(0, &[cpu]).is_ok();
                while pinned && !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            }
        });
        Busy { stop, thread: Some(thread) }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
