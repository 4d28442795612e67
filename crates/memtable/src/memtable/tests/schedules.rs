//! Applier, merger, readers and a snapshot, under many schedules: each reads exactly what was
//! published at that time.
//!
//! This is how the store uses a memtable (`folddb`: `commit.rs`, `snapshot.rs`, `merge_chunks`): a
//! batch is applied and published under the commit lock, a snapshot is registered under it; the
//! merger takes the published seq first, and then the boundaries below it.

use folddb_host::sync::{schedules, thread};

use super::*;

const KEYS: [&[u8]; 2] = [b"left", b"rite"];
const BATCHES: u64 = 4;

struct Scene {
    memtable: Memtable,
    published: AtomicU64,
    commit: Mutex<()>,
    live: Mutex<Vec<Seq>>,
}

impl Scene {
    fn new() -> Arc<Scene> {
        let tail = TailLimits { records_max: 3, ..TailLimits::default() };
        Arc::new(Scene {
            memtable: memtable(MemtableLimits { tail, merge_factor: 2, keeps_all: false }),
            published: AtomicU64::new(0),
            commit: Mutex::new(()),
            live: Mutex::new(Vec::new()),
        })
    }

    fn now(&self) -> Seq {
        self.published.load(Ordering::Acquire)
    }

    fn boundaries(&self, published: Seq) -> Vec<Seq> {
        let mut boundaries = self.live.lock().clone();
        boundaries.retain(|&boundary| boundary < published);
        boundaries.sort_unstable();
        boundaries.push(published);
        boundaries
    }

    /// Each batch joins the seq of its record to each key.
    fn apply(&self) {
        for batch in 0..BATCHES {
            let commit = self.commit.lock();
            let boundaries = self.boundaries(self.now());
            let mut writer = self.memtable.apply();
            for (key, seq) in KEYS.into_iter().zip(2 * batch + 1..) {
                writer.push(Record { key, seq, kind: OpKind::Fold, payload: &[seq as u8] }, &boundaries);
            }
            let has_full = writer.has_full();
            drop(writer);
            self.published.store(2 * batch + 2, Ordering::Release);
            drop(commit);
            if has_full {
                self.memtable.seal_full_tail();
            }
        }
        let _commit = self.commit.lock();
        self.memtable.freeze(&self.boundaries(self.now()));
    }

    /// The thread that filled a tail is late.
    fn seal(&self) {
        for _ in 0..3 {
            self.memtable.seal_full_tail();
        }
    }

    fn merge(&self) {
        for turn in 0..3 {
            let boundaries = self.boundaries(self.now());
            match turn {
                1 => self.memtable.merge_whole(&boundaries),
                _ => self.memtable.merge_step(&boundaries),
            };
        }
    }

    fn read(&self) {
        for _ in 0..2 {
            let before = self.now();
            let captured = self.memtable.capture(&self.published);
            let at = captured.published();
            assert!(at >= before);
            for (key, first) in KEYS.into_iter().zip(1..) {
                assert_eq!(joined(|visit| _ = captured.get(key, at, visit)), wanted(first, at));
            }
            let mut at = 0;
            let found = joined(|visit| {
                at = self.memtable.get(KEYS[1], ReadAt::Published(&self.published), visit).at;
            });
            assert_eq!(found, wanted(2, at));
            let view = self.memtable.at(ReadAt::Published(&self.published));
            for (key, first) in KEYS.into_iter().zip(1..) {
                let get = |visit: Visit<'_>| {
                    view.get(&KeyOrder::Bytewise, key, &mut |record| visit(record));
                };
                assert_eq!(joined(get), wanted(first, view.seq()));
            }
        }
    }

    fn snapshot(&self) {
        let commit = self.commit.lock();
        let at = self.now();
        self.live.lock().push(at);
        drop(commit);
        for _ in 0..2 {
            let captured = self.memtable.capture_at(ReadAt::Seq(at));
            assert_eq!(joined(|visit| _ = captured.get(KEYS[0], at, visit)), wanted(1, at));
            assert_eq!(joined(|visit| _ = self.memtable.get(KEYS[1], ReadAt::Seq(at), visit)), wanted(2, at));
        }
        let mut live = self.live.lock();
        let mine = live.iter().position(|&live| live == at).unwrap(); // others may have this seq
        live.swap_remove(mine);
    }
}

type Visit<'v> = &'v mut dyn FnMut(Record<'_>) -> ControlFlow<()>;

/// The payloads that are visited, oldest first.
fn joined(look: impl FnOnce(Visit<'_>)) -> Vec<u8> {
    let mut newest_first: Vec<Vec<u8>> = Vec::new();
    look(&mut |record| {
        newest_first.push(record.payload.to_vec());
        ControlFlow::Continue(())
    });
    newest_first.into_iter().rev().flatten().collect()
}

/// The seqs of a key up to `at`.
fn wanted(first: u8, at: Seq) -> Vec<u8> {
    (first..=at as u8).step_by(2).collect()
}

fn together(acts: &[fn(&Scene)]) {
    let scene = Scene::new();
    let threads: Vec<_> = acts
        .iter()
        .map(|act| {
            let (scene, act) = (Arc::clone(&scene), *act);
            thread::spawn(move || act(&scene))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(scene.memtable.counts().pushed, 2 * BATCHES);
}

#[test]
fn readers_see_what_is_published_whatever_is_sealed_and_merged() {
    schedules(2000, || together(&[Scene::apply, Scene::seal, Scene::merge, Scene::read]));
}

#[test]
fn a_snapshot_reads_the_same_whatever_is_folded_around_it() {
    schedules(2000, || together(&[Scene::apply, Scene::seal, Scene::merge, Scene::snapshot]));
}
