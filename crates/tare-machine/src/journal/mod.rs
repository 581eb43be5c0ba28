//! What tare started and applied, on disk before it is done, so that a later start can undo what a killed run
//! left behind.
//!
//! One file per tare process, of JSON lines that are only ever appended and synced. A process is named by pid,
//! start time and boot: a number that was given out again is somebody else's.

mod caller;
mod entry;
mod folder;
mod found;
mod groups;
mod id;
mod left;
mod lines;
mod lock;
mod pins;
mod put_back;
mod recover;
mod running;
mod value_change;
mod writer;

pub use folder::{NoFolder, default_dir};
pub use groups::{GroupError, MadeGroup, Members, place_for_groups};
pub use id::Id;
pub use lock::{Lock, LockError};
pub use pins::{PinError, Pinned, pin_tasks};
pub use put_back::{PutBack, Report, restore, tunings};
pub(crate) use put_back::{keep_changed, put_back};
pub use recover::{Recovery, Restored, Stopped, recover, recover_holding};
pub use running::RUN_VARIABLE;
pub(crate) use value_change::ValueChange;
pub use writer::{Journal, JournalError};
