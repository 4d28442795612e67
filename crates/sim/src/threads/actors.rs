//! The actors on the store, each in a thread of its own, which check what they see.
//!
//! | actor | does | checks |
//! |---|---|---|
//! | writer | batches over all tables, in all durabilities | its own writes at once; that a refused batch left nothing |
//! | single | single writes | the same |
//! | reader | gets | no number decreases; nothing acknowledged is missing, nothing unwritten is there |
//! | scanner | scans, both ways, some slow | a batch is there whole; keys in order, none twice |
//! | historian | snapshots, held, handed on, read again | the whole cut; that it reads the same forever |
//! | background_player | flushes, merges, syncs, looks at figures | that they succeed |
//! | builder | creates, fills and drops a table that others use | an empty table after each creation |

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use folddb::{BackgroundWork, Batch, Durability, Error, ErrorKind, Snapshot, Store, Table};
use folddb_base::Seq;
use parking_lot::{Mutex, RwLock};

use super::books::{Books, Clear, Cut, SLOTS, key_bytes, number};
use super::watch::Desk;
use crate::chance::Seeded;

/// Snapshots that historians hold together.
const SNAPSHOTS_MAX: usize = 5;
/// How many steps a thread may take after the store is closed before one must fail.
const STEPS_AFTER_CLOSE_MAX: u64 = 200;

/// The progress of something: begun before it is tried, done once it is acknowledged.
#[derive(Debug, Default)]
pub(super) struct Progress {
    begun: AtomicU64,
    done: AtomicU64,
}

impl Progress {
    pub(super) fn done(&self) -> u64 {
        self.done.load(Ordering::SeqCst)
    }

    fn begun(&self) -> u64 {
        self.begun.load(Ordering::SeqCst)
    }
}

/// What has been begun and acknowledged over the whole run.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) steps: Vec<Progress>,
    pub(super) singles: Vec<Progress>,
    pub(super) hits: Progress,
}

impl Ledger {
    pub(super) fn new(writers: u64) -> Ledger {
        let some = || (0..writers).map(|_| Progress::default()).collect();
        Ledger { steps: some(), singles: some(), hits: Progress::default() }
    }

    /// No step is running: those begun and not acknowledged did not take place.
    pub(super) fn settle(&self) {
        for progress in self.steps.iter().chain(&self.singles).chain([&self.hits]) {
            progress.begun.store(progress.done(), Ordering::SeqCst);
        }
    }
}

/// A snapshot and what was found in it at first.
pub(super) struct Kept {
    snapshot: Snapshot,
    cut: Cut,
}

/// What the threads of a round share.
pub(super) struct World<'l> {
    /// None once the store is to be dropped.
    pub(super) store: RwLock<Option<Store>>,
    pub(super) books: Books,
    pub(super) ledger: &'l Ledger,
    pub(super) background: BackgroundWork,
    /// The store is about to be closed: from now on any call may fail.
    pub(super) closing: AtomicBool,
    /// It is closed: from now on every call must fail.
    pub(super) closed: AtomicBool,
    pub(super) pool: Mutex<Vec<Kept>>,
    /// The table that comes and goes, with the number that all its values have.
    pub(super) passing: Mutex<Option<(u64, Table<u64, u64>)>>,
    /// How many of these there have been.
    pub(super) passed: AtomicU64,
    /// How many cuts were checked.
    pub(super) cuts: AtomicU64,
    /// The first error.
    pub(super) trouble: Mutex<Option<String>>,
}

/// Why an actor stops.
#[derive(Debug)]
pub(super) enum Stop {
    Closed,
    Wrong(String),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        match error.kind() {
            ErrorKind::Closed => Stop::Closed,
            _ => Stop::Wrong(format!("a call failed: {error:?}")),
        }
    }
}

impl From<String> for Stop {
    fn from(what: String) -> Stop {
        Stop::Wrong(what)
    }
}

type Step = std::result::Result<(), Stop>;

fn wrong(what: impl Into<String>) -> Step {
    Err(Stop::Wrong(what.into()))
}

fn check(holds: bool, what: impl FnOnce() -> String) -> Step {
    if holds { Ok(()) } else { Err(Stop::Wrong(what())) }
}

impl World<'_> {
    pub(super) fn is_over(&self) -> bool {
        self.trouble.lock().is_some()
    }

    pub(super) fn note_trouble(&self, what: String) {
        self.trouble.lock().get_or_insert(what);
    }

    fn store(&self) -> Result<Store, Stop> {
        self.store.read().clone().ok_or(Stop::Closed)
    }

    fn is_closing(&self) -> bool {
        self.closing.load(Ordering::SeqCst)
    }
}

/// One kind of work.
pub(super) trait Actor {
    /// Does a little of it.
    fn act(&mut self, world: &World<'_>, desk: &Desk) -> Step;
}

/// Lets an actor work until the store is closed, or something is wrong.
pub(super) fn work(mut actor: Box<dyn Actor + Send>, world: &World<'_>, desk: &Desk) {
    struct Leave<'d>(&'d Desk);
    impl Drop for Leave<'_> {
        fn drop(&mut self) {
            self.0.end();
        }
    }
    let _leave = Leave(desk);
    let mut steps_after_close = 0;
    while !world.is_over() {
        let was_closed = world.closed.load(Ordering::SeqCst);
        match actor.act(world, desk) {
            Ok(()) => {}
            Err(Stop::Closed) if world.is_closing() => return,
            Err(Stop::Closed) => {
                return world.note_trouble(format!("{}: closed before anybody closed it", desk.name()));
            }
            Err(Stop::Wrong(what)) => return world.note_trouble(format!("{}: {what}", desk.name())),
        }
        steps_after_close += u64::from(was_closed);
        if steps_after_close > STEPS_AFTER_CLOSE_MAX {
            return world.note_trouble(format!("{} goes on with a store that is closed", desk.name()));
        }
    }
}

fn durability(chance: &mut Seeded) -> Durability {
    match chance.below(8) {
        0 => Durability::Sync,
        1 | 2 => Durability::Buffered,
        _ => Durability::Process,
    }
}

/// Commits the steps of one writer.
pub(super) struct Writer {
    w: u64,
    chance: Seeded,
    batch: Batch,
}

impl Writer {
    pub(super) fn new(w: u64, chance: Seeded, store: &Store) -> Writer {
        Writer { w, chance, batch: store.batch() }
    }

    /// Commits step `n`, sometimes with a row for the passing table, which may be dropped
    /// meanwhile.
    fn commit(&mut self, world: &World<'_>, n: u64) -> Result<Seq, Stop> {
        let passing = if self.chance.one_in(4) { world.passing.lock().clone() } else { None };
        let clear = if self.chance.one_in(8) { Clear::ByRange } else { Clear::ByKey };
        let refused = match self.try_commit(world, n, passing.as_ref(), clear) {
            Err(error) if error.kind() == ErrorKind::Closed && passing.is_some() && !world.is_closing() => {
                error
            }
            Err(error) if error.kind() == ErrorKind::InvalidInput && clear == Clear::ByRange => error,
            outcome => return Ok(outcome?),
        };
        let found = number_at(&world.books, self.w, 0)?;
        check(found == n - 1, || format!("batch {n} was refused ({refused:?}) and left the mark {found}"))?;
        Ok(self.try_commit(world, n, None, Clear::ByKey)?)
    }

    fn try_commit(
        &mut self,
        world: &World<'_>,
        n: u64,
        passing: Option<&(u64, Table<u64, u64>)>,
        clear: Clear,
    ) -> folddb::Result<Seq> {
        world.books.fill(&mut self.batch, self.w, n, clear, &mut self.chance);
        if let Some((number, table)) = passing {
            self.batch.put(table, &self.chance.below(50), number);
        }
        self.batch.commit(durability(&mut self.chance)).map(u64::from)
    }
}

impl Actor for Writer {
    fn act(&mut self, world: &World<'_>, desk: &Desk) -> Step {
        desk.begin("a batch");
        let (w, progress) = (self.w, &world.ledger.steps[self.w as usize]);
        let n = progress.done() + 1;
        progress.begun.store(n, Ordering::SeqCst);
        let seq = self.commit(world, n)?;
        progress.done.store(n, Ordering::SeqCst);

        desk.begin("reading its own batch");
        let slot = self.chance.below(SLOTS);
        let found = number_at(&world.books, w, slot)?;
        check(found == n, || format!("wrote step {n} and reads {found}"))?;
        if self.chance.one_in(32) {
            let store = world.store()?;
            let snapshot = store.snapshot();
            let sum = snapshot.get(&world.books.sums, &w)?;
            let is_right = u64::from(snapshot.seq()) >= seq && sum == Some(n * (n + 1) / 2);
            check(is_right, || format!("after step {n} at {seq}, {snapshot:?} has the sum {sum:?}"))?;
        }
        Ok(())
    }
}

fn number_at(books: &Books, w: u64, slot: u64) -> Result<u64, Stop> {
    let value = books.marks.get(&(w, slot))?;
    Ok(value.map_or(0, |value| number(w, &value, 100)))
}

/// Writes single values.
pub(super) struct Single {
    w: u64,
    chance: Seeded,
}

impl Single {
    pub(super) fn new(w: u64, chance: Seeded) -> Single {
        Single { w, chance }
    }
}

impl Actor for Single {
    fn act(&mut self, world: &World<'_>, desk: &Desk) -> Step {
        let (w, progress) = (self.w, &world.ledger.singles[self.w as usize]);
        let n = progress.done() + 1;
        progress.begun.store(n, Ordering::SeqCst);
        desk.begin("a single write");
        let singles = world.books.singles.clone().with_durability(durability(&mut self.chance));
        singles.put(&w, &n)?;
        progress.done.store(n, Ordering::SeqCst);
        let found = singles.get(&w)?;
        check(found == Some(n), || format!("wrote {n} and reads {found:?}"))?;

        desk.begin("a single fold");
        world.ledger.hits.begun.fetch_add(1, Ordering::SeqCst);
        let folded = world.books.hits.fold(&0, &1);
        if folded.is_err() {
            world.ledger.hits.begun.fetch_sub(1, Ordering::SeqCst);
        }
        folded?;
        world.ledger.hits.done.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

/// Gets, and remembers what it has seen.
pub(super) struct Reader {
    chance: Seeded,
    last: Vec<[u64; 3]>,
    last_hits: u64,
}

impl Reader {
    pub(super) fn new(chance: Seeded, writers: u64) -> Reader {
        Reader { chance, last: vec![[0; 3]; writers as usize], last_hits: 0 }
    }

    /// `found` must be between the steps done before and those begun by now, and not before the
    /// last one seen.
    fn within(what: &str, last: &mut u64, before: u64, found: u64, progress: &Progress) -> Step {
        let begun = progress.begun();
        let holds = (*last).max(before) <= found && found <= begun;
        check(holds, || {
            format!("{what}: read {found}, after {last} was read and {before} acknowledged; {begun} is begun")
        })?;
        *last = found;
        Ok(())
    }
}

impl Actor for Reader {
    fn act(&mut self, world: &World<'_>, desk: &Desk) -> Step {
        let w = self.chance.below(world.ledger.steps.len() as u64);
        let (books, ledger) = (&world.books, world.ledger);
        let (steps, singles) = (&ledger.steps[w as usize], &ledger.singles[w as usize]);
        let last = &mut self.last[w as usize];

        desk.begin("gets of a writer's tables, one after the other");
        let before = steps.done();
        let slot = self.chance.below(SLOTS);
        let mark = number_at(books, w, slot)?;
        Reader::within("a mark", &mut last[0], before, mark, steps)?;
        let sum = books.sums.get(&w)?.unwrap_or(0);
        let n = ((2 * sum) as f64).sqrt() as u64;
        check(n * (n + 1) / 2 == sum, || format!("{sum} is no sum of steps"))?;
        last[1] = last[1].max(mark);
        Reader::within("a sum", &mut last[1], before, n, steps)?;

        desk.begin("gets of single values");
        let before = singles.done();
        let single = books.singles.get(&w)?.unwrap_or(0);
        Reader::within("a single value", &mut last[2], before, single, singles)?;
        let before = ledger.hits.done();
        let hits = books.hits.as_bytes().get_with(&key_bytes(&0u64), |value| {
            value.and_then(|value| value.try_into().ok()).map_or(0, u64::from_le_bytes)
        })?;
        Reader::within("the counter", &mut self.last_hits, before, hits, &ledger.hits)?;

        desk.begin("gets of the past");
        let key = (w, self.chance.below(512));
        if let Some(value) = books.history.get(&key)? {
            let n = number(w, &value, 900);
            check(n % 512 == key.1 && n <= steps.begun(), || format!("history at {key:?} is {n}"))?;
        }
        visit_passing(world, &mut self.chance)
    }
}

/// Uses the passing table, if there is one. It may be dropped meanwhile, and then refuses.
fn visit_passing(world: &World<'_>, chance: &mut Seeded) -> Step {
    let Some((number, table)) = world.passing.lock().clone() else { return Ok(()) };
    let visited = (|| -> Result<(), Stop> {
        table.put(&chance.below(50), &number)?;
        for row in table.scan() {
            let (key, found) = row?;
            check(found == number, || format!("table {number} that passes has {found} at {key}"))?;
        }
        Ok(())
    })();
    match visited {
        Err(Stop::Closed) if !world.is_closing() => Ok(()),
        outcome => outcome,
    }
}

/// Scans without a snapshot.
pub(super) struct Scanner {
    chance: Seeded,
}

impl Scanner {
    pub(super) fn new(chance: Seeded) -> Scanner {
        Scanner { chance }
    }

    /// The marks of a writer, asked for by their keys at once, are of one step.
    fn many(&mut self, world: &World<'_>) -> Step {
        let w = self.chance.below(world.ledger.steps.len() as u64);
        let progress = &world.ledger.steps[w as usize];
        let before = progress.done();
        let keys: Vec<(u64, u64)> = (0..SLOTS).map(|slot| (w, slot)).collect();
        let found = world.books.marks.get_many(&keys)?;
        let begun = progress.begun();
        let steps: Vec<u64> =
            found.iter().map(|mark| mark.as_ref().map_or(0, |mark| number(w, mark, 100))).collect();
        let is_of_one = steps.iter().all(|n| *n == steps[0]);
        check(is_of_one && before <= steps[0] && steps[0] <= begun, || {
            format!("the marks of {w} at once are {steps:?}; {before} was done, {begun} is begun")
        })
    }

    /// All rows of a writer in `windows` or `marks` are of one step.
    fn whole(&mut self, world: &World<'_>) -> Step {
        let w = self.chance.below(world.ledger.steps.len() as u64);
        let (books, progress) = (&world.books, &world.ledger.steps[w as usize]);
        let (reversed, of_marks, slow) =
            (self.chance.one_in(2), self.chance.one_in(2), self.chance.one_in(8));
        let before = progress.done();
        let mut found = Vec::new();
        let mut note = |n: u64| {
            found.push(n);
            if slow {
                std::thread::sleep(Duration::from_millis(2));
            }
        };
        if of_marks {
            let scan = books.marks.scan().prefix(&(w,));
            let scan = if reversed { scan.reverse() } else { scan };
            for row in scan {
                note(number(w, &row?.1, 100));
            }
        } else {
            let scan = books.windows.scan().prefix(&(w,));
            let scan = if reversed { scan.reverse() } else { scan };
            for row in scan {
                note(row?.1);
            }
        }
        let (begun, rows) = (progress.begun(), if of_marks { 4 } else { 5 });
        let first = found.first().copied().unwrap_or(0);
        let is_due = before >= 8;
        let is_whole = found.iter().all(|n| *n == first) && (found.len() == rows || found.is_empty());
        let is_present = !is_due || first + 8 > before;
        check(is_whole && is_present && first <= begun, || {
            let what = if of_marks { "marks" } else { "windows" };
            format!("a scan of the {what} of {w} finds {found:?}; {before} was done, {begun} is begun")
        })
    }

    /// Keys come in order and none twice, also during merges.
    fn in_order(&mut self, world: &World<'_>) -> Step {
        let reversed = self.chance.one_in(2);
        let limit = 1 + self.chance.below(2000) as usize;
        let from = (self.chance.below(3), self.chance.below(512));
        let scan = world.books.history.scan().limit(limit);
        let scan = if reversed { scan.through(&from).reverse() } else { scan.from(&from) };
        let mut last = None;
        for row in scan {
            let (key, value) = row?;
            let follows = last.is_none_or(|last| if reversed { key < last } else { key > last });
            check(follows, || format!("{key:?} comes after {last:?}, reversed: {reversed}"))?;
            let n = number(key.0, &value, 900);
            check(n % 512 == key.1, || format!("history at {key:?} is {n}"))?;
            last = Some(key);
        }
        Ok(())
    }
}

impl Actor for Scanner {
    fn act(&mut self, world: &World<'_>, desk: &Desk) -> Step {
        desk.begin("a scan of a writer's rows");
        self.whole(world)?;
        desk.begin("gets of many keys at once");
        self.many(world)?;
        if self.chance.one_in(8) {
            desk.begin("a long scan");
            self.in_order(world)?;
        }
        Ok(())
    }
}

/// Takes snapshots, keeps some, and reads them again.
pub(super) struct Historian {
    chance: Seeded,
    last_seq: Seq,
}

impl Historian {
    pub(super) fn new(chance: Seeded) -> Historian {
        Historian { chance, last_seq: 0 }
    }

    fn take(&mut self, world: &World<'_>, desk: &Desk) -> Step {
        desk.begin("taking a snapshot");
        let before: Vec<u64> = world.ledger.steps.iter().map(Progress::done).collect();
        let snapshot = world.store()?.snapshot();
        let begun: Vec<u64> = world.ledger.steps.iter().map(Progress::begun).collect();
        check(u64::from(snapshot.seq()) >= self.last_seq, || {
            format!("a snapshot at {} after one at {}", u64::from(snapshot.seq()), self.last_seq)
        })?;
        self.last_seq = u64::from(snapshot.seq());

        desk.begin("reading a snapshot");
        let cut = world.books.cut(&snapshot, self.chance.one_in(2))?;
        let steps = cut.steps(before.len() as u64).map_err(|what| format!("{snapshot:?}: {what}"))?;
        for (w, n) in steps.iter().enumerate() {
            check(before[w] <= *n && *n <= begun[w], || {
                format!("{snapshot:?} has step {n} of {w}; {} was done, {} begun", before[w], begun[w])
            })?;
        }
        world.cuts.fetch_add(1, Ordering::Relaxed);
        let mut pool = world.pool.lock();
        if pool.len() < SNAPSHOTS_MAX {
            pool.push(Kept { snapshot, cut });
        }
        Ok(())
    }

    fn read_again(&mut self, world: &World<'_>, desk: &Desk) -> Step {
        let mut pool = world.pool.lock();
        if pool.is_empty() {
            return Ok(());
        }
        let at = self.chance.below(pool.len() as u64) as usize;
        let kept = pool.swap_remove(at);
        drop(pool);
        desk.begin("reading a snapshot again");
        let cut = world.books.cut(&kept.snapshot, self.chance.one_in(2))?;
        if cut != kept.cut {
            let now = cut.steps(world.ledger.steps.len() as u64);
            return wrong(format!("{:?} reads otherwise than before; now: {now:?}", kept.snapshot));
        }
        let w = self.chance.below(world.ledger.steps.len() as u64);
        let sum = kept.snapshot.get(&world.books.sums, &w)?;
        check(sum.as_ref() == cut.sums.get(&w), || format!("a get has {sum:?}, a scan {:?}", cut.sums))?;
        world.cuts.fetch_add(1, Ordering::Relaxed);
        desk.begin("letting a snapshot go");
        if !self.chance.one_in(4) {
            world.pool.lock().push(kept);
        }
        Ok(())
    }
}

impl Actor for Historian {
    fn act(&mut self, world: &World<'_>, desk: &Desk) -> Step {
        if self.chance.one_in(3) { self.take(world, desk) } else { self.read_again(world, desk) }
    }
}

/// Does by hand the jobs of background work, and more.
pub(super) struct BackgroundPlayer {
    chance: Seeded,
}

impl BackgroundPlayer {
    pub(super) fn new(chance: Seeded) -> BackgroundPlayer {
        BackgroundPlayer { chance }
    }

    fn compact(&mut self, world: &World<'_>) -> Step {
        let table = *self.chance.pick(&["history", "marks", "windows", "windows", "left", "firsts"]);
        let mut left = self.chance.below(20);
        world.store()?.bytes_table(table)?.compact_with(|_| {
            left = left.saturating_sub(1);
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        Ok(())
    }

    fn look(&mut self, world: &World<'_>) -> Step {
        let store = world.store()?;
        let stats = store.stats();
        check(stats.reads.fold_failures == 0 && stats.damage.is_empty(), || format!("{stats:?}"))?;
        check(stats.poisoned_by.is_none(), || format!("poisoned: {stats:?}"))?;
        store.bytes_table("history")?.stats()?;
        world.books.history.as_bytes().explain(&key_bytes(&(0, self.chance.below(512))))?;
        Ok(())
    }
}

impl Actor for BackgroundPlayer {
    fn act(&mut self, world: &World<'_>, desk: &Desk) -> Step {
        if world.background == BackgroundWork::Manual {
            desk.begin("a step of background work");
            world.store()?.background_step()?;
        }
        match self.chance.below(40) {
            0..4 => {
                desk.begin("a flush");
                world.store()?.flush()?;
            }
            4 | 5 => {
                desk.begin("a merge of all");
                self.compact(world)?;
            }
            6 => {
                desk.begin("a sync");
                world.store()?.sync()?;
            }
            7 => {
                desk.begin("a look at the figures");
                self.look(world)?;
            }
            _ if world.background == BackgroundWork::Threads => std::thread::sleep(Duration::from_millis(2)),
            _ => {}
        }
        Ok(())
    }
}

/// Creates and drops a table of one name, again and again.
pub(super) struct Builder {
    chance: Seeded,
}

impl Builder {
    pub(super) fn new(chance: Seeded) -> Builder {
        Builder { chance }
    }
}

/// The name of the table that comes and goes.
pub(super) const PASSING: &str = "passing";

impl Actor for Builder {
    fn act(&mut self, world: &World<'_>, desk: &Desk) -> Step {
        desk.begin("creating a table");
        let table = world.store()?.table(PASSING, folddb::Rules::sorted::<u64, u64>())?;
        let found = table.scan().count()?;
        check(found == 0, || format!("a table that was just created has {found} rows"))?;
        let number = world.passed.fetch_add(1, Ordering::SeqCst);
        *world.passing.lock() = Some((number, table.clone()));
        desk.begin("filling a table");
        for key in 0..self.chance.below(400) {
            table.put(&key, &number)?;
        }
        if self.chance.one_in(3) {
            world.store()?.flush()?;
        }
        std::thread::sleep(Duration::from_millis(self.chance.below(20)));
        desk.begin("dropping a table");
        *world.passing.lock() = None;
        world.store()?.drop_table(PASSING)?;
        let refused = table.get(&1);
        match refused {
            Err(error) if error.kind() == ErrorKind::Closed => Ok(()),
            other => wrong(format!("a dropped table answers {other:?}")),
        }
    }
}
