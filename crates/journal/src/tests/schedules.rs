//! Appends, syncs, background work and closing, under many schedules: what a sync has promised
//! survives a power cut that loses everything unsynced, whoever led the sync and however many
//! segments it covered; and no thread waits forever.

use std::time::Duration;

use folddb_base::ErrorKind;
use folddb_host::sync::{Mutex, schedules, thread};

use super::world::World;
use super::*;

struct Scene {
    world: World,
    /// The journal until it is closed, and the next seq.
    journal: Mutex<(Option<Journal>, Seq)>,
    syncer: Arc<crate::JournalSync>,
}

impl Scene {
    fn new() -> Arc<Scene> {
        let world = World::default();
        let journal = start(&world.host());
        let syncer = journal.syncer();
        Arc::new(Scene { world, journal: Mutex::new((Some(journal), 1)), syncer })
    }

    /// Appends a long batch: a few of them fill a segment. None if the journal is closed.
    fn append(&self, handover: Handover) -> Option<(Seq, Lsn)> {
        let (journal, next_seq) = &mut *self.journal.lock();
        let (journal, seq) = (journal.as_mut()?, *next_seq);
        let lsn = journal.append(seq, 1, &payload(seq, 900), handover).unwrap();
        *next_seq += 1;
        Some((seq, lsn))
    }

    fn commit(&self, handover: Handover) {
        for _ in 0..2 {
            let Some((seq, lsn)) = self.append(handover) else { return };
            match self.syncer.sync_to(lsn) {
                Ok(()) => self.survives(seq),
                Err(error) => assert_eq!(error.kind(), ErrorKind::Closed),
            }
        }
    }

    /// A power cut in a copy of the world: everything unsynced is lost.
    fn survives(&self, seq: Seq) {
        let durable_lsn = self.syncer.durable_lsn();
        let after = self.world.after_power_cut(&mut || false);
        let (batches, outcome) = replay_from(&after.host(), dir(), 0, durable_lsn);
        outcome.unwrap();
        assert!(seqs(&batches).starts_with(&(1..=seq).collect::<Vec<_>>()), "{seq}: {:?}", seqs(&batches));
    }

    fn background(&self) {
        for second in 1..3 {
            if let Err(error) = self.syncer.background(Duration::from_secs(second)) {
                assert_eq!(error.kind(), ErrorKind::Closed);
            }
        }
    }

    fn close(&self) {
        let (journal, next_seq) = &mut *self.journal.lock();
        let (Some(journal), last) = (journal.take(), *next_seq - 1) else { return };
        journal.close().unwrap();
        self.survives(last);
    }
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
    scene.close();
}

fn processed(scene: &Scene) {
    scene.commit(Handover::Process);
}

fn buffered(scene: &Scene) {
    scene.commit(Handover::Buffered);
}

#[test]
fn what_a_sync_has_promised_is_on_the_disk() {
    schedules(1000, || together(&[processed, processed, buffered, Scene::background]));
}

#[test]
fn closing_in_the_middle_loses_nothing_and_lets_nobody_wait() {
    schedules(1000, || together(&[processed, buffered, Scene::background, Scene::close]));
}
