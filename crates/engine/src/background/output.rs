//! The output of a flush or a merge: part after part of one run, each closed between two keys.

use std::path::PathBuf;
use std::sync::Arc;

use folddb_base::{Error, FileNumber, Result};
use folddb_host::Files;
use folddb_merge::Times;
use folddb_rules::Keep;
use folddb_rules::table_rules::{BoundRules, Compression as RulesCompression};
use folddb_run::{Compression, PartFacts, PartWriter, WriteOptions};

use crate::edit::install;
use crate::state::catalog::TableCore;
use crate::state::disk_quota::SpaceUser;
use crate::state::engine::Engine;
use crate::state::view::PartFile;

/// The part that is being written, if any.
pub struct Output {
    table: Arc<TableCore>,
    shape: Shape,
    files: Arc<dyn Files>,
    open: Option<Open>,
}

/// Whether a live snapshot, or a reader of the past, may distinguish records of the inputs; whether
/// nothing older is below; and what is kept of the past.
type Shape = (bool, bool, Times);

struct Open {
    writer: PartWriter,
    number: FileNumber,
    path: PathBuf,
    /// Bytes that the throttle has counted.
    counted: u64,
}

/// How the parts of a table are written. Only blocks at the bottom have summaries: elsewhere older
/// records count, too.
pub fn write_options(rules: &BoundRules, (keep_seqs, is_bottom, times): Shape) -> WriteOptions {
    WriteOptions {
        order: rules.order.clone(),
        block_bytes: rules.rules.block_bytes as usize,
        compression: match rules.rules.compression_at(is_bottom) {
            RulesCompression::Lz4 => Compression::Lz4,
            RulesCompression::Zstd => Compression::Zstd,
            _ => Compression::None,
        },
        filter_bits: u32::from(rules.rules.filter_bits),
        leading: rules.leading_in_filters(),
        keep_seqs,
        stamps: rules.fold.has_stamps().then_some(times.sweep_ms),
        kept_since: match rules.rules.keep {
            Keep::Window(_) => times.since,
            _ => 0,
        },
        summaries: (is_bottom && rules.rules.summaries).then(|| Arc::new(rules.fold.clone())),
    }
}

impl Output {
    /// An empty output.
    pub fn new(engine: &Engine, table: &Arc<TableCore>, shape: Shape, who: SpaceUser) -> Output {
        Output { table: Arc::clone(table), shape, files: engine.host_for(who).files, open: None }
    }

    /// The writer; begins a new part if none is open, by the rules that the table has by then.
    pub fn writer(&mut self, engine: &Engine) -> Result<&mut PartWriter> {
        if self.open.is_none() {
            let (number, path, rules) = install::new_part(engine, &self.table)?;
            let file = self.files.create(&path).map_err(|error| Error::io("create", &path, error))?;
            let writer = PartWriter::new(file, path.clone(), number, write_options(&rules, self.shape));
            self.open = Some(Open { writer, number, path, counted: 0 });
        }
        match &mut self.open {
            Some(open) => Ok(&mut open.writer),
            None => unreachable!("a part was opened above"),
        }
    }

    /// Bytes of the part that is being written.
    pub fn bytes_written(&self) -> u64 {
        self.open.as_ref().map_or(0, |open| open.writer.bytes_written())
    }

    /// Tells the throttle what was written since the last call.
    pub fn count_written(&mut self, engine: &Engine) {
        if let Some(open) = &mut self.open {
            let written = open.writer.bytes_written();
            engine.shared.throttle.take(written.saturating_sub(open.counted));
            open.counted = written;
        }
    }

    /// Closes the part durably and opens it for reading. None if there was no record.
    pub fn close_part(
        &mut self,
        engine: &Engine,
        table: &TableCore,
    ) -> Result<Option<(Arc<PartFile>, PartFacts)>> {
        let Some(open) = self.open.take() else { return Ok(None) };
        if open.writer.records() == 0 {
            let _ = engine.host.files.remove(&open.path);
            return Ok(None);
        }
        let (number, path) = (open.number, open.path);
        let closed = open.writer.finish().and_then(|facts| {
            engine.counters.part_bytes_written.add(facts.file_bytes);
            engine.shared.throttle.take(facts.file_bytes.saturating_sub(open.counted));
            Ok(Some((install::adopt_part(engine, table, number, path.clone())?, facts)))
        });
        closed.inspect_err(|_| {
            // No manifest lists it yet, and it would take space on a full disk.
            let _ = engine.host.files.remove(&path);
        })
    }

    /// Gives up: removes what was written.
    pub fn discard(&mut self, engine: &Engine) {
        if let Some(open) = self.open.take() {
            drop(open.writer);
            // The next opening removes an orphan that stays.
            let _ = engine.host.files.remove(&open.path);
        }
    }
}
