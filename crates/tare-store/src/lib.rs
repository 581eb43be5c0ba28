//! The `.tare` file: one SQLite database, written trial by trial.
//!
//! The journal is a rollback journal, so that between trials there is exactly one file, and every trial is
//! committed before [`Writer::append`] returns: a killed run loses at most the trial in flight. What was killed
//! in the middle of a commit is rolled back by the next [`read`].
//!
//! | table | a row is |
//! |---|---|
//! | `meta` | the machine, the plan, who took part (`identity`), and `end` once the run finished |
//! | `trial` | one trial without its columns, as JSON |
//! | `axis` | the stamps of one trial that several columns share |
//! | `column` | one metric of one subject: its values, on an axis |
//! | `notice` | a warning of the run itself |
//! | `stacks` | the call stacks of one trial; there from the first trial that has any |
//!
//! Every row carries a checksum: SQLite proves that pages hang together, not that their bytes are the ones that
//! were written.

pub mod calibration;
pub mod ceiling;
pub mod comparison;
mod error;
mod header;
pub mod history;
mod layout;
mod old;
mod reader;
pub mod reference;
mod stacks;
mod whole;
mod writer;

pub use error::StoreError;
pub use layout::SAMPLES_MAX;
pub use reader::read;
pub use writer::Writer;
