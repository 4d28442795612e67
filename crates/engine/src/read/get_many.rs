//! The read path of several keys at once: all as of one moment.
//!
//! Keys are looked up in the order of the table, each once, so that neighbors read a shared block
//! while it is in memory. Reads that wait for a device overlap (`groups.rs`). Each value is passed
//! on with the place of its key among the requested ones, in any order.
//!
//! Called by `folddb`'s readers.

use std::ops::Range;

use folddb_base::Result;
use folddb_rules::KeyOrder;
use folddb_rules::order::PrefixOrder;

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
    keys: &[&[u8]],
    at: Option<At>,
    take: &mut TakeValue<'_>,
) -> Result<()> {
    let asked = lookup_order(table, keys);
    let lookups: Vec<&[Asked]> = asked.chunk_by(|a, b| a.0 == b.0 && keys[a.1] == keys[b.1]).collect();
    let key_of = |asked: &[Asked]| keys[asked[0].1];
    let mut take_all =
        |asked: &[Asked], value: Option<&[u8]>| asked.iter().try_for_each(|&(_, place)| take(place, value));
    if table.hashed.is_none() {
        let in_order: Vec<&[u8]> = lookups.iter().map(|asked| key_of(asked)).collect();
        let mut take_each = |number: usize, value: Option<&[u8]>| take_all(lookups[number], value);
        if get::get_each(engine, table, &in_order, at, &mut take_each)? {
            return Ok(());
        }
    }
    // A hashed table, or an old snapshot.
    let held = if at.is_none() && keys.len() > 1 { Some(hold_now(engine)) } else { None };
    let at = at.or(held.as_ref().map(|held| held.at));
    // A snapshot may have files of its own; those of the present are mostly the same.
    let ask = |group: Range<usize>| {
        let keys: Vec<&[u8]> = lookups[group].iter().map(|asked| key_of(asked)).collect();
        match &table.hashed {
            Some(hashed) => keys.iter().for_each(|key| hashed::ask_for(engine, hashed, key, at)),
            None => get::ask_for_blocks(table, &table.view(), &keys),
        }
    };
    let mut read =
        |asked: &[Asked]| get::get(engine, table, key_of(asked), at, |value| take_all(asked, value));
    read_in_groups(engine, lookups.len(), &ask, &mut |group| {
        lookups[group].iter().try_for_each(|asked| read(asked))
    })
}

/// A number that sorts keys as far as it reaches, and the place of the key among the requested
/// ones.
type Asked = (u64, usize);

/// The keys in the order of the lookups; equal ones are adjacent.
fn lookup_order(table: &TableCore, keys: &[&[u8]]) -> Vec<Asked> {
    let order = if table.hashed.is_some() { &KeyOrder::Bytewise } else { &table.rules.order };
    let numbered = keys.iter().enumerate().map(|(place, key)| (order.prefix(key, 0), place));
    let mut asked: Vec<Asked> = numbered.collect();
    // Most keys differ in their numbers, and no key is compared.
    asked.sort_unstable_by(|a, b| {
        a.0.cmp(&b.0).then_with(|| order.compare(keys[a.1], keys[b.1])).then_with(|| a.1.cmp(&b.1))
    });
    asked
}

/// Holds the present, so that all keys of a hashed table are read as of it.
fn hold_now(engine: &Engine) -> Held {
    let _still = engine.still();
    let at = At::new(engine.published(), clock::now_ms(engine));
    engine.boundaries.hold(at, HeldFor::Work, engine.host.clock.monotonic())
}
