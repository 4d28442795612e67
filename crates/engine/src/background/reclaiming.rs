//! The running reclaim, and what is left alone.

use std::collections::BTreeMap;
use std::time::Duration;

use folddb_base::{Error, FileNumber};

use crate::background::reclaim_job::ReclaimJob;

/// The running reclaim, and what is left alone.
#[derive(Default)]
pub struct Reclaiming {
    pub job: Option<ReclaimJob>,
    /// Files that are damaged, or could not be read.
    pub given_up: BTreeMap<FileNumber, Error>,
    /// The situation when nothing was worth it, or nothing could be done.
    pub examined: Option<Examined>,
}

/// A situation that was examined.
#[derive(Clone, Copy)]
pub struct Examined {
    pub installs: u64,
    pub is_short: bool,
    /// The room that there was.
    pub room_bytes: u64,
    /// If the disk was full although there seemed to be room: when to try again.
    pub again_at: Option<Duration>,
}
