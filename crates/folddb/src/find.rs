//! Finding records by their terms.
//!
//! ```text
//!   entries   of the index, in the order of terms, some hundred at a time       may be stale: nothing was looked up for them
//!   look      each key once, in the order of keys: what it has at the snapshot  the head where that tells the terms
//!   keep      the entries whose term is one of those                            in the order of the entries
//! ```
//!
//! Complete: whatever has a term at the snapshot has an entry of it, by the law of terms. Right: every hit is looked at. A key
//! that has several of the terms that are asked for is hit by each.
//!
//! Who reads the past of a table that keeps it (a snapshot of a moment that is over) goes over the present entries: of the index
//! of such a table only those are cleaned that were stale before all that it keeps (`upkeep/clean.rs`).

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use folddb_base::stream::Direction;
use folddb_base::{Error, ErrorKind, Result};
use folddb_host::sync::atomic::Ordering;
use folddb_rules::codec::tuple::{self, Element};
use folddb_rules::codec::{Key, Value};
use folddb_rules::terms::{before_entries, behind_entries, pack_term, show_term, split_entry};
use folddb_rules::{Datum, Extractor, Terms};

use crate::borders::{At, Held, HeldFor};
use crate::catalog::{IndexCore, TableCore};
use crate::derive::not_at_hand;
use crate::engine::Engine;
use crate::head::Head;
use crate::looked::{Looked, Want};
use crate::scan::{Rows, ScanPlan, Wanted};
use crate::snapshot::Snapshot;
use crate::table::{BytesTable, Table};

/// So many entries are looked up together, at first and at most.
const TOGETHER: std::ops::RangeInclusive<usize> = 16..=256;

/// What is asked of an index. Narrow it, then iterate.
#[derive(Clone)]
#[must_use = "nothing is looked up until it is iterated"]
pub struct BytesFind {
    pub(crate) table: BytesTable,
    pub(crate) index: Arc<IndexCore>,
    pub(crate) low: Bound<Vec<u8>>,
    pub(crate) high: Bound<Vec<u8>>,
    pub(crate) direction: Direction,
    pub(crate) limit: usize,
    /// The snapshot, and whether it is of a moment that is over.
    pub(crate) seen: Option<(Arc<Held>, bool)>,
    pub(crate) mistake: Option<Error>,
}

impl BytesTable {
    /// Records by the terms of an index: all of them, in the order of the terms, until it is narrowed.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`], with the indexes that there are.
    pub fn find(&self, index: &str) -> Result<BytesFind> {
        let index = self.engine.index_of(&self.core, index)?;
        Ok(BytesFind {
            table: self.clone(),
            index,
            low: Bound::Unbounded,
            high: Bound::Unbounded,
            direction: Direction::Forward,
            limit: usize::MAX,
            seen: None,
            mistake: None,
        })
    }
}

impl<K: Key, V: Value> Table<K, V> {
    /// Records by the terms of an index: all of them, in the order of the terms, until it is narrowed.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`], with the indexes that there are.
    pub fn find(&self, index: &str) -> Result<Find<K, V>> {
        Ok(Find { bytes: self.as_bytes().find(index)?, types: PhantomData })
    }
}

impl BytesFind {
    /// Only records that have this term.
    pub fn term<'t>(self, term: impl Into<Element<'t>>) -> Self {
        let term = self.pack(term.into());
        self.within(Bound::Included(before_entries(&term)), Bound::Excluded(behind_entries(&term)))
    }

    /// Only records with terms in a range, in the order of terms.
    pub fn range<'t, T: Into<Element<'t>> + Clone>(self, range: impl RangeBounds<T>) -> Self {
        let low = match range.start_bound() {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(term) => Bound::Included(before_entries(&self.pack(term.clone().into()))),
            Bound::Excluded(term) => Bound::Included(behind_entries(&self.pack(term.clone().into()))),
        };
        let high = match range.end_bound() {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(term) => Bound::Excluded(behind_entries(&self.pack(term.clone().into()))),
            Bound::Excluded(term) => Bound::Excluded(before_entries(&self.pack(term.clone().into()))),
        };
        self.within(low, high)
    }

    /// Only records with a term that begins so: a text, or a byte string.
    pub fn prefix<'t>(mut self, prefix: impl Into<Element<'t>>) -> Self {
        let prefix = match &self.index.extractor {
            Ok(extractor) => extractor.understand(prefix.into()),
            Err(_) => prefix.into(),
        };
        match tuple::partial_range(&[prefix]) {
            Some(range) => self.within(range.low, range.high),
            None => {
                self.mistake = Some(Error::invalid("only a text or a byte string begins with something"));
                self
            }
        }
    }

    fn within(mut self, low: Bound<Vec<u8>>, high: Bound<Vec<u8>>) -> Self {
        (self.low, self.high) = (low, high);
        self
    }

    /// Only records with terms in a range that a person typed, as [`Extractor::read_term`] reads them.
    pub fn typed(self, range: impl RangeBounds<String>) -> Self {
        let read = |typed: &String| match &self.index.extractor {
            Ok(extractor) => extractor.read_term(typed),
            Err(_) => Element::from(typed.clone()),
        };
        let range = (range.start_bound().map(read), range.end_bound().map(read));
        self.range(range)
    }

    /// A term as the index has it.
    fn pack(&self, term: Element<'_>) -> Vec<u8> {
        match &self.index.extractor {
            Ok(extractor) => pack_term(&extractor.understand(term)),
            Err(_) => pack_term(&term), // which is an error when it is iterated
        }
    }

    /// From the highest term down.
    pub fn reverse(mut self) -> Self {
        self.direction = match self.direction {
            Direction::Forward => Direction::Reversed,
            Direction::Reversed => Direction::Forward,
        };
        self
    }

    /// Stops after so many hits; keys whose fold fails, which are errors, do not count.
    pub fn limit(mut self, hits: usize) -> Self {
        self.limit = hits;
        self
    }

    /// As a snapshot sees it. Without, what is found is that of the moment when the iteration begins.
    pub fn at(mut self, snapshot: &Snapshot) -> Self {
        match snapshot.hold_for(&self.table) {
            Ok(seen) => self.seen = Some(seen),
            Err(mistake) => self.mistake = Some(mistake),
        }
        self
    }

    /// The keys of the records. No value that lies apart is read where heads or keys tell the terms.
    pub fn keys(self) -> impl Iterator<Item = Result<Vec<u8>>> {
        Hits::start(self, Want::Key).map(|hit| Ok(hit?.key))
    }

    /// Keys and heads of the records.
    pub fn heads(self) -> impl Iterator<Item = Result<(Vec<u8>, Head)>> {
        Hits::start(self, Want::Head).filter_map(|hit| match hit {
            Ok(Hit { key, head, .. }) => head.map(|head| Ok((key, head))),
            Err(error) => Some(Err(error)),
        })
    }

    /// Keys and values of the records.
    pub fn values(self) -> impl Iterator<Item = Result<(Vec<u8>, Vec<u8>)>> {
        Hits::start(self, Want::Value).map(|hit| hit.map(|hit| (hit.key, hit.value)))
    }

    /// Hits, each with the term that it is one of; with values where these are asked for.
    pub fn hits(self, with_values: bool) -> Hits {
        Hits::start(self, if with_values { Want::Value } else { Want::Key })
    }

    /// Hits, each with the head of its value.
    pub fn hits_with_heads(self) -> Hits {
        Hits::start(self, Want::Head)
    }

    /// How many hits there are.
    ///
    /// # Errors
    /// As those of the iterators.
    pub fn count(self) -> Result<u64> {
        let mut count = 0;
        for hit in Hits::start(self, Want::Key) {
            hit?;
            count += 1;
        }
        Ok(count)
    }
}

/// What is asked of an index of a typed table. Narrow it, then iterate.
#[derive(Clone)]
#[must_use = "nothing is looked up until it is iterated"]
pub struct Find<K, V> {
    pub(crate) bytes: BytesFind,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Value> Find<K, V> {
    fn change(self, change: impl FnOnce(BytesFind) -> BytesFind) -> Self {
        Find { bytes: change(self.bytes), types: PhantomData }
    }

    /// See [`BytesFind::term`].
    pub fn term<'t>(self, term: impl Into<Element<'t>>) -> Self {
        self.change(|find| find.term(term))
    }

    /// See [`BytesFind::range`].
    pub fn range<'t, T: Into<Element<'t>> + Clone>(self, range: impl RangeBounds<T>) -> Self {
        self.change(|find| find.range(range))
    }

    /// See [`BytesFind::prefix`].
    pub fn prefix<'t>(self, prefix: impl Into<Element<'t>>) -> Self {
        self.change(|find| find.prefix(prefix))
    }

    /// From the highest term down.
    pub fn reverse(self) -> Self {
        self.change(BytesFind::reverse)
    }

    /// Stops after so many hits.
    pub fn limit(self, hits: usize) -> Self {
        self.change(|find| find.limit(hits))
    }

    /// See [`BytesFind::at`].
    pub fn at(self, snapshot: &Snapshot) -> Self {
        self.change(|find| find.at(snapshot))
    }

    /// The keys of the records.
    pub fn keys(self) -> impl Iterator<Item = Result<K>> {
        let table = self.bytes.table.clone();
        self.bytes.keys().map(move |key| decoded_key(&table, &key?))
    }

    /// Keys and heads of the records.
    pub fn heads(self) -> impl Iterator<Item = Result<(K, Head)>> {
        let table = self.bytes.table.clone();
        self.bytes.heads().map(move |hit| {
            let (key, head) = hit?;
            Ok((decoded_key(&table, &key)?, head))
        })
    }

    /// Keys and values of the records.
    pub fn values(self) -> impl Iterator<Item = Result<(K, V)>> {
        let table = self.bytes.table.clone();
        self.bytes.values().map(move |hit| {
            let (key, value) = hit?;
            let value = V::decode(&value).map_err(|cause| table.undecodable(&key, &cause))?;
            Ok((decoded_key(&table, &key)?, value))
        })
    }

    /// How many hits there are.
    ///
    /// # Errors
    /// As those of the iterators.
    pub fn count(self) -> Result<u64> {
        self.bytes.count()
    }
}

impl std::fmt::Debug for BytesFind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a find in index `{}`", self.index.table.name)
    }
}

impl<K, V> std::fmt::Debug for Find<K, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.bytes.fmt(f)
    }
}

pub(crate) fn decoded_key<K: Key>(table: &BytesTable, key: &[u8]) -> Result<K> {
    K::decode(key).map_err(|cause| {
        let message = format!("a key of table `{}` is not of its type: {cause}", table.name());
        Error::new(ErrorKind::RulesDiffer, message)
    })
}

/// A record that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The term, as bytes.
    pub term: Vec<u8>,
    /// The key of the record.
    pub key: Vec<u8>,
    /// Its value, where values were asked for.
    pub value: Vec<u8>,
    /// The head of its value, where heads were asked for.
    pub head: Option<Head>,
}

impl Hit {
    /// The term, as people read it.
    pub fn shown_term(&self) -> Datum {
        show_term(&self.term)
    }
}

/// Hits of an index, one after the other.
pub struct Hits {
    state: Option<Search>,
    failure: Option<Error>,
    left: usize,
}

impl Hits {
    fn start(find: BytesFind, want: Want) -> Hits {
        let left = find.limit;
        match Search::start(find, want) {
            Ok(search) => Hits { state: Some(search), failure: None, left },
            Err(failure) => Hits { state: None, failure: Some(failure), left },
        }
    }
}

impl Iterator for Hits {
    type Item = Result<Hit>;

    fn next(&mut self) -> Option<Result<Hit>> {
        if let Some(failure) = self.failure.take() {
            return Some(Err(failure));
        }
        let search = self.state.as_mut().filter(|_| self.left > 0)?;
        loop {
            if let Some(hit) = search.ready.pop_front() {
                self.left -= usize::from(hit.is_ok());
                return Some(hit);
            }
            if search.is_done {
                self.state = None;
                return None;
            }
            if let Err(error) = search.fill(self.left) {
                self.state = None;
                return Some(Err(error));
            }
        }
    }
}

/// A search under way.
struct Search {
    engine: Arc<Engine>,
    table: Arc<TableCore>,
    index: Arc<IndexCore>,
    extractor: Extractor,
    entries: Rows,
    want: Want,
    at: At,
    ready: VecDeque<Result<Hit>>,
    together: usize,
    is_done: bool,
    /// The snapshot, which must outlive it.
    _held: Arc<Held>,
}

impl Search {
    fn start(find: BytesFind, want: Want) -> Result<Search> {
        if let Some(mistake) = find.mistake {
            return Err(mistake);
        }
        let BytesTable { engine, core: table, .. } = find.table;
        let index = find.index;
        let extractor = index.extractor.clone().map_err(|why| not_at_hand(&table, &index, &why))?;
        table.rules.check_writable()?; // without its fold nothing can be looked at
        let (held, is_past) = match find.seen {
            Some(seen) => seen,
            None => (Snapshot::take(&engine, HeldFor::Work).into_held(), false),
        };
        let at = held.at;
        check_stand(&table, &index, at)?;
        let plan = ScanPlan {
            low: find.low,
            high: find.high,
            direction: find.direction,
            wanted: Wanted::Nothing,
            ..ScanPlan::everything((!is_past).then_some(at))
        };
        let entries = Rows::start(&engine, &index.table, plan)?;
        Ok(Search {
            engine,
            table,
            index,
            extractor,
            entries,
            want,
            at,
            ready: VecDeque::new(),
            together: *TOGETHER.start(),
            is_done: false,
            _held: held,
        })
    }

    /// Looks the next entries up.
    fn fill(&mut self, left: usize) -> Result<()> {
        let count = self.together.min(left.max(*TOGETHER.start()));
        self.together = (self.together * 2).min(*TOGETHER.end());
        let mut entries: Vec<Vec<u8>> = Vec::with_capacity(count);
        while entries.len() < count {
            match self.entries.next_row()? {
                Some((entry, _)) => entries.push(entry.to_vec()),
                None => {
                    self.is_done = true;
                    break;
                }
            }
        }
        let split: Vec<(&[u8], &[u8])> = entries.iter().filter_map(|entry| split_entry(entry)).collect();
        let mut order: Vec<usize> = (0..split.len()).collect();
        order.sort_by_key(|&at| (split[at].1, at));
        let mut found: Vec<Option<Result<Hit>>> = (0..split.len()).map(|_| None).collect();
        let mut stale = 0;
        for same_key in order.chunk_by(|&a, &b| split[a].1 == split[b].1) {
            stale += self.look_up(&split, same_key, &mut found);
        }
        self.ready.extend(found.into_iter().flatten());
        self.engine.note_met(&self.index, split.len() as u64, stale);
        Ok(())
    }

    /// Looks at a key, and at each of its entries. Returns how many are stale.
    fn look_up(
        &self,
        split: &[(&[u8], &[u8])],
        same_key: &[usize],
        found: &mut [Option<Result<Hit>>],
    ) -> u64 {
        let key = split[same_key[0]].1;
        let holds = |terms: &Terms| same_key.iter().any(|&at| terms.has(split[at].0));
        let looked = match self.look(key, &holds) {
            Ok(Some(looked)) => looked,
            Ok(None) => return same_key.len() as u64,
            Err(error) => {
                found[same_key[0]] = Some(Err(error));
                return 0;
            }
        };
        let mut stale = 0;
        for &at in same_key {
            let term = split[at].0;
            if !looked.terms.has(term) {
                stale += 1;
                continue;
            }
            let (value, head) = (looked.value.clone(), looked.head.clone());
            found[at] = Some(Ok(Hit { term: term.to_vec(), key: key.to_vec(), value, head }));
        }
        stale
    }

    /// What a key has at the snapshot, as far as it is wanted.
    fn look(&self, key: &[u8], holds: &dyn Fn(&Terms) -> bool) -> Result<Option<Looked>> {
        self.engine.look((&self.table, &self.extractor), key, self.at, self.want, holds)
    }
}

/// Fails where an index cannot tell what a reader at `at` would find.
fn check_stand(table: &TableCore, index: &IndexCore, at: At) -> Result<()> {
    let stand = index.stand.read();
    if stand.building.is_some() {
        let message = format!("index `{}` of table `{}` is being built", index.name, table.name);
        return Err(Error::invalid(message).advise("wait until it is, or go on with it: add the index again"));
    }
    if at.seq < stand.since {
        return Err(Error::invalid(format!(
            "index `{}` of table `{}` finds for readers from seq {} on, when it was built; asked for is seq {}",
            index.name, table.name, stand.since, at.seq
        )));
    }
    Ok(())
}

impl Engine {
    /// Counts entries that somebody has met. Where too many are stale, the index is cleaned.
    fn note_met(&self, index: &IndexCore, met: u64, stale: u64) {
        self.counters.entries_met.add(met);
        self.counters.entries_stale.add(stale);
        index.met.fetch_add(met, Ordering::Relaxed);
        index.stale.fetch_add(stale, Ordering::Relaxed);
        if index.wants_cleaning() {
            self.bell.ring();
        }
    }
}
