//! Options and reports of repairs.

use std::path::PathBuf;

use crate::maintenance::finding::{Finding, Severity};
use crate::maintenance::verify::VerifyReport;

/// How a store is salvaged.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct RepairOptions {
    pub(crate) past_holes: bool,
    pub(crate) list_from: Option<PathBuf>,
    pub(crate) rebuilt: Vec<String>,
}

impl RepairOptions {
    /// Also takes batches beyond a hole in the log. Default false: the new store then has a prefix
    /// of the log, and no batch without its predecessors.
    pub fn past_holes(mut self, past_holes: bool) -> RepairOptions {
        self.past_holes = past_holes;
        self
    }

    /// Rebuilds the runs of this table from its archived log (`archive_log`), instead of salvaging
    /// them. May be set for several tables. The past of such a table then has what was written, but
    /// not when.
    pub fn rebuild_index(mut self, table: &str) -> RepairOptions {
        self.rebuilt.push(table.to_owned());
        self
    }

    /// Takes the list of what lives from a backup of the same store, if the manifest is lost. Parts
    /// that were written since are not on it.
    pub fn list_from(mut self, backup: Option<PathBuf>) -> RepairOptions {
        self.list_from = backup;
        self
    }
}

/// What was salvaged, and what is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// The identity of the new store.
    pub store_id: u128,
    /// Parts that were copied intact.
    pub parts_whole: u64,
    /// Parts of which only some blocks could be read, or whose index was lost.
    pub parts_salvaged: u64,
    /// Parts of which nothing could be read.
    pub parts_lost: u64,
    /// Records in the parts of the new store.
    pub records: u64,
    /// Records that parts are known to have held, and that are lost.
    pub records_lost: u64,
    /// Batches taken from the log.
    pub batches: u64,
    /// Batches beyond a hole of the log that were left out.
    pub batches_left: u64,
    /// What was wrong: as damage if something is lost, otherwise as a note.
    pub findings: Vec<Finding>,
    /// The new store, verified in every record.
    pub verified: VerifyReport,
}

impl RepairReport {
    /// True when nothing is known to be lost.
    pub fn is_complete(&self) -> bool {
        self.lost().next().is_none()
    }

    /// What is lost.
    pub fn lost(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.severity == Severity::Damage)
    }
}
