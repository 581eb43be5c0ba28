//! Tools that time programs, and benchmarks of systems.

mod bonnie;
mod common;
mod dd;
mod fio;
mod fio_terse;
mod fio_text;
mod gnu_time;
mod hyperfine;
mod hyperfine_2;
mod hyperfine_summaries;
mod hyperfine_text;
mod hyperfine_warnings;
mod openssl_key;
mod openssl_speed;
mod openssl_table;
mod perf_bench;
mod perf_stat;
mod perf_stat_count;
mod perf_stat_csv;
mod perf_stat_text;
mod seven_zip;
mod stress_ng;
mod sysbench;

use crate::reader::Reader;

/// Every format of this kind.
pub(crate) const READERS: &[&Reader] = &[
    &hyperfine::READER,
    &fio::READER,
    &openssl_speed::READER,
    &perf_bench::READER,
    &stress_ng::READER,
    &sysbench::READER,
    &seven_zip::READER,
    &bonnie::READER,
];

/// Those whose output stands around that of others (`time wrk …`, `perf stat sysbench …`): what the others say is what was measured.
pub(crate) const AROUND: &[&Reader] = &[&dd::READER, &perf_stat::READER, &gnu_time::READER];

/// Those of them that are read of what a program prints, too, where no other results are: it is run under them for their figures.
pub(crate) const COUNTING: &[&Reader] = &[&perf_stat::READER];
