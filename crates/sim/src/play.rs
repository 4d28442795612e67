//! Plays a program on a store and on the model, and compares them after every action: every key by
//! `get`, a scan of every table, counts, at the present and at every live snapshot.
//!
//! A program is played on real files ([`play`]), or in a simulated world ([`play_in`]), where it
//! may also crash, in the middle of anything, and where calls may fail. What was acknowledged
//! before decides what a store must hold after that: `known.rs`.
//!
//! ```text
//!   clock     the time between actions                                parts    what a player has next to its store
//!   player    store, model, and what is known of both                 background    merges and flushes, step by step
//!   past      what tables keep of their past, and snapshots of it     index    indexes
//!   look      comparing everything, scans                             write    single ops, streams, batches
//!   cursors   scans that are left     transact   transactions         follow   the change feed, in the store and next to it
//!   load      bulk loads              tables     they come and go     secondary   the store read next to its writer
//!   process   the process ends, and the next one opens                wreck    the remains of a dead one
//!   others    a second store, a sealed one, rebuilt tables             strike   time, faults
//!   acting    action by action                                        crash    judging what every crash leaves
//!   neighbor  another store of the process, which shares its memory
//!   exchange  a part of another copy of the store
//! ```

mod clock;
mod heard;
mod neighbor;
mod parts;
mod player;
mod background;
mod past;
mod ask;
mod index;
mod look;
mod contents;
mod write;
mod cursors;
mod found;
mod transact;
mod follow;
mod load;
mod secondary;
mod wreck;
mod tables;
mod process;
mod exchange;
mod rot;
mod others;
mod strike;
mod acting;
mod crash;

use std::path::Path;
use std::sync::Arc;

use crate::play::clock::HeldClock;
use crate::play::player::Player;
use crate::program::Program;
use crate::world::SimDisk;

pub use crash::{Counts, Found, Judged, play_until_death};
pub use player::Disagreement;
pub use wreck::Wreck;

/// Plays a program in a directory that does not exist yet. Its crashes and faults are skipped.
///
/// # Errors
/// The first disagreement of store and model.
pub fn play(program: &Program, dir: &Path) -> Result<(), Disagreement> {
    Player::new(program.settings, dir, None).play_on_files(program)
}

/// As [`play`], with a clock that is read between the actions only: for machines whose clock jumps.
///
/// # Errors
/// The first disagreement of store and model.
pub fn play_by_held_clock(program: &Program, dir: &Path) -> Result<(), Disagreement> {
    let clock = Some(Arc::new(HeldClock::new()));
    Player { clock, ..Player::new(program.settings, dir, None) }.play_on_files(program)
}

/// Plays a program in a simulated world. The diary of `disk` continues in the world that it ends
/// in, which is returned.
///
/// # Errors
/// The first disagreement of store and model, with the end of the diary.
pub fn play_in(program: &Program, disk: &SimDisk) -> Result<SimDisk, Disagreement> {
    let mut player = Player::new(program.settings, &SimDisk::store_dir(), Some(disk.clone()));
    let played = player
        .create_store()
        .map_err(|message| Disagreement { at: 0, message })
        .and_then(|()| player.play(&program.actions));
    let disk = player.disk.clone().unwrap_or_else(|| disk.clone());
    let played = played.and_then(|()| player.ends(program));
    match played {
        Ok(()) => Ok(disk),
        Err(Disagreement { at, message }) => {
            Err(Disagreement { at, message: format!("{message}\nthe calls before it:\n{}", disk.diary(60)) })
        }
    }
}
