//! What records say, explained: made-up ones whose answer is known.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a test may panic, and says why"
)]

mod any_record;
mod bottlenecks;
mod causes;
mod ceiling;
mod changes;
mod commands;
mod contract;
mod downstream;
mod ended;
mod execution;
mod gate;
mod hypotheses;
mod load;
mod mistaken;
mod net;
mod network;
mod old_records;
mod one_net;
mod own_count;
mod parallel;
mod quota;
mod rate_over_time;
mod sampling;
mod spikes;
mod stages;
mod stopping;
mod support;
mod switches;
mod whole;
mod why;
mod why_beside_reference;
