//! Many sorted streams as one: a loser tree over cached prefixes.
//!
//! A [`KWay`] holds its sources newest first and is itself a stream in the total order: keys
//! ascending, the records of one key newest first; or in its exact mirror. If keys and seqs of two
//! sources are equal, the newer source comes first; the order within a source is kept. Merges,
//! flushes and scans run on it.
//!
//! The loser tree is Knuth's (The Art of Computer Programming, volume 3, 5.4.1): each inner node
//! keeps the loser of the match played there, so that after an advance only the path from one leaf
//! to the root is played again:
//!
//! ```text
//!              winner
//!                |            k sources are the leaves k .. 2k-1,
//!             loser 1         inner nodes are 1 .. k-1,
//!            /       \        the parent of n is n/2
//!       loser 2     loser 3
//!       /    \       /    \
//!      s0    s1     s2    s3
//! ```
//!
//! A node carries the first eight bytes of its source's key after the common prefix, which decides
//! nearly every match without touching the keys. With one source it is a pass-through.

use std::cmp::Ordering;

use folddb_base::{Direction, Record, RecordStream, Result, Seq};
use folddb_rules::KeyOrder;
use folddb_rules::order::PrefixOrder;

/// The prefix of a source that has ended. A source that has not ended may have it, too: then
/// [`KWay::wins_tie`] decides.
const ENDED: u64 = u64::MAX;

/// How many leading bytes the keys of all sources share: each gives how many its own keys share,
/// and one of these keys. To be used as `skip` of [`KWay::new`].
pub fn shared_skip<'k>(order: &KeyOrder, sources: impl Iterator<Item = (usize, &'k [u8])>) -> usize {
    let mut first: Option<(usize, &[u8])> = None;
    for (own, key) in sources {
        first = Some(match first {
            None => (own, key),
            Some((skip, of_first)) => (skip.min(own).min(order.shared_prefix_len(of_first, key)), of_first),
        });
    }
    first.map_or(0, |(skip, _)| skip)
}

/// A merged stream over sources that are ranked newest first.
#[derive(Debug)]
pub struct KWay<S> {
    sources: Vec<S>,
    /// The losers at 1 .. k-1, and the winner at 0.
    nodes: Vec<Node>,
    order: KeyOrder,
    skip: usize,
    /// Keys of at most this length are wholly within `skip` and prefix.
    covered: usize,
    mirrored: bool,
}

#[derive(Clone, Copy, Debug)]
struct Node {
    prefix: u64,
    source: u32,
}

impl<S: RecordStream> KWay<S> {
    /// Merges `sources`, newest first, all of them running in `direction`. `skip` is a number of
    /// leading bytes that *all* keys of all sources share, 0 if nothing is known.
    pub fn new(order: KeyOrder, direction: Direction, skip: usize, sources: Vec<S>) -> KWay<S> {
        let mirrored = direction == Direction::Reversed;
        let covered = if order.has_byte_prefixes() { skip.saturating_add(8) } else { 0 };
        let mut kway = KWay { sources, nodes: Vec::new(), order, skip, covered, mirrored };
        kway.restart();
        kway
    }

    /// The sources, newest first, at their positions.
    pub fn sources(&self) -> &[S] {
        &self.sources
    }

    /// The rank of the source that holds the current record: 0 is the newest.
    #[inline]
    pub fn rank(&self) -> usize {
        match self.nodes.first() {
            Some(winner) => winner.source as usize,
            None => 0,
        }
    }

    /// Plays all matches.
    fn restart(&mut self) {
        let k = self.sources.len();
        self.nodes.clear();
        if k < 2 {
            return;
        }
        self.nodes.resize(k, Node { prefix: ENDED, source: 0 });
        self.nodes[0] = self.play(1);
    }

    /// Plays the matches below `at`, stores the losers and returns the winner. It recurses as deep
    /// as the tree is high.
    fn play(&mut self, at: usize) -> Node {
        let k = self.sources.len();
        if at >= k {
            return self.leaf(at - k);
        }
        let (left, right) = (self.play(2 * at), self.play(2 * at + 1));
        let (winner, loser) = if self.beats(right, left) { (right, left) } else { (left, right) };
        self.nodes[at] = loser;
        winner
    }

    #[inline]
    fn leaf(&self, source: usize) -> Node {
        let prefix = match self.sources[source].record() {
            None => ENDED,
            Some(record) => {
                let prefix = self.order.prefix(record.key, self.skip);
                if self.mirrored { !prefix } else { prefix }
            }
        };
        Node { prefix, source: source as u32 }
    }

    #[inline]
    fn beats(&self, a: Node, b: Node) -> bool {
        if a.prefix == b.prefix { self.wins_tie(a.source, b.source) } else { a.prefix < b.prefix }
    }

    /// Decides between sources with equal prefixes.
    fn wins_tie(&self, a: u32, b: u32) -> bool {
        let (x, y) = (self.sources[a as usize].record(), self.sources[b as usize].record());
        let (x, y) = match (x, y) {
            (Some(x), Some(y)) => (x, y),
            (x, y) => return x.is_some() || (y.is_none() && a < b),
        };
        // Keys of one length that their prefixes cover are equal: they need not be compared.
        let equal = x.key.len() == y.key.len() && x.key.len() <= self.covered;
        let keys = if equal { Ordering::Equal } else { self.order.compare(x.key, y.key) };
        let forward = keys.then_with(|| newest_first(x.seq, a, y.seq, b));
        if self.mirrored { forward == Ordering::Greater } else { forward == Ordering::Less }
    }
}

/// The order of two records of one key: by seq, and by rank if seqs are not kept.
#[inline]
fn newest_first(seq_a: Seq, rank_a: u32, seq_b: Seq, rank_b: u32) -> Ordering {
    seq_b.cmp(&seq_a).then(rank_a.cmp(&rank_b))
}

impl<S: RecordStream> RecordStream for KWay<S> {
    #[inline]
    fn record(&self) -> Option<Record<'_>> {
        self.sources.get(self.rank())?.record()
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        let source = self.rank();
        let Some(stream) = self.sources.get_mut(source) else { return Ok(()) };
        stream.advance()?;
        if self.nodes.is_empty() {
            return Ok(());
        }
        let mut winner = self.leaf(source);
        let mut at = (self.sources.len() + source) / 2;
        while at > 0 {
            let node = self.nodes[at];
            // The winner of a match cannot be predicted, so the loser is written without a branch.
            let swap = 0u64.wrapping_sub(u64::from(self.beats(node, winner)));
            let prefixes = (node.prefix ^ winner.prefix) & swap;
            let sources = (node.source ^ winner.source) & swap as u32;
            self.nodes[at] = Node { prefix: node.prefix ^ prefixes, source: node.source ^ sources };
            winner = Node { prefix: winner.prefix ^ prefixes, source: winner.source ^ sources };
            at /= 2;
        }
        self.nodes[0] = winner;
        Ok(())
    }
}

#[cfg(test)]
#[path = "kway/tests.rs"]
mod tests;
