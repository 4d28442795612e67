//! The rows that a feed begins with: those of one snapshot, table by table.

use std::collections::VecDeque;
use std::sync::Arc;

use folddb_base::limits::VALUE_BYTES_MAX;
use folddb_base::{ErrorKind, Result};

use crate::feed::batch::{Met, met};
use crate::feed::event::{FeedEvent, FeedRow, FeedTable};
use crate::scan::bytes::{BytesScan, LentRows};
use crate::scan::rows::Short;
use crate::snapshot::Snapshot;
use folddb_engine::read::head;
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::engine::Engine;
use folddb_engine::values::head::of_value;

/// The remaining rows.
pub(crate) struct Rows {
    pub(crate) snapshot: Snapshot,
    pub(crate) has_begun: bool,
    /// The remaining tables.
    pub(crate) tables: VecDeque<Arc<TableCore>>,
    pub(crate) current: Option<(Arc<TableCore>, Met, LentRows)>,
}

impl Rows {
    /// The next row of the present table; none at its end.
    pub(crate) fn next(&mut self, engine: &Engine, prefix: &[u8]) -> Result<Option<FeedEvent>> {
        let Some((table, met, rows)) = &mut self.current else { return Ok(None) };
        loop {
            let (key, value) = match rows.next_short() {
                Ok(Some((key, value))) => (key.to_vec(), Some(value)),
                Err(error) if error.kind() == ErrorKind::FoldFailed => (rows.key().to_vec(), None),
                Err(error) if table.check_alive().is_ok() => return Err(error),
                Ok(None) | Err(_) => break, // at its end, or dropped, which is reported later
            };
            if !key.starts_with(prefix) {
                continue;
            }
            let (value, long) = match value {
                None => (None, None),
                Some(Short::Value(value)) if value.len() <= VALUE_BYTES_MAX => (Some(value.to_vec()), None),
                // A value that was folded in memory may be long, too.
                Some(Short::Value(value)) => (None, Some(of_value(table, &key, value))),
                Some(Short::Long(head)) => (None, Some(head)),
            };
            let mut deadline = None;
            if met.has_stamps && (value.is_some() || long.is_some()) {
                match head::head(engine, table, &key, Some(self.snapshot.seen())) {
                    Ok(head) => deadline = head.and_then(|head| head.deadline),
                    Err(_) if table.check_alive().is_err() => break, // dropped, which is reported later
                    Err(error) => return Err(error),
                }
            }
            let table = Arc::clone(&met.table);
            return Ok(Some(FeedEvent::Row(FeedRow { table, key, value, long, deadline })));
        }
        self.current = None;
        Ok(None)
    }

    /// Begins with the next table; none if there is none. A table that was dropped in the meantime
    /// has no rows: later writes to it, and its drop, are given after the rows.
    pub(crate) fn next_table(&mut self, prefix: &[u8]) -> Result<Option<Arc<FeedTable>>> {
        let Some(table) = self.tables.pop_front() else { return Ok(None) };
        let core = &table;
        let met = met(core.id, &core.name, &core.present().rules.to_string());
        let mut scan: BytesScan = self.snapshot.scan_own(&table).short_values();
        if !prefix.is_empty() && core.rules.order.has_byte_prefixes() && core.hashed.is_none() {
            scan = scan.prefix(prefix);
        }
        let begun = Arc::clone(&met.table);
        match scan.rows() {
            Ok(rows) => self.current = Some((table, met, rows)),
            Err(_) if core.check_alive().is_err() => {}
            Err(error) => return Err(error),
        }
        Ok(Some(begun))
    }
}
