//! What a player does when a process ends: it lets the next one open the store, perhaps after
//! several failed attempts, and compares its findings with the promises.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use folddb_base::Seq;

use crate::chance::Seeded;
use crate::known::Stood;
use crate::play::player::{Disagreement, Player};
use crate::play::process::next_world;
use crate::play::wreck::Wreck;
use crate::program::Program;
use crate::world::SimDisk;

/// A world that a process finds, and what is known of the store in it.
pub struct Found(Wreck);

/// The worlds judged so far, and the results.
///
/// What a process finds decides what it does: the files with their names, their durable parts, the
/// clocks, and chance. The same happens to another process with the same findings and the same
/// history up to the last seq in the store. Only the promises may differ, so only these are
/// compared. The same holds for the visible result of the opening: the disk, and all rows of the
/// open store. So each world is opened once, and each result of openings is continued once.
///
/// Of the worlds skipped for that, one in `again_each` is played again, and must end in the same
/// world.
#[derive(Debug)]
pub struct Judged {
    found: HashMap<u64, Ending>,
    opened: HashMap<u64, Ending>,
    counts: Counts,
    again_each: u64,
}

/// How many crashes were judged, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// All of them.
    pub crashes: u64,
    /// A process found what another had found before.
    pub found_alike: u64,
    /// It opened the store, and then had the same as another.
    pub opened_alike: u64,
    /// How many of both were played once more.
    pub again: u64,
}

/// The state of a store when it was opened, and the world that it ended in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ending {
    stood: Stood,
    world: u64,
}

impl Judged {
    /// None so far. Of equal ones, one in `again_each` is played once more.
    pub fn again_each(again_each: u64) -> Judged {
        Judged {
            found: HashMap::new(),
            opened: HashMap::new(),
            counts: Counts::default(),
            again_each: again_each.max(1),
        }
    }

    /// How many there were.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether this one is played although it is equal to another.
    fn plays_again(&mut self) -> bool {
        let alike = self.counts.found_alike + self.counts.opened_alike;
        let plays = alike.is_multiple_of(self.again_each);
        self.counts.again += u64::from(plays);
        plays
    }
}

/// Plays a program up to the death of the process in `disk`, or to its end, and returns the wreck.
///
/// # Errors
/// A disagreement before that.
pub fn play_until_death(program: &Program, disk: &SimDisk) -> Result<Wreck, Disagreement> {
    let mut player = Player::new(program.settings, &SimDisk::store_dir(), Some(disk.clone()));
    (player.was_full, player.consumer.may_be_lost) = (disk.will_be_full(), disk.will_be_full());
    player.compares = false;
    let with_diary = |Disagreement { at, message }| Disagreement {
        at,
        message: format!("{message}\nthe calls before it:\n{}", disk.diary(60)),
    };
    player.create_store().map_err(|message| with_diary(Disagreement { at: 0, message }))?;
    for (at, action) in program.actions.iter().enumerate() {
        if disk.is_dead() {
            break;
        }
        disk.note(format!("action {at}: {action:?}"));
        let done = player.act(action);
        done.map_err(|message| with_diary(Disagreement { at, message: format!("{action:?}: {message}") }))?;
    }
    disk.die();
    Ok(player.wreck())
}

impl Wreck {
    /// What the next process finds, with a power cut or without.
    pub fn next(&self, power: bool, chance: &mut Seeded) -> Found {
        let mut known = self.known.clone();
        let disk = next_world(&self.disk, power, &mut known, chance);
        Found(Wreck { disk, known, ..self.clone() })
    }

    /// All inputs of the outcome for a store with this last seq, but for the world and the
    /// promises.
    pub(super) fn print(&self, last_seq: Seq) -> u64 {
        let of_wreck = || {
            let mut print = DefaultHasher::new();
            (self.known.print(last_seq), self.consumer.print()).hash(&mut print);
            (&self.dir, self.epoch_ms, self.is_created).hash(&mut print);
            print.finish()
        };
        *self.prints.lock().entry(last_seq).or_insert_with(of_wreck)
    }
}

impl Found {
    /// The wrecks of a process that dies before each of its changes while it opens the store.
    pub fn dying_in_opening(&self) -> Vec<Wreck> {
        let worlds = self.0.disk.before_changes(|disk| {
            let opened = self.player(disk).open_store();
            disk.die();
            drop(opened);
        });
        worlds.into_iter().map(|disk| Wreck { disk, ..self.0.clone() }).collect()
    }

    /// The process opens the store, and then `aftermath` is played, unless the result is known from
    /// another.
    ///
    /// # Errors
    /// Its findings are wrong, the aftermath goes wrong, or the result differs from that of the
    /// other.
    pub fn judge(&self, aftermath: &Program, judged: &mut Judged) -> Result<(), Disagreement> {
        judged.counts.crashes += 1;
        let world = self.0.disk.print();
        let ending = judged.found.get(&world).copied().filter(|ending| self.stands_like(ending));
        judged.counts.found_alike += u64::from(ending.is_some());
        if ending.is_some() && !judged.plays_again() {
            return Ok(());
        }
        let mut player = self.player(&self.0.disk.fork());
        let ended = self.play(&mut player, aftermath, ending, judged).map_err(|why| {
            let diary = player.disk.as_ref().map(|disk| disk.diary(80)).unwrap_or_default();
            Disagreement { message: format!("{}\nthe calls before it:\n{diary}", why.message), ..why }
        })?;
        judged.found.extend(ended.map(|ended| (world, ended)));
        Ok(())
    }

    /// Whether a process in that state knew the same, and the promises here are kept there.
    fn stands_like(&self, Ending { stood, .. }: &Ending) -> bool {
        self.0.known.is_kept_by(stood) && self.0.print(stood.last_seq) == stood.print
    }

    pub(super) fn player(&self, disk: &SimDisk) -> Player {
        let mut player = Player::new(self.0.settings, &self.0.dir, Some(disk.clone()));
        player.take_over(&self.0);
        player
    }

    /// The state of the store, and the end of the play; none where the store was created again, or
    /// its state was ambiguous. `known` is the earlier result, if there is one.
    fn play(
        &self,
        player: &mut Player,
        aftermath: &Program,
        known: Option<Ending>,
        judged: &mut Judged,
    ) -> Result<Option<Ending>, Disagreement> {
        let at_first = |message| Disagreement { at: 0, message };
        let store = match player.open_store() {
            Ok(store) => store,
            Err(error) => {
                player.not_opened(error).map_err(at_first)?;
                player.compares = false;
                return player.play(&aftermath.actions).map(|()| None);
            }
        };
        let contents = player.contents_of(&store).map_err(at_first)?;
        let opened = player.print_of(&store, &contents);
        let mut ending = known;
        if ending.is_none() {
            ending = judged.opened.get(&opened).copied().filter(|ending| self.stands_like(ending));
            judged.counts.opened_alike += u64::from(ending.is_some());
            if ending.is_some() && !judged.plays_again() {
                player.disk.iter().for_each(SimDisk::die);
                return Ok(ending);
            }
        }
        player.adopt_with(store, &contents).and_then(|()| player.check_files()).map_err(at_first)?;
        let stood = player.stood.take();
        player.compares = false;
        player.play(&aftermath.actions)?;
        player.disk.iter().for_each(SimDisk::pause_alike); // a cache may have saved reads
        let world = player.disk.as_ref().map_or(0, SimDisk::print);
        let played = stood.map(|(last_seq, end)| {
            let stood = Stood { last_seq, end, print: self.0.print(last_seq) };
            Ending { stood, world }
        });
        if ending.is_some() && ending != played {
            return Err(at_first(format!("what began alike ends as {played:?} and not as {ending:?}")));
        }
        judged.opened.extend(played.map(|played| (opened, played)));
        Ok(played)
    }
}
