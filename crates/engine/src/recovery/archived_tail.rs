//! The end of a log after a crash, rewritten for the feeds that still have to read it.

use folddb_base::{Error, FileNumber, Lsn, Result};
use folddb_journal::archived_log::ArchivedLogWriter;
use folddb_journal::follow::segments_in;
use folddb_journal::{ReplayFrame, Replayed};
use folddb_manifest::{ArchivedLog, State};

use crate::edit::{feeds, install};
use crate::state::engine::Engine;

/// The end of a log after a crash, during replay: if feeds retain something, it is rewritten for
/// them.
#[derive(Default)]
pub struct Tail {
    /// Where the next chain of segments will begin; none if nothing is archived.
    next_lsn: Option<Lsn>,
    /// Everything before this is durable: the end of a batch, or the position of a feed.
    durable_lsn: Lsn,
    writer: Option<ArchivedLogWriter>,
    number: Option<FileNumber>,
}

impl Tail {
    pub fn begin(engine: &Engine, state: &State) -> Result<Tail> {
        if state.feeds.from_lsn().is_none() || engine.options.read_only {
            return Ok(Tail::default());
        }
        let segments = segments_in(&engine.host, &engine.dir, engine.store_id)?;
        let ends = segments.iter().map(|segment| segment.next_lsn);
        let places = state.feeds.holding().map(|feed| feed.lsn);
        Ok(Tail {
            next_lsn: ends.chain([state.log_start_lsn]).max(),
            durable_lsn: places.fold(state.log_start_lsn, Lsn::max),
            ..Tail::default()
        })
    }

    /// Takes the next batch.
    pub fn put(&mut self, engine: &Engine, batch: &ReplayFrame<'_>) -> Result<()> {
        let Some(next_lsn) = self.next_lsn else { return Ok(()) };
        if batch.is_durable {
            self.durable_lsn = self.durable_lsn.max(batch.end_lsn);
            return Ok(());
        }
        self.writer(engine, next_lsn)?.put((batch.first_seq, batch.count), batch.time_ms, batch.payload)
    }

    fn writer(&mut self, engine: &Engine, next_lsn: Lsn) -> Result<&mut ArchivedLogWriter> {
        let slot = &mut self.writer;
        if slot.is_none() {
            let (number, range) = (engine.numbers.take(), (self.durable_lsn, next_lsn));
            *slot =
                Some(ArchivedLogWriter::begin(&engine.host, &engine.dir, number, engine.store_id, range)?);
            self.number = Some(number);
        }
        slot.as_mut().ok_or_else(|| Error::invalid("there is no writer")) // cannot happen
    }

    /// Ends it at the end of the log. A seal that is only in the page cache would leave followers
    /// with a segment without an end.
    pub fn finish(mut self, engine: &Engine, log: &Replayed) -> Result<Option<ArchivedLog>> {
        let is_whole = |next_lsn: Lsn| log.cut_lsn >= next_lsn && log.is_end_durable;
        let is_needed = |next_lsn: &Lsn| !is_whole(*next_lsn) || self.writer.is_some();
        let Some(next_lsn) = self.next_lsn.filter(is_needed) else { return Ok(None) };
        let finished = self.writer(engine, next_lsn).map(|writer| (writer.number(), writer.first_lsn()));
        let finished = finished.and_then(|begun| match self.writer.take() {
            Some(writer) => writer.finish().map(|()| begun),
            None => Ok(begun),
        });
        let (file, first_lsn) = finished.inspect_err(|_| self.discard(engine))?;
        install::sync_dir(engine).inspect_err(|_| self.discard(engine))?;
        Ok(Some(ArchivedLog { file, first_lsn, next_lsn }))
    }

    /// Removes what it has written, which nothing lists.
    pub fn discard(&self, engine: &Engine) {
        self.number.iter().for_each(|&number| feeds::remove_kept(engine, number));
    }
}
