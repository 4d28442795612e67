//! Finding records by their terms.
//!
//! ```text
//!   entries   of the index, in the order of terms, some hundred at a time       may be stale: nothing was looked up for them
//!   look      each key once, in the order of keys: what it has at the snapshot  the head where that tells the terms
//!   keep      the entries whose term is one of those                            in the order of the entries
//! ```
//!
//! Complete: whatever has a term at the snapshot has an entry of it, by the law of terms. Right:
//! every hit is looked at. A key that has several of the terms that are asked for is hit by each.
//!
//! Who reads the past of a table that keeps it (a snapshot of a moment that is over) goes over the
//! present entries: of the index of such a table only those are cleaned that were stale before all
//! that it keeps (`background/clean.rs`).

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use folddb_base::stream::Direction;
use folddb_base::{Error, Result};
use folddb_host::sync::Mutex;
use folddb_rules::Extractor;
use folddb_rules::codec::tuple::{self, Element};
use folddb_rules::index_query::TermRange;
use folddb_rules::terms::{before_entries, behind_entries, pack_term};

use crate::bytes_table::BytesTable;
use crate::indexing;
use crate::own_found::OwnFound;
use crate::own_writes::{Inside, OwnWrites};
use crate::snapshot::Snapshot;
use folddb_engine::state::catalog::IndexCore;
use folddb_engine::state::snapshots::Held;

/// A range of entries of an index.
pub(crate) type EntryRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// What is asked of an index. Narrow it, then iterate.
#[derive(Clone)]
#[must_use = "nothing is looked up until it is iterated"]
pub struct BytesFind {
    pub(crate) table: BytesTable,
    pub(crate) index: Arc<IndexCore>,
    /// Ranges of entries, which follow one another.
    pub(crate) ranges: Vec<EntryRange>,
    pub(crate) direction: Direction,
    pub(crate) limit: usize,
    /// The snapshot, and whether it is of a moment that is over.
    pub(crate) seen: Option<(Arc<Held>, bool)>,
    /// What minds what is found, and what was written, where that snapshot is a transaction's.
    pub(crate) inside: Option<Inside>,
    /// What was written, where that is settled already.
    pub(crate) own: Option<Arc<OwnFound>>,
    pub(crate) mistake: Option<Error>,
}

impl BytesTable {
    /// Records by the terms of an index: all of them, in the order of the terms, until it is
    /// narrowed.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`], with the indexes that there are.
    pub fn find(&self, index: &str) -> Result<BytesFind> {
        let index = indexing::index_of(&self.core, index)?;
        Ok(BytesFind {
            table: self.clone(),
            index,
            ranges: vec![(Bound::Unbounded, Bound::Unbounded)],
            direction: Direction::Forward,
            limit: usize::MAX,
            seen: None,
            inside: None,
            own: None,
            mistake: None,
        })
    }
}

impl BytesFind {
    /// Only records that have this term. A number is asked for by what it is: `3` finds 3.0 where
    /// an index has that.
    ///
    /// A term that the index cannot have by its kind is an error of the iterators:
    /// [`crate::ErrorKind::InvalidInput`].
    pub fn term<'t>(self, term: impl Into<Element<'t>>) -> Self {
        let term = term.into();
        self.range((Bound::Included(term.clone()), Bound::Included(term)))
    }

    /// Only records with terms in a range, in the order of terms.
    pub fn range<'t, T: Into<Element<'t>> + Clone>(self, range: impl RangeBounds<T>) -> Self {
        let low = range.start_bound().map(|term| term.clone().into());
        let high = range.end_bound().map(|term| term.clone().into());
        self.asked(|extractor| Ok(extractor.ask(low, high)?.into_iter().filter_map(entries_of).collect()))
    }

    /// Only records with a term that begins so: a text, or a byte string.
    pub fn prefix<'t>(self, prefix: impl Into<Element<'t>>) -> Self {
        let prefix = prefix.into();
        self.asked(|extractor| Ok(beginning(&extractor.ask_prefix(prefix)?)))
    }

    /// Only records with terms in a range that a person typed, as [`Extractor::ask_typed`] reads
    /// them.
    pub fn typed(self, range: impl RangeBounds<String>) -> Self {
        let (low, high) = (range.start_bound().map(String::as_str), range.end_bound().map(String::as_str));
        self.asked(|extractor| {
            Ok(extractor.ask_typed(low, high)?.into_iter().filter_map(entries_of).collect())
        })
    }

    /// Only records with a term that begins as a person typed, as [`Extractor::ask_typed_prefix`]
    /// reads it.
    pub fn typed_prefix(self, prefix: &str) -> Self {
        self.asked(|extractor| Ok(beginning(&extractor.ask_typed_prefix(prefix)?)))
    }

    /// Takes over the ranges of what is asked for, or keeps the mistake.
    pub(crate) fn asked(
        mut self,
        ask: impl FnOnce(&Extractor) -> std::result::Result<Vec<EntryRange>, String>,
    ) -> Self {
        let Ok(extractor) = &self.index.extractor else { return self }; // which is an error when it is iterated
        match ask(extractor) {
            Ok(ranges) => self.ranges = ranges,
            Err(why) => {
                let (index, table) = (&self.index.name, self.table.name());
                self.mistake = Some(Error::invalid(format!("index `{index}` of table `{table}` {why}")));
            }
        }
        self
    }

    /// From the highest term down.
    pub fn reverse(mut self) -> Self {
        self.direction = match self.direction {
            Direction::Forward => Direction::Reversed,
            Direction::Reversed => Direction::Forward,
        };
        self
    }

    /// Stops after this many hits; keys whose fold fails, which are errors, do not count.
    pub fn limit(mut self, hits: usize) -> Self {
        self.limit = hits;
        self
    }

    /// As a snapshot sees it. Without, what is found is that of the moment when the iteration
    /// begins.
    pub(crate) fn at(mut self, snapshot: &Snapshot) -> Self {
        match snapshot.hold_for(&self.table) {
            Ok(seen) => {
                self.seen = Some(seen);
                self.inside = snapshot.reads().map(|reads| Inside { reads, own: None });
            }
            Err(mistake) => self.mistake = Some(mistake),
        }
        self
    }

    /// With what a transaction has written.
    pub(crate) fn with_own(mut self, own: Option<&Arc<Mutex<OwnWrites>>>) -> Self {
        if let Some(inside) = &mut self.inside {
            inside.own = own.cloned();
        }
        self
    }
}

impl std::fmt::Debug for BytesFind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a find in index `{}`", self.index.table.name)
    }
}

/// The entries of a range of terms; none where it holds nothing.
fn entries_of((low, high): TermRange<'_>) -> Option<EntryRange> {
    let low = match low {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(term) => Bound::Included(before_entries(&pack_term(&term))),
        Bound::Excluded(term) => Bound::Included(behind_entries(&pack_term(&term))),
    };
    let high = match high {
        Bound::Unbounded => Bound::Unbounded,
        Bound::Included(term) => Bound::Excluded(behind_entries(&pack_term(&term))),
        Bound::Excluded(term) => Bound::Excluded(before_entries(&pack_term(&term))),
    };
    match (&low, &high) {
        (Bound::Included(low), Bound::Excluded(high)) if low >= high => None,
        _ => Some((low, high)),
    }
}

/// The entries of terms that begin so.
fn beginning(prefix: &Element<'_>) -> Vec<EntryRange> {
    let range = tuple::partial_range(std::slice::from_ref(prefix));
    range.map(|range| (range.low, range.high)).into_iter().collect()
}
