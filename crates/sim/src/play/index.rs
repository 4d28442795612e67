//! What a player does with indexes: it adds, breaks off, drops them, and asks them at every moment
//! that it knows (`ask.rs`).

use std::ops::ControlFlow;

use folddb::time::unix_ms;
use folddb::{AsOf, BytesFind, BytesTable, ErrorKind, Expire, IndexRule, Keep, Snapshot, Store};
use folddb_base::Seq;

use crate::compare::{Outcome, same};
use crate::model::{Index, Model, ModelRow};
use crate::play::ask::Asked;
use crate::play::player::Player;
use crate::play::player::said;
use crate::tables::{INDEX, Shape};

impl Player {
    pub(super) fn add_index(&mut self, slot: u8, stop_after: Option<u8>) -> Outcome {
        let Some((table, shape)) = self.table(slot)? else { return Ok(()) };
        let Some(rule) = shape.index() else { return self.indexless(&table) };
        let (mut looks, mut broke_off) = (0, false);
        let added = table.add_index_with(&rule, |_| {
            looks += 1;
            broke_off = stop_after.is_some_and(|stop| looks > u32::from(stop));
            if broke_off { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        let found = index_of(self.store()?, table.name())?;
        self.known.entries_written(u64::from(self.store()?.last_seq()));
        let last_seq = u64::from(self.store()?.last_seq());
        self.known.model.set_index(table.name(), found, last_seq);
        match added {
            Ok(()) if found == Index::Built || broke_off => Ok(()),
            Ok(()) => Err(format!("an index was added, and is {found:?}")),
            Err(error) => {
                self.known.doubt_index(table.name());
                self.refused("add an index", error)
            }
        }
    }

    pub(super) fn drop_index(&mut self, slot: u8) -> Outcome {
        let Some((table, _)) = self.table(slot)? else { return Ok(()) };
        let had = self.known.model.index(table.name());
        let dropped = table.drop_index(INDEX);
        let found = index_of(self.store()?, table.name())?;
        let last_seq = u64::from(self.store()?.last_seq());
        self.known.model.set_index(table.name(), found, last_seq);
        match dropped {
            Ok(()) => same("the index that was dropped", &found, &Index::None),
            Err(error) if had == Index::None => {
                same("dropping an index that is not there", &error.kind(), &ErrorKind::InvalidInput)
            }
            Err(error) => {
                self.known.doubt_index(table.name());
                self.refused("drop an index", error)
            }
        }
    }

    /// A hashed table has no indexes.
    fn indexless(&self, table: &BytesTable) -> Outcome {
        let Ok(rule) = "idx:value".parse::<IndexRule>() else { return Ok(()) };
        let refused = table.add_index(&rule);
        match refused {
            Err(error) if error.kind() == ErrorKind::InvalidInput => Ok(()),
            Ok(()) => Err("a hashed table was given an index".to_owned()),
            Err(error) => self.refused("add an index to a hashed table", error),
        }
    }

    /// Takes over which indexes an opened store has.
    pub(super) fn settle_indexes(&mut self, store: &Store) -> Outcome {
        for name in store.tables() {
            self.known.settle_index(&name, index_of(store, &name)?, u64::from(store.last_seq()))?;
        }
        self.known.indexes_are_settled();
        Ok(())
    }

    /// Asks the index of a table at the present, at every snapshot, and in the past that the table
    /// keeps.
    pub(super) fn compare_index(&self, model: &Model, table: &BytesTable, shape: &Shape) -> Outcome {
        if model.index(table.name()) != Index::Built {
            return Ok(());
        }
        let find = || table.find(INDEX).map_err(said("ask the index"));
        let find_at =
            |at: &Snapshot| at.table(table).find(INDEX).map_err(said("ask the index at a snapshot"));
        let turn = model.last_seq();
        let asked = |rows: &[ModelRow], find: BytesFind, at: Seq| {
            let asked = Asked { shape, rows, find, turn, may_refuse: at < model.index_since(table.name()) };
            asked.compare().map_err(|why| format!("the index at {at}: {why}"))
        };
        asked(&model.rows_at(table.name(), Seq::MAX), find()?, Seq::MAX)?;
        for snapshot in &self.snapshots {
            let rows = model.rows_seen(table.name(), u64::from(snapshot.seq()), unix_ms(snapshot.time()));
            asked(&rows, find_at(snapshot)?, u64::from(snapshot.seq()))?;
        }
        for snapshot in self.pasts_of(model, table) {
            let rows = model.rows_seen(table.name(), u64::from(snapshot.seq()), unix_ms(snapshot.time()));
            asked(&rows, find_at(snapshot)?, u64::from(snapshot.seq()))?;
        }
        let store = self.store()?;
        if shape.keep == Keep::Forever && shape.expire == Expire::Never {
            let seq = model.last_seq() / 3 * 2;
            let past =
                store.snapshot_at(AsOf::Seq(seq.into())).map_err(said("take a snapshot of the past"))?;
            asked(&model.rows_at(table.name(), seq), find_at(&past)?, seq)?;
        }
        let check = store.check_index(table.name(), INDEX).map_err(said("check the index"))?;
        same("what the index lacks", &check.first_missing, &None)
    }
}

fn index_of(store: &Store, name: &str) -> Result<Index, String> {
    let indexes = store.bytes_table(name).map_err(said("list the indexes"))?.indexes();
    Ok(match indexes.first() {
        None => Index::None,
        Some(index) if index.is_built => Index::Built,
        Some(_) => Index::Begun,
    })
}
