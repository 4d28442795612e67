//! Actions in a simulated world only: time passes, processes die, calls fail, bytes rot.

use std::time::Duration;

use crate::compare::Outcome;
use crate::faulty_files::{Call, EDQUOT, ENOSPC, Fault};
use crate::play::player::Player;
use crate::program::{Action, Breakage, Broken};
use crate::world::SimDisk;

impl Player {
    /// Actions in a simulated world only.
    pub(super) fn strike(&mut self, disk: &SimDisk, action: &Action) -> Outcome {
        match action {
            Action::Clock(millis, wall_s) => {
                disk.advance(Duration::from_millis(u64::from(*millis)));
                disk.jump_wall(i64::from(*wall_s));
                Ok(())
            }
            Action::Crash(crash) => {
                self.pending = Some(crash.clone());
                match crash.after {
                    0 => disk.die(),
                    changes => disk.die_after(u64::from(changes)),
                }
                Ok(())
            }
            Action::Break(breakage) => {
                self.break_something(disk, breakage);
                Ok(())
            }
            Action::Heal => self.heal(disk),
            Action::Rot(file, place, bits) => self.rot(disk, *file, *place, *bits),
            _ => Ok(()),
        }
    }

    fn break_something(&mut self, disk: &SimDisk, breakage: &Breakage) {
        let Breakage { what, skip, times } = *breakage;
        let on =
            |calls: &[Call]| Fault { skip: u64::from(skip), times: u64::from(times), ..Fault::on(calls) };
        const WRITES: [Call; 2] = [Call::Write, Call::Append];
        const NAMES: [Call; 5] =
            [Call::Create, Call::CreateAppend, Call::Remove, Call::SyncDir, Call::Rename];
        let fault = match what {
            Broken::AnyCall => on(&[]),
            Broken::Write => on(&WRITES),
            Broken::TornWrite => Fault { half: true, ..on(&WRITES) },
            Broken::Sync if skip % 4 == 3 => {
                // Blocks may be allocated only when they are written: on NFS, in a thin volume.
                (self.was_full, self.consumer.may_be_lost) = (true, true);
                let os_error = if skip % 8 == 3 { ENOSPC } else { EDQUOT };
                Fault { os_error, ..on(&[Call::WriteSync, Call::AppendSync]) }
            }
            Broken::Sync => on(&[Call::WriteSync, Call::AppendSync]),
            Broken::Name => on(&NAMES),
            Broken::Read => on(&[Call::Read, Call::Open, Call::List, Call::Len]),
            Broken::NoSpace => {
                (self.was_full, self.consumer.may_be_lost) = (true, true);
                // Without preallocation, a file system may have no space for an append either; a
                // quota has an error of its own.
                const GROWS: [Call; 4] = [Call::Write, Call::Append, Call::Create, Call::CreateAppend];
                let os_error = if skip % 2 == 0 { ENOSPC } else { EDQUOT };
                Fault { os_error, half: skip % 4 < 2, ..on(&GROWS) }
            }
            Broken::FullDisk => {
                (self.was_full, self.consumer.may_be_lost) = (true, true);
                return disk.leave_free(Some(u64::from(skip) * (16 << 10)));
            }
            Broken::Slow => return disk.slow_down(4, Duration::from_millis(10 * u64::from(times))),
        };
        disk.break_on(fault);
    }

    /// Ends all faults, and reopens a store that no longer writes.
    fn heal(&mut self, disk: &SimDisk) -> Outcome {
        disk.heal();
        if self.store()?.stats().poisoned_by.is_some() { self.abandon() } else { Ok(()) }
    }
}
