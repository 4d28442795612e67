//! The small store whose values are separated: in segments, in files of their own, and in a file
//! that reclaim has moved them to. The layout of those files, and the result of each way of reading
//! a damaged value.
//!
//! Called by `flips`.

use std::io::Read;
use std::ops::Range;

use folddb::table_rules::TableRules;
use folddb::{
    BytesTable, ErrorKind, Head, HeadRule, Locate, Store, ValuePlacement, WriteOp, codec::KeyCodec,
};
use folddb_base::FileNumber;
use folddb_layout::relocated::{Footer, MAP_PAGE_BYTES, RELOCATED_FOOTER_BYTES, RELOCATED_HEADER_BYTES};
use folddb_layout::values::{RECORD_HEAD_BYTES, RecordHead, VALUES_HEADER_BYTES};

use super::whole::{Dump, Whole, names_file, tables_of};

/// Keys of each table.
const KEYS: u64 = 9;
/// Bytes that are written and soon dead, so that there is space to reclaim.
const DEAD_BYTES: usize = 24 << 10;

/// A range of a file that holds values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// What it is.
    pub kind: PieceKind,
    /// Where it is.
    pub range: Range<usize>,
}

/// The parts of files that hold values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PieceKind {
    /// The header of a segment, or of a file of relocated values.
    Header,
    /// The head of a record.
    RecordHead,
    /// The key of a record.
    Key,
    /// Its value.
    Value,
    /// Zeros after a record, or before a map.
    Padding,
    /// A page of a map.
    Page,
    /// The directory of the pages.
    Top,
    /// The end of a file of relocated values.
    Footer,
}

fn rules() -> [(&'static str, TableRules); 4] {
    let separated = |rules: TableRules| rules.separate(Some(64)).block_bytes(512);
    [
        ("blobs", separated(TableRules::new(KeyCodec::U64)).head(HeadRule::First(8))),
        ("joined", separated(TableRules::new(KeyCodec::U64).fold("append:\",\""))),
        ("hashed", TableRules::hashed(KeyCodec::U64)),
        ("objects", separated(TableRules::new(KeyCodec::U64)).value_placement(ValuePlacement::Files)),
    ]
}

pub(super) fn tables(store: &Store) -> folddb::Result<Vec<BytesTable>> {
    tables_of(store, rules())
}

fn value(table: usize, key: u64, session: u64) -> Vec<u8> {
    let text = format!("{session}: the value of key {key} of table {table}; ");
    text.into_bytes()
        .into_iter()
        .cycle()
        .take(90 + (key as usize * 31 + session as usize * 7) % 150)
        .collect()
}

/// What a session writes: all keys, or every third of them, and what is dead at once.
fn write(store: &Store, session: u64) -> folddb::Result<()> {
    for (number, table) in tables(store)?.iter().enumerate() {
        let op = if table.name() == "joined" { WriteOp::Fold } else { WriteOp::Put };
        if op == WriteOp::Put {
            table.write(op, &KEYS.to_be_bytes(), &vec![session as u8 + 1; DEAD_BYTES])?;
        }
        for key in (0..=KEYS).filter(|&key| session == 0 || key == KEYS || key % 3 == session % 3) {
            table.write(op, &key.to_be_bytes(), &value(number, key, session))?;
        }
    }
    store.sync()?;
    store.flush()
}

/// Fills it session by session: some values have moved, some of those twice, and some are where
/// they were put.
pub(super) fn fill(store: Store, reopen: &dyn Fn() -> folddb::Result<Store>) -> folddb::Result<Store> {
    let mut store = store;
    for session in 0..5 {
        write(&store, session)?;
        if session == 1 || session == 3 {
            for table in ["blobs", "joined", "objects"] {
                store.bytes_table(table)?.compact()?;
            }
            store.reclaim()?;
        }
        store.close()?; // which ends its segment
        store = reopen()?;
    }
    Ok(store)
}

// ---- where things are ---------------------------------------------------------------------------

/// The pieces of a file that holds values, in order; nothing of another file.
pub fn pieces(file: &Whole) -> Vec<Piece> {
    let (bytes, name) = (&file.bytes, file.name.as_str());
    let mut pieces = Vec::new();
    let mut push = |kind: PieceKind, range: Range<usize>| {
        if !range.is_empty() {
            pieces.push(Piece { kind, range });
        }
    };
    if name.ends_with(".values") {
        push(PieceKind::Header, 0..VALUES_HEADER_BYTES);
        records(bytes, VALUES_HEADER_BYTES..bytes.len(), &mut push);
    } else if name.ends_with(".value") {
        records(bytes, 0..bytes.len(), &mut push);
    } else if let Some(footer) = footer_of(file) {
        let (map, top) = (footer.map_at as usize, footer.top_at as usize);
        push(PieceKind::Header, 0..RELOCATED_HEADER_BYTES);
        records(bytes, RELOCATED_HEADER_BYTES..map, &mut push);
        (map..top).step_by(MAP_PAGE_BYTES).for_each(|at| push(PieceKind::Page, at..at + MAP_PAGE_BYTES));
        push(PieceKind::Top, top..top + footer.top_bytes as usize);
        push(PieceKind::Footer, top + footer.top_bytes as usize..bytes.len());
    }
    pieces
}

fn footer_of(file: &Whole) -> Option<Footer> {
    let number: u64 = file.name.strip_suffix(".moved")?.parse().ok()?;
    let at = file.bytes.len().checked_sub(RELOCATED_FOOTER_BYTES)?;
    Footer::decode(&file.bytes[at..], FileNumber(number), file.bytes.len() as u64).ok()
}

/// Records one after the other, and zeros after the last.
fn records(bytes: &[u8], range: Range<usize>, push: &mut dyn FnMut(PieceKind, Range<usize>)) {
    let mut at = range.start;
    while at < range.end {
        let head = RecordHead::decode(&bytes[at..]).ok();
        let Some(head) = head.filter(|head| head.key_len > 0) else {
            return push(PieceKind::Padding, at..range.end);
        };
        let key = at + RECORD_HEAD_BYTES;
        let value = key + usize::from(head.key_len);
        let (end, next) = (value + head.len as usize, at + head.record_bytes() as usize);
        push(PieceKind::RecordHead, at..key);
        push(PieceKind::Key, key..value);
        push(PieceKind::Value, value..end);
        push(PieceKind::Padding, end..next);
        at = next;
    }
}

/// The value of the record with this byte.
pub(super) fn value_at(file: &Whole, at: usize) -> Option<&[u8]> {
    let pieces = pieces(file);
    let here = pieces.iter().position(|piece| piece.range.contains(&at))?;
    let in_record = [PieceKind::RecordHead, PieceKind::Key, PieceKind::Value].contains(&pieces[here].kind);
    let value = pieces[here..].iter().find(|piece| piece.kind == PieceKind::Value).filter(|_| in_record)?;
    file.bytes.get(value.range.clone())
}

// ---- each way of reading ------------------------------------------------------------------------

/// The heads of all keys, except those of the hashed table, which are stored with the values.
pub(super) fn heads(store: &Store) -> folddb::Result<Vec<Option<Head>>> {
    let mut heads = Vec::new();
    for table in tables(store)?.iter().filter(|table| table.name() != "hashed") {
        for key in 0..=KEYS {
            heads.push(table.head(&key.to_be_bytes())?);
        }
    }
    Ok(heads)
}

/// Reads every value in every way. Each answer is right, or an error that names file and offset,
/// and for a single key the table and the key. Returns how many were errors.
///
/// # Errors
/// Says what is none of that.
pub(super) fn read_all_ways(store: &Store, dump: &Dump, file: &str) -> Result<usize, String> {
    let mut errors = 0;
    for table in tables(store).map_err(|error| format!("{error:?}"))? {
        let rows = dump.get(table.name()).map_or(&[][..], Vec::as_slice);
        let mut failed = Vec::new();
        for (key, value) in rows {
            let of = format!(
                "key {} of table `{}`",
                u64::from_be_bytes(key[..8].try_into().unwrap_or_default()),
                table.name()
            );
            let answers =
                [("get", table.get(key)), ("read", streamed(&table, key)), ("locate", located(&table, key))];
            let mut is_failed = Vec::new();
            for (how, answer) in answers {
                is_failed.push(answer.is_err());
                match answer {
                    Ok(found) if found.as_ref() == Some(value) => {}
                    Ok(_) => return Err(format!("{how} of {of} gives another value")),
                    Err(error) if error.kind() != ErrorKind::Corruption || !names_file(&error, file) => {
                        return Err(format!("{how}: a poor error: {error:?}"));
                    }
                    Err(error) if !error.message().contains(&of) => {
                        return Err(format!("{how}: an error that does not name {of}: {error:?}"));
                    }
                    Err(_) => errors += 1,
                }
            }
            if is_failed.iter().any(|failed| *failed != is_failed[0]) {
                return Err(format!("of {of} some ways of reading fail, and others do not: {is_failed:?}"));
            }
            if is_failed[0] {
                failed.push(key);
            }
        }
        for row in table.scan() {
            match row {
                Ok(row) if rows.contains(&row) && !failed.contains(&&row.0) => {}
                Ok(row) => return Err(format!("a scan of `{}` gives {row:?}", table.name())),
                Err(error) if !failed.is_empty() && names_file(&error, file) => break,
                Err(error) => return Err(format!("a scan: a poor error: {error:?}")),
            }
        }
    }
    Ok(errors)
}

fn streamed(table: &BytesTable, key: &[u8]) -> folddb::Result<Option<Vec<u8>>> {
    let Some(mut reader) = table.read(key)? else { return Ok(None) };
    let mut value = Vec::new();
    reader.read_to_end(&mut value).map_err(own)?;
    Ok(Some(value))
}

fn located(table: &BytesTable, key: &[u8]) -> folddb::Result<Option<Vec<u8>>> {
    let Some(located) = table.locate(key, Locate::default())? else { return Ok(None) };
    let mut value = Vec::new();
    located.write_to(&mut value).map_err(own)?;
    Ok(Some(value))
}

/// The store's error in one of reading.
fn own(error: std::io::Error) -> folddb::Error {
    let message = error.to_string();
    let inner = error.into_inner().and_then(|inner| inner.downcast::<folddb::Error>().ok());
    inner.map_or_else(|| folddb::Error::new(ErrorKind::Io, message), |own| *own)
}
