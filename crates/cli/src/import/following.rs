//! Following a file: it is read as it grows, and so is each file that comes in its place.

use crate::failure::Failure;
use crate::human;
use crate::import::dialect::Escape;
use crate::import::identity::{self, Known};
use crate::import::opening::{OpenFile, said};
use crate::import::reading::{Import, Looked};
use crate::import::sink::Sink;
use crate::import::source;
use crate::messages;

impl Import<'_> {
    /// Imports a file as it grows, and each file that comes in its place.
    pub(crate) fn follow(
        &mut self,
        sink: &mut Sink<'_>,
        name: &str,
        open: Option<OpenFile>,
    ) -> Result<(), Failure> {
        self.rest_of_rotated(sink, name)?;
        let mut next = match open {
            Some(open) => open,
            None => OpenFile::of(self.args, &self.stated, name, source::follow(name, said(self.args))?)?,
        };
        loop {
            // The first rows of the next one may not tell what escapes quotes.
            let escape = next.form.escape.map_or(Escape::Find, |sign| Escape::Is(Some(sign)));
            self.file(sink, name, Some(next), 0, true)?;
            let source = source::follow_next(name, said(self.args))?;
            next = OpenFile::with(self.args, &self.stated, (name, escape), source)?;
            messages::print(&format!("{name} is another file now, and is read from its beginning"));
        }
    }

    /// Imports what is left of the file that was at this path when it was read last, if it was
    /// rotated since, and is beside the one that is there now. If it is not, that is said.
    fn rest_of_rotated(&mut self, sink: &mut Sink<'_>, name: &str) -> Result<(), Failure> {
        // What is wrong with the file is said when it is read.
        let Ok(Looked { disk: Some(disk), known, .. }) = self.look(name, true) else { return Ok(()) };
        let earlier = self.known.at_path(&disk.path).filter(|earlier| earlier.again == self.again);
        let Some(earlier) = earlier.filter(|earlier| !known.is_of(earlier)).cloned() else { return Ok(()) };
        let is_it = |beside: &String| {
            // None that cannot be read, or that another program has removed by now.
            self.look(beside, false).is_ok_and(
                |looked| matches!(looked.known, Known::UpTo(entry) if entry.number == earlier.number),
            )
        };
        match identity::names_beside(name, earlier.disk.inode).find(is_it) {
            Some(rotated) => {
                messages::print(&format!(
                    "{name} was rotated: what is left of it is read first, from {rotated}"
                ));
                (self.totals.files, self.totals.is_single) = (self.totals.files + 1, false);
                self.file(sink, &rotated, None, 0, false)
            }
            None if earlier.done => Ok(()), // it was read to the end that it had
            None => {
                let row = human::count(earlier.read + earlier.skip);
                messages::print(&format!(
                    "{name} was rotated, and what it was is in up to row {row} only: the rest is not beside it (name the \
                     file that has it before this one)"
                ));
                Ok(())
            }
        }
    }
}
