//! What a player compares after every action: all of every table, at the present, at every live
//! snapshot, and in the past that the table keeps (`past`). And scans of a part of one.

use folddb::time::unix_ms;
use folddb::{BytesTable, Snapshot};
use folddb_base::Seq;

use crate::compare::{
    Outcome, chosen, compare_aggregate, compare_reader, compare_rows, compare_table, in_chunks, inside,
    narrow, read_key, same, scan_hashed, scan_prefix,
};
use crate::model::{Model, ModelRow};
use crate::play::player::Player;
use crate::play::player::said;
use crate::program::ScanShape;
use crate::tables::{Order, Shape};
use crate::world::SimDisk;

impl Player {
    /// Compares everything, at the present and at every snapshot.
    pub(super) fn compare(&self) -> Outcome {
        self.compare_with(&self.known.model)
    }

    fn compare_with(&self, model: &Model) -> Outcome {
        let store = self.store()?;
        same("the tables", &store.tables(), &model.tables())?;
        same("the last seq", &u64::from(store.last_seq()), &model.last_seq())?;
        for name in model.tables() {
            let Some(shape) = model.shape(&name) else { continue };
            let table = store.bytes_table(&name).map_err(said("open the table"))?;
            let now = model.rows_at(&name, Seq::MAX);
            let in_table = |message| format!("table {name} ({shape:?}): {message}");
            same("the rules", &table.rules().as_table_rules().to_string(), &shape.rules().to_string())
                .map_err(in_table)?;
            compare_table(&now, &shape, &|key| read_key(&table, key), &|| table.scan()).map_err(in_table)?;
            compare_reader(&now, &shape, &table).map_err(in_table)?;
            self.compare_past(model, &table, &shape).map_err(in_table)?;
            self.compare_pasts(model, &table, &shape).map_err(in_table)?;
            self.compare_index(model, &table, &shape).map_err(in_table)?;
            for snapshot in &self.snapshots {
                let past = model.rows_seen(&name, u64::from(snapshot.seq()), unix_ms(snapshot.time()));
                let then = snapshot.table(&table);
                compare_table(&past, &shape, &|key| read_key(&then, key), &|| then.scan())
                    .and_then(|()| compare_reader(&past, &shape, &then))
                    .map_err(|message| {
                        in_table(format!("at snapshot {}: {message}", u64::from(snapshot.seq())))
                    })?;
            }
        }
        Ok(())
    }

    pub(super) fn scan(&self, slot: u8, at: Option<u8>, scan: &ScanShape) -> Outcome {
        match self.disk.clone() {
            Some(disk) => self.scan_under_faults(&disk, slot, at, scan),
            None => self.scan_now(slot, at, scan),
        }
    }

    /// Where a call fails, the scan may end with that error; the rows before it are right, and so
    /// is the next scan.
    fn scan_under_faults(&self, disk: &SimDisk, slot: u8, at: Option<u8>, scan: &ScanShape) -> Outcome {
        let before = disk.failed().len();
        let scanned = self.scan_now(slot, at, scan);
        let has_failed = disk.failed().len() > before;
        match scanned {
            Err(why) if has_failed && (why.contains("os error 5") || why.contains("Io")) => {
                disk.aside(|| self.scan_now(slot, at, scan))
            }
            scanned => scanned,
        }
    }

    fn scan_now(&self, slot: u8, at: Option<u8>, scan: &ScanShape) -> Outcome {
        let Some((table, shape)) = self.table(slot)? else { return Ok(()) };
        let snapshot = at.and_then(|at| self.snapshot(at));
        let seq = snapshot.map_or(Seq::MAX, |snapshot| snapshot.seq().into());
        let model = &self.known.model;
        let rows = match snapshot {
            Some(snapshot) => model.rows_seen(table.name(), seq, unix_ms(snapshot.time())),
            None => model.rows_at(table.name(), seq),
        };
        scan_table(&table, &shape, snapshot, rows, scan).map_err(|why| format!("at {seq}: {why}"))
    }
}

fn scan_table(
    table: &BytesTable,
    shape: &Shape,
    snapshot: Option<&Snapshot>,
    rows: Vec<ModelRow>,
    scan: &ScanShape,
) -> Outcome {
    let start = || match snapshot {
        Some(snapshot) => snapshot.scan(table),
        None => table.scan(),
    };
    if shape.order == Order::Hashed {
        return scan_hashed(&rows, shape, scan, start());
    }
    if let Some(prefix) = scan.prefix {
        return scan_prefix(&rows, shape, prefix, scan, start());
    }
    let expected = chosen(rows, scan, |key| inside(shape, scan, key));
    let narrowed = narrow(start(), shape, scan);
    if scan.limit.is_none() && !scan.reverse {
        compare_aggregate(&expected, shape, &narrowed)?;
    }
    match scan.chunk {
        None => compare_rows(&expected, narrowed),
        Some(chunk) => in_chunks(&expected, shape, scan, usize::from(chunk), &start),
    }
}
