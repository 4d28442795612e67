//! Cursors: the position of a scan, as bytes that can be stored, to resume it later or in another
//! process.
//!
//! A cursor holds nothing: no snapshot, no file. On resuming, the caller chooses whether the scan
//! must see what it saw ([`Resume::Strict`]) or may see the present ([`Resume::Relaxed`]), and
//! again whether it wants values or only keys.

use std::cmp::Ordering;
use std::fmt;
use std::ops::Bound;
use std::str::FromStr;
use std::sync::Arc;

use folddb_base::stream::Direction;
use folddb_base::{Error, ErrorKind, Result, Seq};
use folddb_layout::cursor_token::CursorToken;
use folddb_rules::datum::from_hex;
use folddb_rules::parse_error::{self, ParseError};

use folddb_engine::read::scan::{ScanPlan, Wanted};
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::clock;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::snapshots::{At, Held, HeldFor};

/// The position of a scan. As text it is hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor {
    token: CursorToken,
}

/// What a resumed scan sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Resume {
    /// Exactly what it saw before: if its snapshot still lives, or nothing was written to the store
    /// since, or the table keeps its past back to then; otherwise an error. If values expire and no
    /// past is kept, the snapshot must live, since rows may have expired. The cursor cannot detect
    /// writes that were lost after it was made, whose seqs may have been reused. A power cut loses
    /// writes that were not synced, the end of a process those that were `Buffered`: sync before
    /// storing a cursor that must survive either.
    Strict,
    /// The present state. Keys that were since written to the part already scanned are not seen,
    /// later ones are. A scan that has ended is positioned after the last key that it examined,
    /// whether that had a value or not.
    #[default]
    Relaxed,
}

/// The progress of a running scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    /// No row was returned.
    Beginning,
    /// The row of this key was returned.
    Behind,
    /// The row of this key could not be read.
    Before,
}

impl Cursor {
    /// The cursor of a scan with this progress.
    pub(crate) fn of(
        (engine, table): (&Arc<Engine>, &Arc<TableCore>),
        (plan, at): (&ScanPlan, At),
        key: &[u8],
        position: Position,
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
        match (position, plan.direction) {
            (Position::Beginning, _) => {}
            (Position::Behind, _) => token.last = Some(key.to_vec()),
            (Position::Before, Direction::Forward) => token.low = Bound::Included(key.to_vec()),
            (Position::Before, Direction::Reversed) => token.high = Bound::Included(key.to_vec()),
        }
        Cursor { token }
    }

    /// The cursor as bytes, with a checksum; `docs/FORMAT.md` describes them.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.token.to_bytes()
    }

    /// Reads what [`Cursor::to_bytes`] made.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`]: these bytes are not a cursor, or were changed.
    pub fn from_bytes(bytes: &[u8]) -> Result<Cursor> {
        let token = CursorToken::from_bytes(bytes).map_err(|cause| {
            Error::invalid(format!("this is not a cursor of a scan, or it was changed: {cause}"))
        })?;
        Ok(Cursor { token })
    }

    /// The rest of its scan.
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

    /// The rest of its scan in `table`, and the snapshot that it needs.
    ///
    /// # Errors
    /// The cursor belongs to another table or store; what it saw is gone.
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

impl Position {
    /// The progress of the scan after this result.
    #[inline]
    pub(crate) fn after<R>(self, row: &Result<Option<R>>) -> Position {
        match row {
            Ok(Some(_)) => Position::Behind,
            Ok(None) => self,
            Err(error) if error.kind() == ErrorKind::FoldFailed => Position::Behind,
            Err(_) => Position::Before,
        }
    }
}

/// The moment of a cursor, if `table` can still be read at it.
fn hold_again(engine: &Engine, table: &TableCore, token: &CursorToken) -> Result<Held> {
    engine.check_here()?;
    let _still = engine.still();
    let seq = token.seq;
    if seq == engine.published() && !minds_time(table) {
        let at = At::new(seq, clock::now_ms(engine));
        return Ok(engine.boundaries.hold(at, HeldFor::Snapshot, engine.host.clock.monotonic()));
    }
    // No merge drops values that lived then while a hold reads at that time or earlier.
    let by_ms = if minds_time(table) { token.time_ms.unwrap_or(0) } else { u64::MAX };
    let Some((held, held_for)) = engine.boundaries.hold_if_live(seq, by_ms) else {
        return hold_past(engine, table, token).ok_or_else(|| gone(engine, table, seq));
    };
    // A hold of the past of other tables does not help here.
    if let HeldFor::Past(asked) = held_for
        && clock::check_kept(engine, table, held.at, asked).is_err()
    {
        return hold_past(engine, table, token).ok_or_else(|| gone(engine, table, seq));
    }
    Ok(if minds_time(table) { held.reading_at(by_ms) } else { held })
}

/// The same for a table that keeps its past back to then. The caller holds the commit lock.
fn hold_past(engine: &Engine, table: &TableCore, token: &CursorToken) -> Option<Held> {
    let now = At::new(engine.published(), clock::now_ms(engine));
    let then = At::new(token.seq, token.time_ms.unwrap_or(now.time_ms));
    // A hashed table keeps no past of all its keys.
    let is_now = then.seq >= now.seq && then.time_ms >= now.time_ms;
    if then.seq > now.seq || (table.hashed.is_some() && !is_now) {
        return None;
    }
    // Held before it is examined: the window may become shorter, and a merge fold it, in between.
    let held =
        engine.boundaries.hold_from(then, now.time_ms, HeldFor::Past(now), engine.host.clock.monotonic());
    clock::check_kept(engine, table, then, now).is_ok().then_some(held)
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

/// Whether the rows of a scan depend on the time.
fn minds_time(table: &TableCore) -> bool {
    table.has_stamps || table.expires
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Cursor {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Cursor, ParseError> {
        let form = "a cursor is hexadecimal digits, an even number of them";
        if let Some(at) = text.find(|digit: char| !digit.is_ascii_hexdigit()) {
            return Err(parse_error::at_byte(text, at, form));
        }
        let bytes = from_hex(text).ok_or_else(|| parse_error::of_whole(text, form))?;
        Cursor::from_bytes(&bytes).map_err(|cause| parse_error::of_whole(text, cause.message()))
    }
}
