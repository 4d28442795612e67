//! The steps of reclaiming dead values, in the public API.

use std::fmt;

use folddb_merge::ReclaimPlan;

/// Files of the value log whose live values are copied into a new one, so that the files can be
/// removed. Printed, it is a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReclaimStep {
    /// The files to be removed, by number.
    pub files: Vec<u64>,
    /// Bytes of the files.
    pub bytes: u64,
    /// Bytes of the live values in them.
    pub live_bytes: u64,
    /// About how long the new file will be, in bytes.
    pub new_bytes: u64,
    /// Why these files, in words.
    pub reason: String,
    sentence: String,
}

impl ReclaimStep {
    pub(crate) fn of(plan: &ReclaimPlan) -> ReclaimStep {
        ReclaimStep {
            files: plan.files.clone(),
            bytes: plan.bytes,
            live_bytes: plan.live_bytes,
            new_bytes: plan.new_bytes,
            reason: plan.reason.to_string(),
            sentence: plan.to_string(),
        }
    }
}

impl fmt::Display for ReclaimStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}
