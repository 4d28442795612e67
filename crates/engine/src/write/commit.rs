//! The write path: a batch becomes one frame of the log, then records of memtables, then visible.
//!
//! ```text
//!   admit   back pressure, health            no lock
//!   check   what a transaction has read      no lock; once more of the newest under the commit lock
//!   resolve ops on hashed tables             locks of their points, up to the end
//!   values  separated those             no lock but the value log's
//!   derive  what indexes need                no lock; again where one has come or gone meanwhile
//!   append  one frame                        commit lock
//!   apply   each record to its memtable      commit lock; replay calls the same function
//!   publish the last seq                     commit lock
//!   seal    a full memtable                  commit lock; background work flushes it
//!   sort    a tail of a memtable that became full      no lock
//!   sync    when the commit asks for it      no lock; one sync serves all that wait
//! ```

use std::sync::Arc;

use folddb_base::{Error, ErrorKind, Lsn, Pointer, Record, Result, Seq, TableId};
use folddb_hash::Past;
use folddb_host::sync::MutexGuard;
use folddb_host::sync::atomic::Ordering;
use folddb_journal::{Handover, Journal};
use folddb_layout::frame::{self, FrameRecord, LogOp};
use folddb_manifest::RangeDelete;
use folddb_memtable::Memtable;

use crate::options::Durability;
use crate::shared::memory::Seals;
use crate::state::catalog::{TableCore, new_memtable};
use crate::state::committer::{Active, Committer};
use crate::state::engine::Engine;
use crate::state::health::PoisonOnPanic;
use crate::state::view::TableView;
use crate::state::{clock, log_sync, timing};
use crate::values::put;
use crate::write::encoded_batch::Encoded;
use crate::write::read_set::{Checked, ReadSet};
use crate::write::{hashed, index_entries, stall};

/// Commits a batch. Returns the seq of its last record. After any error but `NotDurable`, nothing
/// of it is ever visible.
#[inline]
pub fn commit(engine: &Engine, batch: &mut Encoded, durability: Durability) -> Result<Seq> {
    commit_if(engine, batch, None, durability)
}

/// The same, if what was read still holds.
pub fn commit_if(
    engine: &Engine,
    batch: &mut Encoded,
    reads: Option<&ReadSet>,
    durability: Durability,
) -> Result<Seq> {
    engine.check_here()?;
    if batch.count == 0 {
        return Ok(engine.published()); // also for a read-only store
    }
    if engine.options.read_only {
        engine.check_not_read_only()?;
    }
    let began = timing::begin(engine, &engine.counters.written.commits);
    stall::admit(engine, batch)?;
    let checked = match reads {
        Some(reads) => Some((reads, reads.check(engine)?)),
        None => None,
    };
    let is_plain = batch.separated.is_empty() && batch.hashed.is_empty() && !batch.is_placed;
    let (end_lsn, last_seq) = match is_plain {
        true => append_and_apply(engine, batch, checked, durability)?,
        false => place_and_apply(engine, batch, checked, durability)?,
    };
    if durability == Durability::Sync {
        log_sync::sync_to(engine, end_lsn)
            .map_err(|cause| log_sync::not_durable("the batch is committed", &cause))?;
    }
    let latencies = &engine.latencies;
    timing::end(engine, if batch.count == 1 { &latencies.write } else { &latencies.commit }, began);
    Ok(last_seq)
}

/// As [`append_and_apply`], for a batch with separated values.
#[cold]
fn place_and_apply(
    engine: &Engine,
    batch: &mut Encoded,
    checked: Option<(&ReadSet, Checked)>,
    durability: Durability,
) -> Result<(Lsn, Seq)> {
    let _placing = engine.values.placing.read();
    let _points = hashed::resolve_hashed(engine, batch)?;
    put_values(engine, batch)?;
    append_and_apply(engine, batch, checked, durability)
}

fn append_and_apply(
    engine: &Engine,
    batch: &mut Encoded,
    checked: Option<(&ReadSet, Checked)>,
    durability: Durability,
) -> Result<(Lsn, Seq)> {
    let mut committer = derive_and_lock(engine, batch)?;
    let done = append_and_apply_locked(engine, &mut committer, batch, checked, durability);
    if !committer.full.is_empty() {
        let full = std::mem::take(&mut committer.full);
        drop(committer);
        if done.is_ok() {
            seal_tails(engine, &full);
            recount(engine, &full);
        }
    }
    done
}

/// Makes chunks of the tails that became full. A commit does so without the commit lock: others
/// write meanwhile.
#[cold]
pub(crate) fn seal_tails(engine: &Engine, full: &[(TableId, Arc<Memtable>)]) {
    let _guard = PoisonOnPanic::new(&engine.health); // a custom order may panic
    full.iter().for_each(|(_, memtable)| memtable.seal_full_tail());
}

#[cold]
fn recount(engine: &Engine, sealed: &[(TableId, Arc<Memtable>)]) {
    let mut committer = engine.commit.lock();
    committer.recount(sealed);
    note_active(engine, &mut committer);
}

/// Notes what active memtables take, and seals one where that is too much for all stores.
fn note_active(engine: &Engine, committer: &mut Committer) {
    match engine.memory.note_active(committer.active_bytes) {
        Seals::Nobody => {}
        Seals::Asker => seal_largest(engine, committer),
        Seals::Another => engine.bell.ring(),
    }
}

fn append_and_apply_locked(
    engine: &Engine,
    committer: &mut Committer,
    batch: &mut Encoded,
    checked: Option<(&ReadSet, Checked)>,
    durability: Durability,
) -> Result<(Lsn, Seq)> {
    engine.health.check_writable(batch.frees_only)?;
    let _guard = PoisonOnPanic::new(&engine.health); // a custom order may panic while a memtable is sorted
    for table in &batch.tables {
        table.check_alive()?;
    }
    let first_seq = committer.next_seq;
    let Some(journal) = &mut committer.journal else {
        return Err(engine.health.closed());
    };
    let start_lsn = journal.end_lsn();
    let handover = match durability {
        Durability::Buffered => Handover::Buffered,
        Durability::Process | Durability::Sync => Handover::Process,
    };
    let is_timed = batch.is_timed || engine.options.deletes_age_max.is_some();
    let time_ms = if is_timed { Some(give_time(engine, batch, first_seq)) } else { None };
    if let Some((reads, checked)) = checked {
        reads.check_rest(engine, checked, time_ms)?;
    }
    let end_lsn = journal
        .append_at(first_seq, batch.count, &batch.payload, time_ms, handover)
        .inspect_err(|error| log_sync::note_write_failure(engine, error))?;
    refresh_stripes(engine, committer);
    let last_seq = first_seq + u64::from(batch.count) - 1;
    // A range delete is in a table's view before the batch is published: readers skip what is newer
    // than they are.
    apply(engine, committer, first_seq, start_lsn, &batch.payload, &mut |table, range| {
        table.change_view(|view| view.with_range_delete(&table.rules.order, range));
    })
    .inspect_err(|error| engine.health.poison(error))?; // memory has half of it
    committer.next_seq = last_seq + 1;
    publish(engine, committer, last_seq);
    settle_points(engine, batch, last_seq);
    engine.counters.written.commits.add_alone(1);
    engine.counters.written.records.add_alone(u64::from(batch.count));
    engine.counters.written.user_bytes.add_alone(batch.len_bytes() as u64);
    engine.counters.written.log_bytes.add_alone(end_lsn - start_lsn);
    seal_full(engine, committer, &batch.tables);
    Ok((end_lsn, last_seq))
}

/// Takes the commit lock, once the batch has the entries of all present indexes.
#[inline]
fn derive_and_lock<'e>(engine: &'e Engine, batch: &mut Encoded) -> Result<MutexGuard<'e, Committer>> {
    loop {
        index_entries::derive(engine, batch)?;
        let committer = engine.commit.lock();
        if batch.derived.epoch == engine.index_epoch.load(Ordering::Relaxed) {
            return Ok(committer);
        }
    }
}

/// Drops the old index states of hashed tables that present readers needed while the batch was
/// applied.
#[inline]
fn settle_points(engine: &Engine, batch: &Encoded, last_seq: Seq) {
    if batch.points.is_empty() {
        return;
    }
    let has_snapshots = !engine.boundaries.is_empty();
    for &(table, point) in &batch.points {
        if let Some(hashed) = &batch.tables[table].hashed {
            hashed.settle(point, last_seq, has_snapshots);
        }
    }
}

/// Sets the time of a batch. Under the commit lock, so that times ascend like seqs.
#[cold]
fn give_time(engine: &Engine, batch: &mut Encoded, first_seq: Seq) -> u64 {
    let now_ms = clock::now_ms(engine);
    batch.stamp(now_ms);
    engine.times.note(first_seq, now_ms);
    now_ms
}

/// Applies the records of a frame to the memtables of their tables. Records of dropped tables are
/// skipped, and so are those that are in runs already (at replay).
pub(crate) fn apply(
    engine: &Engine,
    committer: &mut Committer,
    first_seq: Seq,
    frame_lsn: Lsn,
    payload: &[u8],
    range_deleted: &mut dyn FnMut(&TableCore, RangeDelete),
) -> Result<()> {
    let malformed = |cause| Error::new(ErrorKind::Corruption, format!("a batch at LSN {frame_lsn}: {cause}"));
    let past = if engine.journal.is_some() { Past::Kept } else { Past::Forgotten };
    let mut seq = first_seq;
    let mut records = frame::records(payload).peekable();
    while let Some(next) = records.peek() {
        let id = next.as_ref().map_err(|cause| malformed(*cause))?.table;
        // Adjacent records of one table are applied under one lock of its memtable.
        let neighbors =
            std::iter::from_fn(|| records.next_if(|next| next.as_ref().is_ok_and(|r| r.table == id)));
        let numbered = neighbors.flatten().map(|record| {
            seq += 1;
            (seq - 1, record)
        });
        let Committer { active, stripes, written, full, .. } = &mut *committer;
        match active.get_mut(id.0 as usize).and_then(Option::as_mut) {
            Some(active) => {
                if active.first_lsn.is_none() {
                    written.insert(id);
                }
                if let Some(hashed) = active.table.hashed.as_ref() {
                    let first_lsn = active.first_lsn.get_or_insert(frame_lsn);
                    *first_lsn = (*first_lsn).min(frame_lsn);
                    let mut emptied = false;
                    let mut written = Written::default();
                    for (seq, record) in numbered.filter(|(seq, _)| *seq > active.flushed_seq) {
                        written.add(&record);
                        emptied |= hashed.take(&record, seq, past)?;
                    }
                    active.table.count_written(written);
                    engine.values.installs.fetch_add(u64::from(emptied), Ordering::AcqRel);
                    continue;
                }
                if active.take(numbered, frame_lsn, stripes, range_deleted)? {
                    full.push((id, Arc::clone(&active.memtable)));
                }
            }
            None => numbered.for_each(drop),
        }
    }
    Ok(())
}

pub(crate) fn publish(engine: &Engine, committer: &mut Committer, last_seq: Seq) {
    match committer.stripes.last_mut() {
        // A range delete of the batch, which remains a boundary.
        Some(last) if *last > engine.published() => committer.stripes.push(last_seq),
        Some(last) => *last = last_seq,
        None => {}
    }
    engine.published.store(last_seq, Ordering::Release);
}

/// Sets `committer.stripes` to the present boundaries: live snapshots, range deletes that are only
/// in the log, and last the published seq, which no fold may cross while a batch is being applied.
pub(crate) fn refresh_stripes(engine: &Engine, committer: &mut Committer) {
    let version = engine.boundaries.version();
    if committer.stripes_version == version {
        return;
    }
    let mut stripes = engine.boundaries.all();
    for active in committer.written() {
        stripes.extend(&active.range_delete_seqs);
    }
    stripes.sort_unstable();
    stripes.dedup();
    stripes.push(committer.next_seq - 1);
    committer.stripes = stripes;
    committer.stripes_version = version;
}

fn seal_full(engine: &Engine, committer: &mut Committer, tables: &[Arc<TableCore>]) {
    let memtable_bytes = engine.options.memtable_bytes();
    let range_deletes_max = engine.options.range_deletes_per_flush();
    let mut fullest_bytes = 0;
    for table in tables {
        let Some(active) = committer.active_mut(table.id) else { continue };
        let (bytes, is_full) = (active.bytes, active.is_full(memtable_bytes, range_deletes_max));
        committer.count_bytes(table.id);
        if is_full {
            seal(engine, committer, table);
        } else {
            fullest_bytes = fullest_bytes.max(bytes);
        }
    }
    if committer.active_bytes > memtable_bytes * 2 || engine.memory.take_asked() {
        seal_largest(engine, committer);
    }
    note_active(engine, committer);
    // A memtable is sealed when it is full, or when all together hold two, whichever is first.
    let filling_bytes = fullest_bytes.max(committer.active_bytes.saturating_sub(memtable_bytes));
    // Noted in grains: writers who wait for nothing read what is beside it.
    if engine.debt.filling_bytes.load(Ordering::Relaxed).abs_diff(filling_bytes) > memtable_bytes / 256 {
        engine.debt.filling_bytes.store(filling_bytes, Ordering::Relaxed);
    }
}

/// Seals the largest of the active memtables.
pub(crate) fn seal_largest(engine: &Engine, committer: &mut Committer) {
    let largest = committer.written().max_by_key(|active| active.bytes);
    if let Some(table) = largest.map(|active| Arc::clone(&active.table)) {
        seal(engine, committer, &table);
    }
}

/// Seals the active memtable of a table and replaces it. Does nothing to one without writes.
pub fn seal(engine: &Engine, committer: &mut Committer, table: &Arc<TableCore>) {
    refresh_stripes(engine, committer);
    let end_lsn = committer.journal.as_ref().map_or(0, Journal::end_lsn);
    let Committer { active, written, stripes, stripes_version, active_bytes, .. } = committer;
    let Some(Some(active)) = active.get_mut(table.id.0 as usize) else { return };
    if active.first_lsn.is_none() {
        return;
    }
    if let Some(hashed) = &table.hashed {
        hashed.wants_save.store(true, Ordering::Release);
        engine.bell.ring();
        return;
    }
    // A custom order may panic here: the log keeps what the memtable has until it is sealed.
    let _guard = PoisonOnPanic::new(&engine.health);
    active.memtable.freeze(stripes);
    written.remove(&table.id);
    *active_bytes -= std::mem::take(&mut active.bytes_counted);
    let next = new_memtable(&table.rules.order, &table.fold, table.keeps_past);
    let memtable = std::mem::replace(&mut active.memtable, next);
    let since_ms = match table.is_timed {
        true => table.active_since_ms.swap(clock::now_ms(engine), Ordering::AcqRel),
        false => 0,
    };
    // A memtable full of range deletes takes memory, too, and so do reads that examine many.
    let range_bytes = match active.range_delete_seqs.is_empty() {
        true => 0,
        false => {
            active.range_delete_seqs.len() * engine.options.memtable_bytes()
                / engine.options.range_deletes_min()
        }
    };
    let sealed = crate::state::view::Sealed {
        bytes: memtable.bytes() + range_bytes,
        memtable,
        first_lsn: active.first_lsn.take().unwrap_or_default(),
        end_lsn,
        last_seq: engine.published(),
        since_ms,
    };
    active.bytes = 0;
    if !active.range_delete_seqs.is_empty() {
        active.range_delete_seqs.clear();
        *stripes_version = u64::MAX; // they are no longer boundaries
    }
    engine.memory.note_sealed(sealed.bytes);
    engine.memory.note_active(*active_bytes);
    let next = Arc::clone(&active.memtable);
    table.change_view(|view| TableView {
        active: next,
        sealed: std::iter::once(sealed).chain(view.sealed.iter().cloned()).collect(),
        runs: Arc::clone(&view.runs),
        range_deletes: Arc::clone(&view.range_deletes),
    });
    engine.work.sealed.lock().insert(table.id);
    engine.bell.ring();
}

/// Adds a boundary, which is newer than all others except during replay.
fn insert_boundary(stripes: &mut Vec<Seq>, seq: Seq) {
    let at = stripes.partition_point(|&boundary| boundary < seq);
    if stripes.get(at) != Some(&seq) {
        stripes.insert(at, seq);
    }
}

/// What a batch writes to one table.
#[derive(Clone, Copy, Default)]
struct Written {
    records: u64,
    bytes: u64,
}

impl Written {
    #[inline]
    fn add(&mut self, record: &FrameRecord<'_>) {
        self.records += 1;
        self.bytes += (record.key.len() + record.payload.len()) as u64;
    }
}

impl TableCore {
    fn count_written(&self, written: Written) {
        self.records_written.add_alone(written.records);
        self.bytes_written.add_alone(written.bytes);
    }
}

impl Active {
    /// Applies the records of one table from a frame. True if a tail became full.
    fn take<'f>(
        &mut self,
        records: impl Iterator<Item = (Seq, FrameRecord<'f>)>,
        frame_lsn: Lsn,
        stripes: &mut Vec<Seq>,
        range_deleted: &mut dyn FnMut(&TableCore, RangeDelete),
    ) -> Result<bool> {
        let mut writer = self.memtable.apply();
        let mut written = Written::default();
        for (seq, record) in records {
            if seq <= self.flushed_seq {
                continue;
            }
            written.add(&record);
            self.first_lsn.get_or_insert(frame_lsn);
            match record.op {
                LogOp::Op(kind) => {
                    writer.push(Record { key: record.key, seq, kind, payload: record.payload }, stripes);
                }
                LogOp::PutHashed | LogOp::RemoveHashed => {
                    let say =
                        format!("a batch at LSN {frame_lsn}: a record of a hashed table in a sorted one");
                    return Err(Error::new(ErrorKind::Corruption, say));
                }
                LogOp::RangeDelete => {
                    self.range_delete_seqs.push(seq);
                    insert_boundary(stripes, seq);
                    range_deleted(
                        &self.table,
                        RangeDelete { from: record.key.to_vec(), to: record.payload.to_vec(), seq },
                    );
                }
            }
        }
        self.bytes = writer.bytes();
        self.table.count_written(written);
        Ok(writer.has_full())
    }

    /// Whether it should be sealed.
    pub fn is_full(&self, bytes_max: usize, range_deletes_max: usize) -> bool {
        self.bytes >= bytes_max || self.range_delete_seqs.len() >= range_deletes_max
    }

    pub fn new(table: Arc<TableCore>, flushed_seq: Seq) -> Active {
        let memtable = Arc::clone(&table.view().active);
        Active {
            table,
            memtable,
            bytes: 0,
            bytes_counted: 0,
            first_lsn: None,
            range_delete_seqs: Vec::new(),
            flushed_seq,
        }
    }
}

// ---- putting ------------------------------------------------------------------------------------

/// Puts the values of a separated batch into the value log, and their places into the batch.
#[cold]
pub(crate) fn put_values(engine: &Engine, batch: &mut Encoded) -> Result<()> {
    if batch.has_ropes {
        put::begin_ropes(engine, batch.has_lasting_ropes)?;
    }
    let time_ms = engine.host.clock.unix_millis();
    let Encoded { separated, values, payload, .. } = batch;
    let mut put_bytes = 0;
    for one in separated {
        let place = put::put_value(engine, one.value_placement, &values[one.record.clone()])?;
        put_bytes += one.record.len() as u64;
        match one.is_timed {
            true => Pointer::patch(&mut payload[one.pointer_at..], place, time_ms),
            false => Pointer::move_to(&mut payload[one.pointer_at..], place),
        }
    }
    engine.counters.value_bytes_written.add(put_bytes);
    Ok(())
}
