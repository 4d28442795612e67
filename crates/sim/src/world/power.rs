//! The state of a machine after a power cut.
//!
//! - **Sectors** (512 bytes) that were not synced are, each on its own, old, new, torn (new up to
//!   some byte, then old), or garbage. Garbage never touches a byte that old and new agree on: a
//!   disk that ruins synced bytes while it writes their neighbors (one without *powersafe
//!   overwrite*) can break any promise, and none is made for it.
//! - **Mapped files**: each page (4 KiB) may have been written back at any time before, so its new
//!   bytes end at a byte of their own; of that, each sector again is old, new, torn or garbage.
//! - **Lengths** are old, new, or between. Where the new length got there and the bytes did not,
//!   there are zeros, or garbage.
//! - **Names**: each change of a directory since it was last synced (create, rename, unlink, link)
//!   got there or not, on its own. A file whose name did not get there is gone; one whose removal
//!   did not is back.
//!
//! How much of all that is lost differs from cut to cut: everything, nothing, or each by its own
//! chance.

use std::collections::{BTreeMap, BTreeSet};

use super::image::{Image, PAGE_BYTES};
use super::machine::{Dir, DirId, File, FileId, Machine, Node, ROOT, SECTOR_BYTES};
use crate::chance::Seeded;

/// How a power cut treats unsynced data.
#[derive(Clone, Copy, Debug)]
struct Temper {
    /// How many of 16 sectors reached the disk.
    sectors_kept: u64,
    /// How many more of 16 sectors are torn or garbage.
    sectors_hurt: u64,
    /// How many of 16 changes of names reached the disk.
    names_kept: u64,
}

impl Temper {
    fn of(chance: &mut Seeded) -> Temper {
        let (sectors_kept, sectors_hurt) = *chance.pick(&[(0, 0), (16, 0), (8, 4), (4, 8), (13, 3), (8, 0)]);
        Temper { sectors_kept, sectors_hurt, names_kept: *chance.pick(&[0, 16, 8, 8, 3, 13]) }
    }
}

/// The fate of a sector.
enum Fate {
    Old,
    New,
    Torn,
    Garbage,
}

fn fate(temper: &Temper, chance: &mut Seeded) -> Fate {
    let drawn = chance.below(16);
    if drawn < temper.sectors_kept {
        return Fate::New;
    }
    match drawn < temper.sectors_kept + temper.sectors_hurt {
        true if chance.one_in(2) => Fate::Torn,
        true => Fate::Garbage,
        false => Fate::Old,
    }
}

/// Cuts the power; everything that survives is durable.
pub(crate) fn cut_power(machine: &mut Machine, chance: &mut Seeded) {
    let temper = Temper::of(chance);
    if machine.begins_alike {
        drop_nameless(machine); // what was in a directory that is gone takes no part
    }
    for dir in machine.dirs.values_mut() {
        let mut names = dir.durable.clone();
        for change in &dir.pending {
            if chance.below(16) < temper.names_kept {
                change.apply(&mut names);
            }
        }
        *dir = Dir { now: names.clone(), durable: names, pending: Vec::new() };
    }
    drop_nameless(machine);
    for file in machine.files.values_mut() {
        // Where worlds are compared, the fate of one file does not affect that of the next.
        let own = &mut Seeded::new(if machine.begins_alike { chance.next_u64() } else { 0 });
        let image = left_of(file, &temper, if machine.begins_alike { own } else { &mut *chance });
        *file = File {
            now: image.clone(),
            durable: image,
            dirty: BTreeSet::new(),
            lost: BTreeSet::new(),
            is_mapped: false,
            reserved_bytes: 0,
            given_up: file.given_up,
        };
    }
}

/// Forgets files and directories that no name leads to.
pub(crate) fn drop_nameless(machine: &mut Machine) {
    let (dirs, files) = named(machine);
    machine.dirs.retain(|id, _| dirs.contains(id));
    machine.files.retain(|id, _| files.contains(id));
}

/// The directories and files that a name leads to, or may lead to after a crash.
pub(crate) fn named(machine: &Machine) -> (BTreeSet<DirId>, BTreeSet<FileId>) {
    let (mut dirs, mut files): (BTreeSet<DirId>, BTreeSet<FileId>) = (BTreeSet::new(), BTreeSet::new());
    let mut ahead = vec![ROOT];
    while let Some(id) = ahead.pop() {
        if !dirs.insert(id) {
            continue;
        }
        let Some(dir) = machine.dirs.get(&id) else { continue };
        // A lost name may come back as long as its loss is not durable.
        for node in dir.now.values().chain(dir.durable.values()).chain(dir.pending.iter().filter_map(put_by))
        {
            match node {
                Node::File(id) => drop(files.insert(*id)),
                Node::Dir(id) => ahead.push(*id),
            }
        }
    }
    (dirs, files)
}

fn put_by(change: &super::machine::NameChange) -> Option<&Node> {
    use super::machine::NameChange;
    match change {
        NameChange::Put(_, node) | NameChange::Rename(_, _, node) => Some(node),
        NameChange::Remove(_) => None,
    }
}

fn left_of(file: &File, temper: &Temper, chance: &mut Seeded) -> Image {
    let mut image = file.durable.clone();
    let mut by_page: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for &sector in &file.dirty {
        by_page.entry(sector * SECTOR_BYTES / PAGE_BYTES).or_default().push(sector);
    }
    for (page, sectors) in by_page {
        // The end of the page's new bytes when it was written back.
        let new_until = if file.is_mapped && !chance.one_in(3) {
            page * PAGE_BYTES + chance.below(PAGE_BYTES + 1)
        } else {
            u64::MAX
        };
        for sector in sectors {
            settle_sector(file, &mut image, sector, new_until, &fate(temper, chance), chance);
        }
    }
    image.set_len(length(file, temper, chance));
    image
}

fn settle_sector(
    file: &File,
    image: &mut Image,
    sector: u64,
    new_until: u64,
    fate: &Fate,
    chance: &mut Seeded,
) {
    let at = sector * SECTOR_BYTES;
    let (mut old, mut new) = ([0; SECTOR_BYTES as usize], [0; SECTOR_BYTES as usize]);
    file.durable.read(at, &mut old);
    file.now.read(at, &mut new);
    let torn_at = at + chance.below(SECTOR_BYTES);
    let new_until = match fate {
        Fate::Old => return,
        Fate::Torn => new_until.min(torn_at),
        Fate::New | Fate::Garbage => new_until,
    };
    let mut left = old;
    for index in 0..left.len() {
        let place = at + index as u64;
        if matches!(fate, Fate::Garbage) && old[index] != new[index] {
            left[index] = chance.next_u64() as u8;
        } else if place < new_until {
            left[index] = new[index];
        }
    }
    image.write(at, &left);
}

fn length(file: &File, temper: &Temper, chance: &mut Seeded) -> u64 {
    let (old, new) = (file.durable.len_bytes(), file.now.len_bytes());
    let (low, high) = (old.min(new), old.max(new));
    let keeps = chance.below(16) < temper.sectors_kept;
    match chance.below(3) {
        0 if low < high && temper.sectors_hurt > 0 => low + chance.below(high - low),
        _ if keeps => new,
        _ => old,
    }
}
