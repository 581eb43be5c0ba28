//! The data of every stage as plain types with units: machine facts, plan, trial, observation, accounting and
//! verdict, and the metric descriptors.
//!
//! Units stand last in names (`run_ns`, `rate_hz`); base units inside: seconds or nanoseconds, bytes, hertz.
//! A value that could be absent is a [`Reading`]: measured, missing (why, and what would help), or not
//! applicable. Missing is never zero.

pub mod better;
pub mod calibration;
pub mod cause_page;
pub mod ceiling;
pub mod check;
pub mod comparison;
pub mod condition;
pub mod cpuset;
pub mod downstream;
pub mod ended;
pub mod figure;
pub mod format;
pub mod gate;
mod hexadecimal;
pub mod identity;
pub mod instances;
pub mod intervention;
pub mod latency;
pub mod level_accounting;
pub mod load;
pub mod machine;
pub mod metric;
pub mod metrics;
pub mod observation;
pub mod outcome;
pub mod pack;
pub mod placement;
pub mod plan;
pub mod probes;
pub mod probing;
pub mod reading;
mod record;
pub mod reference_level;
mod role;
pub mod scaling;
pub mod schedule;
pub mod schema;
pub mod stacks;
pub mod steady;
pub mod study;
pub mod survey;
pub mod threshold;
pub mod tool;
pub mod tool_comparison;
pub mod topology;
pub mod treatment;
pub mod trial;
pub mod tuning;
pub mod warning;
pub mod why;
pub mod zoo;

pub use cpuset::CpuSet;
pub use hexadecimal::hexadecimal;
pub use reading::{Missing, Reading};
pub use record::Record;
