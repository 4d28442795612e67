//! Real threads on one store at once, with a checker: see [`books`] for what must hold at every
//! moment, and `threads/actors.rs` for the actors.
//!
//! A run is a series of rounds on one store. Each opens it, starts all actors, and ends it in the
//! middle of their work: one thread closes it, two do at once, or the last handle is dropped. Then
//! every thread must end, with the error `Closed`, and the next opening must find exactly what was
//! acknowledged. The seed decides the choices of each thread, but not how the system interleaves
//! them, so repeating a failure may need several tries.

pub mod books;
pub mod watch;
mod actors;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use folddb::{BackgroundWork, Options, Store};
use folddb_host::AppendMode;
use parking_lot::{Mutex, RwLock};

use crate::chance::Seeded;
use actors::{Actor, BackgroundPlayer, Builder, Historian, Ledger, Reader, Scanner, Single, World, Writer};
use books::Books;
use watch::{Desk, Watchman};

/// How a run goes.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The seed of all choices.
    pub seed: u64,
    /// How often the store is opened.
    pub rounds: u64,
    /// How long the threads work between an opening and its end.
    pub round: Duration,
    /// Threads that write batches, and as many that write single values.
    pub writers: u64,
    /// Who does the background work; if absent, each round chooses.
    pub background: Option<BackgroundWork>,
}

/// The counts of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Rounds.
    pub rounds: u64,
    /// Batches and single writes acknowledged.
    pub writes: u64,
    /// Whole cuts of snapshots checked.
    pub cuts: u64,
    /// Calls, roughly: things that threads have begun.
    pub calls: u64,
    /// Memtables flushed.
    pub flushes: u64,
    /// Merges finished.
    pub merges: u64,
    /// Tables created and dropped.
    pub tables: u64,
    /// Times a writer waited because memory was full.
    pub stalls: u64,
}

/// How a round ends.
#[derive(Clone, Copy, Debug)]
enum Ending {
    Close,
    CloseByTwo,
    CloseWithoutFlush,
    Drop,
}

/// Runs a plan on a store that does not exist yet.
///
/// # Errors
/// Says which round and which thread found what.
pub fn run(dir: &Path, plan: &Plan) -> Result<Report, String> {
    let failed = |what: String| format!("seed {}: {what}", plan.seed);
    let mut chance = Seeded::new(plan.seed);
    let ledger = Ledger::new(plan.writers);
    let mut report = Report::default();
    drop(Store::create(dir, Options::default()).map_err(|error| failed(format!("{error:?}")))?);
    for round in 0..plan.rounds {
        let ending =
            *chance.pick(&[Ending::Close, Ending::CloseByTwo, Ending::CloseWithoutFlush, Ending::Drop]);
        let (options, background) = options(plan, &mut chance);
        let played = play(dir, options, background, ending, &ledger, plan, &mut chance, &mut report);
        played.map_err(|what| failed(format!("round {round}, {background:?}, {ending:?}: {what}")))?;
    }
    let store = Store::open(dir, Options::default()).map_err(|error| failed(format!("{error:?}")))?;
    let books = Books::open(&store).map_err(|error| failed(format!("{error:?}")))?;
    verify(&store, &books, &ledger).map_err(|what| failed(format!("at the end: {what}")))?;
    report.rounds = plan.rounds;
    report.writes = ledger.steps.iter().chain(&ledger.singles).map(|progress| progress.done()).sum();
    Ok(report)
}

/// As little memory as possible, so that flushes and merges always run.
fn options(plan: &Plan, chance: &mut Seeded) -> (Options, BackgroundWork) {
    let manual = chance.one_in(3);
    let background =
        plan.background.unwrap_or(if manual { BackgroundWork::Manual } else { BackgroundWork::Threads });
    let append_mode = *chance.pick(&[AppendMode::Mapped, AppendMode::Mapped, AppendMode::Written]);
    // Without a draw, so that the rest of a seed stays the same.
    let (merge_threads, slice_bytes) =
        (1 + plan.seed as usize % 3, [64 << 10, 4 << 10][plan.seed as usize % 2]);
    let options = Options::default()
        .memory_bytes(4 << 20)
        .tuning(|t| {
            t.segment_bytes(1 << 20)
                .value_segment_bytes(64 << 10)
                .part_bytes(64 << 10)
                .slice_bytes(slice_bytes)
                .merge_factor(2 + chance.below(3) as usize)
                .snapshot_files_after(Duration::from_millis(*chance.pick(&[0, 2, 60_000])))
                .open_files_max(8)
        })
        .disk_reserve_bytes(0)
        .merge_threads(merge_threads)
        .tuning(|t| t.mapped_log(append_mode == AppendMode::Mapped))
        .background(background);
    (options, background)
}

#[allow(clippy::too_many_arguments)]
fn play(
    dir: &Path,
    options: Options,
    background: BackgroundWork,
    ending: Ending,
    ledger: &Ledger,
    plan: &Plan,
    chance: &mut Seeded,
    report: &mut Report,
) -> Result<(), String> {
    let opened = Store::open(dir, options).and_then(|store| Ok((Books::open(&store)?, store)));
    let (books, store) = opened.map_err(|error| format!("opening: {error:?}"))?;
    if store.tables().iter().any(|name| name == actors::PASSING) {
        store.drop_table(actors::PASSING).map_err(|error| format!("dropping: {error:?}"))?;
    }
    verify(&store, &books, ledger)?;
    let (desks, cast) = cast(plan, chance, &store);
    let world = World {
        store: RwLock::new(Some(store)),
        books,
        ledger,
        background,
        closing: AtomicBool::new(false),
        closed: AtomicBool::new(false),
        pool: Mutex::default(),
        passing: Mutex::new(None),
        passed: Default::default(),
        cuts: Default::default(),
        trouble: Mutex::new(None),
    };
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| Watchman::new(&desks, Instant::now()).guard(&desks, &done));
        std::thread::scope(|threads| {
            for (desk, actor) in desks.iter().skip(1).zip(cast) {
                let world = &world;
                threads.spawn(move || actors::work(actor, world, desk));
            }
            desks[0].begin("letting them work");
            let until = Instant::now() + plan.round;
            while Instant::now() < until && !world.is_over() {
                std::thread::sleep(Duration::from_millis(5));
                desks[0].begin("letting them work");
            }
            note_figures(&world, report);
            desks[0].begin("ending the store");
            end(&world, ending);
            desks[0].begin("waiting for all threads to end");
        });
        done.store(true, Ordering::Release);
    });
    ledger.settle();
    report.cuts += world.cuts.load(Ordering::Relaxed);
    report.tables += world.passed.load(Ordering::Relaxed);
    report.calls += desks.iter().map(Desk::steps).sum::<u64>();
    world.trouble.into_inner().map_or(Ok(()), Err)
}

/// The actors of a round, with a desk for each and the first one for the round itself.
#[allow(clippy::type_complexity)]
fn cast(plan: &Plan, chance: &mut Seeded, store: &Store) -> (Vec<Desk>, Vec<Box<dyn Actor + Send>>) {
    let mut desks = vec![Desk::new("the round")];
    let mut cast: Vec<Box<dyn Actor + Send>> = Vec::new();
    let mut add = |name: String, actor: Box<dyn Actor + Send>| {
        desks.push(Desk::new(name));
        cast.push(actor);
    };
    let mut own = || Seeded::new(chance.next_u64());
    for w in 0..plan.writers {
        add(format!("writer {w}"), Box::new(Writer::new(w, own(), store)));
        add(format!("single {w}"), Box::new(Single::new(w, own())));
    }
    for i in 0..2 {
        add(format!("reader {i}"), Box::new(Reader::new(own(), plan.writers)));
        add(format!("scanner {i}"), Box::new(Scanner::new(own())));
        add(format!("historian {i}"), Box::new(Historian::new(own())));
        add(format!("background_player {i}"), Box::new(BackgroundPlayer::new(own())));
    }
    add("builder".to_owned(), Box::new(Builder::new(own())));
    (desks, cast)
}

fn note_figures(world: &World<'_>, report: &mut Report) {
    if let Some(store) = &*world.store.read() {
        let stats = store.stats();
        report.flushes += stats.background.flushes;
        report.merges += stats.background.merges;
        report.stalls += stats.writes.stalls;
    }
}

/// Ends the store while all actors use it.
fn end(world: &World<'_>, ending: Ending) {
    world.closing.store(true, Ordering::SeqCst);
    let take = || world.store.read().clone();
    let note = |closed: Option<folddb::Result<()>>| {
        if let Some(Err(error)) = closed {
            world.note_trouble(format!("closing: {error:?}"));
        }
    };
    match ending {
        Ending::Close => note(take().map(Store::close)),
        Ending::CloseByTwo => std::thread::scope(|scope| {
            scope.spawn(|| note(take().map(Store::close)));
            note(take().map(Store::close));
        }),
        Ending::CloseWithoutFlush => note(take().map(Store::close_without_flush)),
        // An actor that uses it at this moment has the last handle, and drops it amid the others.
        Ending::Drop => drop(world.store.write().take()),
    }
    if !matches!(ending, Ending::Drop) {
        world.closed.store(true, Ordering::SeqCst);
    }
}

/// The store has exactly what was acknowledged.
fn verify(store: &Store, books: &Books, ledger: &Ledger) -> Result<(), String> {
    let cut = books.cut(&store.snapshot(), false).map_err(|error| format!("reading: {error:?}"))?;
    let done = |progress: &[actors::Progress]| progress.iter().map(|p| p.done()).collect::<Vec<u64>>();
    let (steps, singles) = (done(&ledger.steps), done(&ledger.singles));
    let found = cut.steps(steps.len() as u64)?;
    if found != steps {
        return Err(format!("after opening the steps are {found:?}; {steps:?} were acknowledged"));
    }
    let found: Vec<u64> =
        (0..steps.len() as u64).map(|w| cut.singles.get(&w).copied().unwrap_or(0)).collect();
    if found != singles || cut.hits != ledger.hits.done() {
        return Err(format!(
            "after opening the single values are {found:?}, {} hits; {singles:?}, {} hits were acknowledged",
            cut.hits,
            ledger.hits.done()
        ));
    }
    Ok(())
}
