//! A follower: it keeps a copy of a table in memory, with a change feed that outlives the program.
//!
//! ```text
//! cargo run -p folddb --example follow
//! ```
//!
//! A real one would keep its copy in a search engine or a cache, and acknowledge what is stored
//! there. Events that were not acknowledged are given again.

use std::collections::BTreeMap;

use folddb::{Durability, Error, Feed, FeedChange, FeedEvent, FeedOptions, Options, Result, Rules, Store};

type Copy = BTreeMap<Vec<u8>, u64>;

pub(crate) fn main() -> Result<()> {
    let dir = std::env::temp_dir().join(format!("folddb-follow-{}", std::process::id()));
    let store = Store::create(&dir, Options::default())?;
    let visits = store.table("visits", Rules::sorted::<String, u64>().fold("sum:u64"))?;
    visits.fold("oslo", &3)?;
    visits.fold("rome", &1)?;

    // It begins with the present rows, and continues with later writes.
    let mut copy = Copy::new();
    let mut feed = store.feed("copy", of_visits())?;
    visits.fold("oslo", &1)?;
    println!("{} events", catch_up(&mut feed, &mut copy)?);
    assert_eq!(copy, BTreeMap::from([(b"oslo".to_vec(), 4), (b"rome".to_vec(), 1)]));

    // While nobody reads it the log is retained for it, within its budget; merges and reclaim
    // continue.
    drop(feed);
    drop(visits);
    store.close()?;
    let store = Store::open(&dir, Options::default())?;
    let visits = store.table("visits", Rules::sorted::<String, u64>().fold("sum:u64"))?;
    let mut batch = store.batch();
    batch.fold(&visits, "rome", &10).delete(&visits, "oslo");
    batch.commit(Durability::Process)?;
    store.settle()?;
    let mut feed = store.feed("copy", of_visits())?;
    println!("{} event since", catch_up(&mut feed, &mut copy)?);
    assert_eq!(copy, BTreeMap::from([(b"rome".to_vec(), 11)]));
    for told in store.feeds() {
        println!("feed {} holds {} bytes", told.name, told.held_bytes);
    }
    drop(feed);
    store.drop_feed("copy")?; // an unused feed must be dropped, or it retains its budget forever
    store.close()?;
    let _ = std::fs::remove_dir_all(&dir); // the example cleans up
    Ok(())
}

fn of_visits() -> FeedOptions {
    FeedOptions::default().table(Some("visits"))
}

/// Takes all present events; a program that runs forever would wait with `Feed::next`.
fn catch_up(feed: &mut Feed, copy: &mut Copy) -> Result<usize> {
    let mut events = 0;
    while let Some(event) = feed.poll()? {
        take(event, copy)?;
        events += 1;
    }
    feed.acknowledge(feed.position())?;
    Ok(events)
}

fn take(event: FeedEvent, copy: &mut Copy) -> Result<()> {
    match event {
        FeedEvent::Begin { .. } | FeedEvent::TableDropped(_) => copy.clear(),
        FeedEvent::TableCreated(_) | FeedEvent::RowsEnd => {}
        FeedEvent::Row(row) => {
            let value = row.value.ok_or_else(|| Error::invalid("a value whose fold fails, or a long one"))?;
            copy.insert(row.key, number(&value)?);
        }
        FeedEvent::Batch(batch) => {
            for op in batch.ops {
                match op.change {
                    FeedChange::Put(value) => drop(copy.insert(op.key, number(&value)?)),
                    FeedChange::PutIfAbsent(value) => drop(copy.entry(op.key).or_insert(number(&value)?)),
                    FeedChange::Fold(value) => *copy.entry(op.key).or_insert(0) += number(&value)?,
                    FeedChange::Delete => drop(copy.remove(&op.key)),
                    FeedChange::DeleteRange(to) => copy.retain(|key, _| *key < op.key || *key >= to),
                    FeedChange::PutLong(bytes)
                    | FeedChange::PutIfAbsentLong(bytes)
                    | FeedChange::FoldLong(bytes) => {
                        return Err(Error::invalid(format!("a number of {bytes} bytes")));
                    }
                    unknown => return Err(not_known(&unknown)),
                }
            }
        }
        unknown => return Err(not_known(&unknown)),
    }
    Ok(())
}

/// What a later version of FoldDB gives, and this program does not apply.
fn not_known(what: &impl std::fmt::Debug) -> Error {
    Error::invalid(format!("unknown: {what:?}"))
}

/// Decodes a value of the codec `u64`.
fn number(value: &[u8]) -> Result<u64> {
    let bytes = value.try_into().map_err(|_| Error::invalid("no number of eight bytes"))?;
    Ok(u64::from_le_bytes(bytes))
}
