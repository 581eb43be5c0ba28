//! Load generators of others: summaries, samples, time series, several tests.

pub(crate) mod ab;
pub(crate) mod autocannon;
pub(crate) mod bombardier;
pub(crate) mod ghz;
mod ghz_json;
pub(crate) mod h2load;
pub(crate) mod hey;
mod http_errors;
mod http_logs;
pub(crate) mod iperf3;
pub(crate) mod k6;
mod k6_csv;
mod k6_json;
mod k6_points;
mod k6_summary;
pub(crate) mod locust;
mod locust_csv;
mod locust_json;
pub(crate) mod memaslap;
pub(crate) mod memtier;
pub(crate) mod mysqlslap;
pub(crate) mod neper;
pub(crate) mod netperf;
mod nighthawk;
pub(crate) mod oha;
pub(crate) mod pgbench;
mod pgbench_log;
pub(crate) mod printed;
mod qperf;
pub(crate) mod redis_benchmark;
mod shared;
pub(crate) mod sockperf;
pub(crate) mod sysbench;
mod time;
pub(crate) mod vegeta;
mod vegeta_gob;
mod vegeta_results;
pub(crate) mod wrk;
pub(crate) mod wrk2;
pub(crate) mod ycsb;

#[cfg(test)]
mod several_runs_tests;

use crate::reader::Reader;

/// Every format of this kind.
pub(crate) const READERS: &[&Reader] = &[
    &iperf3::READER,
    &pgbench_log::READER,
    &http_logs::AB,
    &http_logs::H2LOAD,
    &memtier::READER,
    &sockperf::READER,
    &mysqlslap::READER,
    &qperf::READER,
    &ycsb::READER,
    &neper::READER,
    &netperf::READER,
    &k6_json::READER,
    &k6_csv::READER,
    &k6_summary::READER,
    &hey::READER,
    &oha::READER,
    &vegeta_results::READER,
    &ghz_json::READER,
    &nighthawk::READER,
    &locust_csv::STATS,
    &locust_csv::HISTORY,
    &locust_json::READER,
];
