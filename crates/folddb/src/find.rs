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
//! of such a table only those are cleaned that were stale before all that it keeps (`background/clean.rs`).

use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use folddb_base::stream::Direction;
use folddb_base::{Error, ErrorKind, Result};
use folddb_host::sync::atomic::Ordering;
use folddb_rules::asked::TermRange;
use folddb_rules::codec::tuple::{self, Element};
use folddb_rules::codec::{Key, Value};
use folddb_rules::terms::{before_entries, behind_entries, pack_term, show_term, split_entry};
use folddb_rules::{Datum, Extractor, Terms};

use crate::indexing;
use crate::snapshot::Snapshot;
use crate::table::{BytesTable, Table};
use folddb_engine::read::lookup;
use folddb_engine::read::lookup::{Lookup, Want};
use folddb_engine::read::scan::{Rows, ScanPlan, Wanted};
use folddb_engine::state::catalog::{IndexCore, TableCore};
use folddb_engine::state::engine::Engine;
use folddb_engine::state::snapshots::{At, Held, HeldFor};
use folddb_engine::values::head::Head;
use folddb_engine::write::index_entries::not_at_hand;
use folddb_engine::write::read_set::Reads;

/// So many entries are looked up together, at first and at most.
const TOGETHER: std::ops::RangeInclusive<usize> = 16..=256;

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
    /// What minds what is found, where that snapshot is a transaction's.
    pub(crate) reads: Option<Arc<Reads>>,
    pub(crate) mistake: Option<Error>,
}

impl BytesTable {
    /// Records by the terms of an index: all of them, in the order of the terms, until it is narrowed.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`], with the indexes that there are.
    pub fn find(&self, index: &str) -> Result<BytesFind> {
        let index = indexing::index_of(&self.core, index)?;
        Ok(BytesFind {
            table: self.clone(),
            index,
            ranges: vec![(Bound::Unbounded, Bound::Unbounded)],
            direction: Direction::Forward,
            limit: usize::MAX,
            seen: None,
            reads: None,
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
    /// Only records that have this term. A number is asked for by what it is: `3` finds 3.0 where an index has that.
    ///
    /// A term that the index cannot have by its kind is an error of the iterators: [`ErrorKind::InvalidInput`].
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

    /// Only records with terms in a range that a person typed, as [`Extractor::ask_typed`] reads them.
    pub fn typed(self, range: impl RangeBounds<String>) -> Self {
        let (low, high) = (range.start_bound().map(String::as_str), range.end_bound().map(String::as_str));
        self.asked(|extractor| {
            Ok(extractor.ask_typed(low, high)?.into_iter().filter_map(entries_of).collect())
        })
    }

    /// Only records with a term that begins as a person typed, as [`Extractor::ask_typed_prefix`] reads it.
    pub fn typed_prefix(self, prefix: &str) -> Self {
        self.asked(|extractor| Ok(beginning(&extractor.ask_typed_prefix(prefix)?)))
    }

    /// Takes over the ranges of what is asked for, or keeps the mistake.
    fn asked(mut self, ask: impl FnOnce(&Extractor) -> std::result::Result<Vec<EntryRange>, String>) -> Self {
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

    /// Stops after so many hits; keys whose fold fails, which are errors, do not count.
    pub fn limit(mut self, hits: usize) -> Self {
        self.limit = hits;
        self
    }

    /// As a snapshot sees it. Without, what is found is that of the moment when the iteration begins.
    pub fn at(mut self, snapshot: &Snapshot) -> Self {
        match snapshot.hold_for(&self.table) {
            Ok(seen) => (self.seen, self.reads) = (Some(seen), snapshot.reads()),
            Err(mistake) => self.mistake = Some(mistake),
        }
        self
    }

    /// The keys of the records. No separated value is read where heads or keys tell the terms.
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

    /// Terms and keys of the records. Of a record with several of the terms that are asked for, each with its own.
    pub fn terms(self) -> impl Iterator<Item = Result<(Element<'static>, K)>> {
        let table = self.bytes.table.clone();
        self.bytes.hits(false).map(move |hit| {
            let hit = hit?;
            Ok((hit.element(), decoded_key(&table, &hit.key)?))
        })
    }

    /// Terms, keys and values of the records, as [`Find::terms`].
    pub fn hits(self) -> impl Iterator<Item = Result<(Element<'static>, K, V)>> {
        let table = self.bytes.table.clone();
        self.bytes.hits(true).map(move |hit| {
            let hit = hit?;
            let value = V::decode(&hit.value).map_err(|cause| table.undecodable(&hit.key, &cause))?;
            Ok((hit.element(), decoded_key(&table, &hit.key)?, value))
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
        Error::new(ErrorKind::RulesMismatch, message)
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
    /// The term.
    pub fn element(&self) -> Element<'static> {
        match tuple::unpack(&self.term).map(|mut elements| (elements.pop(), elements.is_empty())) {
            Ok((Some(term), true)) => term.into_owned(),
            _ => Element::from(&self.term[..]).into_owned(), // which no index has
        }
    }

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
    /// What is still to be gone over, in the direction of the search.
    ranges: VecDeque<EntryRange>,
    direction: Direction,
    /// As of when entries are read; as they are now where it is none.
    entries_at: Option<At>,
    entries: Option<Rows>,
    want: Want,
    at: At,
    ready: VecDeque<Result<Hit>>,
    together: usize,
    is_done: bool,
    reads: Option<Arc<Reads>>,
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
        if let Some(reads) = &find.reads {
            let whole = |(low, high): &EntryRange| {
                reads.note_scan(&index.table, (low.clone(), high.clone()), find.direction).lock().end();
            };
            find.ranges.iter().for_each(whole);
        }
        let mut ranges = VecDeque::from(find.ranges);
        if find.direction == Direction::Reversed {
            ranges.make_contiguous().reverse();
        }
        Ok(Search {
            engine,
            table,
            index,
            extractor,
            ranges,
            direction: find.direction,
            entries_at: (!is_past).then_some(at),
            entries: None,
            want,
            at,
            ready: VecDeque::new(),
            together: *TOGETHER.start(),
            is_done: false,
            reads: find.reads,
            _held: held,
        })
    }

    /// Looks the next entries up.
    fn fill(&mut self, left: usize) -> Result<()> {
        let count = self.together.min(left.max(*TOGETHER.start()));
        self.together = (self.together * 2).min(*TOGETHER.end());
        let mut entries: Vec<Vec<u8>> = Vec::with_capacity(count);
        while entries.len() < count {
            if self.entries.is_none() && !self.start_range()? {
                self.is_done = true;
                break;
            }
            let Some(rows) = &mut self.entries else { break };
            match rows.next_row()? {
                Some((entry, _)) => entries.push(entry.to_vec()),
                None => self.entries = None,
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
        note_met(&self.engine, &self.index, split.len() as u64, stale);
        Ok(())
    }

    /// Begins with the next range. False when there is none.
    fn start_range(&mut self) -> Result<bool> {
        let Some((low, high)) = self.ranges.pop_front() else { return Ok(false) };
        let plan = ScanPlan {
            low,
            high,
            direction: self.direction,
            wanted: Wanted::Nothing,
            ..ScanPlan::everything(self.entries_at)
        };
        self.entries = Some(Rows::start(&self.engine, &self.index.table, plan)?);
        Ok(true)
    }

    /// Looks at a key, and at each of its entries. Returns how many are stale.
    fn look_up(
        &self,
        split: &[(&[u8], &[u8])],
        same_key: &[usize],
        found: &mut [Option<Result<Hit>>],
    ) -> u64 {
        let key = split[same_key[0]].1;
        if let Some(reads) = &self.reads {
            reads.note_key(&self.table, key);
        }
        let holds = |terms: &Terms| same_key.iter().any(|&at| terms.has(split[at].0));
        let lookup = match self.look(key, &holds) {
            Ok(Some(lookup)) => lookup,
            Ok(None) => return same_key.len() as u64,
            Err(error) => {
                found[same_key[0]] = Some(Err(error));
                return 0;
            }
        };
        let mut stale = 0;
        for &at in same_key {
            let term = split[at].0;
            if !lookup.terms.has(term) {
                stale += 1;
                continue;
            }
            let (value, head) = (lookup.value.clone(), lookup.head.clone());
            found[at] = Some(Ok(Hit { term: term.to_vec(), key: key.to_vec(), value, head }));
        }
        stale
    }

    /// What a key has at the snapshot, as far as it is wanted.
    fn look(&self, key: &[u8], holds: &dyn Fn(&Terms) -> bool) -> Result<Option<Lookup>> {
        lookup::look(&self.engine, (&self.table, &self.extractor), key, self.at, self.want, holds)
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

/// Counts entries that somebody has met. Where too many are stale, the index is cleaned.
fn note_met(engine: &Engine, index: &IndexCore, met: u64, stale: u64) {
    engine.counters.entries_met.add(met);
    engine.counters.entries_stale.add(stale);
    index.met.fetch_add(met, Ordering::Relaxed);
    index.stale.fetch_add(stale, Ordering::Relaxed);
    if index.wants_cleaning() {
        engine.work.stale.lock().insert(index.table.id);
        engine.bell.ring();
    }
}
