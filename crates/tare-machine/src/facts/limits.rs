//! Limits on a process that is started from here.

use crate::root::Root;
use tare_model::Missing;
use tare_model::survey::{Limit, Limits};

pub(super) fn read(root: &Root) -> Limits {
    let text = root.text("/proc/self/limits");
    let limit = |name: &str| text.as_ref().map_err(Missing::clone).and_then(|text| limit(text, name)).into();
    Limits {
        open_files: limit("Max open files"),
        processes: limit("Max processes"),
        locked_bytes: limit("Max locked memory"),
        core_bytes: limit("Max core file size"),
        open_files_max: root.value("/proc/sys/fs/nr_open").into(),
        threads_max: root.value("/proc/sys/kernel/threads-max").into(),
        maps_max: root.value("/proc/sys/vm/max_map_count").into(),
    }
}

fn limit(text: &str, name: &str) -> Result<Limit, Missing> {
    let number = |field: &str| match field {
        "unlimited" => Some(None),
        number => number.parse::<u64>().ok().map(Some),
    };
    let found = super::files::field(text, name).and_then(|rest| {
        let mut fields = rest.split_ascii_whitespace();
        Some(Limit { soft: number(fields.next()?)?, hard: number(fields.next()?)? })
    });
    found.ok_or_else(|| Missing::new(format!("/proc/self/limits has no {name}")))
}
