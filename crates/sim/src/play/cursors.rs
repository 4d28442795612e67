//! What a player does with cursors: it leaves scans, keeps their positions as bytes, over restarts
//! and crashes too, and resumes them. They must then show the rest of the scan as it was when it
//! was left, or the rows of a scan now; those are compared with the model after every action.

use folddb::time::unix_ms;
use folddb::{BytesScan, BytesTable, Cursor, ErrorKind, Expire, Keep, Resume, Snapshot};

use crate::compare::{Dumped, Outcome, dump, narrow, same};
use crate::play::parts::Left;
use crate::play::player::{Player, said};
use crate::program::{CursorStep, ScanShape};
use crate::tables::{Order, Shape};

/// The most that are kept.
const CURSORS_MAX: usize = 6;

impl Player {
    pub(super) fn cursor(&mut self, step: &CursorStep) -> Outcome {
        match *step {
            CursorStep::Leave { slot, at, ref scan, rows } => {
                let left = self.leave_scan(slot, at, scan, usize::from(rows));
                self.left.extend(left?);
                let surplus = self.left.len().saturating_sub(CURSORS_MAX);
                self.left.drain(..surplus);
                Ok(())
            }
            CursorStep::GoOn(which, how) => {
                let left = self.left.get(usize::from(which) % self.left.len().max(1));
                left.map_or(Ok(()), |left| self.go_on(left, how))
            }
        }
    }

    fn leave_scan(
        &self,
        slot: u8,
        at: Option<u8>,
        scan: &ScanShape,
        count: usize,
    ) -> Result<Option<Left>, String> {
        let Some((table, shape)) = self.table(slot)? else { return Ok(None) };
        let scan = wanted(scan, &shape);
        let snapshot = at.and_then(|at| self.snapshot(at));
        let start = snapshot.map_or_else(|| table.scan(), |snapshot| snapshot.scan(&table));
        let start = narrow(start, &shape, &scan);
        // Taken before the rows are: the scan reads at this time or later. In the other order, the
        // model would consider snapshots alive that are younger than the scan.
        let (seq, time_ms) = match snapshot {
            Some(snapshot) => (u64::from(snapshot.seq()), unix_ms(snapshot.time())),
            None => (u64::from(self.store()?.last_seq()), unix_ms(self.store()?.now())),
        };
        let all = dump(start.clone()).map_err(said("scan before a cursor"))?;
        let mut rows = start.rows().map_err(said("begin a scan"))?;
        for _ in 0..count {
            match rows.next_row() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) if error.kind() == ErrorKind::FoldFailed => {}
                Err(error) => return Err(said("scan up to a cursor")(error)),
            }
        }
        let token = rows.cursor().to_bytes();
        let (shown, rest) = all.split_at(count.min(all.len()));
        Ok(Some(Left {
            token,
            table: table.name().to_owned(),
            born: self.known.model.born(table.name()),
            shape,
            scan,
            seq,
            time_ms,
            has_ended: count > all.len(),
            shown: shown.to_vec(),
            rest: rest.to_vec(),
        }))
    }

    fn go_on(&self, left: &Left, how: Resume) -> Outcome {
        let cursor = Cursor::from_bytes(&left.token).map_err(said("read a cursor"))?;
        let Ok(table) = self.store()?.bytes_table(&left.table) else { return Ok(()) };
        let is_same = self.known.model.born(&left.table) == left.born;
        match table.resume(&cursor, how) {
            Ok(_) if !is_same => Err("the cursor of a table that is gone is gone on with".to_owned()),
            Err(error) if error.kind() == ErrorKind::InvalidInput => {
                same("whether the cursor is of this table", &is_same, &false)
            }
            Err(error) if error.kind() == ErrorKind::SnapshotTooOld && how == Resume::Strict => {
                self.may_be_gone(left)
            }
            Err(error) => Err(said("go on with a cursor")(error)),
            Ok(rest) if how == Resume::Strict => match dump(rest) {
                Err(error) if error.kind() == ErrorKind::SnapshotTooOld => self.may_be_gone(left),
                rest => left.compare_strict(rest.map_err(said("go on with a scan"))?),
            },
            Ok(rest) => left.compare_relaxed(&table, rest),
        }
    }

    /// Not if nothing was written since and nothing expires, not as long as its snapshot lives, and
    /// not where all of the past is kept.
    fn may_be_gone(&self, left: &Left) -> Outcome {
        let is_now = u64::from(self.store()?.last_seq()) == left.seq && left.shape.expire == Expire::Never;
        let is_of = |snapshot: &Snapshot| {
            u64::from(snapshot.seq()) == left.seq && unix_ms(snapshot.time()) <= left.time_ms
        };
        let is_live = self.snapshots.iter().any(|snapshot| is_of(snapshot) && !snapshot.has_ended());
        let is_kept = left.shape.keep == Keep::Forever && left.shape.order != Order::Hashed;
        same("whether what a cursor saw is there still", &(is_now || is_live || is_kept), &false)
    }
}

impl Left {
    /// It shows the rows that it would have shown then.
    fn compare_strict(&self, mut found: Vec<Dumped>) -> Outcome {
        let mut expected = self.rest.clone();
        if self.shape.order == Order::Hashed {
            found.sort();
            expected.sort();
        }
        same("the rest of a strict scan", &keys(&found), &keys(&expected))?;
        same("whether the values of a strict scan are the same", &(found == expected), &true)
    }

    /// It shows the rows of now, from its position on.
    fn compare_relaxed(&self, table: &BytesTable, rest: BytesScan) -> Outcome {
        let found = dump(rest).map_err(said("go on with a scan"))?;
        let now = dump(narrow(table.scan(), &self.shape, &self.scan)).map_err(said("scan"))?;
        if self.shape.order == Order::Hashed {
            return self.compare_walk(&found, &now);
        }
        // Rows on which the fold fails show no key: where there are any, only the others are
        // compared.
        let Some(last) = self.shown.last() else {
            let is_right = if self.has_ended { now.ends_with(&found) } else { now == found };
            return same("whether a scan from its beginning is right", &is_right, &true);
        };
        let Some((last, _)) = last else { return Ok(()) };
        let is_beyond = |row: &Dumped| match (row, self.scan.reverse) {
            (None, _) => false,
            (Some((key, _)), false) => self.shape.compare(key, last).is_gt(),
            (Some((key, _)), true) => self.shape.compare(key, last).is_lt(),
        };
        let expected: Vec<&Dumped> = now.iter().filter(|row| is_beyond(row)).collect();
        let found: Vec<&Dumped> = found.iter().filter(|row| row.is_some()).collect();
        if self.has_ended {
            // Its position is after the last key that it has looked at, with a value or not.
            return same(
                "whether the rest of a scan that has ended is right",
                &expected.ends_with(&found),
                &true,
            );
        }
        same("the rest of a relaxed scan", &found, &expected)
    }

    /// A table without an order: each row found exists now and was not shown, and each row that
    /// exists now and existed then is found or was shown.
    fn compare_walk(&self, found: &[Dumped], now: &[Dumped]) -> Outcome {
        let (shown, rest) = (keys(&self.shown), keys(&self.rest));
        let (found_keys, now_keys) = (keys(found), keys(now));
        let is_right = |row: &Dumped| now.contains(row) && !shown.contains(&key(row));
        same("whether a walk goes on with what is there", &found.iter().all(is_right), &true)?;
        let is_met = |key: &Option<&[u8]>| !now_keys.contains(key) || found_keys.contains(key);
        same("whether a walk meets all that stayed", &rest.iter().all(is_met), &true)
    }
}

/// The parts of a scan that a cursor keeps: ranges and direction.
fn wanted(scan: &ScanShape, shape: &Shape) -> ScanShape {
    use crate::program::Edge::Open;
    let scan = ScanShape { prefix: None, limit: None, chunk: None, ..*scan };
    match shape.order {
        Order::Hashed => ScanShape { low: Open, high: Open, reverse: false, ..scan },
        _ => scan,
    }
}

fn key(row: &Dumped) -> Option<&[u8]> {
    row.as_ref().map(|(key, _)| &key[..])
}

fn keys(rows: &[Dumped]) -> Vec<Option<&[u8]>> {
    rows.iter().map(key).collect()
}
