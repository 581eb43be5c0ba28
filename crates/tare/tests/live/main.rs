//! The whole on real processes. Each test has the machine for itself: see `support::alone`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test may panic, and says why")]

mod any_protocol;
mod bad_input;
mod calibrate;
mod causes;
mod ceiling;
mod compare;
mod confirm;
mod downstream;
mod drain;
mod examples;
mod flame;
mod foreign;
mod gate;
mod handover;
#[path = "../support/hosts.rs"]
mod hosts;
mod limits;
mod load;
mod load_many;
mod many_clients;
mod monitors;
#[path = "../support/pages.rs"]
mod pages;
mod plan;
mod privilege;
mod probe;
mod readme;
mod runs;
mod scale;
mod schedule;
mod serve;
#[path = "../support/serving.rs"]
mod serving;
mod settings;
mod spikes;
mod stopping;
mod strange_servers;
#[path = "../support/mod.rs"]
mod support;
mod warmup;
mod why;
