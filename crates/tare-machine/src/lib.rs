//! Facts of the machine (injectable roots), probes, knobs with undo, placement.
