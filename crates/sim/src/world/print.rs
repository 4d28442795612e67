//! A number for a world: equal where the next process finds the same state.
//!
//! It covers all that decides this state: the disk, the page cache, the clocks, and the next random
//! numbers. Earlier events count only by their results.
//!
//! Values are found by their places, and a segment of them is only ever refused for being too
//! short: whether a cut of the zeros after them has got to the disk is not in it. A power cut
//! decides that for each of dozens of segments.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::machine::{File, Machine};
use super::power;

/// See the top of this file.
pub(crate) fn of_machine(machine: &Machine) -> u64 {
    let mut print = DefaultHasher::new();
    let (dirs, files) = power::named(machine);
    machine.dirs.iter().filter(|(id, _)| dirs.contains(id)).for_each(|dir| dir.hash(&mut print));
    for (id, file) in machine.files.iter().filter(|(id, _)| files.contains(id)) {
        (id, of_file(file)).hash(&mut print);
        machine.capacity_bytes.inspect(|_| file.space_bytes().hash(&mut print));
    }
    (&machine.chance, &machine.luck, machine.clock_ns, machine.wall_s).hash(&mut print);
    (machine.has_lost, machine.capacity_bytes).hash(&mut print);
    print.finish()
}

/// All that decides the results of reads and power cuts.
fn of_file(file: &File) -> u64 {
    let mut print = DefaultHasher::new();
    (file.now.print(file.given_up), file.durable.print(file.given_up)).hash(&mut print);
    (&file.dirty, &file.lost, file.is_mapped && !file.dirty.is_empty()).hash(&mut print);
    print.finish()
}
