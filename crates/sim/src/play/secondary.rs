//! The store is read in a secondary while its writer has it open.

use folddb::Store;
use folddb::time::unix_ms;

use crate::compare::{Outcome, same};
use crate::known::Contents;
use crate::play::contents::contents;
use crate::play::parts::Secondary;
use crate::play::player::{Player, said};
use crate::tables::Shape;

impl Player {
    // ---- secondaries ----------------------------------------------------------------------------

    /// Another process reads the store while this one has it open: it sees all that was
    /// acknowledged, and each batch whole. The one that was opened this way last time is unchanged.
    pub(super) fn secondary(&mut self) -> Outcome {
        let Some(disk) = self.disk.clone() else { return self.look_secondary() };
        if disk.has_lost() {
            return Ok(()); // its contents are not known
        }
        disk.aside(|| self.look_secondary())
    }

    pub(super) fn look_secondary(&mut self) -> Outcome {
        if let Some(secondary) = self.secondary.take() {
            // Values in files of their own are opened when they are read.
            let now = match contents(&secondary.store) {
                Err(error) if error.to_string().contains("refresh the store") => secondary.contents.clone(),
                now => now.map_err(said("read a secondary"))?,
            };
            let of = |contents: &Contents| secondary.of(contents, Shape::lasts_in_secondary);
            let is_same = of(&now) == of(&secondary.contents);
            same("whether a secondary stays what it is", &is_same, &true)?;
        }
        let opened = Store::open_secondary(&self.dir, self.options());
        let store = opened.map_err(said("open a secondary"))?;
        let contents = contents(&store).map_err(said("read a new secondary"))?;
        let mut known = self.known.clone();
        known.model.set_time(unix_ms(store.now()));
        known
            .settle(&contents, u64::from(store.last_seq()))
            .map_err(|why| format!("in a secondary: {why}"))?;
        let shape_of = |(name, _): &(String, _)| Some((name.clone(), self.known.model.shape(name)?));
        let shapes = contents.iter().filter_map(shape_of).collect();
        self.secondary = Some(Secondary { store, contents, shapes });
        Ok(())
    }
}
