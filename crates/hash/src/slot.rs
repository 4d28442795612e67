//! What the index keeps of a key: a point, and a slot that says where its value is and about how
//! long it is.
//!
//! ```text
//!   key's hash, 64 bits    | point: the first 40 bits                    | not used    |
//!   point                  | sector 6 | tag 20             | print 14    |
//!   slot                   | size class 6 | address 44                              |
//! ```
//!
//! Two keys with the same point cannot be distinguished here; a look-up reads the record of each
//! candidate. Among n keys a look-up meets n / 2^40 false candidates on average: one in 110,000
//! look-ups at ten million keys, one in 1,100 at a billion.
//!
//! An address is opaque here. For the value log it is the low 20 bits of the segment's number, then
//! 24 bits that count units of 16 bytes in it: 256 MiB a segment, and a million live segments.

use folddb_layout::hash_checkpoint::{ADDRESS_BITS, Entry, POINT_BITS, SEGMENT_BITS, SLOT_BITS, UNIT_BITS};

/// How many other keys share the point of the requested key, on average, among this many keys.
pub fn false_candidates(keys: u64) -> f64 {
    keys as f64 / (1u64 << POINT_BITS) as f64
}

/// The first 40 bits of the hash of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point(u64);

impl Point {
    /// The point of a key with this hash.
    #[inline]
    pub fn of_hash(hash: u64) -> Point {
        Point(hash >> (64 - POINT_BITS))
    }

    /// The point with these 40 bits; others are dropped.
    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Point {
        Point(bits & ((1 << POINT_BITS) - 1))
    }

    /// Its bits, as a number.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }
}

/// About how long a record is: four classes for each doubling, so that a read by the class takes at
/// most a quarter too much.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SizeClass(u8);

/// The class of records longer than all other classes. The length is in the record's head, which is
/// read first.
const OPEN: u8 = 63;

/// The unit of sizes, in bytes.
const UNIT_BYTES: u64 = 16;

impl SizeClass {
    /// The smallest class that holds this many bytes.
    pub fn of(len_bytes: u64) -> SizeClass {
        let units = len_bytes.div_ceil(UNIT_BYTES).max(4);
        let octave = units.ilog2() - 2;
        let quarters = units.div_ceil(1 << octave); // 4 to 8
        let class = u64::from(4 * octave) + quarters - 4;
        SizeClass(u8::try_from(class).map_or(OPEN, |class| class.min(OPEN)))
    }

    /// The most bytes that a record of it takes; for the longest class, the bytes of its shortest
    /// record.
    pub fn about_bytes(self) -> u64 {
        self.read_bytes().unwrap_or((4 * UNIT_BYTES) << (OPEN / 4 + 1))
    }

    /// How many bytes to read so that the whole record is among them; none if only the record's
    /// head knows.
    pub fn read_bytes(self) -> Option<u64> {
        (self.0 < OPEN).then(|| ((4 + u64::from(self.0 % 4)) * UNIT_BYTES) << (self.0 / 4))
    }
}

/// Where a value is and about how long it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u64);

impl Slot {
    /// A slot; none if the address is zero or does not fit 44 bits.
    #[inline]
    pub fn new(address: u64, class: SizeClass) -> Option<Slot> {
        (1..1 << ADDRESS_BITS).contains(&address).then(|| Slot(u64::from(class.0) << ADDRESS_BITS | address))
    }

    /// The slot of a record of this many bytes in the value log; none if it is too far into its
    /// segment.
    pub fn of_place(segment: u32, unit: u32, record_bytes: u64) -> Option<Slot> {
        if unit >= 1 << UNIT_BITS {
            return None;
        }
        let segment = u64::from(segment) & ((1 << SEGMENT_BITS) - 1);
        Slot::new(segment << UNIT_BITS | u64::from(unit), SizeClass::of(record_bytes))
    }

    /// The low [`SEGMENT_BITS`] bits of the number of its segment.
    #[inline]
    pub fn segment(self) -> u32 {
        (self.address() >> UNIT_BITS) as u32
    }

    /// Where in its segment its record begins, in units of 16 bytes.
    #[inline]
    pub fn unit(self) -> u32 {
        (self.address() & ((1 << UNIT_BITS) - 1)) as u32
    }

    /// The slot with this number, as [`Slot::bits`] returned it; none if there is no such slot.
    pub fn from_number(number: u64) -> Option<Slot> {
        let is_one = number < 1 << SLOT_BITS && number & ((1 << ADDRESS_BITS) - 1) != 0;
        is_one.then_some(Slot(number))
    }

    /// The slot with these bits, which came from one.
    #[inline]
    pub(crate) fn from_bits(bits: u64) -> Slot {
        Slot(bits)
    }

    /// Its 50 bits, as a number; never zero.
    #[inline]
    pub fn bits(self) -> u64 {
        self.0
    }

    /// Where.
    #[inline]
    pub fn address(self) -> u64 {
        self.0 & ((1 << ADDRESS_BITS) - 1)
    }

    /// About how long.
    #[inline]
    pub fn class(self) -> SizeClass {
        SizeClass((self.0 >> ADDRESS_BITS) as u8)
    }
}

/// As it is saved.
pub(crate) fn entry(point: Point, slot: Slot) -> Entry {
    Entry { point: point.bits(), slot: slot.bits() }
}

#[cfg(test)]
#[path = "slot/tests.rs"]
mod tests;
