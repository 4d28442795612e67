//! The remains of a dead process.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use folddb_base::Seq;
use parking_lot::Mutex;

use crate::known::Known;
use crate::play::parts::Consumer;
use crate::program::{Crash, Settings};
use crate::world::SimDisk;

/// The remains of a dead process: the world, and what is known of the store in it. Any number of
/// next processes may start from one.
#[derive(Clone)]
pub struct Wreck {
    pub(super) settings: Settings,
    pub(super) dir: PathBuf,
    pub(super) disk: SimDisk,
    pub(super) known: Known,
    pub(super) consumer: Consumer,
    pub(super) epoch_ms: u64,
    pub(super) is_created: bool,
    /// The crash that the program asked for, if it did.
    pub(super) pending: Option<Crash>,
    pub(super) prints: Prints,
}

/// The prints of the knowledge up to some seqs, computed on demand. Wrecks that differ only in
/// their worlds and promises share them.
pub(super) type Prints = Arc<Mutex<BTreeMap<Seq, u64>>>;
