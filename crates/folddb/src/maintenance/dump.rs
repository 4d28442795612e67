//! Dumps: the contents of a store as text, for other versions, other programs, and people.
//!
//! One line per key, at one snapshot, in bounded memory; `dump_lines.rs` has the form. A dump has
//! no history: a key has its folded value and its deadline.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use folddb_base::limits::VALUE_BYTES_MAX;
use folddb_base::{Error, ErrorKind, Result};

use crate::maintenance::dump_lines::{
    self, LINE_BYTES_MAX, RowWriter, Totals, put_end, put_piece, put_start, put_table,
};
use crate::scan::rows::AnyRows;
use crate::snapshot::Snapshot;
use crate::store::Store;
use folddb_engine::read::scan::{Rows, ScanPlan, Wanted};
use folddb_engine::seq::Seq;
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::clock::AsOf;
use folddb_engine::state::snapshots::{At, HeldFor};
use folddb_engine::write::stream;

/// Bytes of a long value on a line.
const PIECE_BYTES: u64 = 1 << 20;

/// What was dumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DumpReport {
    /// The seq at which the store was dumped.
    pub seq: Seq,
    /// Tables.
    pub tables: u64,
    /// Keys, including those whose fold fails.
    pub records: u64,
    /// Keys whose fold fails: dumped as the ops that were written.
    pub failing: u64,
    /// The hash of the text, except its last line, which contains it.
    pub hash: u64,
}

impl Store {
    /// Writes the contents of these tables, or of all if none is named, as text: see the guide on
    /// operations for its form. All of it is as of one moment. The same contents give the same
    /// text, except for the order of the rows of a hashed table, which differs between stores.
    ///
    /// # Errors
    /// [`ErrorKind::TableNotFound`]; damage, a failed read, or a failed write of `out`.
    pub fn dump(&self, tables: &[String], out: &mut dyn Write) -> Result<DumpReport> {
        self.dump_seen(&Snapshot::take(self.engine(), HeldFor::Work), tables, out)
    }

    /// The same as of a past moment that all of these tables keep: values that had expired then are
    /// left out; rules and indexes are the present ones. If one does not keep it, nothing is
    /// written.
    ///
    /// # Errors
    /// As [`Store::dump`]; [`ErrorKind::InvalidInput`] for a seq that has not been written yet, and
    /// for a moment that a table does not keep, naming the oldest that it does.
    pub fn dump_at(&self, tables: &[String], as_of: AsOf, out: &mut dyn Write) -> Result<DumpReport> {
        self.dump_seen(&self.snapshot_at(as_of)?, tables, out)
    }

    fn dump_seen(&self, past: &Snapshot, tables: &[String], out: &mut dyn Write) -> Result<DumpReport> {
        self.engine().check_here()?;
        let names = if tables.is_empty() { self.tables() } else { tables.to_vec() };
        let mut cores = Vec::with_capacity(names.len());
        for name in &names {
            let table = self.bytes_table(name)?;
            past.hold_for(&table)?; // all of them before a line is written
            cores.push(Arc::clone(table.core()));
        }
        let mut dump =
            Dump { store: self, at: past.seen(), out, line: String::new(), hash: 0, records: 0, failing: 0 };
        put_start(cores.iter().any(|core| core.expires), &mut dump.line);
        dump.hand_on()?;
        for core in &cores {
            dump.table(core)?;
        }
        let totals = Totals { tables: cores.len() as u64, records: dump.records, hash: dump.hash };
        put_end(&totals, &mut dump.line);
        dump.hand_on()?;
        dump.out.flush().map_err(write_failed)?;
        let Totals { tables, records, hash } = totals;
        Ok(DumpReport { seq: past.seq(), tables, records, failing: dump.failing, hash })
    }
}

struct Dump<'a> {
    store: &'a Store,
    at: At,
    out: &'a mut dyn Write,
    /// The present line; its buffer is reused.
    line: String,
    hash: u64,
    records: u64,
    failing: u64,
}

impl Dump<'_> {
    fn table(&mut self, core: &Arc<TableCore>) -> Result<()> {
        put_table(&core.name, &core.rules_with_indexes().to_string(), &mut self.line);
        self.hand_on()?;
        let mut writer = RowWriter::new(&core.rules);
        let plan = ScanPlan { wanted: Wanted::Short, ..ScanPlan::everything(Some(self.at)) };
        let mut rows = AnyRows::start(self.store.engine(), core, plan)?;
        loop {
            match &mut rows {
                AnyRows::Sorted(rows) => {
                    if !self.sorted_row(core, rows, &mut writer)? {
                        return Ok(());
                    }
                }
                AnyRows::Inside(_) => return Ok(()), // a dump never starts one
                AnyRows::Hashed(rows) => {
                    if rows.next_row()?.is_none() {
                        return Ok(());
                    }
                    match rows.row() {
                        (key, None) => self.long(core, (key, rows.deadline_ms()), &mut writer)?,
                        (key, Some(value)) => {
                            self.value(key, value, rows.deadline_ms(), &mut writer)?;
                        }
                    }
                }
            }
            self.records += 1;
            self.hand_on()?;
        }
    }

    /// Writes the next row of a sorted table; false at its end.
    fn sorted_row(
        &mut self,
        core: &Arc<TableCore>,
        rows: &mut Rows,
        writer: &mut RowWriter<'_>,
    ) -> Result<bool> {
        match rows.next_row().map(|row| row.is_some()) {
            Ok(false) => return Ok(false),
            Ok(true) if rows.is_long() => self.long(core, (rows.key(), rows.deadline_ms()), writer)?,
            Ok(true) => {
                let (key, value) = rows.row();
                self.value(key, value, rows.deadline_ms(), writer)?;
            }
            Err(error) if error.kind() == ErrorKind::FoldFailed => {
                self.failing += 1;
                writer.put_ops(rows.key(), &rows.loaded_operands()?, rows.deadline_ms(), &mut self.line);
                if self.line.len() > LINE_BYTES_MAX {
                    let failing = "its ops, which do not fold, are too long for a line of a dump";
                    return Err(error.context(failing));
                }
            }
            Err(error) => return Err(error),
        }
        Ok(true)
    }

    /// Writes a value in memory; if it is too long for a line, writes all of its lines except the
    /// last.
    fn value(
        &mut self,
        key: &[u8],
        value: &[u8],
        until_ms: Option<u64>,
        writer: &mut RowWriter<'_>,
    ) -> Result<()> {
        if value.len() <= VALUE_BYTES_MAX {
            writer.put_value(key, value, until_ms, &mut self.line);
            return Ok(());
        }
        writer.put_long(key, value.len() as u64, until_ms, &mut self.line);
        for piece in value.chunks(PIECE_BYTES as usize) {
            self.hand_on()?;
            put_piece(piece, &mut self.line);
        }
        Ok(())
    }

    /// The same for a separated one.
    fn long(
        &mut self,
        core: &Arc<TableCore>,
        (key, until_ms): (&[u8], Option<u64>),
        writer: &mut RowWriter<'_>,
    ) -> Result<()> {
        let Some(mut value) = stream::read_value(self.store.engine(), core, key, Some(self.at))? else {
            return Ok(());
        };
        writer.put_long(key, value.len_bytes(), until_ms, &mut self.line);
        let mut piece = Vec::new();
        loop {
            piece.clear();
            let read = value.by_ref().take(PIECE_BYTES).read_to_end(&mut piece);
            read.map_err(Error::from)?;
            if piece.is_empty() {
                return Ok(());
            }
            self.hand_on()?;
            put_piece(&piece, &mut self.line);
        }
    }

    fn hand_on(&mut self) -> Result<()> {
        self.hash = dump_lines::chain(self.hash, self.line.as_bytes());
        self.out.write_all(self.line.as_bytes()).map_err(write_failed)?;
        self.line.clear();
        Ok(())
    }
}

fn write_failed(error: std::io::Error) -> Error {
    Error::io("write", Path::new("the dump"), error)
}
