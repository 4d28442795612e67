//! The read path of several keys at once: all as of one moment.
//!
//! Keys are looked up in the order of the table, each once, so that neighbors read a shared block
//! while it is in memory. Reads that wait for a device overlap (`groups.rs`). Each value is passed
//! on with the place of its key among the requested ones, in any order.
//!
//! Called by `folddb`'s readers.

use std::ops::Range;

use folddb_base::Result;

use crate::read::get::{self, TakeValue};
use crate::read::groups::read_in_groups;
use crate::read::hashed;
use crate::state::catalog::TableCore;
use crate::state::clock;
use crate::state::engine::Engine;
use crate::state::snapshots::{At, Held, HeldFor};

/// Passes the value of each key, as a reader at `at` (or now) sees it, to `take`, with the key's
/// place among `keys`.
///
/// # Errors
/// The error of [`get::get`] for the first failing key, in the order of the table; the error of
/// `take`.
pub fn get_many(
    engine: &Engine,
    table: &TableCore,
    keys: &[Vec<u8>],
    at: Option<At>,
    take: &mut TakeValue<'_>,
) -> Result<()> {
    let places = lookup_order(table, keys);
    let lookups: Vec<&[usize]> = places.chunk_by(|&a, &b| keys[a] == keys[b]).collect();
    let key_of = |places: &[usize]| &keys[places[0]][..];
    let mut take_all =
        |places: &[usize], value: Option<&[u8]>| places.iter().try_for_each(|&place| take(place, value));
    if at.is_none() && table.hashed.is_none() {
        let in_order: Vec<&[u8]> = lookups.iter().map(|places| key_of(places)).collect();
        return get::get_each(engine, table, &in_order, &mut |number, value| {
            take_all(lookups[number], value)
        });
    }
    let held = if at.is_none() && keys.len() > 1 { Some(hold_now(engine)) } else { None };
    let at = at.or(held.as_ref().map(|held| held.at));
    // A snapshot may have files of its own; those of the present are mostly the same.
    let ask = |group: Range<usize>| {
        let keys: Vec<&[u8]> = lookups[group].iter().map(|places| key_of(places)).collect();
        match &table.hashed {
            Some(hashed) => keys.iter().for_each(|key| hashed::ask_for(engine, hashed, key, at)),
            None => get::ask_for_blocks(table, &table.view(), &keys),
        }
    };
    read_in_groups(engine, lookups.len(), &ask, &mut |number| {
        let places = lookups[number];
        get::get(engine, table, key_of(places), at, |value| take_all(places, value))
    })
}

/// The places of the keys, in the order of the lookups; those of equal keys are adjacent.
fn lookup_order(table: &TableCore, keys: &[Vec<u8>]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..keys.len()).collect();
    match table.hashed {
        Some(_) => places.sort_by(|&a, &b| keys[a].cmp(&keys[b])),
        None => places.sort_by(|&a, &b| table.rules.order.compare(&keys[a], &keys[b])),
    }
    places
}

/// Holds the present, so that all keys of a hashed table are read as of it.
fn hold_now(engine: &Engine) -> Held {
    let _still = engine.still();
    let at = At::new(engine.published(), clock::now_ms(engine));
    engine.boundaries.hold(at, HeldFor::Work, engine.host.clock.monotonic())
}
