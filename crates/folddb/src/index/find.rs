//! Finding records by their terms.
//!
//! ```text
//!   entries   of the index, in the order of terms, some hundred at a time       may be stale: nothing was looked up for them
//!   look      each key once, in the order of keys: its state at the snapshot    its head, if that has the terms
//!   keep      the entries whose term is one of those                            in the order of the entries
//! ```
//!
//! Complete: by the law of terms, every record that has a term at the snapshot has an entry for it.
//! Correct: every hit is checked. A key with several of the requested terms is hit by each.
//!
//! A reader of the past of a table that keeps it (a snapshot of a past moment) uses the present
//! entries: in the index of such a table, only entries that were stale before the kept past are
//! cleaned (`background/clean.rs`).

use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use folddb_base::stream::Direction;
use folddb_base::{Error, Result};
use folddb_host::sync::Mutex;
use folddb_rules::Extractor;
use folddb_rules::codec::tuple::{self, Element};
use folddb_rules::index_query::TermRange;
use folddb_rules::terms::{before_entries, behind_entries, pack_term};

use crate::index::build;
use crate::snapshot::Snapshot;
use crate::table::bytes::BytesTable;
use crate::uncommitted::entries::OwnFound;
use crate::uncommitted::{Inside, OwnWrites};
use folddb_engine::state::catalog::IndexCore;
use folddb_engine::state::snapshots::Held;

/// A range of entries of an index.
pub(crate) type EntryRange = (Bound<Vec<u8>>, Bound<Vec<u8>>);

/// A query of an index. Narrow it, then iterate.
#[derive(Clone)]
#[must_use = "nothing is looked up until it is iterated"]
pub struct BytesFind {
    pub(crate) table: BytesTable,
    pub(crate) index: Arc<IndexCore>,
    /// Ranges of entries, which follow one another.
    pub(crate) ranges: Vec<EntryRange>,
    pub(crate) direction: Direction,
    pub(crate) limit: usize,
    /// The snapshot, and whether it is of a past moment.
    pub(crate) seen: Option<(Arc<Held>, bool)>,
    /// The noted reads and own writes, if that snapshot is a transaction's.
    pub(crate) inside: Option<Inside>,
    /// The own writes, if already captured.
    pub(crate) own: Option<Arc<OwnFound>>,
    pub(crate) mistake: Option<Error>,
}

impl BytesTable {
    /// Records by the terms of an index: all of them, in the order of the terms, until it is
    /// narrowed.
    ///
    /// # Errors
    /// [`crate::ErrorKind::InvalidInput`], with the existing indexes.
    pub fn find(&self, index: &str) -> Result<BytesFind> {
        let index = build::index_of(&self.core, index)?;
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
    /// Only records that have this term. A number is compared by its value: `3` finds 3.0 if an
    /// index has that.
    ///
    /// A term of a kind that the index cannot have is an error of the iterators:
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

    /// Only records with a term that has this prefix: a text, or a byte string.
    pub fn prefix<'t>(self, prefix: impl Into<Element<'t>>) -> Self {
        let prefix = prefix.into();
        self.asked(|extractor| Ok(beginning(&extractor.ask_prefix(prefix)?)))
    }

    /// Only records with terms in a range that a person typed. Quotes make text of what would
    /// otherwise be something else.
    pub fn typed(self, range: impl RangeBounds<String>) -> Self {
        let (low, high) = (range.start_bound().map(String::as_str), range.end_bound().map(String::as_str));
        self.asked(|extractor| {
            Ok(extractor.ask_typed(low, high)?.into_iter().filter_map(entries_of).collect())
        })
    }

    /// Only records with a term that has this prefix, typed by a person: text, or bytes as 0x... if
    /// terms are bytes.
    pub fn typed_prefix(self, prefix: &str) -> Self {
        self.asked(|extractor| Ok(beginning(&extractor.ask_typed_prefix(prefix)?)))
    }

    /// Sets the ranges of a query, or notes the mistake.
    pub(crate) fn asked(
        mut self,
        ask: impl FnOnce(&Extractor) -> std::result::Result<Vec<EntryRange>, String>,
    ) -> Self {
        let Ok(extractor) = &self.index.extractor else { return self }; // iterating it is an error
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

    /// As a snapshot sees it. Otherwise it sees the moment when the iteration begins.
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

    /// Including a transaction's own writes.
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

/// The entries of a range of terms; none if it is empty.
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

/// The entries of terms with this prefix.
fn beginning(prefix: &Element<'_>) -> Vec<EntryRange> {
    let range = tuple::partial_range(std::slice::from_ref(prefix));
    range.map(|range| (range.low, range.high)).into_iter().collect()
}
