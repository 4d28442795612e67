//! What a person does for a store: looking whether it is whole, salvaging what is, asking what is
//! wrong; copies that can be gone back to, and text that outlives it.
//!
//! Each task is a file of its own and returns a plain report; the command line prints it. Modules
//! stand bottom-up.

mod finding;
mod survey;
mod at_rest;
mod refolded;
mod indexes;
mod rebuilt;
mod verify;
mod copying;
mod manifest_file;
mod keep_out;
mod place;
mod needed;
mod generation;
mod backup;
mod restore;
mod repair;
mod doctor;
mod lines;
mod dump;
mod load;
mod compare;

pub use backup::{BackupOptions, BackupReport, Moved};
pub use compare::{DiffReport, Difference, SyncOptions, SyncReport};
pub use doctor::{Advice, Facts, TableFacts, Weight, advise};
pub use dump::DumpReport;
pub use finding::{Finding, Loss, Severity};
pub use indexes::IndexCheck;
pub use load::{LoadOptions, LoadReport};
pub use place::Generation;
pub use repair::{RepairOptions, RepairReport};
pub use restore::{RestoreOptions, RestoreReport};
pub use verify::{Checked, VerifyReport};
