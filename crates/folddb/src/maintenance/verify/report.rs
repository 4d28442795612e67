//! What a verification checked and found.

use crate::maintenance::finding::{Finding, Severity};

/// How a store is checked.
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct VerifyOptions {
    pub(crate) deep: bool,
}

impl VerifyOptions {
    /// Reads every record. Default false: of parts only footers, indexes and facts.
    pub fn deep(mut self, deep: bool) -> VerifyOptions {
        self.deep = deep;
        self
    }
}

/// What a verification checked and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyReport {
    /// True if every record was read, and not only the framing.
    pub deep: bool,
    /// The identity of the store, if known.
    pub store_id: Option<u128>,
    /// What was checked.
    pub checked: Checked,
    /// All problems: the most severe first, otherwise in the order of checking.
    pub findings: Vec<Finding>,
}

/// Counts of what was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// Edits of the manifest that was used.
    pub edits: u64,
    /// Tables.
    pub tables: u64,
    /// Runs.
    pub runs: u64,
    /// Parts.
    pub parts: u64,
    /// Records in parts: read if deep, otherwise by the facts.
    pub records: u64,
    /// Segments of the log that are needed.
    pub segments: u64,
    /// Batches in them.
    pub batches: u64,
    /// Of these, intact ones at the end that the next opening cuts: something before them is
    /// damaged, and none of it is known to be durable. A power cut leaves such an end, which was
    /// never promised.
    pub batches_cut: u64,
    /// The log is needed from this LSN on.
    pub log_start_lsn: u64,
    /// Where its frames end before the first damaged place.
    pub log_end_lsn: u64,
    /// Bytes of parts that were read, or whose framing was.
    pub bytes: u64,
    /// Parts that this build of FoldDB cannot read, wholly or in part: it lacks a feature that they
    /// need, or a newer version wrote them. A finding of each, a note, says which.
    pub parts_unread: u64,
}

impl VerifyReport {
    /// True if all was checked that was asked for, nothing is damaged, and each value is one that
    /// its table takes.
    pub fn is_clean(&self) -> bool {
        self.checked.parts_unread == 0
            && self.findings.iter().all(|finding| finding.severity == Severity::Note)
    }

    /// Values that programs wrote and that their tables do not take: no bytes are damaged there.
    pub fn unfit(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.severity == Severity::Unfit)
    }

    /// What is damaged.
    pub fn damage(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.severity == Severity::Damage)
    }
}
