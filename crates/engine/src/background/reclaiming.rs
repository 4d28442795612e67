//! What is being reclaimed, and what is left alone.

use std::collections::BTreeMap;
use std::time::Duration;

use folddb_base::{Error, FileNumber};

use crate::background::reclaim_job::ReclaimJob;

/// What is under way, and what is left alone.
#[derive(Default)]
pub struct Reclaiming {
    pub job: Option<ReclaimJob>,
    /// Files that are damaged, or could not be read.
    pub given_up: BTreeMap<FileNumber, Error>,
    /// How things stood when nothing was worth it, or nothing could be done.
    pub looked_at: Option<Examined>,
}

/// How things stood.
#[derive(Clone, Copy)]
pub struct Examined {
    pub installs: u64,
    pub is_short: bool,
    /// What there was room for.
    pub room_bytes: u64,
    /// Where the disk refused, though there seemed to be room: when it is asked again.
    pub again_at: Option<Duration>,
}
