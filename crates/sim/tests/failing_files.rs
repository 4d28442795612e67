//! Calls of the operating system that fail: a failed write or sync of the journal poisons the
//! store, which then only reads; reopening heals it; and whichever single call fails, nothing
//! acknowledged is lost, no batch is torn, and nothing panics.

use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use folddb::maintenance::SyncOptions;
use folddb::{BackgroundJob, BackgroundWork, Durability, ErrorKind, Options, Rules, Store, SyncHandle};
use folddb_host::Host;
use folddb_sim::faulty_files::{Call, EROFS, Fault, FaultyFiles};
use folddb_sim::numbered::Numbered;

const ENOSPC: i32 = 28;

fn options(files: &FaultyFiles) -> Options {
    Options::default()
        .host(Host { files: Arc::new(files.clone()), ..Host::real() })
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(1 << 20).part_bytes(64 << 10).merge_factor(2))
        .disk_reserve_bytes(0)
        .background(BackgroundWork::Manual)
}

fn faulty() -> FaultyFiles {
    FaultyFiles::new(Host::real().files)
}

fn commit(store: &Store, numbered: &Numbered, i: u64, durability: Durability) -> folddb::Result<folddb::Seq> {
    let mut batch = store.batch();
    numbered.fill(&mut batch, i);
    batch.commit(durability)
}

/// The state of a store after a call that must poison it. The commit during that call is refused
/// and never visible; or it is committed, not durable, and visible.
fn assert_poisoned_until_reopened(calls: &[Call], half: bool, kind: ErrorKind) {
    let dir = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let files = faulty();
    let path = dir.path().join("store");
    let store = Store::create(&path, options(&files)).expect("the store is created");
    let numbered = Numbered::open(&store).expect("the tables are created");
    for i in 1..=10 {
        commit(&store, &numbered, i, Durability::Sync).expect("the world is whole");
    }
    files.break_on(Fault { half, ..Fault::on(calls) });
    let refused = commit(&store, &numbered, 11, Durability::Sync).expect_err("the call fails");
    assert_eq!(refused.kind(), kind, "{refused}");
    let last = if kind == ErrorKind::NotDurable { 11 } else { 10 };
    assert!(refused.message().contains("os error 5"), "it names the cause: {refused}");
    files.heal();

    let later = commit(&store, &numbered, 12, Durability::Process).expect_err("the store is poisoned");
    assert_eq!(later.kind(), ErrorKind::Poisoned, "{later}");
    assert!(store.stats().poisoned_by.is_some());
    store.flush().expect_err("nothing is written any more");
    assert_eq!(numbered.last(), Ok(last), "reads go on");
    drop((numbered, store));

    let store = Store::open(&path, options(&files)).expect("it opens again");
    let numbered = Numbered::open(&store).expect("the tables are there");
    let found = numbered.last().expect("it holds whole batches");
    assert_eq!(found, last);
    commit(&store, &numbered, found + 1, Durability::Sync).expect("it writes again");
    assert_eq!(numbered.last(), Ok(found + 1));
}

#[test]
fn a_failed_sync_of_the_journal_poisons_until_reopened() {
    assert_poisoned_until_reopened(&[Call::AppendSync], false, ErrorKind::NotDurable);
}

/// Appends through a map succeed all the same, so nothing but the question finds out.
#[test]
fn a_file_system_that_turns_read_only_is_noticed() {
    assert_noticed(EROFS, "Read-only file system");
}

#[test]
fn a_file_system_that_was_shut_down_is_noticed() {
    const EIO: i32 = 5;
    assert_noticed(EIO, "Input/output error");
}

fn assert_noticed(os_error: i32, cause: &str) {
    let dir = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let (files, path) = (faulty(), dir.path().join("store"));
    let store = Store::create(&path, options(&files)).expect("the store is created");
    let numbered = Numbered::open(&store).expect("the tables are created");
    commit(&store, &numbered, 1, Durability::Process).expect("the world is whole");
    store.background_step_of(BackgroundJob::Log).expect("the world is whole");
    files.break_on(Fault { os_error, ..Fault::on(&[Call::CheckWritable]) });
    commit(&store, &numbered, 2, Durability::Process).expect("nobody has asked yet");

    let _ = store.background_step_of(BackgroundJob::Log);
    let refused = commit(&store, &numbered, 3, Durability::Process).expect_err("it is noticed");
    assert_eq!(refused.kind(), ErrorKind::Poisoned, "{refused}");
    let told = refused.message().contains(cause);
    assert!(told && refused.message().contains("store"), "it names the cause and the place: {refused}");
    assert_eq!(numbered.last(), Ok(2), "reads go on");
    drop((numbered, store));
    files.heal();
    let store = Store::open(&path, options(&files)).expect("it opens again");
    let numbered = Numbered::open(&store).expect("the tables are there");
    commit(&store, &numbered, 3, Durability::Process).expect("it writes again");
}

#[test]
fn a_question_that_fails_for_another_reason_says_nothing_about_the_file_system() {
    let dir = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let files = faulty();
    let store = Store::create(dir.path().join("store"), options(&files)).expect("the store is created");
    let numbered = Numbered::open(&store).expect("the tables are created");
    const EMFILE: i32 = 24;
    files.break_on(Fault { os_error: EMFILE, ..Fault::on(&[Call::CheckWritable]) });
    store.background_step_of(BackgroundJob::Log).expect("nothing of the log has failed");
    commit(&store, &numbered, 1, Durability::Process).expect("the store writes on");
}

#[test]
fn a_failed_append_to_the_journal_poisons_until_reopened() {
    assert_poisoned_until_reopened(&[Call::Append], false, ErrorKind::Poisoned);
}

#[test]
fn an_append_to_the_journal_that_tears_poisons_until_reopened() {
    assert_poisoned_until_reopened(&[Call::Append], true, ErrorKind::Poisoned);
}

/// Handles that wait by a waker, by a thread, and one that is polled only afterwards.
#[test]
fn every_handle_of_a_sync_that_has_failed_says_so() {
    let dir = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let files = faulty();
    let store = Store::create(dir.path().join("store"), options(&files)).expect("it is created");
    let table = store.table("t", Rules::sorted::<u64, u64>()).expect("it is created");
    table.put(&1, &1).expect("the world is whole");
    let handle = || store.sync_later().expect("the world is whole");
    let (mut waiting, blocking, mut late) = (handle(), handle(), handle());
    let poll = |handle: &mut SyncHandle| {
        let polled = Pin::new(handle).poll(&mut Context::from_waker(Waker::noop()));
        polled.map(|done| done.map_err(|error| error.kind()))
    };
    assert!(poll(&mut waiting).is_pending());
    files.break_on(Fault::on(&[Call::AppendSync]));
    store.background_step_of(BackgroundJob::Log).expect_err("the sync fails");
    assert_eq!(poll(&mut waiting), Poll::Ready(Err(ErrorKind::NotDurable)));
    assert_eq!(poll(&mut late), Poll::Ready(Err(ErrorKind::NotDurable)));
    assert_eq!(blocking.wait().map_err(|error| error.kind()), Err(ErrorKind::NotDurable));
    assert_eq!(table.get(&1).expect("reads go on"), Some(1), "it is written and visible");
    assert_eq!(store.sync_later().map(drop).map_err(|error| error.kind()), Err(ErrorKind::Poisoned));
}

#[test]
fn synchronize_reports_a_table_that_is_equal_but_not_durable() {
    let dir = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let files = faulty();
    let store = Store::create(dir.path().join("store"), options(&files)).expect("it is created");
    let table = |name| store.table(name, Rules::sorted::<u64, u64>()).expect("it is created");
    let (to, from) = (table("to"), table("from"));
    from.put(&1, &1).expect("the world is whole");
    store.sync().expect("the world is whole");
    files.break_on(Fault::on(&[Call::AppendSync]));
    let scans = (to.as_bytes().scan(), from.as_bytes().scan());
    let error = store.synchronize(scans.0, scans.1, &SyncOptions::default()).expect_err("the sync fails");
    assert_eq!(error.kind(), ErrorKind::NotDurable, "{error}");
    assert!(error.message().contains("os error 5"), "it names the cause: {error}");
    assert_eq!(to.get(&1).expect("reads go on"), Some(1), "it is written and visible");
    // Nothing is written, so nothing can be in doubt; but a poisoned store says so.
    let scans = (to.as_bytes().scan(), from.as_bytes().scan());
    let error = store.synchronize(scans.0, scans.1, &SyncOptions::default()).expect_err("it is poisoned");
    assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
}

/// How a run of the workload ended.
struct Ended {
    /// Batches acknowledged.
    acknowledged: u64,
    /// Batches whose commit failed for another reason than lack of space: at most one, which may be
    /// there or not.
    in_doubt: u64,
}

/// Writes, flushes, merges, snapshots, reopens; stops at the first failure that is not about space,
/// which is tried again. Errors other than those of commits do not count here: they only must not
/// lose or invent batches.
fn workload(path: &Path, files: &FaultyFiles, ended: &mut Ended) -> folddb::Result<()> {
    for _ in 0..3 {
        let store = Store::open(path, options(files))?;
        let numbered = Numbered::open(&store)?;
        let mut past = None;
        for _ in 0..12 {
            let i = ended.acknowledged + 1;
            let durability = if i.is_multiple_of(3) { Durability::Sync } else { Durability::Process };
            let mut committed = commit(&store, &numbered, i, durability);
            if committed.as_ref().is_err_and(|error| error.kind() == ErrorKind::NoSpace) {
                committed = commit(&store, &numbered, i, durability);
            }
            committed.inspect_err(|_| ended.in_doubt = 1)?;
            ended.acknowledged = i;
            if i.is_multiple_of(4) {
                store.flush()?;
                past = Some(store.snapshot());
            }
            store.background_step()?;
        }
        store.bytes_table("log")?.compact()?;
        drop(past);
        store.background_step()?;
        if ended.acknowledged.is_multiple_of(24) {
            store.close()?;
        }
    }
    Ok(())
}

/// Fails one call, runs the workload, and says what is wrong with the store that the next opening
/// finds.
fn attempt(fault: Option<Fault>) -> Result<u64, String> {
    let dir = tempfile::tempdir_in(folddb_sim::memory_dir()).map_err(|error| error.to_string())?;
    let path = dir.path().join("store");
    let files = faulty();
    drop(Store::create(&path, options(&files)).map_err(|error| error.to_string())?);
    let before = files.calls();
    if let Some(fault) = fault {
        files.break_on(fault);
    }
    let mut ended = Ended { acknowledged: 0, in_doubt: 0 };
    let outcome = workload(&path, &files, &mut ended);
    let (calls, failed) = (files.calls() - before, files.failed());
    files.heal();
    let told = |what: String| format!("{failed:?} failed; the workload ended with {outcome:?}; then {what}");
    let store =
        Store::open(&path, options(&files)).map_err(|error| told(format!("it does not open: {error:?}")))?;
    let numbered =
        Numbered::open(&store).map_err(|error| told(format!("its tables do not open: {error:?}")))?;
    let last = numbered.last().map_err(told)?;
    if last < ended.acknowledged || last > ended.acknowledged + ended.in_doubt {
        let Ended { acknowledged, in_doubt } = ended;
        return Err(told(format!(
            "batch {last} is the last, with {acknowledged} acknowledged and {in_doubt} in doubt"
        )));
    }
    commit(&store, &numbered, last + 1, Durability::Sync)
        .map_err(|error| told(format!("no write: {error:?}")))?;
    Ok(calls)
}

/// The calls of the workload fail once: each `step`-th, in a run of its own.
fn sweep(fault: &Fault, step: usize) {
    let calls = attempt(None).expect("nothing fails");
    assert!(calls > 200, "{calls} calls are few");
    let mut wrong = Vec::new();
    for n in (0..calls).step_by(step) {
        if let Err(why) = attempt(Some(Fault { skip: n, times: 1, ..fault.clone() })) {
            wrong.push(format!("call {n} of {calls}: {why}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {calls} calls:\n{}", wrong.len(), wrong.join("\n"));
}

const WRITES: [Call; 2] = [Call::Write, Call::Append];

#[test]
fn whichever_call_fails_nothing_acknowledged_is_lost() {
    sweep(&Fault::on(&[]), 5);
}

#[test]
fn whichever_write_tears_nothing_acknowledged_is_lost() {
    sweep(&Fault { half: true, ..Fault::on(&WRITES) }, 7);
}

#[test]
fn whichever_call_finds_no_space_nothing_acknowledged_is_lost() {
    sweep(&Fault { os_error: ENOSPC, ..Fault::on(&[]) }, 7);
}

#[test]
#[ignore = "takes minutes: every single call, where the tests above take samples"]
fn every_single_call_may_fail() {
    sweep(&Fault::on(&[]), 1);
    sweep(&Fault { half: true, ..Fault::on(&WRITES) }, 1);
    sweep(&Fault { os_error: ENOSPC, ..Fault::on(&[]) }, 1);
}
