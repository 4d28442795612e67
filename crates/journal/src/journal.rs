//! The handles of the log: one that appends, and a shared one that syncs and does background work.
//!
//! ```text
//!   lock      guards                                     held while
//!   tail      the end of the log                         a frame is composed and copied; a roll takes what is ahead
//!   ahead     the segment made ahead                     it changes hands
//!   group     which thread leads a sync                  a moment; threads that wait for the leader sleep on it
//!   idleness  when background work saw the last frame             background work
//! ```
//!
//! Locks are taken in the order idleness, tail, ahead; group is taken with no other. No thread
//! holds a lock while it waits for the disk, except an append that rolls before background work has
//! made the next segment.

use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use folddb_base::{Error, ErrorKind, FileNumber, Lsn, NumberSource, Result, Seq};
use folddb_host::Host;
use folddb_host::files::AppendSync;
use folddb_host::sync::atomic::{AtomicU64, Ordering};
use folddb_host::sync::{Condvar, Mutex, MutexGuard};
use folddb_layout::frame::{FRAME_OVERHEAD_BYTES_MAX, FrameKind};
use folddb_layout::segment::SEGMENT_HEADER_BYTES;

use crate::ahead::Ahead;
use crate::options::JournalOptions;
use crate::segment_file::SegmentMaker;
use crate::tail::Tail;

/// Where the frame of an append is when the call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handover {
    /// In a buffer of this process. Background work, a sync, a `Process` append, or the append that
    /// fills the buffer writes it.
    Buffered,
    /// In the kernel: it survives the death of the process.
    Process,
}

/// Makes the values durable that frames point to which were appended before the call. Each sync of
/// the log first calls it, so no durable frame points to a value that is not durable.
pub type SyncBefore = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// Where a journal begins.
#[derive(Clone, Copy, Debug)]
pub struct JournalStart {
    /// The store that it belongs to.
    pub store_id: u128,
    /// The LSN of the first frame: 0 in a new store, else
    /// [`Replayed::end_lsn`](crate::Replayed::end_lsn).
    pub first_lsn: Lsn,
    /// The seq of the first record.
    pub next_seq: Seq,
}

/// A live segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentFacts {
    /// Its file.
    pub number: FileNumber,
    /// Where it begins.
    pub first_lsn: Lsn,
    /// Where it ends: the beginning of the next segment, or of the next frame.
    pub end_lsn: Lsn,
    /// Length of its file. All of it is allocated on the disk.
    pub len_bytes: u64,
}

/// The handle that appends. Dropping it without [`Journal::close`] leaves the log as if the process
/// had died.
pub struct Journal {
    shared: Arc<JournalSync>,
}

/// The handle that syncs and does background work; shared by all threads.
pub struct JournalSync {
    maker: SegmentMaker,
    tail: Mutex<Tail>,
    ahead: Ahead,
    durable_lsn: AtomicU64,
    group: Mutex<Group>,
    group_done: Condvar,
    idleness: Mutex<Idleness>,
    poison: OnceLock<Error>,
    /// The manifest says, durably, that the log is durable up to this LSN.
    vouched_lsn: AtomicU64,
    /// Makes durable what frames point to.
    sync_before: Option<SyncBefore>,
}

/// What a sync must do, in this order.
struct ToSync {
    /// Sealed segments with their ends.
    sealed: Vec<(FileNumber, Lsn, Arc<dyn AppendSync>)>,
    /// The active segment.
    syncer: Arc<dyn AppendSync>,
    /// Then everything before this LSN is durable.
    target: Lsn,
    /// The error if the buffer could not be written and is not included.
    handed_on: Result<()>,
}

/// The threads that wait for a sync.
#[derive(Default)]
struct Group {
    has_leader: bool,
    /// How many threads have come since the last sync ended and are sleeping.
    waiting: usize,
    /// How many threads shared the last sync, including its leader: as many are expected for the
    /// next.
    expected: usize,
    /// How many syncs have ended.
    round: u64,
    /// How long the last one took, which is how long to wait for the expected threads.
    took: Duration,
    /// For this many more rounds no thread is expected, since waiting was useless.
    hasty_rounds: u32,
}

/// The longest wait for expected threads. If a test schedules the threads, there is no time, and no
/// wait.
const PATIENCE_MAX: Duration = Duration::from_millis(if cfg!(folddb_schedules) { 0 } else { 1 });

/// The number of rounds without waiting after a useless wait.
const HASTY_ROUNDS: u32 = 8;

impl Group {
    /// Ends a round.
    fn end_round(&mut self, took: Duration) {
        self.hasty_rounds = self.hasty_rounds.saturating_sub(1);
        self.expected = if self.hasty_rounds == 0 { self.waiting + 1 } else { 0 };
        (self.has_leader, self.waiting, self.took) = (false, 0, took);
        self.round += 1;
    }
}

#[derive(Default)]
struct Idleness {
    frames_seen: u64,
    since: Duration,
    /// When the manifest was last asked to vouch.
    asked: Duration,
}

impl Journal {
    /// Begins a fresh chain of segments.
    ///
    /// If a log was replayed before, all of it must be in runs, and the manifest must say, durably,
    /// that the log starts at `first_lsn`, before the first append: nothing connects the old chain
    /// with this one.
    ///
    /// # Errors
    /// The first segment cannot be made. Then nothing is left behind.
    pub fn start(
        host: &Host,
        dir: &Path,
        start: JournalStart,
        options: JournalOptions,
        numbers: NumberSource,
    ) -> Result<Journal> {
        Journal::start_behind(host, dir, start, options, numbers, None)
    }

    /// As [`Journal::start`]. Each sync first calls `sync_before`, which makes durable what the
    /// frames of that sync point to.
    ///
    /// # Errors
    /// As for [`Journal::start`].
    pub fn start_behind(
        host: &Host,
        dir: &Path,
        start: JournalStart,
        options: JournalOptions,
        numbers: NumberSource,
        sync_before: Option<SyncBefore>,
    ) -> Result<Journal> {
        let maker = SegmentMaker {
            host: host.clone(),
            dir: dir.to_owned(),
            store_id: start.store_id,
            options,
            numbers,
        };
        let first = maker.make(None, start.first_lsn, maker.options.segment_bytes_min, 0)?;
        let shared = JournalSync {
            ahead: Ahead::new(&first, host.clock.monotonic()),
            tail: Mutex::new(Tail::new(first, start.next_seq)),
            maker,
            durable_lsn: AtomicU64::new(start.first_lsn),
            group: Mutex::default(),
            group_done: Condvar::new(),
            idleness: Mutex::default(),
            poison: OnceLock::new(),
            vouched_lsn: AtomicU64::new(start.first_lsn),
            sync_before,
        };
        Ok(Journal { shared: Arc::new(shared) })
    }

    /// Appends a batch of `count` records as one frame, and returns the LSN after it: when the log
    /// is durable up to there, the batch is durable. `first_seq` must be the seq after the last
    /// batch's.
    ///
    /// # Errors
    /// `NoSpace`: nothing has changed, and a later append may succeed. `InvalidInput`: the batch is
    /// too large for a segment, or its seq is not the next. `Poisoned` or `Closed`: see the kinds.
    #[inline]
    pub fn append(&mut self, first_seq: Seq, count: u32, payload: &[u8], handover: Handover) -> Result<Lsn> {
        self.append_at(first_seq, count, payload, None, handover)
    }

    /// As [`Journal::append`], for a batch with its write time.
    ///
    /// # Errors
    /// As for [`Journal::append`].
    #[inline]
    pub fn append_at(
        &mut self,
        first_seq: Seq,
        count: u32,
        payload: &[u8],
        time_ms: Option<u64>,
        handover: Handover,
    ) -> Result<Lsn> {
        let shared = &*self.shared;
        let mut tail = shared.open_tail()?;
        if first_seq != tail.next_seq {
            return Err(Error::invalid(format!("a batch at seq {first_seq}, but {} is next", tail.next_seq)));
        }
        shared.put(&mut tail, FrameKind::Batch, (count, payload), time_ms, handover)?;
        Ok(tail.end_lsn)
    }

    /// The LSN of the next frame, unless it begins a new segment.
    pub fn end_lsn(&self) -> Lsn {
        self.shared.end_lsn()
    }

    /// The shared handle.
    pub fn syncer(&self) -> Arc<JournalSync> {
        Arc::clone(&self.shared)
    }

    /// Seals the last segment, waits until everything is durable, and returns the LSN at which a
    /// later chain of segments may begin. Later appends fail.
    ///
    /// # Errors
    /// `Poisoned` if a write or sync failed, now or before; `NoSpace` if the disk has no room for
    /// buffered batches.
    pub fn close(self) -> Result<Lsn> {
        self.shared.close()
    }
}

impl JournalSync {
    /// Waits until everything before `lsn` is durable. Callers that come while a sync is running
    /// share the next one.
    ///
    /// # Errors
    /// `Poisoned` if a write or sync failed, now or before; `NoSpace` if a frame before `lsn` is
    /// still in the buffer and the disk has no room for it; `InvalidInput` if `lsn` is beyond the
    /// end of the log.
    pub fn sync_to(&self, lsn: Lsn) -> Result<()> {
        loop {
            if self.durable_lsn() >= lsn {
                return Ok(());
            }
            self.check_sound()?;
            let Some(leader) = self.lead(lsn) else { continue };
            let (target, handed_on) = self.sync_all()?;
            drop(leader);
            if target < lsn {
                handed_on?;
                return Err(Error::invalid(format!("LSN {lsn} is past the end of the log at {target}")));
            }
        }
    }

    /// Makes the caller the leader of a sync. None if another thread led one in the meantime: then
    /// the caller must check again.
    ///
    /// The threads that shared the last sync were released a moment ago. If they only commit, they
    /// all come again soon. So the last of them leads: otherwise the first would begin a sync at
    /// once, and the others would wait for the one after it.
    fn lead(&self, lsn: Lsn) -> Option<Leader<'_>> {
        let mut group = self.group.lock();
        let round = group.round;
        if group.has_leader {
            group.waiting += 1;
            self.group_done.wait(&mut group);
            return None;
        }
        if self.durable_lsn() >= lsn {
            return None;
        }
        if group.waiting + 1 < group.expected && !PATIENCE_MAX.is_zero() {
            group.waiting += 1;
            if group.waiting > 1 {
                self.group_done.wait(&mut group);
                return None;
            }
            // The first thread waits for a limited time, so that a sync begins even if the others
            // do not come.
            let patience = group.took.min(PATIENCE_MAX);
            self.group_done.wait_for(&mut group, patience);
            if group.round != round {
                return None;
            }
            group.waiting -= 1;
            if group.has_leader {
                return None;
            }
            group.hasty_rounds = HASTY_ROUNDS;
        }
        group.has_leader = true;
        drop(group);
        Some(Leader { journal: self, since: self.maker.host.clock.monotonic() })
    }

    /// Everything before this LSN is durable.
    #[inline]
    pub fn durable_lsn(&self) -> Lsn {
        self.durable_lsn.load(Ordering::Acquire)
    }

    /// The LSN of the next frame, unless it begins a new segment.
    pub fn end_lsn(&self) -> Lsn {
        self.tail.lock().end_lsn
    }

    /// Does slow work before appends need it: writes what is buffered, and prepares the next window
    /// and the next segment. If no batch comes, it appends a mark that says what is durable. Call
    /// it every 5 to 10 ms; `now` is the host's monotonic time. It costs a few dozen nanoseconds if
    /// there is nothing to do.
    ///
    /// # Errors
    /// `NoSpace` if the next segment cannot be made or the buffer cannot be written: the next call
    /// tries again. `Poisoned` and `Closed`: see the kinds.
    pub fn background(&self, now: Duration) -> Result<()> {
        let mut idleness = self.idleness.lock();
        let mut tail = self.open_tail()?;
        tail.write_buffer().map_err(|error| self.write_failed(&tail, error))?;
        if tail.frames != idleness.frames_seen {
            idleness.frames_seen = tail.frames;
            idleness.since = now;
        }
        let is_idle = now.saturating_sub(idleness.since) >= self.maker.options.mark_after;
        if is_idle && self.durable_lsn().min(tail.end_lsn) > tail.vouched_lsn {
            self.put(&mut tail, FrameKind::Mark, (0, &[]), None, Handover::Process)?;
            idleness.frames_seen = tail.frames;
        }
        let header = tail.active.header;
        let is_half_full = tail.end_lsn - header.first_lsn > header.capacity_bytes / 2;
        let syncer = Arc::clone(&tail.active.syncer);
        drop(tail);
        drop(idleness);
        let _ = syncer.prepare(); // only a hint: an append can map its window itself
        if is_half_full {
            self.ahead.make(&self.maker, 0).map_err(|error| self.making_failed(error))?;
        }
        Ok(())
    }

    /// Notes that the manifest says, durably, that everything before `lsn` is durable.
    pub fn note_vouched(&self, lsn: Lsn) {
        self.vouched_lsn.fetch_max(lsn, Ordering::AcqRel);
    }

    /// Whether nothing was appended for a while (`vouch_after`), and more is durable than the
    /// manifest says: then an edit should say it. True at most once in that time.
    pub fn is_to_be_vouched(&self, now: Duration) -> bool {
        if self.durable_lsn() <= self.vouched_lsn.load(Ordering::Acquire) {
            return false;
        }
        let mut idleness = self.idleness.lock();
        let quiet = now.saturating_sub(idleness.since.max(idleness.asked));
        let is_due = quiet >= self.maker.options.vouch_after;
        if is_due {
            idleness.asked = now;
        }
        is_due
    }

    /// The live segments, oldest first. The last one is active.
    pub fn segments(&self) -> Vec<SegmentFacts> {
        let tail = self.tail.lock();
        let sealed = tail.sealed.iter().map(|segment| SegmentFacts {
            number: segment.number,
            first_lsn: segment.first_lsn,
            end_lsn: segment.next_lsn,
            len_bytes: segment.next_lsn - segment.first_lsn + SEGMENT_HEADER_BYTES as u64,
        });
        let header = tail.active.header;
        let active = SegmentFacts {
            number: header.number,
            first_lsn: header.first_lsn,
            end_lsn: tail.end_lsn,
            len_bytes: header.offset_of(header.next_lsn()),
        };
        sealed.chain([active]).collect()
    }

    /// Drops the segments that are entirely before `lsn`, except the active one, and returns their
    /// numbers. The caller removes their files when the manifest says, durably, that the log starts
    /// at `lsn`. They no longer need a sync.
    pub fn retire_before(&self, lsn: Lsn) -> Vec<FileNumber> {
        let mut tail = self.tail.lock();
        let count = tail.sealed.iter().take_while(|segment| segment.next_lsn <= lsn).count();
        tail.sealed.drain(..count).map(|segment| segment.number).collect()
    }

    /// Whether the log ends with a seal: it was closed, and there was room for one.
    pub fn is_sealed(&self) -> bool {
        self.tail.lock().sealed_lsn.is_some()
    }

    /// Cuts the file of the last segment after its seal, for a caller that keeps it after
    /// [`Journal::close`]. If that fails, the unused bytes do no harm.
    pub fn cut_closed(&self) {
        let tail = self.tail.lock();
        if let Some(sealed_lsn) = tail.sealed_lsn {
            let _ = self.maker.host.files.cut(&tail.active.path, tail.active.header.offset_of(sealed_lsn));
        }
    }

    /// Releases files and windows. Call it after [`Journal::close`], or instead of that if the
    /// journal has failed.
    pub fn let_go(&self) {
        let unused = self.ahead.end();
        let gone = self.tail.lock().let_go();
        drop((unused, gone)); // without the lock: unmapping takes time
    }

    /// Fails if writes have stopped, with the reason.
    ///
    /// # Errors
    /// The first failure.
    #[inline]
    pub fn check_sound(&self) -> Result<()> {
        match self.poison.get() {
            None => Ok(()),
            Some(error) => Err(error.clone()),
        }
    }

    /// The tail, where frames may still be added.
    #[inline]
    fn open_tail(&self) -> Result<MutexGuard<'_, Tail>> {
        self.check_sound()?;
        let tail = self.tail.lock();
        if tail.is_closed {
            return Err(Error::new(ErrorKind::Closed, "the journal is closed"));
        }
        Ok(tail)
    }

    /// Adds a frame; if the segment is full, in the next one.
    #[inline]
    fn put(
        &self,
        tail: &mut Tail,
        kind: FrameKind,
        (count, payload): (u32, &[u8]),
        time_ms: Option<u64>,
        handover: Handover,
    ) -> Result<()> {
        // A segment that was made ahead may be too short for a long frame. Then it stays empty.
        while !tail.fits(payload.len()) {
            self.roll(tail, payload.len())?;
        }
        let buffer_bytes_max = match handover {
            Handover::Buffered => self.maker.options.buffer_bytes_max,
            Handover::Process => 0,
        };
        tail.put(kind, count, payload, self.durable_lsn(), time_ms, buffer_bytes_max)
            .map_err(|error| self.write_failed(tail, error))
    }

    #[cold]
    fn roll(&self, tail: &mut Tail, payload_bytes: usize) -> Result<()> {
        let max = self.maker.payload_bytes_max();
        if payload_bytes as u64 > max {
            let say = format!("a batch of {payload_bytes} bytes; a segment of the journal takes {max}");
            return Err(Error::invalid(say));
        }
        let frame_bytes = (payload_bytes + FRAME_OVERHEAD_BYTES_MAX) as u64;
        self.ahead.ensure(&self.maker, frame_bytes).map_err(|error| self.making_failed(error))?;
        tail.put(FrameKind::SealForNext, 0, &[], self.durable_lsn(), None, 0)
            .map_err(|error| self.write_failed(tail, error))?;
        match self.ahead.take(self.maker.host.clock.monotonic()) {
            Some(next) => tail.continue_in(next),
            None => return Err(self.poison("the next segment is gone")),
        }
        Ok(())
    }

    /// Makes everything durable that was appended before the call. Returns the LSN up to which it
    /// did, and the error if frames remain in the buffer. One caller at a time.
    fn sync_all(&self) -> Result<(Lsn, Result<()>)> {
        let ToSync { sealed, syncer, target, handed_on } = self.to_sync()?;
        if let Some(sync_before) = &self.sync_before {
            sync_before().map_err(|error| self.poison(error.message()))?;
        }
        for (number, next_lsn, syncer) in sealed {
            syncer
                .sync()
                .map_err(|error| self.poison(format_args!("cannot sync segment {number}: {error}")))?;
            self.note_synced(number);
            self.durable_lsn.fetch_max(next_lsn, Ordering::AcqRel);
        }
        syncer.sync().map_err(|error| self.poison(format_args!("cannot sync the journal: {error}")))?;
        self.durable_lsn.fetch_max(target, Ordering::AcqRel);
        Ok((target, handed_on))
    }

    /// Writes what is buffered, and returns what must be synced. If the disk has no room for the
    /// buffer, only what the kernel already has is synced: a thread that waits for that does not
    /// fail because of frames that others have buffered.
    fn to_sync(&self) -> Result<ToSync> {
        let mut tail = self.tail.lock();
        let handed_on = tail.write_buffer().map_err(|error| self.write_failed(&tail, error));
        let target = match &handed_on {
            Ok(()) => tail.end_lsn,
            Err(error) if error.kind() == ErrorKind::NoSpace => tail.handed_on_lsn(),
            Err(error) => return Err(error.clone()),
        };
        let sealed = tail
            .sealed
            .iter()
            .filter_map(|segment| {
                Some((segment.number, segment.next_lsn, Arc::clone(segment.unsynced.as_ref()?)))
            })
            .collect();
        Ok(ToSync { sealed, syncer: Arc::clone(&tail.active.syncer), target, handed_on })
    }

    fn note_synced(&self, number: FileNumber) {
        let mut tail = self.tail.lock();
        if let Some(segment) = tail.sealed.iter_mut().find(|segment| segment.number == number) {
            segment.unsynced = None;
        }
    }

    fn close(&self) -> Result<Lsn> {
        let mut tail = self.open_tail()?;
        let sealed = tail.put(FrameKind::Seal, 0, &[], self.durable_lsn(), None, 0);
        match sealed.map_err(|error| self.write_failed(&tail, error)) {
            Ok(()) => tail.sealed_lsn = Some(tail.end_lsn),
            // Without a seal the log ends as after the death of the process. Nothing is lost.
            Err(error) if error.kind() == ErrorKind::NoSpace => {}
            Err(error) => return Err(error),
        }
        tail.is_closed = true;
        let frames_end_lsn = tail.end_lsn;
        // The beginning of the next segment, whether or not that exists.
        let end_lsn = tail.active.header.next_lsn();
        drop(tail);
        if let Some(unused) = self.ahead.end() {
            self.maker.unmake(unused);
        }
        // Without a seal, the log is not durable beyond the last frame: only a seal says that
        // nothing is between that frame and the end.
        self.sync_to(frames_end_lsn)?;
        let mut tail = self.tail.lock();
        tail.end_lsn = end_lsn;
        if tail.sealed_lsn.is_some() {
            self.durable_lsn.fetch_max(end_lsn, Ordering::AcqRel);
        }
        Ok(end_lsn)
    }

    /// The error of a failed append. A full disk has changed nothing; any other error poisons the
    /// journal.
    #[cold]
    fn write_failed(&self, tail: &Tail, error: io::Error) -> Error {
        let error = Error::io("append to", &tail.active.path, error);
        self.poison_unless_full(error)
    }

    #[cold]
    fn making_failed(&self, error: Error) -> Error {
        self.poison_unless_full(error)
    }

    fn poison_unless_full(&self, error: Error) -> Error {
        match error.kind() {
            ErrorKind::NoSpace | ErrorKind::Closed => error,
            _ => self.poison(error.message()),
        }
    }

    /// Forbids all writes from now on. Returns the error with the first cause.
    #[cold]
    fn poison(&self, cause: impl std::fmt::Display) -> Error {
        let error = Error::new(ErrorKind::Poisoned, format!("the journal takes no more writes: {cause}"));
        self.poison.get_or_init(|| error).clone()
    }
}

/// The leader of a sync. When it is dropped, for any reason, the other threads wake up and check.
struct Leader<'a> {
    journal: &'a JournalSync,
    since: Duration,
}

impl Drop for Leader<'_> {
    fn drop(&mut self) {
        let now = self.journal.maker.host.clock.monotonic();
        self.journal.group.lock().end_round(now.saturating_sub(self.since));
        self.journal.group_done.notify_all();
    }
}
