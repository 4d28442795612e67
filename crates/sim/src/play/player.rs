//! The player: a store, the model, and what is known about both.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use folddb::time::unix_ms;
use folddb::{BackgroundWork, BytesTable, Error, ErrorKind, Options, Snapshot, Store};
use folddb_base::Seq;
use folddb_host::{AppendMode, Host};

use crate::compare::Outcome;
use crate::known::Known;
use crate::play::clock::HeldClock;
use crate::play::heard::Heard;
use crate::play::neighbor::Neighbor;
use crate::play::parts::{Consumer, Left, Loading, Past, Running, Secondary};
use crate::program::{Crash, Settings};
use crate::tables::{Shape, with_customs};
use crate::world::SimDisk;

/// Where a store differs from the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The index of the action after which it differs.
    pub at: usize,
    /// What differs.
    pub message: String,
}

impl std::fmt::Display for Disagreement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "after action {}: {}", self.at, self.message)
    }
}

/// Programs with this merge factor that have no simulated world have their stores in memory, by
/// [`Options::in_memory`]. It takes no draw from any seed.
const IN_MEMORY: usize = 3;

pub(super) fn name_of(slot: u8) -> String {
    format!("t{slot}")
}

pub(super) struct Player {
    pub(super) dir: PathBuf,
    pub(super) settings: Settings,
    /// The world, where it is a simulated one.
    pub(super) disk: Option<SimDisk>,
    /// Options for a file system in memory, where it is that of the library itself.
    pub(super) memory: Option<Options>,
    /// The clock, where it is not the world's own.
    pub(super) clock: Option<Arc<HeldClock>>,
    /// Absent only for a moment.
    pub(super) store: Option<Store>,
    /// Another store of the process, where the player's shares its memory with one.
    pub(super) neighbor: Option<Neighbor>,
    /// The events that it has reported since it was opened.
    pub(super) heard: Arc<Heard>,
    pub(super) snapshots: Vec<Snapshot>,
    /// Snapshots of past moments.
    pub(super) pasts: Vec<Past>,
    /// Open transactions.
    pub(super) transactions: Vec<Running>,
    /// Scans that were left: they outlive processes.
    pub(super) left: Vec<Left>,
    /// The secondary of the store that was opened last.
    pub(super) secondary: Option<Secondary>,
    /// An open bulk load.
    pub(super) loading: Option<Loading>,
    /// The consumer of the store's feed.
    pub(super) consumer: Consumer,
    pub(super) known: Known,
    /// The coming death of the process.
    pub(super) pending: Option<Crash>,
    /// How often tables were rebuilt from archived logs.
    pub(super) rebuilt: u32,
    /// True once the disk of this process was full.
    pub(super) was_full: bool,
    /// Whether store and model are compared after every action, or only after crashes.
    pub(super) compares: bool,
    /// True once the creation of the store was acknowledged.
    pub(super) is_created: bool,
    /// When the store was created.
    pub(super) epoch_ms: u64,
    /// The last seq of the store when it was opened last, and the end of its history; none where
    /// that was ambiguous.
    pub(super) stood: Option<(Seq, Seq)>,
}

pub(super) fn said(doing: &str) -> impl Fn(Error) -> String + '_ {
    move |error| format!("cannot {doing}: {error:?}")
}

impl Player {
    pub(super) fn new(settings: Settings, dir: &Path, disk: Option<SimDisk>) -> Player {
        Player {
            dir: dir.to_owned(),
            settings,
            memory: (disk.is_none() && settings.merge_factor == IN_MEMORY)
                .then(|| Options::default().in_memory()),
            disk,
            clock: None,
            store: None,
            neighbor: Neighbor::with(&settings),
            heard: Arc::default(),
            snapshots: Vec::new(),
            pasts: Vec::new(),
            transactions: Vec::new(),
            left: Vec::new(),
            secondary: None,
            loading: None,
            consumer: Consumer::default(),
            known: Known::default(),
            pending: None,
            rebuilt: 0,
            was_full: false,
            compares: true,
            is_created: false,
            epoch_ms: 0,
            stood: None,
        }
    }

    pub(super) fn options(&self) -> Options {
        let options = self.memory.clone().unwrap_or_default();
        let options = options
            .memory_bytes(4 << 20)
            .tuning(|t| {
                t.merge_factor(self.settings.merge_factor)
                    .part_bytes(64 << 10)
                    .segment_bytes(1 << 20)
                    .value_segment_bytes(32 << 10)
                    .stream_piece_bytes(4 << 10)
            })
            .disk_reserve_bytes(0)
            .tuning(|t| t.mapped_log(self.settings.append_mode == AppendMode::Mapped))
            .background(self.settings.background);
        let options = match (&self.disk, &self.clock) {
            (Some(disk), _) => options.host(disk.host()),
            (None, Some(clock)) => self.with_clock(options, clock),
            (None, None) => options,
        };
        let options = match &self.neighbor {
            Some(neighbor) => options.shared(neighbor.shared()),
            None => options,
        };
        with_customs(self.with_ages(self.with_threads(options)))
    }

    /// A host replaces the files, too, so a player with a clock of its own is on real ones.
    fn with_clock(&self, options: Options, clock: &Arc<HeldClock>) -> Options {
        options.host(Host { clock: clock.clone(), ..Host::real() })
    }

    /// Whether its files are the operating system's.
    pub(super) fn is_on_files(&self) -> bool {
        self.disk.is_none() && (self.memory.is_none() || self.clock.is_some())
    }

    /// Ends the process, and then its other store, where there is one.
    pub(super) fn end(mut self) -> Outcome {
        let neighbor = self.neighbor.take();
        drop(self);
        neighbor.map_or(Ok(()), Neighbor::check_and_close)
    }

    /// The options of a store, whose events are counted from 0.
    pub(super) fn reporting(&mut self) -> Options {
        self.heard = Arc::default();
        self.options().on_event(self.heard.listener())
    }

    /// Judges an error: it is excused where the process is dead or calls have failed, if its kind
    /// fits; otherwise it is a disagreement.
    pub(super) fn refused(&self, doing: &str, error: Error) -> Outcome {
        if self.is_excused(error.kind()) { Ok(()) } else { Err(said(doing)(error)) }
    }

    /// Whether the faults of this process give errors of this kind. No fault makes bytes rot, or
    /// takes a table away.
    fn is_excused(&self, kind: ErrorKind) -> bool {
        let Some(disk) = &self.disk else { return false };
        match kind {
            ErrorKind::NoSpace => self.was_full || disk.is_dead(),
            ErrorKind::Io | ErrorKind::Poisoned | ErrorKind::NotDurable => {
                disk.is_dead() || !disk.failed().is_empty()
            }
            _ => false,
        }
    }

    pub(super) fn store(&self) -> Result<&Store, String> {
        self.store.as_ref().ok_or_else(|| "the store is not open".to_owned())
    }

    pub(super) fn table(&self, slot: u8) -> Result<Option<(BytesTable, Shape)>, String> {
        let name = name_of(slot);
        let Some(shape) = self.known.model.shape(&name) else { return Ok(None) };
        let table = self.store()?.bytes_table(&name).map_err(said("open the table"))?;
        Ok(Some((table, shape)))
    }

    pub(super) fn snapshot(&self, index: u8) -> Option<&Snapshot> {
        self.snapshots.get(usize::from(index) % self.snapshots.len().max(1))
    }

    pub(super) fn makes_durable(&mut self, doing: &str, done: folddb::Result<()>) -> Outcome {
        match done {
            Ok(()) => {
                self.known.survives_power();
                Ok(())
            }
            Err(error) => self.refused(doing, error),
        }
    }

    /// Drops everything that belongs to the open store.
    pub(super) fn let_go(&mut self) {
        self.snapshots.clear();
        self.pasts.clear();
        self.transactions.clear();
        self.loading = None;
        self.consumer.feed = None;
    }

    /// Gives the model the time according to the store.
    pub(super) fn tell_time(&mut self) {
        self.clock.iter().for_each(|clock| clock.read());
        if let Some(store) = &self.store {
            self.known.model.set_time(unix_ms(store.now()));
        }
    }
}

impl Player {
    /// These options, with the number of threads that merge. It follows from the settings, too.
    /// With background work by hand it is how many slices of a merge take turns; merges of these
    /// small stores are cut where they can be, or as they would be in large ones.
    ///
    /// ```text
    ///   written                       as many as the merge factor, slices of a kilobyte
    ///   mapped, merge factor odd      two, slices of a part
    ///   mapped, merge factor even     one
    /// ```
    fn with_threads(&self, options: Options) -> Options {
        let factor = self.settings.merge_factor;
        match self.settings.append_mode {
            AppendMode::Written => options.merge_threads(factor).tuning(|t| t.slice_bytes(1 << 10)),
            _ if factor.is_multiple_of(2) => options,
            _ => options.merge_threads(2),
        }
    }

    /// These options, with the ages that this player gives to snapshots and deletes. They follow
    /// from its settings, so that it takes no draw from any seed.
    ///
    /// ```text
    ///   merge factor even, mapped     pinned files as soon as they can
    ///   merge factor even, written    in a simulated world after 2 ms of it, and an end after 20 ms; else as above
    ///   merge factor odd, written     an end: in a simulated world after 5 ms of it, else at the next step of background work
    ///   merge factor odd, mapped      boundaries as long as they live
    ///   merge factor odd              deletes of 3 ms in a simulated world, else of 1, are merged with what they delete
    /// ```
    pub(super) fn with_ages(&self, options: Options) -> Options {
        let is_even = self.settings.merge_factor.is_multiple_of(2);
        let is_written = self.settings.append_mode == AppendMode::Written;
        let is_sim = self.disk.is_some();
        let ms = |in_sim, else_ms| Duration::from_millis(if is_sim { in_sim } else { else_ms });
        let options = options.tuning(|t| {
            t.snapshot_files_after(match (is_even, is_written) {
                (true, false) => Duration::ZERO,
                (true, true) => ms(2, 0),
                (false, _) => Duration::from_secs(60),
            })
        });
        let options = options.deletes_age_max((!is_even).then(|| ms(3, 1)));
        options.snapshot_age_max(self.snapshot_age_max())
    }

    fn snapshot_age_max(&self) -> Option<Duration> {
        let is_even = self.settings.merge_factor.is_multiple_of(2);
        let is_written = self.settings.append_mode == AppendMode::Written;
        match (is_even, is_written) {
            // Background work in its own threads might end a snapshot while it is compared.
            _ if self.settings.background == BackgroundWork::Threads => None,
            (true, true) if self.disk.is_some() => Some(Duration::from_millis(20)),
            (false, true) if self.disk.is_some() => Some(Duration::from_millis(5)),
            (false, true) => Some(Duration::ZERO),
            _ => None,
        }
    }

    /// Drops the snapshots that have ended because of their age.
    pub(super) fn let_go_of_ended(&mut self) -> Outcome {
        let before = self.snapshots.len();
        self.snapshots.retain(|snapshot| !Snapshot::has_ended(snapshot));
        self.pasts.retain(|past| !past.has_ended());
        let may_end = self.snapshot_age_max().is_some();
        match before == self.snapshots.len() || may_end {
            true => Ok(()),
            false => Err("a snapshot has ended that may live".to_owned()),
        }
    }
}
