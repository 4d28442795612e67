//! Files of relocated values: the values of one or more segments that were still live when the
//! segments were rewritten.
//!
//! ```text
//!   0        header, 4096 bytes
//!    0  magic     8 B    "FoldMov\0"
//!    8  format    u16
//!   10  (zero)    6 B
//!   16  number    u64    the file's number
//!   24  hash      u64    xxh3-64 of bytes 0..24, seeded with the number
//!   32  (zeros up to 4096)
//!   4096     records, as they were in their segments (values.rs), by segment and then by old place
//!   .        zeros up to a multiple of 4096
//!   map      pages of 4096 bytes: the old and the new place of each record
//!    0  hash      u64    xxh3-64 of bytes 8..4096, seeded with file and offset
//!    8  segment   u32    the segment that the page is of
//!   12  count     u32    1 to 510
//!   16  old       510 × u32    the units of the segment, as in pointers, ascending; zeros beyond `count`
//! 2056  new       510 × u32    the units of this file
//!   top      by segment, ascending
//!    .  count of segments varint, then of each:
//!       segment varint | values varint | bytes varint (of their records) | old × pages varint: the first `old` of each page,
//!       the first as it is, the others as the distance to the one before
//!   footer   the last 64 bytes
//!    0  magic     8 B    "FoldMovE"
//!    8  format    u16
//!   10  (zero)    6 B
//!   16  number    u64
//!   24  map_at    u64    where the pages begin; records end at or before it
//!   32  top_at    u64    where the pages end
//!   40  top_bytes u64
//!   48  top_hash  u64    xxh3-64 of the top, seeded with file and offset
//!   56  hash      u64    xxh3-64 of bytes 0..56, seeded with file and offset
//! ```
//!
//! A unit is 16 bytes, as in a pointer. A pointer names the segment in which a value was first put,
//! forever; the manifest says in which file the values of that segment are now. The file itself
//! lists its segments, and of two files with the same segment the one with the higher number is
//! newer, so this is known without a manifest, too.
//!
//! Pages are found through the top, which is in memory while the file is open: four bytes for each
//! 510 values.

use folddb_base::FileNumber;
use folddb_base::bytes::{Malformed, Reader, put_u64, put_varint};
use folddb_base::checksum::{hash64, place_seed};

/// Bytes that the header takes in the file. Records begin after them.
pub const RELOCATED_HEADER_BYTES: usize = 4096;

/// Bytes of a page of the map. Pages begin at multiples of this.
pub const MAP_PAGE_BYTES: usize = 4096;

/// Most records of a page of the map.
pub const MAP_PAGE_VALUES: usize = 510;

/// Bytes of the footer.
pub const RELOCATED_FOOTER_BYTES: usize = 64;

const MAGIC: &[u8; 8] = b"FoldMov\0";
const FOOTER_MAGIC: &[u8; 8] = b"FoldMovE";
const FORMAT: u16 = 1;
const HEADER_HASHED_BYTES: usize = 24;
const FOOTER_HASHED_BYTES: usize = 56;
const PAGE_HEAD_BYTES: usize = 16;
const PAGE_NEW_AT: usize = PAGE_HEAD_BYTES + 4 * MAP_PAGE_VALUES;

// ---- header -------------------------------------------------------------------------------------

/// The header of the file with this number.
pub fn header(number: FileNumber) -> Vec<u8> {
    let mut out = Vec::with_capacity(RELOCATED_HEADER_BYTES);
    put_name(&mut out, MAGIC, number);
    let hash = hash64(place_seed(number.0, 0), &out);
    put_u64(&mut out, hash);
    out.resize(RELOCATED_HEADER_BYTES, 0);
    out
}

fn put_name(out: &mut Vec<u8>, magic: &[u8; 8], number: FileNumber) {
    out.extend_from_slice(magic);
    out.extend_from_slice(&FORMAT.to_le_bytes());
    out.extend_from_slice(&[0; 6]);
    put_u64(out, number.0);
}

fn read_name(reader: &mut Reader<'_>, magic: &[u8; 8], number: FileNumber) -> Result<(), Malformed> {
    let is_known = reader.take(8)? == magic
        && reader.take(2)? == FORMAT.to_le_bytes()
        && reader.take(6)?.iter().all(|&byte| byte == 0);
    if !is_known {
        return Err(Malformed::Tag);
    }
    if reader.u64()? == number.0 { Ok(()) } else { Err(Malformed::Order) }
}

/// Checks that these are the first [`RELOCATED_HEADER_BYTES`] of the file with this number.
///
/// # Errors
/// `Tag` if they are whole but of another format; anything else if they are not whole.
pub fn check_header(bytes: &[u8], number: FileNumber) -> Result<(), Malformed> {
    let header = bytes.get(..RELOCATED_HEADER_BYTES).ok_or(Malformed::Short)?;
    let (hashed, rest) = header.split_at(HEADER_HASHED_BYTES);
    let (hash, zeros) = rest.split_at(8);
    if hash != hash64(place_seed(number.0, 0), hashed).to_le_bytes() || zeros.iter().any(|&byte| byte != 0) {
        return Err(Malformed::Checksum);
    }
    read_name(&mut Reader::new(hashed), MAGIC, number)
}

// ---- map ----------------------------------------------------------------------------------------

/// The old place of a record in its segment, and its new place in this file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The unit in the segment, as in pointers.
    pub old: u32,
    /// The unit in the file.
    pub new: u32,
}

/// What a file holds of one segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// The segment.
    pub segment: u32,
    /// How many values.
    pub values: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// The first unit in each page of the map.
    pub page_firsts: Vec<u32>,
}

/// Appends the pages of a segment; `out` is at `offset` of file `number`, a multiple of a page. The
/// moves must ascend.
pub fn put_pages(
    out: &mut Vec<u8>,
    (number, offset): (FileNumber, u64),
    segment: u32,
    bytes: u64,
    moves: &[Move],
) -> Carried {
    let mut carried = Carried { segment, values: moves.len() as u64, bytes, page_firsts: Vec::new() };
    let begin = out.len();
    for page in moves.chunks(MAP_PAGE_VALUES) {
        let start = out.len();
        out.extend_from_slice(&[0; 8]);
        out.extend_from_slice(&segment.to_le_bytes());
        out.extend_from_slice(&(page.len() as u32).to_le_bytes());
        page.iter().for_each(|one| out.extend_from_slice(&one.old.to_le_bytes()));
        out.resize(start + PAGE_NEW_AT, 0);
        page.iter().for_each(|one| out.extend_from_slice(&one.new.to_le_bytes()));
        out.resize(start + MAP_PAGE_BYTES, 0);
        let at = offset + (start - begin) as u64;
        let hash = hash64(place_seed(number.0, at), &out[start + 8..]);
        out[start..start + 8].copy_from_slice(&hash.to_le_bytes());
        carried.page_firsts.extend(page.first().map(|first| first.old));
    }
    carried
}

/// A page of the map, checked.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    old: &'a [u8],
    new: &'a [u8],
}

impl<'a> Page<'a> {
    /// Checks that these bytes are a page of this segment at `offset` of file `number`.
    ///
    /// # Errors
    /// They are not such a page.
    pub fn open(
        bytes: &'a [u8],
        (number, offset): (FileNumber, u64),
        segment: u32,
    ) -> Result<Page<'a>, Malformed> {
        let page = bytes.get(..MAP_PAGE_BYTES).ok_or(Malformed::Short)?;
        let (hash, rest) = page.split_at(8);
        if hash != hash64(place_seed(number.0, offset), rest).to_le_bytes() {
            return Err(Malformed::Checksum);
        }
        Page::of_checked(page, segment)
    }

    /// A page whose hash was checked when it was read.
    ///
    /// # Errors
    /// The bytes make no sense.
    pub fn of_checked(bytes: &'a [u8], segment: u32) -> Result<Page<'a>, Malformed> {
        let mut reader = Reader::new(bytes.get(8..MAP_PAGE_BYTES).ok_or(Malformed::Short)?);
        if reader.u32()? != segment {
            return Err(Malformed::Order);
        }
        let count = reader.u32()? as usize;
        if !(1..=MAP_PAGE_VALUES).contains(&count) {
            return Err(Malformed::Bounds);
        }
        let of = |at: usize| bytes.get(at..at + 4 * count).ok_or(Malformed::Short);
        Ok(Page { old: of(PAGE_HEAD_BYTES)?, new: of(PAGE_NEW_AT)? })
    }

    /// How many records it has.
    pub fn len(&self) -> usize {
        self.old.len() / 4
    }

    /// Never: a page has at least one record.
    pub fn is_empty(&self) -> bool {
        self.old.is_empty()
    }

    /// Its records, in order.
    pub fn moves(&self) -> impl Iterator<Item = Move> + 'a {
        let (old, new) = (self.old, self.new);
        (0..old.len() / 4).map(move |at| Move { old: word(old, at), new: word(new, at) })
    }

    /// The new place of the record from this unit of the segment; none if it is not in the page.
    pub fn find(&self, old: u32) -> Option<u32> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if word(self.old, middle) < old {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low < self.len() && word(self.old, low) == old).then(|| word(self.new, low))
    }
}

/// The word at this index; zero after the last.
fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(4 * at..4 * at + 4).map_or(0, |word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
}

// ---- top and footer -----------------------------------------------------------------------------

/// The part of an open file that is in memory: its segments, and where the pages of its map are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Top {
    /// Where the pages begin. Records end before.
    pub map_at: u64,
    /// The segments, ascending. Their pages follow each other in this order.
    pub carried: Vec<Carried>,
    /// The first page of each.
    first_pages: Vec<u64>,
}

impl Top {
    /// The top of a file whose pages begin at `map_at`.
    pub fn new(map_at: u64, carried: Vec<Carried>) -> Top {
        let first_pages = carried
            .iter()
            .scan(0, |next, one| {
                let first = *next;
                *next += one.page_firsts.len() as u64;
                Some(first)
            })
            .collect();
        Top { map_at, carried, first_pages }
    }

    /// Where the pages end.
    pub fn map_end(&self) -> u64 {
        let pages: u64 = self.carried.iter().map(|one| one.page_firsts.len() as u64).sum();
        self.map_at.saturating_add(pages.saturating_mul(MAP_PAGE_BYTES as u64))
    }

    /// Where the page of this unit of a segment begins, if there is one.
    pub fn page_of(&self, segment: u32, old: u32) -> Option<u64> {
        let at = self.carried.binary_search_by_key(&segment, |one| one.segment).ok()?;
        let firsts = &self.carried[at].page_firsts;
        let page = firsts.partition_point(|&first| first <= old).checked_sub(1)?;
        Some(self.map_at + (self.first_pages[at] + page as u64) * MAP_PAGE_BYTES as u64)
    }

    /// The pages of a segment, in their order.
    pub fn pages(&self, segment: u32) -> impl Iterator<Item = u64> + '_ {
        let at = self.carried.binary_search_by_key(&segment, |one| one.segment).ok();
        let pages = at.map_or(0..0, |at| {
            let first = self.first_pages[at];
            first..first + self.carried[at].page_firsts.len() as u64
        });
        pages.map(|page| self.map_at + page * MAP_PAGE_BYTES as u64)
    }

    /// The memory that it uses, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let of_one = |one: &Carried| std::mem::size_of::<Carried>() + 8 + 4 * one.page_firsts.len();
        self.carried.iter().map(of_one).sum()
    }

    /// Appends what follows the pages, top and footer, which ends file `number`.
    pub fn put(&self, out: &mut Vec<u8>, number: FileNumber) {
        let top_at = self.map_end();
        let start = out.len();
        put_varint(out, self.carried.len() as u64);
        for one in &self.carried {
            [u64::from(one.segment), one.values, one.bytes].iter().for_each(|&field| put_varint(out, field));
            let mut last = 0;
            for &first in &one.page_firsts {
                put_varint(out, u64::from(first - last));
                last = first;
            }
        }
        let top_hash = hash64(place_seed(number.0, top_at), &out[start..]);
        let top_bytes = (out.len() - start) as u64;
        let footer = out.len();
        put_name(out, FOOTER_MAGIC, number);
        [self.map_at, top_at, top_bytes, top_hash].iter().for_each(|&field| put_u64(out, field));
        let hash = hash64(place_seed(number.0, top_at + top_bytes), &out[footer..]);
        put_u64(out, hash);
    }

    /// Reads a top; the footer has its place and hash.
    ///
    /// # Errors
    /// The bytes are not a top.
    pub fn open(bytes: &[u8], number: FileNumber, footer: &Footer) -> Result<Top, Malformed> {
        if bytes.len() as u64 != footer.top_bytes
            || hash64(place_seed(number.0, footer.top_at), bytes) != footer.top_hash
        {
            return Err(Malformed::Checksum);
        }
        let mut pages_left = (footer.top_at - footer.map_at) / MAP_PAGE_BYTES as u64;
        let mut reader = Reader::new(bytes);
        let mut carried: Vec<Carried> = Vec::new();
        for _ in 0..reader.length()? {
            let segment = u32::try_from(reader.varint()?).map_err(|_| Malformed::Bounds)?;
            if carried.last().is_some_and(|last| last.segment >= segment) {
                return Err(Malformed::Order);
            }
            let (values, bytes) = (reader.varint()?, reader.varint()?);
            let pages = values.div_ceil(MAP_PAGE_VALUES as u64);
            pages_left = pages_left.checked_sub(pages).ok_or(Malformed::Bounds)?;
            let page_firsts = read_firsts(&mut reader, pages)?;
            carried.push(Carried { segment, values, bytes, page_firsts });
        }
        reader.finish()?;
        if pages_left != 0 {
            return Err(Malformed::Bounds);
        }
        Ok(Top::new(footer.map_at, carried))
    }
}

fn read_firsts(reader: &mut Reader<'_>, pages: u64) -> Result<Vec<u32>, Malformed> {
    let mut firsts: Vec<u32> = Vec::new();
    for _ in 0..pages {
        let step = u32::try_from(reader.varint()?).map_err(|_| Malformed::Bounds)?;
        let first = match firsts.last() {
            None => step,
            Some(_) if step == 0 => return Err(Malformed::Order),
            Some(last) => last.checked_add(step).ok_or(Malformed::Bounds)?,
        };
        firsts.push(first);
    }
    Ok(firsts)
}

/// The end of a file, which says where the rest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    /// Where the pages of the map begin.
    pub map_at: u64,
    /// Where they end and the top begins.
    pub top_at: u64,
    /// Bytes of the top.
    pub top_bytes: u64,
    top_hash: u64,
}

impl Footer {
    /// Reads the last [`RELOCATED_FOOTER_BYTES`] of file `number`, which has `file_bytes`.
    ///
    /// # Errors
    /// `Tag` if they are whole but of another format; anything else if they are not whole.
    pub fn decode(bytes: &[u8], number: FileNumber, file_bytes: u64) -> Result<Footer, Malformed> {
        let footer = bytes.first_chunk::<RELOCATED_FOOTER_BYTES>().ok_or(Malformed::Short)?;
        let footer_at = file_bytes.checked_sub(RELOCATED_FOOTER_BYTES as u64).ok_or(Malformed::Short)?;
        let (hashed, hash) = footer.split_at(FOOTER_HASHED_BYTES);
        if hash != hash64(place_seed(number.0, footer_at), hashed).to_le_bytes() {
            return Err(Malformed::Checksum);
        }
        let mut reader = Reader::new(hashed);
        read_name(&mut reader, FOOTER_MAGIC, number)?;
        let (map_at, top_at) = (reader.u64()?, reader.u64()?);
        let footer = Footer { map_at, top_at, top_bytes: reader.u64()?, top_hash: reader.u64()? };
        let page = MAP_PAGE_BYTES as u64;
        let is_upright = map_at >= RELOCATED_HEADER_BYTES as u64
            && map_at.is_multiple_of(page)
            && top_at.checked_sub(map_at).is_some_and(|map_bytes| map_bytes.is_multiple_of(page))
            && top_at.checked_add(footer.top_bytes) == Some(footer_at);
        if is_upright { Ok(footer) } else { Err(Malformed::Bounds) }
    }
}

#[cfg(test)]
#[path = "relocated/tests.rs"]
mod tests;
