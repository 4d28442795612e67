//! Finds the blocks of a part without its index, which is lost.
//!
//! ```text
//!   | block | block | block | ... | filters | leaves | top index | meta | footer |
//!   ^ a piece is searched for that begins here and whose checksum is right for this place
//! ```
//!
//! Pieces follow one another, and the checksum of each is seeded with its place. So the search
//! tries every length from the end of a piece on, until the checksum is right; other bytes are not
//! mistaken for a piece. A damaged block ends the search, since nothing says where the next one
//! begins.

use std::ops::Range;
use std::path::Path;

use folddb_base::bytes::Reader;
use folddb_base::checksum::{GrowingHash, place_seed};
use folddb_base::{FileNumber, OpKind, Seq};
use folddb_host::ReadFile;
use folddb_layout::block::{BODY_BYTES_MAX, Block, BlockCursor, Compression, Encoding, Place, TRAILER_BYTES};

use crate::verify::{Fault, Inspect, KeySpan};

/// Bytes that are read first in search of the end of a block; doubled each time.
const SEARCH_BYTES: usize = 64 << 10;

/// Where to search, and what is known about the part.
#[derive(Clone, Debug)]
pub struct Search<'a> {
    /// The file, for messages.
    pub path: &'a Path,
    /// Its number, which seeds all checksums.
    pub number: FileNumber,
    /// It starts at the first byte of a block. No block ends after its end.
    pub range: Range<u64>,
    /// The seq of records in blocks without seqs.
    pub implied_seq: Seq,
}

/// Passes the records of all blocks that can be found to `inspect`, in the order of the file.
/// Returns where the found blocks end.
pub fn search_blocks(file: &dyn ReadFile, search: &Search<'_>, inspect: &mut dyn Inspect) -> u64 {
    let mut offset = search.range.start;
    let mut first = None;
    while offset < search.range.end {
        let stored = match next_piece(file, search, offset) {
            Ok(Some(stored)) => stored,
            Ok(None) => break,
            Err(error) => {
                let what = format!("cannot read: {error}");
                inspect.fault(Fault { offset, what, keys: KeySpan::default(), unreached: None });
                break;
            }
        };
        let place = Place { offset, len_bytes: stored.len() as u32 };
        let Ok(block) = Block::open(stored, place_seed(search.number.0, offset)) else { break };
        let first = *first.get_or_insert(place);
        if is_first_leaf(&block, first) {
            break;
        }
        if let Err(what) = walk(&block, search.implied_seq, offset, inspect) {
            inspect.fault(Fault { offset, what, keys: KeySpan::default(), unreached: None });
        }
        inspect.progress(u64::from(place.len_bytes));
        offset = place.end();
    }
    offset
}

fn walk(block: &Block, implied_seq: Seq, offset: u64, inspect: &mut dyn Inspect) -> Result<(), String> {
    let mut cursor = BlockCursor::new(implied_seq);
    cursor.enter(block);
    cursor.seek_index(block, 0).map_err(|fault| fault.to_string())?;
    while let Some(record) = cursor.record(block) {
        inspect.record(offset, record);
        cursor.next(block).map_err(|fault| fault.to_string())?;
    }
    Ok(())
}

/// Whether the block is the first leaf of the index. Leaves follow the blocks and filters and look
/// like blocks. The first record of the first leaf has the place of the first block.
fn is_first_leaf(block: &Block, first: Place) -> bool {
    let mut cursor = BlockCursor::new(0);
    cursor.enter(block);
    if block.has_seqs() || cursor.seek_index(block, 0).is_err() {
        return false;
    }
    cursor.record(block).is_some_and(|record| {
        let place = Place::read(&mut Reader::new(record.payload));
        record.kind == OpKind::Set && record.payload.len() == 12 && place == Ok(first)
    })
}

/// The bytes of the block that begins at `offset`; none if no length gives the right checksum.
fn next_piece(file: &dyn ReadFile, search: &Search<'_>, offset: u64) -> std::io::Result<Option<Vec<u8>>> {
    let left = search.range.end.min(file.len_bytes()?).saturating_sub(offset);
    let left = left.min((BODY_BYTES_MAX + TRAILER_BYTES) as u64) as usize;
    let mut hash = GrowingHash::new(place_seed(search.number.0, offset));
    let mut bytes: Vec<u8> = Vec::new();
    let (mut hashed, mut end) = (0, TRAILER_BYTES);
    while bytes.len() < left {
        let have = bytes.len();
        let want = (have * 2).clamp(SEARCH_BYTES, left.max(SEARCH_BYTES)).min(left);
        bytes.resize(want, 0);
        file.read_exact_at(offset + have as u64, &mut bytes[have..])?;
        while end <= bytes.len() {
            let (body_end, said) = (end - 4, &bytes[end - 4..end]);
            if may_end_a_block(&bytes[end - TRAILER_BYTES..end - 4]) {
                hash.push(&bytes[hashed..body_end]);
                hashed = body_end;
                if hash.hash32().to_le_bytes() == said {
                    bytes.truncate(end);
                    return Ok(Some(bytes));
                }
            }
            end += 1;
        }
    }
    Ok(None)
}

/// Encoding and compression of a trailer.
fn may_end_a_block(tags: &[u8]) -> bool {
    Encoding::from_u8(tags[0]).is_ok_and(Encoding::is_block) && tags[1] <= Compression::Zstd as u8
}
