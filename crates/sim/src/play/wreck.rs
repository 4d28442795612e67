//! What a dead process leaves.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use folddb_base::Seq;
use parking_lot::Mutex;

use crate::known::Known;
use crate::play::parts::Consumer;
use crate::program::{Crash, Settings};
use crate::world::SimDisk;

/// What a dead process leaves: the world, and what is known of the store in it. Any number of next
/// processes may be tried on one.
#[derive(Clone)]
pub struct Wreck {
    pub(super) settings: Settings,
    pub(super) dir: PathBuf,
    pub(super) disk: SimDisk,
    pub(super) known: Known,
    pub(super) consumer: Consumer,
    pub(super) epoch_ms: u64,
    pub(super) is_created: bool,
    /// How the program wanted the process to end, where it did.
    pub(super) pending: Option<Crash>,
    pub(super) prints: Prints,
}

/// The prints of what is known up to some seqs, as far as anybody has asked. Wrecks share them that
/// differ in their worlds and promises alone.
pub(super) type Prints = Arc<Mutex<BTreeMap<Seq, u64>>>;
