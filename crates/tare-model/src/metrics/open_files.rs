//! Open files of the SUT's processes, against what each may have.

super::declare::descriptors! {
    OPEN = "open_files.open", Count, Gauge,
        "Open files of the SUT's process that is nearest to its limit.", "size of /proc/PID/fd (Linux 6.2)";
    LIMIT = "open_files.limit", Count, Gauge,
        "Files that this process may have open.", "/proc/PID/limits Max open files";
}
