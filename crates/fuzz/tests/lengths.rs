//! A huge number at every place of every seed, in every form in which formats hold lengths, with
//! checksums that are right: no decoder panics, and none takes memory by it. What is found in a
//! whole store that lies so is in `crates/sim/tests/lengths.rs`.

use folddb_base::bytes::put_varint;
use folddb_fuzz::{corpus, run, targets};

/// At most this many places of one input are tried: of the longer ones every so many.
const PLACES_MAX: usize = 512;

/// The forms that a length may have, from the shortest on: each is as much as it can say, or more
/// than any memory.
fn forms() -> Vec<Vec<u8>> {
    let varint = |number: u64| {
        let mut out = Vec::new();
        put_varint(&mut out, number);
        out
    };
    vec![
        u16::MAX.to_le_bytes().to_vec(),
        (1_u32 << 31).to_le_bytes().to_vec(),
        u32::MAX.to_le_bytes().to_vec(),
        (1_u64 << 40).to_le_bytes().to_vec(),
        u64::MAX.to_le_bytes().to_vec(),
        varint(1 << 40),
        varint(u64::MAX),
    ]
}

/// The input with a number at a place, and the checksums as they are then. A varint also takes the
/// place of one byte, so that what follows stands where it did, only later.
fn lies<'i>(input: &'i [u8], at: usize, seal: fn(&mut [u8])) -> impl Iterator<Item = Vec<u8>> + use<'i> {
    forms().into_iter().flat_map(move |said| {
        let end = (at + said.len()).min(input.len());
        let over = [&input[..at], &said[..end - at], &input[end..]].concat();
        let inside = [&input[..at], &said[..], &input[at + 1..]].concat();
        [over, inside].into_iter().map(move |mut input| {
            seal(&mut input);
            input
        })
    })
}

#[test]
fn a_huge_number_at_any_place_takes_no_memory() {
    let thread = std::thread::Builder::new().stack_size(run::STACK_BYTES);
    let done = thread.spawn(|| {
        let mut wrong = Vec::new();
        for target in targets::all() {
            let seeds = (target.seeds)();
            let failed = seeds.iter().find_map(|seed| {
                let step = seed.len().div_ceil(PLACES_MAX).max(1);
                (0..seed.len()).step_by(step).find_map(|at| {
                    lies(seed, at, target.seal).find_map(|input| {
                        let why = run::try_input(&target, &input).err()?;
                        let path = corpus::failing_path(&target, &input);
                        let saved = corpus::save(&path, &input);
                        Some(format!(
                            "{}, at {at}: {why}; saved ({saved:?}): {}",
                            target.name,
                            path.display()
                        ))
                    })
                })
            });
            wrong.extend(failed);
        }
        wrong
    });
    let wrong = done.expect("a thread").join().expect("targets do not end the thread");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
