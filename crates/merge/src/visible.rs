//! A stream as a snapshot sees it: without the records that are newer.
//!
//! Scans put it on top of the k-way stream. It costs one comparison for each record.

use folddb_base::{Record, RecordStream, Result, Seq};

/// Passes on the records with a seq of at most `max_seq`.
#[derive(Debug)]
pub struct Visible<S> {
    stream: S,
    max_seq: Seq,
}

impl<S: RecordStream> Visible<S> {
    /// What a snapshot at `max_seq` sees of `stream`.
    ///
    /// # Errors
    /// The stream below fails while it advances to the first visible record.
    pub fn new(stream: S, max_seq: Seq) -> Result<Visible<S>> {
        let mut visible = Visible { stream, max_seq };
        visible.settle()?;
        Ok(visible)
    }

    /// The stream below, to seek in it. Call [`Visible::settle`] before anything else.
    pub fn stream_mut(&mut self) -> &mut S {
        &mut self.stream
    }

    /// Advances to the first visible record from here.
    ///
    /// # Errors
    /// Those of the stream below.
    #[inline]
    pub fn settle(&mut self) -> Result<()> {
        while self.stream.record().is_some_and(|record| record.seq > self.max_seq) {
            self.stream.advance()?;
        }
        Ok(())
    }
}

impl<S: RecordStream> RecordStream for Visible<S> {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        self.stream.record()
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.stream.advance()?;
        self.settle()
    }
}
