//! Comparing a store with the model: single keys, scans, pieces of scans.

use std::io::Read;
use std::ops::{Bound, ControlFlow};
use std::slice;

use folddb::codec::KeyRange;
use folddb::codec::tuple::{pack, unpack};
use folddb::limits::KEY_BYTES_MAX;
use folddb::{BytesScan, Error, ErrorKind, Reader};

use crate::model::{ModelOp, ModelRow, Present};
use crate::program::{Edge, ScanShape, TableOp};
use crate::tables::{KEYS, Kind, Order, Shape};

/// Agreement, or what differs.
pub(crate) type Outcome = Result<(), String>;

/// The range of a range delete, in the right order; none where it is empty.
pub(crate) fn range(shape: &Shape, op: &TableOp) -> Option<(Vec<u8>, Vec<u8>)> {
    let (a, b) = (shape.key(op.key), shape.key(op.value % KEYS));
    match shape.compare(&a, &b) {
        std::cmp::Ordering::Less => Some((a, b)),
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some((b, a)),
    }
}

/// The ops of the delete of a prefix, in the order of the table; none where the table has no such
/// ranges.
pub(crate) fn prefix_ops(shape: &Shape, op: &TableOp) -> Option<Vec<ModelOp>> {
    let prefix = prefix_of(shape, op);
    let greatest = vec![0xff; KEY_BYTES_MAX];
    let kept = prefix.iter().rposition(|&byte| byte < 0xff);
    let (from, to, last) = match (shape.order, kept) {
        (Order::Hashed | Order::ByLength, _) => return None,
        (Order::Bytewise, Some(kept)) => {
            let mut end = prefix[..=kept].to_vec();
            end[kept] += 1;
            (prefix, end, None)
        }
        (Order::Bytewise, None) => (prefix, greatest.clone(), Some(greatest)),
        (Order::Reversed, _) => {
            let mut from = prefix.clone();
            from.resize(KEY_BYTES_MAX, 0xff);
            (from, prefix.clone(), Some(prefix))
        }
    };
    let last = last.filter(|last| shape.takes_key(last)).map(ModelOp::Delete);
    Some([ModelOp::DeleteRange(from, to)].into_iter().chain(last).collect())
}

/// The prefix that is deleted.
pub(crate) fn prefix_of(shape: &Shape, op: &TableOp) -> Vec<u8> {
    let mut prefix = shape.key(op.key);
    prefix.truncate(usize::from(op.value % 6));
    prefix
}

/// A key as a reader has it: some keys by `get`, some among several, some as a stream. Size and
/// presence must agree.
pub(crate) fn read_key<R>(reader: &R, key: &[u8]) -> folddb::Result<Option<Vec<u8>>>
where
    R: Reader<Key = Vec<u8>, Value = Vec<u8>>,
{
    let value = match key.last().map_or(0, |byte| byte % 3) {
        0 => reader.get(key)?,
        1 => reader.get_many([key, key])?.swap_remove(1),
        _ => match reader.read(key)? {
            None => None,
            Some(mut stream) => {
                let mut value = Vec::new();
                stream.read_to_end(&mut value)?;
                Some(value)
            }
        },
    };
    let size_bytes = reader.head(key)?.map(|head| head.size_bytes);
    if reader.contains(key)? != value.is_some()
        || size_bytes != value.as_ref().map(|value| value.len() as u64)
    {
        let found = format!("{} has a value of {size_bytes:?} bytes, and is {value:?}", key.escape_ascii());
        return Err(Error::new(ErrorKind::Corruption, found));
    }
    Ok(value)
}

/// All possible keys, asked at once in an order of their own, and the ends of the table.
pub(crate) fn compare_reader<R>(expected: &[ModelRow], shape: &Shape, reader: &R) -> Outcome
where
    R: Reader<Key = Vec<u8>, Value = Vec<u8>>,
{
    let fails = expected.iter().any(|(_, present)| *present == Present::Failed);
    let asked: Vec<Vec<u8>> = (0..KEYS).map(|number| shape.key(number * 5 % KEYS)).collect();
    let found = reader.get_many(&asked).map_err(|error| error.kind());
    if fails {
        return same("many keys, of which one fails", &found, &Err(ErrorKind::FoldFailed));
    }
    let of = |asked: &Vec<u8>| match expected.iter().find(|(key, _)| key == asked) {
        Some((_, Present::Value(value))) => Some(value.clone()),
        _ => None,
    };
    same("many keys", &found, &Ok(asked.iter().map(of).collect()))?;
    same("whether it is empty", &reader.is_empty().map_err(|error| error.kind()), &Ok(expected.is_empty()))?;
    if shape.order == Order::Hashed {
        return Ok(());
    }
    let key = |row: Option<&ModelRow>| row.map(|(key, _)| key.clone());
    let ends = (reader.first(), reader.last());
    let of_row = |row: folddb::Result<Option<(Vec<u8>, Vec<u8>)>>| {
        row.map(|row| row.map(|(key, _)| key)).map_err(|error| error.kind())
    };
    same("the first key", &of_row(ends.0), &Ok(key(expected.first())))?;
    same("the last key", &of_row(ends.1), &Ok(key(expected.last())))
}

pub(crate) fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Outcome {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found:?} and not {expected:?}")) }
}

pub(crate) type Get<'g> = &'g dyn Fn(&[u8]) -> folddb::Result<Option<Vec<u8>>>;

pub(crate) fn compare_table(
    expected: &[ModelRow],
    shape: &Shape,
    get: Get<'_>,
    scan: &dyn Fn() -> BytesScan,
) -> Outcome {
    for number in 0..KEYS {
        let key = shape.key(number);
        let wanted = expected.iter().find(|(at, _)| *at == key).map(|(_, present)| present);
        let found = match get(&key) {
            Ok(value) => value.map(Present::Value),
            Err(error) if error.kind() == ErrorKind::FoldFailed => Some(Present::Failed),
            Err(error) => return Err(format!("cannot get {}: {error:?}", key.escape_ascii())),
        };
        if found.as_ref() != wanted {
            let (found, wanted) = (shown(found.as_ref()), shown(wanted));
            return Err(format!("get {} gives {found} and not {wanted}", key.escape_ascii()));
        }
    }
    if shape.order == Order::Hashed {
        let rows = dump(scan().limit(usize::MAX)).map_err(|error| format!("cannot scan: {error:?}"))?;
        compare_whole(expected, rows)?;
        return same("the count", &scan().count().map_err(|error| error.kind()), &Ok(expected.len() as u64));
    }
    compare_rows(expected, scan())?;
    compare_rows(&expected.iter().rev().cloned().collect::<Vec<_>>(), scan().reverse())?;
    let count = scan().count().map_err(|error| error.kind());
    let fails = expected.iter().any(|(_, present)| *present == Present::Failed);
    same("the count", &count, &if fails { Err(ErrorKind::FoldFailed) } else { Ok(expected.len() as u64) })
}

/// Compares all rows of a table without an order.
fn compare_whole(expected: &[ModelRow], mut rows: Vec<Dumped>) -> Outcome {
    rows.sort();
    let found: Vec<_> = rows.iter().flatten().map(|(key, value)| (&key[..], short(value))).collect();
    // A row on which the fold fails, as it may in a transaction, shows no key, so it has no place
    // among the others.
    let dumped = |(key, present): &ModelRow| match present {
        Present::Value(value) => Some((key.clone(), value.clone())),
        Present::Failed => None,
    };
    let mut wanted: Vec<Dumped> = expected.iter().map(dumped).collect();
    wanted.sort();
    match rows == wanted {
        true => Ok(()),
        false => Err(format!("a scan gives {found:?}, and not the {} rows that there are", expected.len())),
    }
}

/// A scan of a table without an order: all of it, some of it, or a refusal.
pub(crate) fn scan_hashed(rows: &[ModelRow], shape: &Shape, scan: &ScanShape, start: BytesScan) -> Outcome {
    let has_bounds = scan.low != Edge::Open || scan.high != Edge::Open || scan.prefix.is_some();
    let narrowed = match scan.prefix {
        Some((number, len)) => {
            let key = shape.key(number);
            start.prefix(&key[..key.len().min(usize::from(len))])
        }
        None => narrow(start, shape, scan),
    };
    // An empty prefix is no bound.
    let is_all = scan.prefix.is_some_and(|(number, len)| len == 0 || shape.key(number).is_empty());
    let narrowed = if is_all && scan.reverse { narrowed.reverse() } else { narrowed };
    let found = dump(narrowed).map_err(|error| error.kind());
    if scan.reverse && (scan.prefix.is_none() || is_all) || has_bounds && !is_all {
        return same("a range of a hashed table", &found.map(drop), &Err(ErrorKind::InvalidInput));
    }
    let found = found.map_err(|kind| format!("a scan fails: {kind:?}"))?;
    let limit = scan.limit.filter(|_| scan.prefix.is_none()).map_or(usize::MAX, usize::from);
    if found.len() < rows.len() && found.len() == limit {
        let is_row =
            |row: &Dumped, there: &ModelRow| is_dump_of(slice::from_ref(row), slice::from_ref(there));
        let is_there = |row: &Dumped| rows.iter().any(|there| is_row(row, there));
        return same("whether the rows are there", &found.iter().all(is_there), &true);
    }
    compare_whole(rows, found)
}

fn shown(present: Option<&Present>) -> String {
    match present {
        None => "nothing".to_owned(),
        Some(Present::Failed) => "a failure".to_owned(),
        Some(Present::Value(value)) => short(value),
    }
}

fn short(bytes: &[u8]) -> String {
    let shown = bytes[..bytes.len().min(40)].escape_ascii().to_string();
    if bytes.len() > 40 { format!("\"{shown}\"... ({} bytes)", bytes.len()) } else { format!("\"{shown}\"") }
}

/// Compares the rows of a scan, one by one. A row on which the fold fails is an error in its place.
pub(crate) fn compare_rows(expected: &[ModelRow], scan: BytesScan) -> Outcome {
    let mut rows = scan.into_iter();
    for (key, present) in expected {
        let found = match rows.next() {
            None => "the end".to_owned(),
            Some(Ok((at, value))) if at == *key && Present::Value(value.clone()) == *present => continue,
            Some(Ok((at, value))) => format!("{} = {}", at.escape_ascii(), short(&value)),
            Some(Err(error)) if error.kind() == ErrorKind::FoldFailed && *present == Present::Failed => {
                continue;
            }
            Some(Err(error)) => format!("{error:?}"),
        };
        let wanted = shown(Some(present));
        return Err(format!("a scan gives {found} where {} = {wanted} comes", key.escape_ascii()));
    }
    match rows.next() {
        None => Ok(()),
        Some(more) => Err(format!("a scan gives {:?} behind its end", more.map(|(key, _)| key))),
    }
}

/// Compares the aggregate of a range with that of its rows, also where it was known without reading
/// them: their number, and their fold for folds whose outcome shows the order or the choice. Where
/// the fold fails on a row, there must be no aggregate.
pub(crate) fn compare_aggregate(expected: &[ModelRow], shape: &Shape, scan: &BytesScan) -> Outcome {
    let value_of = |(_, present): &ModelRow| match present {
        Present::Value(value) => Some(value.clone()),
        Present::Failed => None,
    };
    let Some(mut values) = expected.iter().map(value_of).collect::<Option<Vec<_>>>() else { return Ok(()) };
    let shown = |error: folddb::Error| error.to_string();
    same("the number of rows", &scan.clone().count().map_err(shown)?, &(expected.len() as u64))?;
    let take = |all: &mut Vec<Vec<u8>>, _: &[u8], value: &[u8]| {
        all.push(value.to_vec());
        ControlFlow::Continue(())
    };
    let gathered = scan.clone().fold_rows(2, Vec::new, take, |first, rest| [first, rest].concat());
    same("the values that two threads gather", &gathered.map_err(shown)?, &values)?;
    let folded = match shape.kind {
        Kind::Append => (!values.is_empty()).then(|| values.join(&b',')),
        Kind::MinBytes => values.into_iter().min(),
        Kind::MaxU64 => values.pop().map(|last| {
            let number = |value: &Vec<u8>| u64::from_le_bytes(value[..].try_into().unwrap_or_default());
            values
                .into_iter()
                .fold(last, |most, value| if number(&value) > number(&most) { value } else { most })
        }),
        _ => return Ok(()),
    };
    let told = scan.clone().aggregate().map_err(shown)?;
    same("what the rows come to", &(told.rows, told.value), &(expected.len() as u64, folded))
}

/// The rows of a scan.
pub(crate) fn chosen(rows: Vec<ModelRow>, scan: &ScanShape, inside: impl Fn(&[u8]) -> bool) -> Vec<ModelRow> {
    let mut rows: Vec<ModelRow> = rows.into_iter().filter(|(key, _)| inside(key)).collect();
    if scan.reverse {
        rows.reverse();
    }
    rows.truncate(scan.limit.map_or(usize::MAX, usize::from));
    rows
}

pub(crate) fn inside(shape: &Shape, scan: &ScanShape, key: &[u8]) -> bool {
    let above = match scan.low {
        Edge::Open => true,
        Edge::At(number) => shape.compare(key, &shape.key(number)).is_ge(),
        Edge::Beyond(number) => shape.compare(key, &shape.key(number)).is_gt(),
    };
    let below = match scan.high {
        Edge::Open => true,
        Edge::At(number) => shape.compare(key, &shape.key(number)).is_le(),
        Edge::Beyond(number) => shape.compare(key, &shape.key(number)).is_lt(),
    };
    above && below
}

pub(crate) fn narrow(scan: BytesScan, shape: &Shape, to: &ScanShape) -> BytesScan {
    let scan = match to.low {
        Edge::Open => scan,
        Edge::At(number) => scan.from(&shape.key(number)),
        Edge::Beyond(number) => scan.after(&shape.key(number)),
    };
    let scan = match to.high {
        Edge::Open => scan,
        Edge::At(number) => scan.through(&shape.key(number)),
        Edge::Beyond(number) => scan.before(&shape.key(number)),
    };
    let scan = if to.reverse { scan.reverse() } else { scan };
    match to.limit {
        Some(limit) => scan.limit(usize::from(limit)),
        None => scan,
    }
}

/// The keys of a prefix of the key with this number: of some bytes of it, or, where keys are
/// tuples, of some elements.
pub(crate) fn prefix_range(shape: &Shape, (number, len): (u8, u8)) -> KeyRange {
    let mut prefix = shape.key(number);
    if !shape.has_tuple_keys() || len % 2 == 1 {
        prefix.truncate(usize::from(len));
        return KeyRange::prefix(prefix);
    }
    let elements = unpack(&prefix).unwrap_or_default();
    let low = pack(&elements[..elements.len().min(usize::from(len) / 2 + 1)]);
    let high = [&low[..], b"\xff"].concat();
    KeyRange { low: Bound::Included(low), high: Bound::Excluded(high) }
}

pub(crate) fn scan_prefix(
    rows: &[ModelRow],
    shape: &Shape,
    prefix: (u8, u8),
    scan: &ScanShape,
    start: BytesScan,
) -> Outcome {
    let range = prefix_range(shape, prefix);
    let expected = chosen(rows.to_vec(), scan, |key| range.contains(key));
    let narrowed = start.within(range);
    let narrowed = if scan.reverse { narrowed.reverse() } else { narrowed };
    let narrowed = match scan.limit {
        Some(limit) => narrowed.limit(usize::from(limit)),
        None => narrowed,
    };
    if shape.order == crate::tables::Order::ByLength {
        let refused = narrowed.count().map_err(|error| error.kind());
        return same("a prefix in a custom order", &refused, &Err(ErrorKind::InvalidInput));
    }
    if scan.limit.is_none() {
        let fails = expected.iter().any(|(_, present)| *present == Present::Failed);
        let count = narrowed.clone().count().map_err(|error| error.kind());
        let wanted = if fails { Err(ErrorKind::FoldFailed) } else { Ok(expected.len() as u64) };
        same("the count of a prefix", &count, &wanted)?;
    }
    compare_rows(&expected, narrowed)
}

/// The same rows in pieces, each a scan of its own that begins after the last row of the one
/// before.
pub(crate) fn in_chunks(
    expected: &[ModelRow],
    shape: &Shape,
    scan: &ScanShape,
    chunk: usize,
    start: &dyn Fn() -> BytesScan,
) -> Outcome {
    let mut after: Option<&[u8]> = None;
    for rows in expected.chunks(chunk) {
        let narrowed = narrow(start(), shape, scan);
        let narrowed = match (after, scan.reverse) {
            (None, _) => narrowed,
            (Some(last), false) => narrowed.after(last),
            (Some(last), true) => narrowed.before(last),
        };
        compare_rows(rows, narrowed.limit(rows.len()))?;
        after = rows.last().map(|(key, _)| key.as_slice());
    }
    Ok(())
}

/// A row as a scan gives it; none where the fold fails on it.
pub(crate) type Dumped = Option<(Vec<u8>, Vec<u8>)>;

/// All rows of a scan.
pub(crate) fn dump(scan: BytesScan) -> Result<Vec<Dumped>, folddb::Error> {
    scan.into_iter()
        .map(|row| match row {
            Ok(row) => Ok(Some(row)),
            Err(error) if error.kind() == ErrorKind::FoldFailed => Ok(None),
            Err(error) => Err(error),
        })
        .collect()
}

/// Whether these are the rows that the model has.
pub(crate) fn is_dump_of(dumped: &[Dumped], rows: &[ModelRow]) -> bool {
    dumped.len() == rows.len()
        && dumped.iter().zip(rows).all(|(found, (key, present))| match (found, present) {
            (Some((at, value)), Present::Value(wanted)) => at == key && value == wanted,
            (None, Present::Failed) => true,
            _ => false,
        })
}
