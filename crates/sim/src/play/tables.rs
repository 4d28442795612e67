//! Tables come and go.

use folddb::table_rules::TableRules;
use folddb::{Durability, ErrorKind, Store};

use crate::compare::{Outcome, same};
use crate::play::player::{Player, name_of, said};
use crate::program::{MANY_TABLES, TABLES, TableOp, What};
use crate::tables::{Kind, Order, Shape};
use crate::world::SimDisk;

impl Player {
    pub(super) fn create(&mut self, slot: u8, shape: &Shape) -> Outcome {
        let name = name_of(slot);
        self.consumer.know(shape);
        let created = self.store()?.create_bytes_table(&name, shape.rules());
        match (created, self.known.model.shape(&name)) {
            (Ok(_), None) => {
                self.known.model.create_table(&name, *shape);
                Ok(())
            }
            (Err(error), Some(_)) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            (Ok(_), Some(_)) => Err("a table was created twice".to_owned()),
            (Err(error), None) => {
                if error.kind() != ErrorKind::NoSpace {
                    self.known.doubt_created(&name, *shape);
                }
                self.refused("create a table", error)
            }
            (Err(error), Some(_)) => self.refused("create a table", error),
        }
    }

    pub(super) fn drop_table(&mut self, slot: u8) -> Outcome {
        let name = name_of(slot);
        let Some((table, _)) = self.table(slot)? else {
            let refused = self.store()?.drop_table(&name).map_err(|error| error.kind());
            return same("dropping what is not there", &refused, &Err(ErrorKind::TableNotFound));
        };
        if let Err(error) = self.store()?.drop_table(&name) {
            if error.kind() != ErrorKind::NoSpace {
                self.known.doubt_dropped(&name);
            }
            return self.refused("drop a table", error);
        }
        self.known.model.drop_table(&name);
        let refused = table.get(b"").map_err(|error| error.kind());
        same("reading a dropped table", &refused, &Err(ErrorKind::Closed))
    }

    /// Alters rules of a table, under which its data mean the same.
    pub(super) fn alter(&mut self, slot: u8, how: u8) -> Outcome {
        let Some((table, shape)) = self.table(slot)? else { return Ok(()) };
        let wanted = shape.altered(how);
        self.consumer.know(&wanted);
        let altered = table.alter(|has| {
            let mut rules = wanted.rules();
            rules.indexes = has.indexes;
            rules
        });
        match altered {
            Ok(changes) => {
                same("whether rules differ", &changes.is_empty(), &(shape.rules() == wanted.rules()))?;
                self.known.model.alter_table(table.name(), wanted);
                Ok(())
            }
            Err(error) => {
                if error.kind() != ErrorKind::NoSpace {
                    self.known.doubt_altered(table.name(), wanted);
                }
                self.refused("alter a table", error)
            }
        }
    }

    /// Takes over which rules the tables of an opened store have.
    pub(super) fn settle_rules(&mut self, store: &Store) -> Outcome {
        for name in store.tables() {
            self.known.settle_rules(&name, &rules_of(store, &name)?.to_string())?;
        }
        self.known.rules_are_settled();
        Ok(())
    }

    /// Creates or drops tables until there are `count` besides those that programs name.
    pub(super) fn many(&mut self, count: u8) -> Outcome {
        let mut rows = Vec::new();
        for slot in TABLES..TABLES + MANY_TABLES {
            if self.disk.as_ref().is_some_and(SimDisk::is_dead) {
                return Ok(());
            }
            let is_there = self.known.model.shape(&name_of(slot)).is_some();
            match (slot < TABLES + count.min(MANY_TABLES), is_there) {
                (true, false) => {
                    let kind = if slot % 2 == 0 { Kind::Replace } else { Kind::SumU64 };
                    let order = if slot % 10 == 0 { Order::Hashed } else { Order::Bytewise };
                    self.create(slot, &Shape::small(kind, order))?;
                    rows.extend((slot % 7 == 0).then_some(TableOp {
                        table: slot,
                        what: What::Put,
                        key: slot % 5,
                        value: slot,
                        len_bytes: 40,
                    }));
                }
                (false, true) => self.drop_table(slot)?,
                _ => {}
            }
        }
        self.commit(&rows, Durability::Process)
    }
}

/// The rules of a table, without its indexes.
fn rules_of(store: &Store, name: &str) -> Result<TableRules, String> {
    let table = store.bytes_table(name).map_err(said("open the table"))?;
    Ok(table.rules().as_table_rules().clone())
}
