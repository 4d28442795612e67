//! Plays a program on a store and on the model, and compares them after every action: every key by `get`, a
//! scan of every table, counts, at the present and at every live snapshot.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use folddb::{
    BytesScan, BytesTable, Durability, Error, ErrorKind, Options, Seq, Snapshot, Store, Upkeep, WriteOp,
};

use crate::model::{Model, ModelOp, ModelRow, Present};
use crate::program::{Action, Edge, Program, ScanShape, Settings, TableOp, What};
use crate::tables::{KEYS, Shape, with_customs};

/// Where a program and its store part ways.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    /// The index of the action after which they do.
    pub at: usize,
    /// What differs.
    pub message: String,
}

impl std::fmt::Display for Disagreement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "after action {}: {}", self.at, self.message)
    }
}

type Outcome = Result<(), String>;

/// Plays a program in a directory that does not exist yet.
///
/// # Errors
/// The first disagreement of store and model.
pub fn play(program: &Program, dir: &Path) -> Result<(), Disagreement> {
    let at_start = |message| Disagreement { at: 0, message };
    let mut player = Player::start(program.settings, dir).map_err(at_start)?;
    for (at, action) in program.actions.iter().enumerate() {
        let done = player.act(action).and_then(|()| player.compare());
        done.map_err(|message| Disagreement { at, message: format!("{action:?}: {message}") })?;
    }
    Ok(())
}

fn name_of(slot: u8) -> String {
    format!("t{slot}")
}

struct Player {
    dir: PathBuf,
    settings: Settings,
    /// Absent for moments only.
    store: Option<Store>,
    snapshots: Vec<Snapshot>,
    model: Model,
}

fn said(doing: &str) -> impl Fn(Error) -> String + '_ {
    move |error| format!("cannot {doing}: {error:?}")
}

impl Player {
    fn start(settings: Settings, dir: &Path) -> Result<Player, String> {
        let mut player =
            Player { dir: dir.to_owned(), settings, store: None, snapshots: Vec::new(), model: Model::new() };
        player.store = Some(Store::create(dir, player.options()).map_err(said("create the store"))?);
        Ok(player)
    }

    fn options(&self) -> Options {
        let options = Options::default()
            .memory_bytes(4 << 20)
            .merge_factor(self.settings.merge_factor)
            .part_bytes(64 << 10)
            .segment_bytes(1 << 20)
            .disk_reserve_bytes(0)
            .append_mode(self.settings.append_mode)
            .upkeep(self.settings.upkeep);
        with_customs(options)
    }

    fn store(&self) -> Result<&Store, String> {
        self.store.as_ref().ok_or_else(|| "the store is not open".to_owned())
    }

    fn table(&self, slot: u8) -> Result<Option<(BytesTable, Shape)>, String> {
        let name = name_of(slot);
        let Some(shape) = self.model.shape(&name) else { return Ok(None) };
        let table = self.store()?.bytes_table(&name).map_err(said("open the table"))?;
        Ok(Some((table, shape)))
    }

    fn snapshot(&self, index: u8) -> Option<&Snapshot> {
        self.snapshots.get(usize::from(index) % self.snapshots.len().max(1))
    }

    fn act(&mut self, action: &Action) -> Outcome {
        match action {
            Action::Create(slot, shape) => self.create(*slot, shape),
            Action::Drop(slot) => self.drop_table(*slot),
            Action::Write(op) => self.write(op),
            Action::Commit(ops, durability) => self.commit(ops, *durability),
            Action::Snapshot => {
                let snapshot = self.store()?.snapshot();
                same("the seq of the snapshot", &snapshot.seq(), &self.model.last_seq())?;
                self.snapshots.push(snapshot);
                Ok(())
            }
            Action::Release(index) => {
                if !self.snapshots.is_empty() {
                    self.snapshots.swap_remove(usize::from(*index) % self.snapshots.len());
                }
                Ok(())
            }
            Action::Flush => self.store()?.flush().map_err(said("flush")),
            Action::Step(steps) => self.steps(*steps),
            Action::Settle => self.store()?.settle().map_err(said("settle")),
            Action::Optimize(slot, stop_after) => self.optimize(*slot, *stop_after),
            Action::Scan(slot, at, scan) => self.scan(*slot, *at, scan),
            Action::Sync => self.store()?.sync().map_err(said("sync")),
            Action::Close => {
                self.snapshots.clear();
                let store = self.store.take().ok_or("the store is not open")?;
                store.close().map_err(said("close"))?;
                self.open()
            }
            Action::Abandon => {
                self.snapshots.clear();
                self.store = None;
                self.open()
            }
            Action::LookOnly => self.look_only(),
        }
    }

    fn open(&mut self) -> Outcome {
        self.store = Some(Store::open(&self.dir, self.options()).map_err(said("open the store"))?);
        Ok(())
    }

    fn create(&mut self, slot: u8, shape: &Shape) -> Outcome {
        let name = name_of(slot);
        let created = self.store()?.create_table(&name, shape.rules());
        match (created, self.model.shape(&name)) {
            (Ok(_), None) => {
                self.model.create_table(&name, *shape);
                Ok(())
            }
            (Err(error), Some(_)) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            (Ok(_), Some(_)) => Err("a table was created twice".to_owned()),
            (Err(error), _) => Err(said("create a table")(error)),
        }
    }

    fn drop_table(&mut self, slot: u8) -> Outcome {
        let name = name_of(slot);
        let Some((table, _)) = self.table(slot)? else {
            let refused = self.store()?.drop_table(&name).map_err(|error| error.kind());
            return same("dropping what is not there", &refused, &Err(ErrorKind::UnknownTable));
        };
        self.store()?.drop_table(&name).map_err(said("drop a table"))?;
        self.model.drop_table(&name);
        let refused = table.get(b"").map_err(|error| error.kind());
        same("reading a dropped table", &refused, &Err(ErrorKind::Closed))
    }

    fn write(&mut self, op: &TableOp) -> Outcome {
        let Some((table, shape)) = self.table(op.table)? else { return Ok(()) };
        let key = shape.key(op.key);
        let value = shape.value(op.value, op.len_bytes);
        let written = match op.what {
            What::DeleteRange => {
                let Some((from, to)) = range(&shape, op) else { return self.upside_down(&table, &shape, op) };
                table.delete_range(&from, &to)
            }
            What::Set => table.write(WriteOp::Set, &key, &value),
            What::Insert => table.write(WriteOp::Insert, &key, &value),
            What::Fold => table.write(WriteOp::Fold, &key, &value),
            What::Delete => table.write(WriteOp::Delete, &key, b"ignored"),
        };
        let seq = written.map_err(said("write"))?;
        self.apply(op, &shape);
        same("the seq of a write", &seq, &self.model.last_seq())
    }

    fn upside_down(&self, table: &BytesTable, shape: &Shape, op: &TableOp) -> Outcome {
        let refused =
            table.delete_range(&shape.key(op.key), &shape.key(op.key)).map_err(|error| error.kind());
        same("an empty range", &refused, &Err(ErrorKind::InvalidInput))
    }

    fn apply(&mut self, op: &TableOp, shape: &Shape) {
        let (key, value) = (shape.key(op.key), shape.value(op.value, op.len_bytes));
        let model_op = match op.what {
            What::Set => ModelOp::Set(key, value),
            What::Insert => ModelOp::Insert(key, value),
            What::Fold => ModelOp::Fold(key, value),
            What::Delete => ModelOp::Delete(key),
            What::DeleteRange => match range(shape, op) {
                Some((from, to)) => ModelOp::DeleteRange(from, to),
                None => return,
            },
        };
        self.model.apply(&name_of(op.table), model_op);
    }

    fn commit(&mut self, ops: &[TableOp], durability: Durability) -> Outcome {
        let mut batch = self.store()?.batch();
        let mut taken = Vec::new();
        for op in ops {
            let Some((table, shape)) = self.table(op.table)? else { continue };
            let (key, value) = (shape.key(op.key), shape.value(op.value, op.len_bytes));
            match op.what {
                What::Set => batch.write(&table, WriteOp::Set, &key, &value),
                What::Insert => batch.write(&table, WriteOp::Insert, &key, &value),
                What::Fold => batch.write(&table, WriteOp::Fold, &key, &value),
                What::Delete => batch.write(&table, WriteOp::Delete, &key, &[]),
                What::DeleteRange => match range(&shape, op) {
                    Some((from, to)) => batch.delete_range(&table, &from, &to),
                    None => continue,
                },
            };
            taken.push((*op, shape));
        }
        same("the length of a batch", &batch.len(), &taken.len())?;
        let seq = batch.commit(durability).map_err(said("commit"))?;
        taken.iter().for_each(|(op, shape)| self.apply(op, shape));
        same("the seq of a batch", &seq, &self.model.last_seq())
    }

    fn steps(&self, steps: u8) -> Outcome {
        // Where threads do the upkeep they are left alone.
        if self.settings.upkeep == Upkeep::Threads {
            return Ok(());
        }
        for _ in 0..steps {
            if self.store()?.upkeep_step().map_err(said("take a step of upkeep"))?.is_none() {
                break;
            }
        }
        Ok(())
    }

    fn optimize(&self, slot: u8, stop_after: Option<u8>) -> Outcome {
        let Some((table, _)) = self.table(slot)? else { return Ok(()) };
        let store = self.store()?;
        let (mut looks, mut broke_off) = (0, false);
        let mut progress = |_| {
            looks += 1;
            match stop_after {
                Some(stop) if looks > u32::from(stop) => {
                    broke_off = true;
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        };
        store.optimize(table.name(), &mut progress).map_err(said("optimize"))?;
        if broke_off {
            return Ok(());
        }
        let runs = store.table_stats(table.name()).map_err(said("look at the runs"))?.runs.len();
        if runs > 1 { Err(format!("{runs} runs are left by optimize")) } else { Ok(()) }
    }

    fn look_only(&mut self) -> Outcome {
        self.snapshots.clear();
        self.store = None;
        let options = self.options().read_only(true);
        self.store = Some(Store::open(&self.dir, options).map_err(said("open for reading only"))?);
        self.compare()?;
        if let Some((table, shape)) = self.table(0)? {
            let refused = table.write(WriteOp::Delete, &shape.key(0), &[]).map_err(|error| error.kind());
            same("writing to a store that is open for reading", &refused, &Err(ErrorKind::ReadOnly))?;
        }
        self.store = None;
        self.open()
    }

    /// Compares everything, at the present and at every snapshot.
    fn compare(&self) -> Outcome {
        let store = self.store()?;
        same("the tables", &store.tables(), &self.model.tables())?;
        same("the last seq", &store.last_seq(), &self.model.last_seq())?;
        for name in self.model.tables() {
            let Some(shape) = self.model.shape(&name) else { continue };
            let table = store.bytes_table(&name).map_err(said("open the table"))?;
            let now = self.model.rows_at(&name, Seq::MAX);
            let in_table = |message| format!("table {name} ({shape:?}): {message}");
            compare_table(&now, &shape, &|key| table.get(key), &|| table.scan()).map_err(in_table)?;
            for snapshot in &self.snapshots {
                let past = self.model.rows_at(&name, snapshot.seq());
                let get = |key: &[u8]| snapshot.get_bytes(&table, key);
                compare_table(&past, &shape, &get, &|| snapshot.scan_bytes(&table))
                    .map_err(|message| in_table(format!("at snapshot {}: {message}", snapshot.seq())))?;
            }
        }
        Ok(())
    }

    fn scan(&self, slot: u8, at: Option<u8>, scan: &ScanShape) -> Outcome {
        let Some((table, shape)) = self.table(slot)? else { return Ok(()) };
        let snapshot = at.and_then(|at| self.snapshot(at));
        let seq = snapshot.map_or(Seq::MAX, Snapshot::seq);
        let start = || match snapshot {
            Some(snapshot) => snapshot.scan_bytes(&table),
            None => table.scan(),
        };
        let rows = self.model.rows_at(table.name(), seq);
        if let Some((number, len)) = scan.prefix {
            return scan_prefix(&rows, &shape, &shape.key(number), len, scan, start());
        }
        let expected = chosen(rows, scan, |key| inside(&shape, scan, key));
        let narrowed = narrow(start(), &shape, scan);
        match scan.chunk {
            None => compare_rows(&expected, narrowed),
            Some(chunk) => in_chunks(&expected, &shape, scan, usize::from(chunk), &start),
        }
        .map_err(|message| format!("at {seq}: {message}"))
    }
}

/// The range that a range delete is about, the right way round; none where it is empty.
fn range(shape: &Shape, op: &TableOp) -> Option<(Vec<u8>, Vec<u8>)> {
    let (a, b) = (shape.key(op.key), shape.key(op.value % KEYS));
    match shape.compare(&a, &b) {
        std::cmp::Ordering::Less => Some((a, b)),
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some((b, a)),
    }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, found: &T, expected: &T) -> Outcome {
    if found == expected { Ok(()) } else { Err(format!("{what} is {found:?} and not {expected:?}")) }
}

type Get<'g> = &'g dyn Fn(&[u8]) -> folddb::Result<Option<Vec<u8>>>;

fn compare_table(
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
    compare_rows(expected, scan())?;
    compare_rows(&expected.iter().rev().cloned().collect::<Vec<_>>(), scan().reverse())?;
    let count = scan().count().map_err(|error| error.kind());
    let fails = expected.iter().any(|(_, present)| *present == Present::Failed);
    same("the count", &count, &if fails { Err(ErrorKind::FoldFailed) } else { Ok(expected.len() as u64) })
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
fn compare_rows(expected: &[ModelRow], scan: BytesScan) -> Outcome {
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

/// The rows that a scan is about.
fn chosen(rows: Vec<ModelRow>, scan: &ScanShape, inside: impl Fn(&[u8]) -> bool) -> Vec<ModelRow> {
    let mut rows: Vec<ModelRow> = rows.into_iter().filter(|(key, _)| inside(key)).collect();
    if scan.reverse {
        rows.reverse();
    }
    rows.truncate(scan.limit.map_or(usize::MAX, usize::from));
    rows
}

fn inside(shape: &Shape, scan: &ScanShape, key: &[u8]) -> bool {
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

fn narrow(scan: BytesScan, shape: &Shape, to: &ScanShape) -> BytesScan {
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

fn scan_prefix(
    rows: &[ModelRow],
    shape: &Shape,
    key: &[u8],
    len: u8,
    scan: &ScanShape,
    start: BytesScan,
) -> Outcome {
    let prefix = &key[..key.len().min(usize::from(len))];
    let expected = chosen(rows.to_vec(), scan, |key| key.starts_with(prefix));
    let narrowed = start.prefix(prefix);
    let narrowed = if scan.reverse { narrowed.reverse() } else { narrowed };
    let narrowed = match scan.limit {
        Some(limit) => narrowed.limit(usize::from(limit)),
        None => narrowed,
    };
    if shape.order == crate::tables::Order::ByLength {
        let refused = narrowed.count().map_err(|error| error.kind());
        return same("a prefix in a custom order", &refused, &Err(ErrorKind::InvalidInput));
    }
    compare_rows(&expected, narrowed)
}

/// The same rows in pieces, each a scan of its own that begins behind the last row of the one before.
fn in_chunks(
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
