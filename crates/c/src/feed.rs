//! Change feeds: rows as of one moment, then every batch after it, in the order of commits.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::time::Duration;

use folddb::time::unix_ms;
use folddb::{
    Error, Feed, FeedChange, FeedEvent, FeedOp, FeedOptions, FeedPosition, FeedRow, FeedTable, Result,
};

use crate::callbacks::begin;
use crate::errors::{guard, guard_silently};
use crate::exclusive::Exclusive;
use crate::handles::{self, Object};
use crate::memory::{Bytes, ErrPtr, Text, copy_out_texts, put};
use crate::store::StoreObject;

/// Reads a feed. One thread uses it at a time.
pub struct FeedObject(Exclusive<Feed>);

/// What a feed has given. Any number of threads use it at once.
pub struct FeedEventObject {
    event: FeedEvent,
    changes: Vec<Change>,
    after: FeedPosition,
}

impl Object for FeedObject {
    const NAME: &'static str = "folddb_feed";
}

impl Object for FeedEventObject {
    const NAME: &'static str = "folddb_feed_event";
}

/// What a feed gives.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedEventKind {
    /// No event: the handle is none.
    None = 0,
    /// Forget all that this feed has given before: now everything comes again.
    Begin = 1,
    /// There is a table, which the change names.
    TableCreated = 2,
    /// The table that the change names was dropped, with all its rows.
    TableDropped = 3,
    /// The value of a key.
    Row = 4,
    /// There are no more rows.
    RowsEnd = 5,
    /// A batch, whole: its ops are the changes.
    Batch = 6,
}

/// What a change does to its key.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedChangeKind {
    /// It names a table, and has no key.
    Table = 0,
    /// Makes the value this one.
    Put = 1,
    /// Gives an absent key this value.
    PutIfAbsent = 2,
    /// Folds this operand on.
    Fold = 3,
    /// Makes the key absent.
    Delete = 4,
    /// Makes all keys from the key on, and below the one given as the value, absent.
    DeleteRange = 5,
    /// As Put, of a value too long for an event: read it from the store.
    PutLong = 6,
    /// As PutIfAbsent, of such a value.
    PutIfAbsentLong = 7,
    /// As Fold, of such an operand.
    FoldLong = 8,
}

/// A change of an event. The pointers are valid until the event is destroyed.
#[repr(C)]
pub struct FeedChangeParts {
    /// What it does.
    pub kind: FeedChangeKind,
    /// The number of its table, which no other table of the store ever has.
    pub table_id: u32,
    /// The name of its table.
    pub table: *const c_char,
    /// The key.
    pub key: *const c_char,
    /// Bytes of the key.
    pub key_len: usize,
    /// The value, or the operand; NULL where it is long, or where there is none.
    pub value: *const c_char,
    /// Bytes of the value, also of one that is long.
    pub value_len: u64,
    /// The seq of the op; 0 for rows and tables.
    pub seq: u64,
    /// Until when the value lasts, in milliseconds since 1970; 0 where it lasts forever.
    pub deadline_ms: u64,
}

/// A change, with its table's name for C.
struct Change {
    of: Of,
    id: u32,
    table: CString,
}

enum Of {
    Table,
    Row(FeedRow),
    Op(FeedOp),
}

impl Change {
    fn new(table: &FeedTable, of: Of) -> Change {
        Change { of, id: table.id, table: CString::new(table.name.replace('\0', " ")).unwrap_or_default() }
    }

    fn parts(&self) -> Result<FeedChangeParts> {
        let nothing = FeedChangeParts {
            kind: FeedChangeKind::Table,
            table_id: self.id,
            table: self.table.as_ptr(),
            key: null(),
            key_len: 0,
            value: null(),
            value_len: 0,
            seq: 0,
            deadline_ms: 0,
        };
        Ok(match &self.of {
            Of::Table => nothing,
            Of::Row(row) => FeedChangeParts {
                kind: if row.long.is_some() { FeedChangeKind::PutLong } else { FeedChangeKind::Put },
                key: begin(&row.key),
                key_len: row.key.len(),
                value: row.value.as_ref().map_or(null(), |value| begin(value)),
                value_len: match (&row.value, &row.long) {
                    (Some(value), _) => value.len() as u64,
                    (None, long) => long.as_ref().map_or(0, |head| head.size_bytes),
                },
                deadline_ms: row.deadline.map_or(0, unix_ms),
                ..nothing
            },
            Of::Op(op) => {
                let (kind, value, value_len) = op_parts(&op.change)?;
                FeedChangeParts {
                    kind,
                    key: begin(&op.key),
                    key_len: op.key.len(),
                    value,
                    value_len,
                    seq: op.seq.into(),
                    deadline_ms: op.deadline.map_or(0, unix_ms),
                    ..nothing
                }
            }
        })
    }
}

/// Nothing of a feed is passed over in silence.
fn not_known(what: &impl std::fmt::Debug) -> Error {
    Error::invalid(format!("the feed has an event that this version does not know: {what:?}"))
}

fn op_parts(change: &FeedChange) -> Result<(FeedChangeKind, *const c_char, u64)> {
    let whole = |kind, value: &Vec<u8>| (kind, begin(value), value.len() as u64);
    Ok(match change {
        FeedChange::Put(value) => whole(FeedChangeKind::Put, value),
        FeedChange::PutIfAbsent(value) => whole(FeedChangeKind::PutIfAbsent, value),
        FeedChange::Fold(operand) => whole(FeedChangeKind::Fold, operand),
        FeedChange::Delete => (FeedChangeKind::Delete, null(), 0),
        FeedChange::DeleteRange(end) => whole(FeedChangeKind::DeleteRange, end),
        FeedChange::PutLong(len) => (FeedChangeKind::PutLong, null(), *len),
        FeedChange::PutIfAbsentLong(len) => (FeedChangeKind::PutIfAbsentLong, null(), *len),
        FeedChange::FoldLong(len) => (FeedChangeKind::FoldLong, null(), *len),
        unknown => return Err(not_known(unknown)),
    })
}

impl FeedEventObject {
    fn new(event: FeedEvent, after: FeedPosition) -> Result<FeedEventObject> {
        let changes = match &event {
            FeedEvent::Begin { .. } | FeedEvent::RowsEnd => Vec::new(),
            FeedEvent::TableCreated(table) | FeedEvent::TableDropped(table) => {
                vec![Change::new(table, Of::Table)]
            }
            FeedEvent::Row(row) => vec![Change::new(&Arc::clone(&row.table), Of::Row(row.clone()))],
            FeedEvent::Batch(batch) => {
                batch.ops.iter().map(|op| Change::new(&op.table, Of::Op(op.clone()))).collect()
            }
            unknown => return Err(not_known(unknown)),
        };
        Ok(FeedEventObject { event, changes, after })
    }
}

/// Opens the feed of this name for reading, and makes it where there is none: it begins with the
/// rows of the present, and continues after the last acknowledged event. NULL where it fails.
/// Destroy it with folddb_feed_destroy.
///
/// `table` is the only table that it reports; NULL is all. It reports keys that begin with
/// `prefix`. `bytes_max` bounds the bytes that are kept only for it; 0 leaves what it has, and
/// gives a new one 1 GiB. With `from_now` it gives no rows, and begins with the next batch.
///
/// Errors: Locked while another reader has it; InvalidInput for a bad name, and where there is one
/// with another scope; ReadOnly; a failed write.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_feed_open(
    store: *mut StoreObject,
    name: Text,
    table: Text,
    prefix: Bytes,
    prefix_len: usize,
    bytes_max: u64,
    from_now: bool,
    errptr: ErrPtr<'_>,
) -> *mut FeedObject {
    guard(errptr, null_mut(), || {
        let options = FeedOptions::default()
            .table(table.get_optional("the table")?)
            .prefix(prefix.get(prefix_len, "the prefix")?)
            .bytes_max(Some(bytes_max).filter(|&bytes| bytes > 0))
            .from_now(from_now);
        let feed = handles::get(store)?.0.feed(name.get("the name")?, options)?;
        handles::give(FeedObject(Exclusive::new(feed)))
    })
}

/// Destroys the handle, and lets others read the feed. NULL is ignored. The feed stays, and so
/// does what is held for it, until folddb_feed_drop.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_feed_destroy(feed: *mut FeedObject) {
    guard_silently(|| handles::take(feed).map(drop));
}

/// The names of the feeds of a store. Otherwise as folddb_tables.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_feeds(
    store: *mut StoreObject,
    count: Option<&mut MaybeUninit<usize>>,
    errptr: ErrPtr<'_>,
) -> *mut *mut c_char {
    guard(errptr, null_mut(), || {
        let feeds = handles::get(store)?.0.feeds();
        copy_out_texts(&feeds.into_iter().map(|feed| feed.name).collect::<Vec<_>>(), count)
    })
}

/// Removes a feed, and what is held for it. Returns whether it did.
///
/// Errors: InvalidInput where there is none of this name; Locked while it is being read; a failed
/// write.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_feed_drop(store: *mut StoreObject, name: Text, errptr: ErrPtr<'_>) -> bool {
    guard(errptr, false, || {
        let store = handles::get(store)?;
        store.0.drop_feed(name.get("the name")?).map(|()| true)
    })
}

/// The next event of a feed; waits for one, at most this many milliseconds. NULL where none came,
/// and where it fails. Destroy it with folddb_feed_event_destroy.
///
/// Errors: FeedLost where it has lost its place, see folddb_feed_begin_again; Closed; Corruption; a
/// failed read or write.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_feed_next(
    feed: *mut FeedObject,
    timeout_ms: u64,
    errptr: ErrPtr<'_>,
) -> *mut FeedEventObject {
    guard(errptr, null_mut(), || {
        let feed = handles::get(feed)?;
        let mut feed = feed.0.lock::<FeedObject>()?;
        match feed.next(Duration::from_millis(timeout_ms))? {
            None => Ok(null_mut()),
            Some(event) => handles::give(FeedEventObject::new(event, feed.position())?),
        }
    })
}

/// Says, durably, that all up to this event has been dealt with: none of it is given again. Returns
/// whether it did.
///
/// Errors: FeedLost; InvalidInput for an event of another feed that this one has not reached; a
/// failed write.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_feed_acknowledge(
    feed: *mut FeedObject,
    event: *mut FeedEventObject,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let (feed, event) = (handles::get(feed)?, handles::get(event)?);
        feed.0.lock::<FeedObject>()?.acknowledge(event.after)?;
        Ok(true)
    })
}

/// Forgets the place of the feed, and begins again with the rows of the present. Returns whether it
/// did.
///
/// Errors: as folddb_feed_next, but for FeedLost.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_feed_begin_again(feed: *mut FeedObject, errptr: ErrPtr<'_>) -> bool {
    guard(errptr, false, || {
        let feed = handles::get(feed)?;
        feed.0.lock::<FeedObject>()?.begin_again().map(|()| true)
    })
}

/// The kind of the event. FOLDDB_FEED_EVENT_KIND_NONE where it fails.
///
/// Errors: InvalidInput for an event that this version does not know.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_feed_event_type(event: *mut FeedEventObject, errptr: ErrPtr<'_>) -> FeedEventKind {
    guard(errptr, FeedEventKind::None, || {
        Ok(match &handles::get(event)?.event {
            FeedEvent::Begin { .. } => FeedEventKind::Begin,
            FeedEvent::TableCreated(_) => FeedEventKind::TableCreated,
            FeedEvent::TableDropped(_) => FeedEventKind::TableDropped,
            FeedEvent::Row(_) => FeedEventKind::Row,
            FeedEvent::RowsEnd => FeedEventKind::RowsEnd,
            FeedEvent::Batch(_) => FeedEventKind::Batch,
            unknown => return Err(not_known(unknown)),
        })
    })
}

/// How many changes the event has: the ops of a batch, one for a row or a table; 0 where it fails,
/// too.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_feed_event_len(event: *mut FeedEventObject, errptr: ErrPtr<'_>) -> usize {
    guard(errptr, 0, || Ok(handles::get(event)?.changes.len()))
}

/// One change of the event, counted from 0. Returns whether there is one.
///
/// Errors: InvalidInput where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_feed_event_change(
    event: *mut FeedEventObject,
    index: usize,
    change: Option<&mut MaybeUninit<FeedChangeParts>>,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let event = handles::get(event)?;
        let found = event.changes.get(index).ok_or_else(|| {
            Error::invalid(format!(
                "there is no change {index} in this event, which has {}",
                event.changes.len()
            ))
        })?;
        put(change, found.parts()?);
        Ok(true)
    })
}

/// Destroys the handle. NULL is ignored. Pointers into the event are no longer valid.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_feed_event_destroy(event: *mut FeedEventObject) {
    guard_silently(|| handles::take(event).map(drop));
}
