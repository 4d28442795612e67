//! Random programs over the whole public interface agree with the model, at the present and at
//! every live snapshot, after every action.

use std::panic::{AssertUnwindSafe, catch_unwind};

use folddb::table_rules::Compression;
use folddb::{BackgroundWork, Durability, Expire, Keep};
use folddb_host::AppendMode;
use folddb_sim::play::{Disagreement, play};
use folddb_sim::program::{Action, Edge, FeedShape, Program, ScanShape, Settings, TableOp, What, shrink};
use folddb_sim::tables::{Kind, Order, Shape};

/// Actions of a program, beyond the creation of its tables.
const ACTIONS: usize = 60;

fn attempt(program: &Program) -> Result<(), Disagreement> {
    let dir = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory for temporary files");
    let played = catch_unwind(AssertUnwindSafe(|| play(program, &dir.path().join("store"))));
    played.unwrap_or_else(|_| Err(Disagreement { at: usize::MAX, message: "it panicked".to_owned() }))
}

fn check(seeds: impl Iterator<Item = u64>) {
    for seed in seeds {
        let program = Program::random(seed, ACTIONS);
        if let Err(first) = attempt(&program) {
            let least = shrink(&program, &mut |candidate| attempt(candidate).is_err());
            let why = attempt(&least).map_or_else(|why| why.to_string(), |()| "now it agrees".to_owned());
            panic!("seed {seed}: at first {first}; of less: {why}\n{least}");
        }
    }
}

/// Programs that have failed once.
#[test]
fn programs_that_failed_once_agree_with_the_model() {
    check([9, 339, 70172, 62120016].into_iter());
}

/// A merge that is broken off leaves two runs of one age. A later one takes one of them, so that
/// the two share keys, and the compaction of a range must keep them in their order. This is what is
/// left of the program of seed 339.
#[test]
fn a_range_is_compacted_where_runs_of_one_age_share_keys() {
    use Edge::{At, Beyond, Open};
    use What::{Delete, Fold, PutIfAbsent};
    let shape = |kind, order| Shape {
        kind,
        order,
        compression: Compression::None,
        bottom_compression: None,
        block_bytes: 512,
        filter_bits: 0,
        separate: None,
        in_files: false,
        keep: Keep::Latest,
        expire: Expire::Never,
        archives_log: false,
    };
    let range = |low, high| ScanShape { low, high, prefix: None, reverse: false, limit: None, chunk: None };
    let compact = |table, range| Action::CompactRange(table, range, None);
    let commit = |ops: &[(What, u8, u16)], durability| {
        let op = |&(what, key, len_bytes): &(What, u8, u16)| TableOp {
            table: 1,
            what,
            key,
            value: key,
            len_bytes,
        };
        Action::Commit(ops.iter().map(op).collect(), durability)
    };
    let long = 20_000;
    let strewn = [(Delete, 19, 3), (PutIfAbsent, 15, long), (PutIfAbsent, 16, 3), (PutIfAbsent, 4, long)];
    let actions = vec![
        Action::Create(0, shape(Kind::MaxU64, Order::ByLength)),
        Action::Create(1, shape(Kind::First, Order::Reversed)),
        commit(&[(PutIfAbsent, 1, long)], Durability::Process),
        Action::Reclaim,
        commit(&strewn, Durability::Process),
        compact(1, ScanShape { reverse: true, limit: Some(8), ..range(Beyond(18), Beyond(17)) }),
        commit(&[(PutIfAbsent, 24, long), (Fold, 11, 3)], Durability::Buffered),
        Action::CloseWithoutFlush,
        compact(1, range(Beyond(8), Open)),
        commit(&[(Delete, 4, 3), (Fold, 23, 9_000), (Delete, 2, 3)], Durability::Sync),
        compact(0, ScanShape { prefix: Some((19, 1)), reverse: true, ..range(Open, At(23)) }),
        Action::Step(1),
        compact(1, range(Beyond(7), Beyond(25))),
    ];
    let settings = Settings {
        background: BackgroundWork::Manual,
        append_mode: AppendMode::Written,
        merge_factor: 3,
        feed: FeedShape::default(),
    };
    attempt(&Program { settings, actions }).unwrap_or_else(|why| panic!("{why}"));
}

#[test]
fn random_programs_agree_with_the_model() {
    check(0..170);
}

#[test]
fn more_random_programs_agree_with_the_model() {
    check(1000..1150);
}
