//! Benchmark frameworks of programming languages.

mod asv;
mod benchee;
mod benchmark_dotnet;
mod benchmark_ips;
mod benchmark_js;
mod catch2;
mod criterion;
mod dart;
mod divan;
mod fields;
mod go_bench;
mod google_benchmark;
mod google_console;
mod google_run;
mod gungraun;
mod jmh;
mod jmh_csv;
mod jmh_log;
mod libtest;
mod pyperf;
mod pytest_benchmark;
mod ruby_benchmark;
mod shared;
mod tinybench;
mod vitest;

use crate::reader::Reader;

/// Every format of this kind.
pub(crate) const READERS: &[&Reader] = &[
    &go_bench::READER,
    &google_benchmark::READER,
    &benchmark_dotnet::READER,
    &catch2::READER,
    &vitest::READER,
    &tinybench::READER,
    &benchmark_js::READER,
    &ruby_benchmark::READER,
    &benchmark_ips::READER,
    &benchee::READER,
    &dart::READER,
    &jmh::READER,
    &pyperf::READER,
    &criterion::READER,
    &pytest_benchmark::READER,
    &libtest::READER,
    &divan::READER,
    &gungraun::READER,
    &gungraun::IAI,
    &asv::READER,
];
