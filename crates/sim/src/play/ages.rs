//! How old the snapshots of a player become, and how old its deletes may: that follows from its settings, so that it takes no draw from any seed.
//!
//! ```text
//!   merge factor even, mapped     files of their own as soon as they can
//!   merge factor even, written    in a simulated world after 2 ms of it, and an end after 20 ms; else as above
//!   merge factor odd, written     an end: in a simulated world after 5 ms of it, else at the next step of background work
//!   merge factor odd, mapped      boundaries as long as they live
//!   merge factor odd              deletes of 3 ms in a simulated world, else of 1, are merged with what they delete
//! ```

use std::time::Duration;

use folddb::{AppendMode, BackgroundWork, Options, Snapshot};

use super::{Outcome, Player};

impl Player {
    /// These options, with the ages that this player gives to snapshots and deletes.
    pub(super) fn with_ages(&self, options: Options) -> Options {
        let is_even = self.settings.merge_factor.is_multiple_of(2);
        let is_written = self.settings.append_mode == AppendMode::Written;
        let is_sim = self.disk.is_some();
        let ms = |in_sim, else_ms| Duration::from_millis(if is_sim { in_sim } else { else_ms });
        let options = options.snapshot_files_after(match (is_even, is_written) {
            (true, false) => Duration::ZERO,
            (true, true) => ms(2, 0),
            (false, _) => Duration::from_secs(60),
        });
        let options = options.deletes_age_max((!is_even).then(|| ms(3, 1)));
        options.snapshot_age_max(match (is_even, is_written) {
            // In threads of its own background work might end one while it is compared.
            _ if self.settings.background == BackgroundWork::Threads => None,
            (true, true) if is_sim => Some(ms(20, 0)),
            (false, true) => Some(ms(5, 0)),
            _ => None,
        })
    }

    /// Lets go of the snapshots that have ended for their age.
    pub(super) fn let_go_of_ended(&mut self) -> Outcome {
        let before = self.snapshots.len();
        self.snapshots.retain(|snapshot| !Snapshot::has_ended(snapshot));
        self.pasts.retain(|past| !past.has_ended());
        let may_end = self.settings.append_mode == AppendMode::Written;
        match before == self.snapshots.len() || may_end {
            true => Ok(()),
            false => Err("a snapshot has ended that may live".to_owned()),
        }
    }
}
