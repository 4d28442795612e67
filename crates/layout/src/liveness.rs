//! What a part points to in the value log: how much in each value segment, and where.
//!
//! ```text
//!   piece   count of segments varint, then of each:
//!           segment varint | count varint | bytes varint | end varint | units: count × varint,
//!           rising: the first, then the distance to the one before
//! ```
//!
//! A unit is 16 bytes of the segment, as in a pointer; `end` is the unit after the last record. The
//! segments without their units are also in the facts of the part (`part.rs`), so that counting
//! live bytes reads nothing else. A trimmed part lists more than what it shows: that keeps dead
//! values, and loses none.

use std::collections::BTreeMap;

use folddb_base::ValuePlace;
use folddb_base::bytes::{Malformed, Reader, put_varint};
use folddb_base::pointer::VALUE_ALIGN;

use crate::block::{Compression, Encoding, Sealed, seal};

/// How much a part points to in one value segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentUse {
    /// The segment.
    pub segment: u32,
    /// Values.
    pub count: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// The unit after the last of them.
    pub end: u64,
}

/// What a part points to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Liveness {
    segments: BTreeMap<u32, (SegmentUse, Vec<u32>)>,
}

impl Liveness {
    /// Notes a value whose record takes `bytes`.
    pub fn note(&mut self, place: ValuePlace, bytes: u64) {
        let (used, units) = self.segments.entry(place.segment).or_default();
        used.segment = place.segment;
        used.count += 1;
        used.bytes += bytes;
        used.end = used.end.max(u64::from(place.unit) + bytes / VALUE_ALIGN);
        units.push(place.unit);
    }

    /// True when the part points to nothing.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// How much it points to in each segment, by segment.
    pub fn uses(&self) -> Vec<SegmentUse> {
        self.segments.values().map(|(used, _)| *used).collect()
    }

    /// The units in a segment, ascending.
    pub fn units(&self, segment: u32) -> &[u32] {
        self.segments.get(&segment).map_or(&[], |(_, units)| units)
    }

    /// Whether the two have the same places, in any order of noting.
    pub fn is_same(&self, other: &mut Liveness) -> bool {
        other.segments.values_mut().for_each(|(_, units)| units.sort_unstable());
        self == other
    }

    /// Appends it as a piece of a file.
    pub fn put(&mut self, out: &mut Vec<u8>, seed: u64) {
        let start = out.len();
        put_varint(out, self.segments.len() as u64);
        for (used, units) in self.segments.values_mut() {
            units.sort_unstable();
            put_use(out, used);
            let mut last = 0;
            for &unit in units.iter() {
                put_varint(out, u64::from(unit - last));
                last = unit;
            }
        }
        seal(out, start, Encoding::Liveness, Compression::None, seed, &mut Vec::new());
    }

    /// Reads what [`Liveness::put`] wrote.
    ///
    /// # Errors
    /// The checksum does not match, or the bytes are not a liveness piece.
    pub fn open(stored: &[u8], seed: u64) -> Result<Liveness, Malformed> {
        let mut reader = Reader::new(Sealed::open(stored, seed)?.plain(Encoding::Liveness)?);
        let mut liveness = Liveness::default();
        for _ in 0..reader.length()? {
            let used = read_use(&mut reader)?;
            let mut units = Vec::new();
            let mut last = 0u32;
            for _ in 0..used.count {
                let step = u32::try_from(reader.varint()?).map_err(|_| Malformed::Bounds)?;
                last = last.checked_add(step).ok_or(Malformed::Bounds)?;
                units.push(last);
            }
            if liveness.segments.insert(used.segment, (used, units)).is_some() {
                return Err(Malformed::Order);
            }
        }
        reader.finish()?;
        Ok(liveness)
    }
}

/// Appends a use.
pub(crate) fn put_use(out: &mut Vec<u8>, used: &SegmentUse) {
    [u64::from(used.segment), used.count, used.bytes, used.end]
        .iter()
        .for_each(|number| put_varint(out, *number));
}

/// Reads a use.
pub(crate) fn read_use(reader: &mut Reader<'_>) -> Result<SegmentUse, Malformed> {
    let segment = u32::try_from(reader.varint()?).map_err(|_| Malformed::Bounds)?;
    Ok(SegmentUse { segment, count: reader.varint()?, bytes: reader.varint()?, end: reader.varint()? })
}

#[cfg(test)]
#[path = "liveness/tests.rs"]
mod tests;
