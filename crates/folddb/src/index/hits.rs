//! The hits of a find: entries of the index in their order, each with its record. In a transaction
//! they include those of its own writes (`uncommitted/entries.rs`).

use std::collections::VecDeque;
use std::iter::FusedIterator;
use std::ops::RangeBounds;
use std::sync::Arc;

use folddb_base::stream::Direction;
use folddb_base::{Error, Result};
use folddb_host::sync::atomic::Ordering;
use folddb_rules::codec::tuple::{self, Element};
use folddb_rules::term_kind::TermKind;
use folddb_rules::terms::{show_term, show_time_term, split_entry};
use folddb_rules::{Datum, Extractor, Terms};

use crate::index::find::{BytesFind, EntryRange};
use crate::snapshot::Snapshot;
use crate::uncommitted::entries::OwnFound;
use folddb_engine::read::lookup;
use folddb_engine::read::lookup::{Lookup, Want};
use folddb_engine::read::scan::{Rows, ScanPlan, Wanted};
use folddb_engine::state::catalog::{IndexCore, TableCore};
use folddb_engine::state::engine::Engine;
use folddb_engine::state::snapshots::{At, Held, HeldFor};
use folddb_engine::values::head::Head;
use folddb_engine::write::index_entries::not_at_hand;
use folddb_engine::write::read_set::Reads;

/// How many entries are looked up together, at first and at most.
const TOGETHER: std::ops::RangeInclusive<usize> = 16..=256;

/// A record that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hit {
    /// The term, as bytes.
    pub term: Vec<u8>,
    /// The key of the record.
    pub key: Vec<u8>,
    /// Its value, if values are wanted.
    pub value: Vec<u8>,
    /// The head of its value, if heads are wanted.
    pub head: Option<Head>,
    /// The term is a time.
    is_of_time: bool,
}

impl Hit {
    /// The term.
    pub fn element(&self) -> Element<'static> {
        match tuple::unpack(&self.term).map(|mut elements| (elements.pop(), elements.is_empty())) {
            Ok((Some(term), true)) => term.into_owned(),
            _ => Element::from(&self.term[..]).into_owned(), // no index has such a term
        }
    }

    /// The term, as people read it.
    pub fn shown_term(&self) -> Datum {
        if self.is_of_time { show_time_term(&self.term) } else { show_term(&self.term) }
    }
}

/// Hits of an index, one after the other.
#[must_use = "an iterator does nothing until it is iterated"]
pub struct Hits {
    state: Option<Search>,
    failure: Option<Error>,
    left: usize,
}

impl std::fmt::Debug for Hits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("hits of an index")
    }
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

impl FusedIterator for Hits {}

/// A running search.
struct Search {
    engine: Arc<Engine>,
    table: Arc<TableCore>,
    index: Arc<IndexCore>,
    extractor: Extractor,
    /// The remaining ranges, in the direction of the search.
    ranges: VecDeque<EntryRange>,
    direction: Direction,
    /// The moment of the entries; none for the present.
    entries_at: Option<At>,
    entries: Option<Rows>,
    want: Want,
    at: At,
    ready: VecDeque<Result<Hit>>,
    together: usize,
    is_done: bool,
    /// The next entry of the snapshot, if it was read ahead.
    ahead: Option<Vec<u8>>,
    /// The transaction's own writes to the table, and the remaining ones of their entries.
    own: Option<Arc<OwnFound>>,
    own_entries: VecDeque<Vec<u8>>,
    reads: Option<Arc<Reads>>,
    /// The snapshot, which must outlive it.
    _held: Arc<Held>,
}

impl Search {
    fn start(mut find: BytesFind, want: Want) -> Result<Search> {
        if let Some(mistake) = find.mistake.take() {
            return Err(mistake);
        }
        let (engine, table) = (Arc::clone(find.table.engine()), Arc::clone(find.table.core()));
        let index = Arc::clone(&find.index);
        let extractor = index.extractor.clone().map_err(|why| not_at_hand(&table, &index, &why))?;
        table.rules.check_writable()?; // without its fold nothing can be checked
        let (held, is_past) = match find.seen.take() {
            Some(seen) => seen,
            None => (Snapshot::take(&engine, HeldFor::Work).into_held(), false),
        };
        let at = held.at;
        check_build(&table, &index, at)?;
        let own = find.settle_own(at)?;
        let own_entries = own.as_ref().map(|own| entries_in(own, &find)).unwrap_or_default();
        let reads = find.inside.map(|inside| inside.reads);
        if let Some(reads) = &reads {
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
            ahead: None,
            own,
            own_entries,
            reads,
            _held: held,
        })
    }

    /// Looks the next entries up.
    fn fill(&mut self, left: usize) -> Result<()> {
        let count = self.together.min(left.max(*TOGETHER.start()));
        self.together = (self.together * 2).min(*TOGETHER.end());
        let mut entries: Vec<Vec<u8>> = Vec::with_capacity(count);
        while entries.len() < count {
            match self.next_entry()? {
                Some(entry) => entries.push(entry),
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
        note_read(&self.engine, &self.index, split.len() as u64, stale);
        Ok(())
    }

    /// The next entry, of the snapshot or of the transaction's writes. No key has different entries
    /// of both, except one whose fold fails.
    fn next_entry(&mut self) -> Result<Option<Vec<u8>>> {
        if self.ahead.is_none() {
            self.ahead = self.next_of_snapshot()?;
        }
        let is_own_next = match (self.own_entries.front(), &self.ahead) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(own), Some(ahead)) => match self.direction {
                Direction::Forward => own < ahead,
                Direction::Reversed => own > ahead,
            },
        };
        Ok(if is_own_next { self.own_entries.pop_front() } else { self.ahead.take() })
    }

    /// The next entry of the snapshot whose key the transaction has not written to.
    fn next_of_snapshot(&mut self) -> Result<Option<Vec<u8>>> {
        while self.entries.is_some() || self.start_range()? {
            let Some(rows) = &mut self.entries else { break };
            let Some((entry, _)) = rows.next_row()? else {
                self.entries = None;
                continue;
            };
            let is_hidden =
                |own: &Arc<OwnFound>| split_entry(entry).is_some_and(|(_, key)| own.hides(&self.table, key));
            if !self.own.as_ref().is_some_and(is_hidden) {
                return Ok(Some(entry.to_vec()));
            }
        }
        Ok(None)
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

    /// Checks a key, and each of its entries. Returns how many are stale.
    fn look_up(
        &self,
        split: &[(&[u8], &[u8])],
        same_key: &[usize],
        found: &mut [Option<Result<Hit>>],
    ) -> u64 {
        let key = split[same_key[0]].1;
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
            let is_of_time = self.extractor.kind() == TermKind::Time;
            let (term, key) = (term.to_vec(), key.to_vec());
            found[at] = Some(Ok(Hit { term, key, value, head, is_of_time }));
        }
        stale
    }

    /// The wanted state of a key: in the transaction, or at the snapshot.
    fn look(&self, key: &[u8], holds: &dyn Fn(&Terms) -> bool) -> Result<Option<Lookup>> {
        let of = (&*self.table, &self.extractor);
        let own = self.own.as_ref().and_then(|own| own.look(&self.engine, of, key, self.at, self.want));
        if let Some(own) = own {
            return own;
        }
        if let Some(reads) = &self.reads {
            reads.note_key(&self.table, key);
        }
        lookup::look(&self.engine, of, key, self.at, self.want, holds)
    }
}

/// Fails if an index cannot answer for a reader at `at`.
fn check_build(table: &TableCore, index: &IndexCore, at: At) -> Result<()> {
    let build = index.build.read();
    if build.building.is_some() {
        let message = format!("index `{}` of table `{}` is being built", index.name, table.name);
        return Err(
            Error::invalid(message).advise("wait until it is built, or add the index again to continue")
        );
    }
    if at.seq < build.since {
        return Err(Error::invalid(format!(
            "index `{}` of table `{}` finds nothing before seq {}, when it was built; you asked for seq {}",
            index.name, table.name, build.since, at.seq
        )));
    }
    Ok(())
}

/// Counts entries that were read. If too many are stale, the index is cleaned.
fn note_read(engine: &Engine, index: &IndexCore, read: u64, stale: u64) {
    engine.counters.entries_read.add(read);
    engine.counters.entries_stale.add(stale);
    index.read.fetch_add(read, Ordering::Relaxed);
    index.stale.fetch_add(stale, Ordering::Relaxed);
    if index.wants_cleaning() {
        engine.work.stale.lock().insert(index.table.id);
        engine.bell.ring();
    }
}

/// The entries of a transaction's writes that match a find, in its direction.
fn entries_in(own: &OwnFound, find: &BytesFind) -> VecDeque<Vec<u8>> {
    let is_asked = |entry: &&Vec<u8>| find.ranges.iter().any(|range| range.contains(*entry));
    let asked = own.entries().iter().filter(is_asked).cloned();
    match find.direction {
        Direction::Forward => asked.collect(),
        Direction::Reversed => asked.rev().collect(),
    }
}

impl BytesFind {
    /// The transaction's writes until now, for an iteration that begins at `at`; none if they do
    /// not concern the find.
    pub(crate) fn settle_own(&self, at: At) -> Result<Option<Arc<OwnFound>>> {
        let Some(inside) = self.inside.as_ref().filter(|_| self.own.is_none()) else {
            return Ok(self.own.clone());
        };
        let (engine, table) = (self.table.engine(), self.table.core());
        let extractor = self.index.extractor.as_ref();
        let extractor = extractor.map_err(|why| not_at_hand(table, &self.index, why))?;
        Ok(OwnFound::of(engine, (table, extractor), inside, at).map(Arc::new))
    }

    /// The keys of the records. No separated value is read if heads or keys have the terms.
    pub fn keys(self) -> impl FusedIterator<Item = Result<Vec<u8>>> {
        Hits::start(self, Want::Key).map(|hit| Ok(hit?.key))
    }

    /// Keys and heads of the records.
    pub fn heads(self) -> impl FusedIterator<Item = Result<(Vec<u8>, Head)>> {
        Hits::start(self, Want::Head).filter_map(|hit| match hit {
            Ok(Hit { key, head, .. }) => head.map(|head| Ok((key, head))),
            Err(error) => Some(Err(error)),
        })
    }

    /// Keys and values of the records.
    pub fn values(self) -> impl FusedIterator<Item = Result<(Vec<u8>, Vec<u8>)>> {
        Hits::start(self, Want::Value).map(|hit| hit.map(|hit| (hit.key, hit.value)))
    }

    /// Hits, each with its term; with values if wanted.
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
