//! Many chunks as one sequence: a loser tree (Knuth, The Art of Computer Programming 3, 5.4.1) over
//! the prefixes of their current keys.
//!
//! Advancing costs one comparison for each level of the tree, nearly always of two numbers in the
//! tree itself. Equal keys come from the first source first: from the newer one forward, from the
//! older one reversed.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use folddb_base::{Direction, Record, RecordStream, Result, Seq};
use folddb_rules::KeyOrder;
use folddb_rules::order::PrefixOrder;

use crate::chunk::{Chunk, Entry, LANES, counts_before};
use crate::front::Rest;
use crate::packed::Place;

/// A range in which a reader does not need the records with a seq up to `through`. Sources without
/// newer records begin at `to`, and are left out if they have no key from there on. Only for
/// forward streams.
#[derive(Clone, Copy, Debug)]
pub struct Jump<'a> {
    /// Records up to this seq can be skipped.
    pub through: Seq,
    /// The first key after the range.
    pub to: Option<&'a [u8]>,
}

/// The records of several chunks in the total order, or in its mirror.
pub(crate) struct KWay {
    order: KeyOrder,
    direction: Direction,
    /// Leading bytes that all keys of all sources share.
    skip: usize,
    sources: Vec<Source>,
    /// `tree[0]` is the winner; `tree[n]` is the loser of the match at node n.
    tree: Vec<Node>,
}

struct Source {
    chunk: Arc<Chunk>,
    /// The current entry, if any are left.
    at: usize,
    /// How many entries are left, including the current one.
    left: usize,
    head: Place,
    /// What follows the last entry; only in forward streams.
    rest: Option<Box<Rest>>,
}

/// A source in the tree. Its rank sorts in the order of the stream.
#[derive(Clone, Copy)]
struct Node {
    rank: u64,
    source: u32,
}

/// No source has played at this node yet.
const NOBODY: Node = Node { rank: 0, source: u32::MAX };

impl KWay {
    /// Merges `newest_first` from `from` on; `from` is in the range of `jump`.
    pub(crate) fn new(
        order: KeyOrder,
        newest_first: impl DoubleEndedIterator<Item = Arc<Chunk>>,
        direction: Direction,
        from: Bound<&[u8]>,
        jump: Option<Jump<'_>>,
    ) -> KWay {
        let chunks: Vec<Arc<Chunk>> = match direction {
            Direction::Forward => newest_first.collect(),
            Direction::Reversed => newest_first.rev().collect(),
        };
        let skip = shared_skip(&order, &chunks);
        let starts = match direction {
            Direction::Forward => starts_of(&order, &chunks, from, jump),
            Direction::Reversed => chunks.iter().map(|chunk| chunk.count_up_to(&order, from)).collect(),
        };
        let start = |(chunk, start): (Arc<Chunk>, usize)| Source::start(chunk, direction, start);
        let sources = chunks.into_iter().zip(starts).map(start).filter(|source| source.left > 0);
        KWay { order, direction, skip, tree: Vec::new(), sources: sources.collect() }.with_tree()
    }

    /// Merges `front`, followed by `rest`, with the older chunks, from `from` on.
    pub(crate) fn with_rest(
        order: KeyOrder,
        (front, rest): (Chunk, Rest),
        older: impl DoubleEndedIterator<Item = Arc<Chunk>>,
        from: Bound<&[u8]>,
    ) -> KWay {
        let front = Arc::new(front);
        let skip = shared_skip(&order, &[Arc::clone(&front)]);
        let mut merged = KWay::new(order, older, Direction::Forward, from, None);
        let start = front.count_before(&merged.order, from);
        let mut source = Source::start(Arc::clone(&front), Direction::Forward, start);
        source.rest = Some(Box::new(rest));
        if source.left == 0 {
            source.go_on();
        }
        // With other sources: all keys share the bytes that the first key of one of these shares
        // with the front.
        merged.skip = match merged.sources.first() {
            None => skip,
            Some(first) => {
                let (a, b) = (first.chunk.key(&first.chunk.entries[0]), front.key(&front.entries[0]));
                skip.min(merged.skip).min(merged.order.shared_prefix_len(a, b))
            }
        };
        merged.sources.insert(0, source);
        merged.with_tree()
    }

    /// Builds the tree: plays the matches of all sources.
    fn with_tree(mut self) -> KWay {
        self.tree = vec![NOBODY; self.sources.len().max(1)];
        for source in 0..self.sources.len() {
            self.enter(source);
        }
        self
    }

    /// Leading bytes that all keys share; the prefixes of [`KWay::current`] begin after them.
    pub(crate) fn skip(&self) -> usize {
        self.skip
    }

    /// The same, and a key that begins with these bytes; none if there are no sources.
    pub(crate) fn shared_prefix(&self) -> Option<(usize, &[u8])> {
        let chunk = &self.sources.first()?.chunk;
        Some((self.skip, chunk.key(chunk.entries.first()?)))
    }

    /// The current record as a merge of chunks needs it: the number of its source, its chunk, its
    /// entry, and its prefix after `skip` bytes (inverted if reversed).
    #[inline]
    pub(crate) fn current(&self) -> Option<(u32, &Chunk, &Entry, u64)> {
        let winner = self.tree[0];
        let source = self.sources.get(winner.source as usize)?;
        if source.left == 0 {
            return None;
        }
        Some((winner.source, &source.chunk, &source.chunk.entries[source.at], winner.rank))
    }

    /// Advances to the next record.
    #[inline]
    pub(crate) fn step(&mut self) {
        let winner = self.tree[0].source as usize;
        let Some(source) = self.sources.get_mut(winner) else { return };
        if source.left == 0 {
            return;
        }
        source.left -= 1;
        if source.left > 0 {
            match self.direction {
                Direction::Forward => source.at += 1,
                Direction::Reversed => source.at -= 1,
            }
            source.read_head();
        } else if source.rest.is_some() {
            source.go_on();
        }
        self.replay(winner);
    }

    /// Inserts a source into the tree: up from its leaf to the first node without a waiting source.
    fn enter(&mut self, source: usize) {
        let mut player = Node { rank: self.rank_of(source), source: source as u32 };
        let mut node = (source + self.sources.len()) / 2;
        while node > 0 {
            let rival = self.tree[node];
            if rival.source == NOBODY.source {
                self.tree[node] = player;
                return;
            }
            if self.beats(rival, player) {
                self.tree[node] = player;
                player = rival;
            }
            node /= 2;
        }
        self.tree[0] = player;
    }

    /// Replays the matches of the last winner, with its new head, up from its leaf. The winner of a
    /// match cannot be predicted, so the loser is written without a branch.
    #[inline]
    fn replay(&mut self, source: usize) {
        let mut player = Node { rank: self.rank_of(source), source: source as u32 };
        let mut node = (source + self.sources.len()) / 2;
        while node > 0 {
            let rival = self.tree[node];
            let rival_wins = if rival.rank == player.rank {
                self.beats_by_key(rival, player)
            } else {
                rival.rank < player.rank
            };
            let keep = 0u64.wrapping_sub(u64::from(rival_wins));
            let ranks = (rival.rank ^ player.rank) & keep;
            let sources = (rival.source ^ player.source) & keep as u32;
            self.tree[node] = Node { rank: rival.rank ^ ranks, source: rival.source ^ sources };
            player = Node { rank: player.rank ^ ranks, source: player.source ^ sources };
            node /= 2;
        }
        self.tree[0] = player;
    }

    #[inline]
    fn rank_of(&self, source: usize) -> u64 {
        let source = &self.sources[source];
        if source.left == 0 {
            return u64::MAX;
        }
        let entry = &source.chunk.entries[source.at];
        let prefix = if source.chunk.skip == self.skip {
            entry.prefix
        } else {
            self.order.prefix(source.head.key(&source.chunk.arena), self.skip)
        };
        match self.direction {
            Direction::Forward => prefix,
            Direction::Reversed => !prefix,
        }
    }

    #[inline]
    fn beats(&self, a: Node, b: Node) -> bool {
        if a.rank != b.rank { a.rank < b.rank } else { self.beats_by_key(a, b) }
    }

    fn beats_by_key(&self, a: Node, b: Node) -> bool {
        let (left, right) = (&self.sources[a.source as usize], &self.sources[b.source as usize]);
        if left.left == 0 || right.left == 0 {
            return left.left > 0;
        }
        let keys = self.order.compare(left.key(), right.key());
        let keys = if self.direction == Direction::Reversed { keys.reverse() } else { keys };
        keys.then(a.source.cmp(&b.source)) == Ordering::Less
    }
}

/// How many leading bytes all keys of all chunks share.
pub(crate) fn shared_skip(order: &KeyOrder, chunks: &[Arc<Chunk>]) -> usize {
    let mut firsts = chunks.iter().filter_map(|chunk| chunk.entries.first().map(|entry| chunk.key(entry)));
    let Some(first) = firsts.next() else { return 0 };
    let own = chunks.iter().map(|chunk| chunk.skip).min().unwrap_or(0);
    firsts.fold(own, |skip, other| skip.min(order.shared_prefix_len(first, other)))
}

/// How many entries of each chunk a forward stream leaves out.
fn starts_of(
    order: &KeyOrder,
    chunks: &[Arc<Chunk>],
    from: Bound<&[u8]>,
    jump: Option<Jump<'_>>,
) -> Vec<usize> {
    let mut starts: Vec<usize> = chunks.iter().map(|chunk| chunk.len()).collect();
    let is_old = |chunk: &Chunk| jump.is_some_and(|jump| chunk.max_seq <= jump.through);
    seek(order, chunks, &mut starts, from, |chunk| !is_old(chunk));
    if let Some(to) = jump.and_then(|jump| jump.to) {
        seek(order, chunks, &mut starts, Bound::Included(to), is_old);
    }
    starts
}

/// Finds where `from` is in the chunks that are `wanted`.
fn seek(
    order: &KeyOrder,
    chunks: &[Arc<Chunk>],
    starts: &mut [usize],
    from: Bound<&[u8]>,
    wanted: impl Fn(&Chunk) -> bool,
) {
    let mut wanted = chunks.iter().zip(starts).filter(|(chunk, _)| wanted(chunk));
    let (key, is_past) = match from {
        Bound::Unbounded => return wanted.for_each(|(_, start)| *start = 0),
        Bound::Included(key) => (key, false),
        Bound::Excluded(key) => (key, true),
    };
    loop {
        let mut group: Vec<(&Arc<Chunk>, &mut usize)> = wanted.by_ref().take(LANES).collect();
        if group.is_empty() {
            return;
        }
        let lanes: Vec<&Chunk> = group.iter().map(|(chunk, _)| &***chunk).collect();
        let found = counts_before(order, &lanes, key);
        for ((chunk, start), found) in group.iter_mut().zip(found) {
            let same = chunk.entries[found..].iter().take_while(|entry| is_past && chunk.key(entry) == key);
            **start = found + same.count();
        }
    }
}

impl Source {
    /// A source that leaves out the first `start` entries; reversed, it has only these.
    fn start(chunk: Arc<Chunk>, direction: Direction, start: usize) -> Source {
        let (at, left) = match direction {
            Direction::Forward => (start, chunk.len() - start),
            Direction::Reversed => (start.saturating_sub(1), start),
        };
        let mut source = Source { chunk, at, left, head: Place::NOWHERE, rest: None };
        if left > 0 {
            source.read_head();
        }
        source
    }

    /// Continues with the rest, from its first record on.
    #[cold]
    fn go_on(&mut self) {
        let Some(rest) = self.rest.take() else { return };
        *self = Source::start(Arc::new(rest.sort()), Direction::Forward, 0);
    }

    #[inline]
    fn read_head(&mut self) {
        self.head = Place::at(&self.chunk.arena, self.chunk.entries[self.at].offset);
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.head.key(&self.chunk.arena)
    }
}

impl RecordStream for KWay {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        let source = self.sources.get(self.tree[0].source as usize)?;
        if source.left == 0 {
            return None;
        }
        let seq = source.chunk.seq(&source.chunk.entries[source.at]);
        Some(source.head.record(&source.chunk.arena, seq))
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        self.step();
        Ok(())
    }
}
