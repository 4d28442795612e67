//! Plays the actions of a program, one by one.

use folddb::Store;

use crate::compare::{Outcome, same};
use crate::play::player::{Disagreement, Player};
use crate::program::{Action, Program};
use crate::world::SimDisk;

impl Player {
    pub(super) fn play_on_files(mut self, program: &Program) -> Result<(), Disagreement> {
        self.create_store().map_err(|message| Disagreement { at: 0, message })?;
        self.play(&program.actions)?;
        self.ends(program)
    }

    /// [`Player::end`], as an outcome of the last action.
    pub(super) fn ends(self, program: &Program) -> Result<(), Disagreement> {
        self.end().map_err(|message| Disagreement { at: program.actions.len(), message })
    }

    pub(super) fn play(&mut self, actions: &[Action]) -> Result<(), Disagreement> {
        for (at, action) in actions.iter().enumerate() {
            if let Some(disk) = &self.disk {
                disk.note(format!("action {at}: {action:?}"));
            }
            let done = self.act(action).and_then(|()| self.after_action(action));
            let done = done.and_then(|()| self.neighbor.as_mut().map_or(Ok(()), |n| n.after_action(at)));
            done.map_err(|message| Disagreement { at, message: format!("{action:?}: {message}") })?;
        }
        Ok(())
    }

    /// Checks the result of an action: a dead process, or a store to compare.
    fn after_action(&mut self, action: &Action) -> Outcome {
        if self.disk.as_ref().is_some_and(SimDisk::is_dead) {
            return self.perish();
        }
        self.tell_time();
        self.let_go_of_ended()?;
        if !self.compares || action.is_look() {
            return Ok(());
        }
        match self.disk.clone() {
            Some(disk) => disk.aside(|| self.compare()),
            None => self.compare(),
        }
    }

    pub(super) fn act(&mut self, action: &Action) -> Outcome {
        self.tell_time();
        match action {
            Action::Create(slot, shape) => self.create(*slot, shape),
            Action::Drop(slot) => self.drop_table(*slot),
            Action::Alter(slot, how) => self.alter(*slot, *how),
            Action::Many(count) => self.many(*count),
            Action::Write(op) => self.write(op),
            Action::Commit(ops, durability) => self.commit(ops, *durability),
            Action::Snapshot => {
                let snapshot = self.store()?.snapshot();
                same("the seq of the snapshot", &u64::from(snapshot.seq()), &self.known.model.last_seq())?;
                self.snapshots.push(snapshot);
                Ok(())
            }
            Action::Release(index) => {
                if !self.snapshots.is_empty() {
                    self.snapshots.swap_remove(usize::from(*index) % self.snapshots.len());
                }
                Ok(())
            }
            Action::Flush => {
                let flushed = self.store()?.flush();
                self.makes_durable("flush", flushed)
            }
            Action::Step(steps) => self.steps(*steps),
            Action::Settle => {
                let settled = self.store()?.settle();
                self.makes_durable("settle", settled)
            }
            Action::Reclaim => {
                let reclaimed = self.store()?.reclaim().map(drop);
                self.makes_durable("reclaim", reclaimed)
            }
            Action::Compact(slot, stop_after) => self.compact(*slot, *stop_after),
            Action::CompactRange(slot, scan, stop_after) => self.compact_range(*slot, scan, *stop_after),
            Action::AddIndex(slot, stop_after) => self.add_index(*slot, *stop_after),
            Action::DropIndex(slot) => self.drop_index(*slot),
            Action::Past(slot, back) => self.take_past(*slot, *back),
            Action::Scan(slot, at, scan) => self.scan(*slot, *at, scan),
            Action::Sync => {
                let synced = self.store()?.sync();
                self.makes_durable("sync", synced)
            }
            Action::SyncLater(waits) => self.sync_later(*waits),
            Action::Close => self.close(Store::close),
            Action::CloseWithoutFlush => self.close(Store::close_without_flush),
            Action::Abandon => self.abandon(),
            Action::LookOnly => self.look_only(),
            Action::Background(work) => self.step_of(*work),
            Action::Follow(follow) => self.follow(follow),
            Action::FollowSecondary(follow) => self.follow_secondary(follow),
            Action::Transact(step) => self.transact(step),
            Action::Load(step) => self.load(step),
            Action::Cursor(step) => match self.disk.clone() {
                Some(disk) => disk.aside(|| self.cursor(step)),
                None => self.cursor(step),
            },
            Action::Other(other) => self.other(*other),
            Action::Clock(_, _)
            | Action::Crash(_)
            | Action::Break(_)
            | Action::Heal
            | Action::Rot(_, _, _) => match self.disk.clone() {
                Some(disk) => self.strike(&disk, action),
                None => Ok(()),
            },
        }
    }
}
