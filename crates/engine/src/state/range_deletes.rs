//! The range deletes of a table, for readers: which is the newest over a key?
//!
//! ```text
//!   young      up to 16, looked at one by one
//!   nodes      16, 64, 256 ... range deletes that follow one another in the history, at most three nodes of a size
//!   a node     its top: the ends of its ranges in key order, each with the newest of them from there on
//!              below: the four nodes, or the 16 range deletes, that it was made of
//! ```
//!
//! A reader of the present searches each node's top, newest node first. A reader of the past skips
//! newer nodes, and descends into the one node that spans its seq. So both cost O(log² n)
//! comparisons, and adding a range delete costs O(log n) amortized; nothing that a reader holds is
//! changed. All of it is pure.

use std::cmp::Ordering;
use std::sync::Arc;

use folddb_base::Seq;
use folddb_manifest::RangeDelete;
use folddb_rules::KeyOrder;

/// Up to this many range deletes are examined one by one.
const FEW: usize = 16;
/// This many nodes of a size become one.
const FANOUT: usize = 4;

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct RangeDeletes {
    /// Oldest first, and so largest first.
    nodes: Vec<Arc<Node>>,
    /// Newer ones, oldest first.
    young: Vec<Arc<RangeDelete>>,
    len: usize,
}

#[derive(Debug)]
struct Node {
    first: Seq,
    last: Seq,
    level: u8,
    /// By ascending keys; before the first nothing is covered.
    top: Vec<End>,
    below: Below,
}

#[derive(Debug)]
enum Below {
    Few(Vec<Arc<RangeDelete>>),
    Nodes(Vec<Arc<Node>>),
}

/// A place among the keys where the newest range delete changes.
#[derive(Clone, Debug)]
struct End {
    /// It is the beginning of this one, or its end.
    range: Arc<RangeDelete>,
    is_end: bool,
    /// The newest from here on; 0 for none.
    seq: Seq,
}

impl End {
    fn key(&self) -> &[u8] {
        if self.is_end { &self.range.to } else { &self.range.from }
    }
}

impl RangeDeletes {
    /// These, oldest first.
    pub fn of(order: &KeyOrder, ranges: impl IntoIterator<Item = Arc<RangeDelete>>) -> RangeDeletes {
        let mut all = RangeDeletes::default();
        ranges.into_iter().for_each(|range| all.add(order, range));
        all
    }

    /// Adds one that is newer than all others.
    pub fn add(&mut self, order: &KeyOrder, range: Arc<RangeDelete>) {
        self.young.push(range);
        self.len += 1;
        if self.young.len() < FEW {
            return;
        }
        self.nodes.push(Arc::new(Node::of_few(order, std::mem::take(&mut self.young))));
        while let Some(from) = self.nodes.len().checked_sub(FANOUT)
            && self.nodes[from].level == self.nodes[from + FANOUT - 1].level
        {
            let below = self.nodes.split_off(from);
            self.nodes.push(Arc::new(Node::of_nodes(order, below)));
        }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<RangeDelete>> {
        self.newer_than(0)
    }

    /// Those that are newer than `seq`, oldest first.
    pub(crate) fn newer_than(&self, seq: Seq) -> impl Iterator<Item = &Arc<RangeDelete>> {
        let from = self.nodes.partition_point(|node| node.last <= seq);
        let old = self.nodes[from..].iter().flat_map(|node| node.iter());
        old.chain(&self.young).skip_while(move |range| range.seq <= seq)
    }

    /// The newest one that covers `key` and that a reader at `limit` sees; 0 if there is none.
    #[inline]
    pub(crate) fn newest_over(&self, order: &KeyOrder, key: &[u8], limit: Seq) -> Seq {
        if self.is_empty() { 0 } else { self.find_newest(order, key, limit) }
    }

    fn find_newest(&self, order: &KeyOrder, key: &[u8], limit: Seq) -> Seq {
        let young = newest_of(&self.young, order, key, limit);
        if young > 0 { young } else { newest_in(&self.nodes, order, key, limit) }
    }

    /// The seqs of all that cover `key`, newest first.
    pub fn all_over(&self, order: &KeyOrder, key: &[u8]) -> Vec<Seq> {
        let mut seqs = Vec::new();
        take_over(&self.young, order, key, &mut seqs);
        self.nodes.iter().rev().for_each(|node| node.take_over(order, key, &mut seqs));
        seqs
    }

    /// Whether one that is newer than `seq` covers a key from `low` to `high`, both included.
    pub fn is_any_among(&self, order: &KeyOrder, (low, high): (&[u8], &[u8]), seq: Seq) -> bool {
        let meets = |range: &Arc<RangeDelete>| {
            range.seq > seq
                && order.compare(&range.from, high) != Ordering::Greater
                && order.compare(low, &range.to) == Ordering::Less
        };
        let newer = self.nodes.iter().rev().take_while(|node| node.last > seq);
        self.young.iter().any(meets)
            || newer.into_iter().any(|node| node.is_any_among(order, (low, high), seq))
    }
}

fn newest_in(nodes: &[Arc<Node>], order: &KeyOrder, key: &[u8], limit: Seq) -> Seq {
    let seen = nodes.iter().rev().filter(|node| node.first <= limit);
    seen.map(|node| node.newest_over(order, key, limit)).find(|&seq| seq > 0).unwrap_or(0)
}

fn covers(range: &RangeDelete, order: &KeyOrder, key: &[u8]) -> bool {
    order.compare(&range.from, key) != Ordering::Greater && order.compare(key, &range.to) == Ordering::Less
}

/// `ranges` are in order, oldest first.
fn newest_of(ranges: &[Arc<RangeDelete>], order: &KeyOrder, key: &[u8], limit: Seq) -> Seq {
    let newest = ranges.iter().rev().find(|range| range.seq <= limit && covers(range, order, key));
    newest.map_or(0, |range| range.seq)
}

fn take_over(ranges: &[Arc<RangeDelete>], order: &KeyOrder, key: &[u8], seqs: &mut Vec<Seq>) {
    seqs.extend(ranges.iter().rev().filter(|range| covers(range, order, key)).map(|range| range.seq));
}

impl Node {
    fn of_few(order: &KeyOrder, few: Vec<Arc<RangeDelete>>) -> Node {
        let upright = few.iter().filter(|range| order.compare(&range.from, &range.to).is_lt());
        let tops = upright.map(|range| {
            let end = |is_end, seq| End { range: Arc::clone(range), is_end, seq };
            vec![end(false, range.seq), end(true, 0)]
        });
        let top = tops.reduce(|older, newer| overlay(order, &older, &newer)).unwrap_or_default();
        let (first, last) = (few.first().map_or(0, |r| r.seq), few.last().map_or(0, |r| r.seq));
        Node { first, last, level: 0, top, below: Below::Few(few) }
    }

    fn of_nodes(order: &KeyOrder, nodes: Vec<Arc<Node>>) -> Node {
        let mut top = Vec::new();
        nodes.iter().for_each(|node| top = overlay(order, &top, &node.top));
        let (first, last) = (nodes.first().map_or(0, |n| n.first), nodes.last().map_or(0, |n| n.last));
        let level = nodes.first().map_or(0, |node| node.level + 1);
        Node { first, last, level, top, below: Below::Nodes(nodes) }
    }

    fn newest_over(&self, order: &KeyOrder, key: &[u8], limit: Seq) -> Seq {
        let newest = self.top_at(order, key);
        if newest == 0 || newest <= limit {
            return newest;
        }
        match &self.below {
            Below::Few(few) => newest_of(few, order, key, limit),
            Below::Nodes(nodes) => newest_in(nodes, order, key, limit),
        }
    }

    /// The newest over `key`.
    fn top_at(&self, order: &KeyOrder, key: &[u8]) -> Seq {
        let above = self.top.partition_point(|end| order.compare(end.key(), key) != Ordering::Greater);
        above.checked_sub(1).map_or(0, |at| self.top[at].seq)
    }

    fn take_over(&self, order: &KeyOrder, key: &[u8], seqs: &mut Vec<Seq>) {
        if self.top_at(order, key) == 0 {
            return;
        }
        match &self.below {
            Below::Few(few) => take_over(few, order, key, seqs),
            Below::Nodes(nodes) => nodes.iter().rev().for_each(|node| node.take_over(order, key, seqs)),
        }
    }

    fn is_any_among(&self, order: &KeyOrder, (low, high): (&[u8], &[u8]), seq: Seq) -> bool {
        let above = self.top.partition_point(|end| order.compare(end.key(), low) != Ordering::Greater);
        let ends = self.top[above.saturating_sub(1)..].iter();
        let from = usize::from(above > 0); // it begins before `low`, and reaches past it
        let mut among = ends
            .enumerate()
            .take_while(|(index, end)| *index < from || order.compare(end.key(), high) != Ordering::Greater);
        among.any(|(_, end)| end.seq > seq)
    }

    fn iter(&self) -> Box<dyn Iterator<Item = &Arc<RangeDelete>> + '_> {
        match &self.below {
            Below::Few(few) => Box::new(few.iter()),
            Below::Nodes(nodes) => Box::new(nodes.iter().flat_map(|node| node.iter())),
        }
    }
}

/// The top of both: where the newer has a range delete, that is the newest.
fn overlay(order: &KeyOrder, older: &[End], newer: &[End]) -> Vec<End> {
    let mut top: Vec<End> = Vec::with_capacity(older.len() + newer.len());
    let (mut under, mut over) = (older.iter().peekable(), newer.iter().peekable());
    let (mut under_seq, mut over_seq) = (0, 0);
    loop {
        let next = match (under.peek(), over.peek()) {
            (None, None) => return top,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => order.compare(a.key(), b.key()),
        };
        let older = if next == Ordering::Greater { None } else { under.next() };
        let newer = if next == Ordering::Less { None } else { over.next() };
        under_seq = older.map_or(under_seq, |end| end.seq);
        over_seq = newer.map_or(over_seq, |end| end.seq);
        let seq = if over_seq > 0 { over_seq } else { under_seq };
        if top.last().map_or(0, |end| end.seq) != seq {
            top.extend(newer.or(older).map(|end| End { seq, ..end.clone() }));
        }
    }
}

#[cfg(test)]
mod tests;
