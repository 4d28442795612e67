//! The store is read while its writer has it open.

use folddb::Store;
use folddb::time::unix_ms;

use crate::compare::{Outcome, same};
use crate::known::Contents;
use crate::play::contents::contents;
use crate::play::parts::Beside;
use crate::play::player::{Player, said};
use crate::tables::Shape;

impl Player {
    // ---- beside and sealed ----------------------------------------------------------------------

    /// Another process reads the store while this one has it open: it sees all that was
    /// acknowledged, and each batch whole. The one that was opened this way last time is unchanged.
    pub(super) fn beside(&mut self) -> Outcome {
        let Some(disk) = self.disk.clone() else { return self.look_secondary() };
        if disk.has_lost() {
            return Ok(()); // its contents are not known
        }
        disk.aside(|| self.look_secondary())
    }

    pub(super) fn look_secondary(&mut self) -> Outcome {
        if let Some(beside) = self.beside.take() {
            // Values in files of their own are opened when they are read.
            let now = match contents(&beside.store) {
                Err(error) if error.to_string().contains("refresh the store") => beside.contents.clone(),
                now => now.map_err(said("read a store that was opened beside"))?,
            };
            let of = |contents: &Contents| beside.of(contents, Shape::lasts_beside);
            let is_same = of(&now) == of(&beside.contents);
            same("whether a store that was opened beside stays what it is", &is_same, &true)?;
        }
        let opened = Store::open_secondary(&self.dir, self.options());
        let store = opened.map_err(said("open beside a writer"))?;
        let contents = contents(&store).map_err(said("read beside a writer"))?;
        let mut known = self.known.clone();
        known.model.set_time(unix_ms(store.now()));
        known
            .settle(&contents, u64::from(store.last_seq()))
            .map_err(|why| format!("beside a writer: {why}"))?;
        let shape_of = |(name, _): &(String, _)| Some((name.clone(), self.known.model.shape(name)?));
        let shapes = contents.iter().filter_map(shape_of).collect();
        self.beside = Some(Beside { store, contents, shapes });
        Ok(())
    }
}
