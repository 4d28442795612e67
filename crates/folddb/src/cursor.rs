//! Cursors: where a scan stands, as bytes that can be kept, and resumed later or by another
//! process.
//!
//! A cursor holds nothing: no snapshot, no file. Whoever goes on with one says whether the scan
//! must see what it saw ([`Resume::Strict`]) or may see what is there now ([`Resume::Relaxed`]),
//! and again whether values are wanted, or keys only.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Bound;
use std::str::FromStr;
use std::sync::Arc;

use folddb_base::stream::Direction;
use folddb_base::{Error, ErrorKind, Result, Seq};
use folddb_layout::cursor_token::CursorToken;

use folddb_engine::read::scan::{ScanPlan, Wanted};
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::clock;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::snapshots::{At, Held, HeldFor};

/// Where a scan stands. As text it is hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    token: CursorToken,
}

/// What a scan that is resumed sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resume {
    /// Exactly what it saw before: the snapshot that it read at still lives, or nothing was written
    /// to the store since, or the table keeps its past back to then. Where values expire and no
    /// past is kept, the snapshot must live: what the scan saw may have gone by itself. Otherwise
    /// an error. It cannot know of writes that were lost after it was made: their seqs may have
    /// been given to others. A power cut takes writes that were not synced, the end of a process
    /// those that were `Buffered`. Sync before a cursor is kept that is to be trusted beyond
    /// either.
    Strict,
    /// What is there now. Keys that were written behind the cursor since are not seen, and those
    /// before it are. A scan that has come to its end stands behind the last key that it has looked
    /// at, whether that had a value or not.
    #[default]
    Relaxed,
}

/// How far a scan under way has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stand {
    /// No row was handed out.
    Beginning,
    /// The row of this key was.
    Behind,
    /// The row of this key was asked for, and could not be read.
    Before,
}

impl Cursor {
    /// The cursor of a scan that stands so.
    pub(crate) fn of(
        (engine, table): (&Arc<Engine>, &Arc<TableCore>),
        (plan, at): (&ScanPlan, At),
        key: &[u8],
        stand: Stand,
    ) -> Cursor {
        let mut token = CursorToken {
            store_id: engine.store_id,
            table: table.id,
            direction: plan.direction,
            is_keys_only: plan.wanted == Wanted::Nothing,
            seq: at.seq,
            time_ms: minds_time(table).then_some(at.time_ms),
            low: plan.low.clone(),
            high: plan.high.clone(),
            last: None,
        };
        match (stand, plan.direction) {
            (Stand::Beginning, _) => {}
            (Stand::Behind, _) => token.last = Some(key.to_vec()),
            (Stand::Before, Direction::Forward) => token.low = Bound::Included(key.to_vec()),
            (Stand::Before, Direction::Reversed) => token.high = Bound::Included(key.to_vec()),
        }
        Cursor { token }
    }

    /// The cursor as bytes, with a checksum; `docs/FORMAT.md` draws them.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.token.to_bytes()
    }

    /// Reads what [`Cursor::to_bytes`] made.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`]: these bytes are no cursor, or were changed.
    pub fn from_bytes(bytes: &[u8]) -> Result<Cursor> {
        let token = CursorToken::from_bytes(bytes).map_err(|cause| {
            Error::invalid(format!("this is not a cursor of a scan, or it was changed: {cause}"))
        })?;
        Ok(Cursor { token })
    }

    /// What is left of its scan.
    fn plan(&self) -> ScanPlan {
        let CursorToken { direction, low, high, last, .. } = self.token.clone();
        let mut plan = ScanPlan { low, high, direction, ..ScanPlan::everything(None) };
        match (last, direction) {
            (None, _) => {}
            (Some(key), Direction::Forward) => plan.low = Bound::Excluded(key),
            (Some(key), Direction::Reversed) => plan.high = Bound::Excluded(key),
        }
        plan.resumed = Some(plan.low.clone());
        plan
    }

    /// What is left of its scan in `table`, and the snapshot that it needs.
    ///
    /// # Errors
    /// Another table's or store's cursor; what it saw is gone.
    pub(crate) fn resume(
        &self,
        engine: &Engine,
        table: &TableCore,
        how: Resume,
    ) -> Result<(ScanPlan, Option<Held>)> {
        if (self.token.store_id, self.token.table) != (engine.store_id, table.id) {
            let message = format!("the cursor is of another table than `{}` of this store", table.name);
            return Err(Error::invalid(message));
        }
        let held = match how {
            Resume::Relaxed => None,
            Resume::Strict => Some(hold_again(engine, table, &self.token)?),
        };
        let plan = ScanPlan { at: held.as_ref().map(|held| held.at), ..self.plan() };
        Ok((plan, held))
    }
}

impl Stand {
    /// Where the scan stands after it came to this.
    #[inline]
    pub(crate) fn after<R>(self, row: &Result<Option<R>>) -> Stand {
        match row {
            Ok(Some(_)) => Stand::Behind,
            Ok(None) => self,
            Err(error) if error.kind() == ErrorKind::FoldFailed => Stand::Behind,
            Err(_) => Stand::Before,
        }
    }
}

/// The moment that a cursor was made at, where `table` can still be seen as it was then.
fn hold_again(engine: &Engine, table: &TableCore, token: &CursorToken) -> Result<Held> {
    let _committer = engine.commit.lock(); // no batch is half applied
    let seq = token.seq;
    if seq == engine.published() && !minds_time(table) {
        let at = At::new(seq, clock::now_ms(engine));
        return Ok(engine.boundaries.hold(at, HeldFor::Snapshot, engine.host.clock.monotonic()));
    }
    // What was alive then is swept away by no merge as long as somebody reads at that time or
    // before it.
    let by_ms = if minds_time(table) { token.time_ms.unwrap_or(0) } else { u64::MAX };
    let Some((held, held_for)) = engine.boundaries.hold_if_live(seq, by_ms) else {
        return hold_past(engine, table, token).ok_or_else(|| gone(engine, table, seq));
    };
    // That somebody holds the past of other tables is nothing to who reads this one.
    if let HeldFor::Past(asked) = held_for
        && clock::check_kept(engine, table, held.at, asked).is_err()
    {
        return hold_past(engine, table, token).ok_or_else(|| gone(engine, table, seq));
    }
    Ok(if minds_time(table) { held.reading_at(by_ms) } else { held })
}

/// The same of a table that keeps its past back to then. The caller holds the commit lock.
fn hold_past(engine: &Engine, table: &TableCore, token: &CursorToken) -> Option<Held> {
    let now = At::new(engine.published(), clock::now_ms(engine));
    let then = At::new(token.seq, token.time_ms.unwrap_or(now.time_ms));
    // A hashed table keeps no past of all its keys.
    let is_now = then.seq >= now.seq && then.time_ms >= now.time_ms;
    let is_kept = (table.hashed.is_none() || is_now)
        && then.seq <= now.seq
        && clock::check_kept(engine, table, then, now).is_ok();
    let held_for = HeldFor::Past(now);
    is_kept.then(|| engine.boundaries.hold_from(then, now.time_ms, held_for, engine.host.clock.monotonic()))
}

#[cold]
fn gone(engine: &Engine, table: &TableCore, seq: Seq) -> Error {
    let what = format!("the cursor's snapshot, at seq {seq}, is gone");
    let now = engine.published();
    let message = match now.cmp(&seq) {
        Ordering::Equal => format!("{what}, and values of table `{}` may have expired since", table.name),
        Ordering::Greater => format!("{what}, and the store is at seq {now} now"),
        Ordering::Less => format!("{what}: the store lost what was written after {now} and not synced"),
    };
    Error::new(ErrorKind::SnapshotTooOld, message)
}

/// Whether what a scan of a table shows depends on the time.
fn minds_time(table: &TableCore) -> bool {
    table.has_stamps || table.expires
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Cursor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Cursor> {
        let wrong = || Error::invalid("a cursor is hexadecimal digits, an even number of them");
        let digit = |byte: &u8| char::from(*byte).to_digit(16).ok_or_else(wrong);
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if !rest.is_empty() {
            return Err(wrong());
        }
        let bytes = pairs.iter().map(|[high, low]| Ok((digit(high)? << 4 | digit(low)?) as u8));
        Cursor::from_bytes(&bytes.collect::<Result<Vec<u8>>>()?)
    }
}
