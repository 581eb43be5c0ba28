//! Threads that runtimes keep beside those that work, by how their names begin (15 bytes, as the kernel cuts them).

/// A kind of thread that handles no requests.
struct Helper {
    begins: &'static str,
    /// It collects garbage, and does nothing else.
    collects: bool,
}

const fn helper(begins: &'static str) -> Helper {
    Helper { begins, collects: false }
}

const fn collector(begins: &'static str) -> Helper {
    Helper { begins, collects: true }
}

/// Go's and CPython's have the name of their program: what they do tells them apart.
static HELPERS: &[Helper] = &[
    // HotSpot.
    collector("G1 "),
    collector("GC Thread"),
    collector("GC task"),
    collector("ParGC"),
    collector("Gang worker"),
    collector("Concurrent Mark"),
    collector("VM Thread"),
    collector("ZGC"),
    collector("ZWorker"),
    collector("ZDriver"),
    collector("ZDirector"),
    collector("ZUncommitter"),
    collector("XWorker"),
    collector("Shenandoah"),
    collector("GenShen"),
    helper("VM Periodic Tas"),
    helper("C1 CompilerThre"),
    helper("C2 CompilerThre"),
    helper("JVMCI CompilerT"),
    helper("Sweeper thread"),
    helper("Service Thread"),
    helper("Monitor Deflati"),
    helper("Notification Th"),
    helper("Reference Handl"),
    helper("Finalizer"),
    helper("Common-Cleaner"),
    helper("Signal Dispatch"),
    helper("Attach Listener"),
    helper("JFR "),
    // V8, and what Node, Deno and Chromium put beside it.
    helper("V8Worker"),
    helper("node-V8Worker"),
    helper("V8 DefaultWorke"),
    helper("DelayedTaskSche"),
    helper("SignalInspector"),
    // JavaScriptCore.
    collector("HeapHelper"),
    collector("Heap Helper"),
    helper("JITWorker"),
    // .NET.
    collector(".NET Server GC"),
    collector(".NET BGC"),
    helper(".NET Finalizer"),
    helper(".NET Tiered Com"),
    helper(".NET TP Gate"),
    helper(".NET Timer"),
    helper(".NET SynchManag"),
    helper(".NET EventPipe"),
    helper(".NET SigHandler"),
    // BEAM: its pollers hand what arrives to the schedulers, which work.
    helper("poller"),
    helper("erts_poll"),
    helper("erts_aux"),
    helper("erts_smsg_disp"),
    helper("erts_ssig_disp"),
    helper("sys_sig_dispatc"),
    helper("sys_msg_dispatc"),
    helper("child_waiter"),
    // Ruby, GLib, jemalloc.
    helper("ruby-timer-thr"),
    helper("pool-spawner"),
    helper("jemalloc_bg_thd"),
];

fn of(name: &str) -> Option<&'static Helper> {
    // BEAM numbers its threads in front: `0_poller`.
    let name = name.split_once('_').filter(|(number, _)| is_number(number)).map_or(name, |(_, rest)| rest);
    HELPERS.iter().find(|helper| name.starts_with(helper.begins))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a thread of this name handles no requests.
pub(crate) fn is_helper(name: &str) -> bool {
    of(name).is_some()
}

/// Whether a thread of this name does nothing but collect garbage.
pub(crate) fn collects(name: &str) -> bool {
    of(name).is_some_and(|helper| helper.collects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beams_pollers_help_and_its_schedulers_work() {
        assert!(["0_poller", "erts_poll_0", "child_waiter"].into_iter().all(is_helper));
        assert!(!["1_scheduler", "erts_sched_1", "1_dirty_io_sche", "_", "7_"].into_iter().any(is_helper));
    }
}
