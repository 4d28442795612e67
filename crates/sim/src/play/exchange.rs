//! Two copies of the store go on differently, and a part of one takes the place of the one with the
//! same number in the other, as a mixed copy does it: it is refused by its name, and no check calls
//! the store whole.

use folddb::maintenance::VerifyOptions;
use folddb::{ErrorKind, Rules, Store};

use crate::compare::Outcome;
use crate::play::player::{Player, said};
use crate::world::SimDisk;

/// A table of its own: the tables of a program may not take these types.
const TABLE: &str = "exchanged";

impl Player {
    /// Exchanges a part of a store whose process has died, in other worlds. Where the two copies
    /// have no part of the same number and length, there is nothing to exchange.
    pub(super) fn exchange(&self, disk: &SimDisk) -> Outcome {
        let (one, other) = (disk.fork(), disk.fork());
        if self.put_row(&one, 1).and_then(|()| self.put_row(&other, 2)).is_err() {
            return Ok(()); // frozen, or out of space
        }
        let Some(name) = self.put_part_of(&other, &one) else { return Ok(()) };
        let reading = self.in_world(one.fork());
        match Store::open(&self.dir, reading.options()) {
            Err(error) if error.kind() == ErrorKind::Corruption && error.to_string().contains(&name) => {}
            Err(error) => return Err(format!("{name} of another copy is told as {error:?}")),
            Ok(_) => return Err(format!("{name} of another copy is read")),
        }
        let checking = self.in_world(one);
        let report = Store::verify(&self.dir, &VerifyOptions::default(), &checking.options());
        let report = report.map_err(said("verify a store with a part of another copy"))?;
        match report.damage().any(|finding| finding.file == name) {
            true => Ok(()),
            false => Err(format!("{name} of another copy is whole to a check: {:?}", report.findings)),
        }
    }

    pub(super) fn in_world(&self, disk: SimDisk) -> Player {
        Player { disk: Some(disk), ..Player::new(self.settings, &self.dir, None) }
    }

    /// What one of the copies does: a row with its number, in a part.
    fn put_row(&self, disk: &SimDisk, number: u64) -> folddb::Result<()> {
        let store = Store::open(&self.dir, self.in_world(disk.clone()).options())?;
        store.table(TABLE, Rules::sorted::<u64, u64>())?.put(&1, &number)?;
        store.flush()?;
        store.close()
    }

    /// Writes a part of one copy over that of the other. Returns its name.
    fn put_part_of(&self, from: &SimDisk, to: &SimDisk) -> Option<String> {
        let names = to.names(&self.dir).into_iter().map(|(name, _)| name);
        names.filter(|name| name.ends_with(".part")).find(|name| {
            let path = self.dir.join(name);
            let (Ok(old), Ok(new)) = (to.bytes(&path), from.bytes(&path)) else { return false };
            if old.len() != new.len() || old == new {
                return false;
            }
            let mut places = old.iter().zip(&new).zip(0..).filter(|((old, new), _)| old != new);
            places.all(|((old, new), at)| to.rot(&path, at, old ^ new))
        })
    }
}
