//! Maintenance of stores: verifying, repairing and diagnosing; backups, and dumps as text.
//!
//! Each task has its own file and returns a plain report; the command line prints it. Modules are
//! in bottom-up order.

mod finding;
mod survey;
mod at_rest;
mod refolded;
mod unfit;
mod indexes;
mod held_log;
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

pub use backup::{BackupOptions, BackupReport, FileTotals};
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
