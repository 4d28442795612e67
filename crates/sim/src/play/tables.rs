//! Tables come and go.

use folddb::{Durability, ErrorKind};

use crate::compare::{Outcome, same};
use crate::play::player::{Player, name_of};
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
