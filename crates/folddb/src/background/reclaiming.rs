//! What is being reclaimed, and what is left alone.

use std::collections::BTreeMap;
use std::time::Duration;

use folddb_base::{Error, FileNumber};

use crate::background::reclaim_job::ReclaimJob;

/// What is under way, and what is left alone.
#[derive(Default)]
pub(crate) struct Reclaiming {
    pub(crate) job: Option<ReclaimJob>,
    /// Files that are damaged, or could not be read.
    pub(crate) given_up: BTreeMap<FileNumber, Error>,
    /// How things stood when nothing was worth it, or nothing could be done.
    pub(crate) looked_at: Option<Looked>,
}

/// How things stood.
#[derive(Clone, Copy)]
pub(crate) struct Looked {
    pub(crate) installs: u64,
    pub(crate) is_short: bool,
    /// What there was room for.
    pub(crate) room_bytes: u64,
    /// Where the disk refused, though there seemed to be room: when it is asked again.
    pub(crate) again_at: Option<Duration>,
}
