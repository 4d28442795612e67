//! Maintenance of stores: verifying, repairing and diagnosing; backups, and dumps as text.
//!
//! Each task has its own file and returns a plain report; the command line prints it. Modules are
//! in bottom-up order.

mod progress;
mod finding;
mod survey;
mod closed_index;
mod summaries;
mod unfit;
mod indexes;
mod held_log;
mod rebuilt;
mod verify;
mod copying;
mod manifest_file;
mod owned_directory;
mod backup_place;
mod backup_files;
mod needed_values;
mod generation;
mod backup;
mod restore;
mod repair;
mod doctor;
mod dump_lines;
mod dump;
mod load;
mod compare;

pub use backup::{BackupOptions, BackupReport, FileTotals};
pub use backup_files::{BackupFile, BackupFileRole};
pub use backup_place::Generation;
pub use compare::{DiffReport, Difference, SyncOptions, SyncReport};
pub use doctor::{Advice, Weight};
pub use dump::DumpReport;
pub use finding::{Finding, Loss, Severity};
pub use indexes::IndexCheck;
pub use load::{LoadOptions, LoadReport};
pub use progress::ByteProgress;
pub use repair::{RepairOptions, RepairReport};
pub use restore::{RestoreOptions, RestoreReport};
pub use verify::{Checked, VerifyOptions, VerifyReport};
