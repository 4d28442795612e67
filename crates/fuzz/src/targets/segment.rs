//! Segments of the journal: their headers, and the replay of a log of one or two.
//!
//! ```text
//!   an input     durable_lsn u8 (times 16) | is_open u8 | first segment: a piece | second segment: the rest
//!   a segment    the 80 bytes of its header that are not zeros | what follows the header
//! ```

use folddb_base::checksum::{hash64, place_seed};
use folddb_base::{FileNumber, Lsn, Result};
use folddb_host::Host;
use folddb_journal::{LogEnd, ReplayFrom, Replayed, examine, replay};
use folddb_layout::file_name::FileName;
use folddb_layout::frame::{FrameHead, FrameKind, decode_frame, put_frame, records};
use folddb_layout::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};

use crate::carve::{Carver, put_piece};
use crate::memory::{dir, host_with};
use crate::target::Target;

pub(super) const TARGETS: &[Target] = &[
    Target::new("segment-header", header, header_seeds).sealed_by(seal_header_alone),
    // Two windows of a mebibyte each, and the files.
    Target::new("journal", journal, journal_seeds).sealed_by(seal_journal).heap(64, 256 << 10),
];

const STORE_ID: u128 = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff;
const NUMBERS: [u64; 2] = [4, 7];

/// Bytes of a header that are not zeros.
const HEADER_BYTES: usize = 80;

/// A header as its file holds it: the input, and zeros.
fn header(input: &[u8]) {
    let mut file = input.to_vec();
    file.resize(file.len().max(SEGMENT_HEADER_BYTES), 0);
    let Ok(header) = SegmentHeader::decode(&file, FileNumber(NUMBERS[0])) else { return };
    assert_eq!(header.encode(), file[..SEGMENT_HEADER_BYTES]);
    assert!(header.next_lsn() >= header.first_lsn);
    assert!(header.offset_of(header.next_lsn()) >= SEGMENT_HEADER_BYTES as u64);
}

fn header_seeds() -> Vec<Vec<u8>> {
    seed_headers().map(|header| header.encode()[..HEADER_BYTES].to_vec()).to_vec()
}

fn seal_header_alone(input: &mut [u8]) {
    seal_header(input, NUMBERS[0]);
}

fn seed_headers() -> [SegmentHeader; 2] {
    let first = SegmentHeader {
        number: FileNumber(NUMBERS[0]),
        store_id: STORE_ID,
        salt: 0x5a17,
        first_lsn: 0,
        capacity_bytes: 1024,
        previous: None,
    };
    let second = SegmentHeader {
        number: FileNumber(NUMBERS[1]),
        salt: 0x5a18,
        first_lsn: 1024,
        previous: Some(first.number),
        ..first
    };
    [first, second]
}

/// The replay of a log whose segments are made of the input.
fn journal(input: &[u8]) {
    let mut carver = Carver::new(input);
    let (durable_lsn, is_open) = (u64::from(carver.byte()) * 16, carver.byte() & 1 == 1);
    let segments = [carver.piece(), carver.rest()];
    let host = host(&segments);
    let from = ReplayFrom { store_id: STORE_ID, log_start_lsn: 0, durable_lsn, is_open, end: LogEnd::Own };
    let (mut batches, mut seen_records, mut end_lsn, mut next_seq) = (0, 0, None, None);
    let outcome = replay(&host, dir(), &from, &mut |frame| {
        assert!(frame.end_lsn > frame.lsn && end_lsn.is_none_or(|end: Lsn| end <= frame.lsn));
        assert!(next_seq.is_none_or(|next| next <= frame.first_seq));
        let whole = records(frame.payload).take_while(Result::is_ok).count();
        assert!(whole <= frame.payload.len());
        end_lsn = Some(frame.end_lsn);
        next_seq = Some(frame.first_seq + u64::from(frame.count));
        batches += 1;
        seen_records += u64::from(frame.count);
        Ok(())
    });
    // Restoring a header tries every value of every byte of it, which is too slow to be done for
    // every input.
    if segments.iter().zip(NUMBERS).all(|(bytes, number)| has_header(bytes, number))
        || hash64(0, input).is_multiple_of(64)
    {
        read_past(&host, &from, &outcome);
    }
    let Ok(replayed) = outcome else { return };
    assert_eq!((replayed.batches, replayed.records), (batches, seen_records));
    assert!(replayed.cut_lsn <= replayed.end_lsn && end_lsn.is_none_or(|end| end <= replayed.cut_lsn));
    let segment_bytes = segments.iter().map(|bytes| bytes.len() as u64).sum::<u64>();
    assert!(replayed.cut_bytes <= segment_bytes);
    assert!(replayed.cut_lsn >= durable_lsn || replayed.segments.is_empty() || replayed.end_lsn == 0);
    assert!(batches == 0 || replayed.last_seq.map(|last| last + 1) >= next_seq.filter(|&next| next > 0));
}

/// True where the header is whole, or there is no segment.
fn has_header(segment: &[u8], number: u64) -> bool {
    let mut header = segment.to_vec();
    header.truncate(HEADER_BYTES);
    header.resize(SEGMENT_HEADER_BYTES, 0);
    segment.is_empty() || SegmentHeader::decode(&header, FileNumber(number)).is_ok()
}

/// The log read past whatever is wrong with it: it finds a fault where replaying refuses, and the
/// same where it does not.
fn read_past(host: &Host, from: &ReplayFrom, replayed: &Result<Replayed>) {
    let (mut batches, mut batches_beyond) = (0, 0);
    let report = examine(host, dir(), from, &mut |frame, is_beyond| {
        assert!(frame.end_lsn > frame.lsn);
        *(if is_beyond { &mut batches_beyond } else { &mut batches }) += 1;
        Ok(())
    });
    let report = report.expect("the directory can be listed");
    assert_eq!((report.batches, report.batches_beyond), (batches, batches_beyond));
    match replayed {
        Ok(replayed) => {
            assert_eq!(report.faults, [], "replayed without a fault");
            assert_eq!((report.batches, report.records), (replayed.batches, replayed.records));
            assert_eq!(report.end_lsn, replayed.cut_lsn);
        }
        Err(error) => assert!(
            !report.faults.is_empty(),
            "nothing is wrong where replaying refuses: {error}, {report:?}"
        ),
    }
}

fn host(segments: &[&[u8]]) -> Host {
    let files = NUMBERS.iter().zip(segments).filter(|(_, bytes)| !bytes.is_empty()).map(|(number, bytes)| {
        let (head, rest) = bytes.split_at(bytes.len().min(HEADER_BYTES));
        let mut file = head.to_vec();
        file.resize(SEGMENT_HEADER_BYTES, 0);
        file.extend_from_slice(rest);
        // Mostly as long as its header says: one that is shorter was cut, and little more is read
        // of it.
        let capacity = head.get(56..64).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
        if capacity <= 1 << 16 && !rest.len().is_multiple_of(8) {
            file.resize(file.len().max(SEGMENT_HEADER_BYTES + capacity as usize), 0);
        }
        (FileName::Log(FileNumber(*number)).to_string(), file)
    });
    host_with(files)
}

/// Makes the number and the hash of a header right.
fn seal_header(segment: &mut [u8], number: u64) {
    let Some(header) = segment.get_mut(..HEADER_BYTES) else { return };
    header[16..24].copy_from_slice(&number.to_le_bytes());
    let hash = hash64(place_seed(number, 0), &header[..72]);
    header[72..80].copy_from_slice(&hash.to_le_bytes());
}

/// Makes headers and frames right: numbers, hashes, and the hash of the frame before each.
fn seal_journal(input: &mut [u8]) {
    let Some(len) = input.get(2..4).map(|len| usize::from(u16::from_le_bytes([len[0], len[1]]))) else {
        return;
    };
    let (_, segments) = input.split_at_mut(4);
    let (first, second) = segments.split_at_mut(len.min(segments.len()));
    let mut prev_hash = 0;
    for (segment, number) in [first, second].into_iter().zip(NUMBERS) {
        seal_header(segment, number);
        let word = |at: usize| {
            segment.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes)
        };
        let (salt, first_lsn, previous) = (word(40), word(48), word(64));
        if previous == 0 {
            prev_hash = 0;
        }
        let mut at = HEADER_BYTES;
        while let Some(place) = segment.get_mut(at + 12..at + 16) {
            place.copy_from_slice(&u32::to_le_bytes(prev_hash));
            let lsn = first_lsn.wrapping_add((at - HEADER_BYTES) as u64);
            let Some((len, hash)) = super::frame::seal_frame_at(segment, at, salt, lsn) else { break };
            (at, prev_hash) = (at + len, hash);
        }
    }
}

/// A segment with these frames, and the hash of the last of them.
fn segment_of(header: &SegmentHeader, prev_hash: u32, frames: &[(FrameKind, u64, u32)]) -> (Vec<u8>, u32) {
    let mut out = header.encode()[..HEADER_BYTES].to_vec();
    let mut prev_hash = prev_hash;
    for (kind, first_seq, count) in frames {
        let lsn = header.first_lsn + (out.len() - HEADER_BYTES) as u64;
        let payload: Vec<u8> =
            super::frame::record_seeds().into_iter().take(*count as usize).flatten().collect();
        let head = FrameHead {
            kind: *kind,
            first_seq: *first_seq,
            count: *count,
            durable_lsn: lsn / 2,
            prev_hash,
            time_ms: None,
        };
        prev_hash = put_frame(&mut out, header.salt, lsn, &head, &payload);
        debug_assert!(decode_frame(&out[out.len() - 8..], header.salt, lsn).is_ok());
    }
    (out, prev_hash)
}

fn journal_seeds() -> Vec<Vec<u8>> {
    let [first_header, second_header] = seed_headers();
    let batches = [(FrameKind::Batch, 1, 6), (FrameKind::Mark, 7, 0), (FrameKind::Batch, 7, 2)];
    let (open, _) = segment_of(&first_header, 0, &batches);
    let sealed_frames = [batches[0], batches[2], (FrameKind::Seal, 9, 0)];
    let (sealed, hash) =
        segment_of(&first_header, 0, &[(FrameKind::Batch, 1, 6), sealed_frames[1], sealed_frames[2]]);
    let (next, _) = segment_of(&second_header, hash, &[(FrameKind::Batch, 9, 3), (FrameKind::Batch, 12, 1)]);
    let mut torn = open.clone();
    torn.truncate(open.len() - 5);
    torn.extend_from_slice(&[0; 40]);
    let seed = |first: &[u8], second: &[u8]| {
        let mut out = vec![0, 1];
        put_piece(&mut out, first);
        out.extend_from_slice(second);
        out
    };
    vec![seed(&open, &[]), seed(&sealed, &next), seed(&torn, &[]), seed(&sealed, &[])]
}
