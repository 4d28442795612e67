//! What a verification looked at, and what it found.

use folddb_base::Lsn;

use crate::maintenance::finding::{Finding, Severity};

/// What a verification looked at, and what it found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// True when every record was read, and not only what frames them.
    pub deep: bool,
    /// The identity of the store, where it can be told.
    pub store_id: Option<u128>,
    /// What was looked at.
    pub checked: Checked,
    /// What is not as it should be: the heaviest first, else in the order of the look.
    pub findings: Vec<Finding>,
}

/// What was looked at, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Edits of the manifest that counts.
    pub edits: u64,
    /// Tables.
    pub tables: u64,
    /// Runs.
    pub runs: u64,
    /// Parts.
    pub parts: u64,
    /// Records in parts: read where it was deep, else by the facts.
    pub records: u64,
    /// Segments of the log that are needed.
    pub segments: u64,
    /// Batches in them.
    pub batches: u64,
    /// Of these, the whole ones at the end that the next opening cuts: something before them is not
    /// whole, and nothing vouches for any of it. A power cut leaves such an end, and then nobody
    /// was promised them.
    pub batches_cut: u64,
    /// The log is needed from this LSN on.
    pub log_start_lsn: Lsn,
    /// Where its frames end before the first place that is not whole.
    pub log_end_lsn: Lsn,
    /// Bytes of parts that were read or are framed by what was.
    pub bytes: u64,
}

impl VerifyReport {
    /// True when nothing is damaged.
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity < Severity::Damage)
    }

    /// What is damaged.
    pub fn damage(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.severity == Severity::Damage)
    }
}
