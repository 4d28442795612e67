//! What is in memory about a key in one part, before its filter and its blocks are read.

use folddb_layout::filter::Line;

/// What is known about a key in a part before its filter and its blocks are read: see
/// [`Part::probe`](crate::Part::probe).
#[derive(Clone, Copy, Debug)]
pub struct Probe<'p> {
    pub(crate) leaf: u32,
    pub(crate) says: Says<'p>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Says<'p> {
    /// The part has no record of the key that the reader sees.
    Nothing,
    /// The filter is in memory: the line of it that knows, which is on its way to the processor.
    Line(&'p Line),
    /// The filter is not in memory.
    Ask,
    /// There is no filter.
    NoFilter,
}

impl Probe<'_> {
    pub(crate) fn leaf(&self) -> usize {
        self.leaf as usize
    }

    /// Whether the filter is not in memory.
    pub(crate) fn asks_filter(&self) -> bool {
        matches!(self.says, Says::Ask)
    }

    /// Whether the part may have the key, as far as what is in memory says.
    pub(crate) fn may_have(&self, key_hash: u64) -> bool {
        match self.says {
            Says::Nothing => false,
            Says::Line(line) => line.may_contain(key_hash),
            Says::Ask | Says::NoFilter => true,
        }
    }
}
