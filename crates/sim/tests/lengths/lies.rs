//! The lengths in the files of a store, and how to make each false, with right checksums.

use std::path::{Path, PathBuf};

use folddb_base::bytes::{put_u64, put_varint};
use folddb_base::checksum::{hash32, hash64, place_seed};
use folddb_base::{FileNumber, Pointer};
use folddb_host::Host;
use folddb_layout::backup::BackupList;
use folddb_layout::block::Place;
use folddb_layout::file_name::FileName;
use folddb_layout::frame::{FrameHead, FrameKind, decode_frame, put_frame, records};
use folddb_layout::hash_checkpoint::{CHECKPOINT_FOOTER_BYTES, CheckpointFooter, Directory};
use folddb_layout::manifest_edit::{Change, EditKind, put_edit};
use folddb_layout::part::{FOOTER_BYTES, Footer, Meta, TopIndex};
use folddb_layout::relocated::{MAP_PAGE_BYTES, RELOCATED_FOOTER_BYTES};
use folddb_layout::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};
use folddb_layout::values::{RECORD_HEAD_BYTES, RecordHead, VALUES_HEADER_BYTES, put_head};

/// A length that no file here has; a step that takes memory for it is detected, and not killed.
const HUGE: u64 = 1 << 33;

/// A place, and how to make the length there false.
pub(crate) struct Lie {
    pub(crate) place: &'static str,
    /// A part of the names of such files.
    pub(crate) files: &'static str,
    /// Whether it can be detected: a false length that nothing uses does no harm.
    pub(crate) is_found: bool,
    /// The file with the false length; none where it does not have the place.
    pub(crate) tell: fn(&StoreFile) -> Option<Vec<u8>>,
}

const fn lie(place: &'static str, files: &'static str, tell: fn(&StoreFile) -> Option<Vec<u8>>) -> Lie {
    Lie { place, files, is_found: true, tell }
}

pub(crate) const LIES: [Lie; 33] = [
    lie("an edit", "MANIFEST", |file| file.patched(8, &u32::MAX.to_le_bytes())),
    lie("a part, in the manifest", "MANIFEST", |file| {
        file.changed(|change| match change {
            Change::AddPart { part, .. } => Some(&mut part.file_bytes),
            _ => None,
        })
    }),
    lie("a value segment, in the manifest", "MANIFEST", |file| {
        file.changed(|change| match change {
            Change::SealValues { end, .. } => Some(end),
            _ => None,
        })
    }),
    lie("a file of relocated values, in the manifest", "MANIFEST", |file| {
        file.changed(|change| match change {
            Change::MoveValues { file_bytes, .. } => Some(file_bytes),
            _ => None,
        })
    }),
    lie("a checkpoint, in the manifest", "MANIFEST", |file| {
        file.changed(|change| match change {
            Change::SaveIndex { index, .. } => Some(&mut index.file_bytes),
            _ => None,
        })
    }),
    lie("the changes after a checkpoint, in the manifest", "MANIFEST", |file| {
        file.changed(|change| match change {
            Change::SaveChanges { changes, .. } => Some(&mut changes.file_bytes),
            _ => None,
        })
    }),
    Lie {
        place: "the keys of a checkpoint, in the manifest",
        files: "MANIFEST",
        is_found: false,
        tell: |file| {
            file.changed(|change| match change {
                Change::SaveIndex { index, .. } => Some(&mut index.keys),
                _ => None,
            })
        },
    },
    lie("a segment of the log, in its header", ".log", |file| file.sealed(56, &HUGE.to_le_bytes(), 0..72)),
    lie("a frame", ".log", |file| file.patched(SEGMENT_HEADER_BYTES + 8, &u32::MAX.to_le_bytes())),
    lie("a key of a record of the log", ".log", |file| file.reframed(|payload| with_record(payload, true))),
    lie("a payload of a record of the log", ".log", |file| {
        file.reframed(|payload| with_record(payload, false))
    }),
    lie("a value that a record of the log leads to", ".log", |file| file.reframed(with_pointer)),
    lie("a frame of an archived part", ".kept", |file| {
        file.patched(SEGMENT_HEADER_BYTES + 8, &u32::MAX.to_le_bytes())
    }),
    lie("a key of a record of an archived part", ".kept", |file| {
        file.reframed(|payload| with_record(payload, true))
    }),
    lie("the top index of a part, in its footer", ".part", |file| file.footer(40)),
    lie("the facts of a part, in its footer", ".part", |file| file.footer(52)),
    lie("the data of a part", ".part", |file| {
        file.meta(|meta| Some(&mut meta.data_bytes).map(|bytes| *bytes = HUGE))
    }),
    lie("which values a part leads to", ".part", |file| file.meta(|meta| lengthen(meta.liveness.as_mut()))),
    lie("the summaries of a part", ".part", |file| {
        file.meta(|meta| lengthen(meta.summaries.as_mut().map(|summaries| &mut summaries.place)))
    }),
    lie("a leaf of a part", ".part", |file| {
        file.top_index(|top| lengthen(top.leaves.last_mut().map(|leaf| &mut leaf.place)))
    }),
    lie("a filter of a part", ".part", |file| file.top_index(|top| lengthen(top.filters.last_mut()))),
    lie("a block of a part", ".part", StoreFile::block_in_its_leaf),
    lie("a block before it was compressed", ".part", StoreFile::compressed_block),
    lie("a value of the value log", ".values", |file| file.record_head(VALUES_HEADER_BYTES)),
    lie("a value of a value directory", ".value", |file| {
        if file.name.ends_with(".value") { file.record_head(0) } else { None }
    }),
    lie("a relocated value", ".moved", |file| file.record_head(RELOCATED_HEADER_AT)),
    lie("the top of a file of relocated values, in its footer", ".moved", |file| {
        let footer_at = file.bytes.len().checked_sub(RELOCATED_FOOTER_BYTES)?;
        file.sealed(footer_at + 40, &HUGE.to_le_bytes(), footer_at..footer_at + 56)
    }),
    lie("how many segments a file of relocated values carries", ".moved", StoreFile::carried),
    lie("how many values a page of its map tells of", ".moved", |file| {
        let footer_at = file.bytes.len().checked_sub(RELOCATED_FOOTER_BYTES)?;
        let page_at = usize::try_from(file.u64_at(footer_at + 24)?).ok()?;
        let mut bytes = file.patched(page_at + 12, &u32::MAX.to_le_bytes())?;
        let page = bytes.get_mut(page_at..page_at + MAP_PAGE_BYTES)?;
        let hash = hash64(place_seed(file.number, page_at as u64), &page[8..]);
        page[..8].copy_from_slice(&hash.to_le_bytes());
        Some(bytes)
    }),
    lie("a piece of a checkpoint", ".index", |file| {
        file.directory(|directory| directory.pieces.last_mut().map(|piece| piece.len_bytes = HUGE))
    }),
    lie("the keys of a piece of a checkpoint", ".index", |file| {
        file.directory(|directory| directory.pieces.last_mut().map(|piece| piece.keys = HUGE))
    }),
    lie("how many changes come after a checkpoint", ".index", |file| {
        let footer_at = file.bytes.len().checked_sub(CHECKPOINT_FOOTER_BYTES)?;
        if file.bytes.get(footer_at..footer_at + 8)? != b"FoldHchg" {
            return None;
        }
        file.sealed(footer_at + 32, &HUGE.to_le_bytes(), footer_at..footer_at + 56)
    }),
    lie("a file of a backup", "BACKUP", |file| {
        let mut list = BackupList::decode(&file.bytes).ok()?;
        list.files.iter_mut().for_each(|listed| listed.len_bytes = HUGE);
        Some(list.encode())
    }),
];

/// Where the records of a file of relocated values begin.
const RELOCATED_HEADER_AT: usize = folddb_layout::relocated::RELOCATED_HEADER_BYTES;

fn lengthen(place: Option<&mut Place>) -> Option<()> {
    place.map(|place| place.len_bytes = u32::MAX)
}

/// A file of a store.
pub(crate) struct StoreFile {
    /// Its name in the store's directory.
    pub(crate) name: String,
    dir: PathBuf,
    bytes: Vec<u8>,
    number: u64,
}

impl StoreFile {
    /// Those of a store, the largest first.
    pub(crate) fn all(dir: &Path) -> Vec<StoreFile> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(dir).expect("a store") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a plain name").to_owned();
            if path.is_dir() {
                all.extend(StoreFile::all(&path).into_iter().map(|file| StoreFile {
                    name: format!("{name}/{}", file.name),
                    dir: dir.to_owned(),
                    ..file
                }));
            } else {
                let number = FileName::parse(&name).and_then(FileName::number).map_or(0, |number| number.0);
                let bytes = std::fs::read(&path).expect("it is read");
                all.push(StoreFile { name, dir: dir.to_owned(), bytes, number });
            }
        }
        all.sort_by_key(|file| (std::cmp::Reverse(file.bytes.len()), file.name.clone()));
        all
    }

    /// Puts these bytes in its place in a copy of the store, and the new length into the manifest,
    /// which forgets by what it would know that the part is another: here the lengths are tried.
    pub(crate) fn replace(&self, dir: &Path, bytes: &[u8]) {
        std::fs::write(dir.join(&self.name), bytes).expect("it is written");
        let is_same_len = bytes.len() == self.bytes.len() && !self.name.ends_with(".part");
        if is_same_len || self.number == 0 || self.name.starts_with("MANIFEST") {
            return;
        }
        let len = bytes.len() as u64;
        let is_this = |file: &FileNumber| file.0 == self.number;
        let manifest = manifest_of(dir, |change| match change {
            Change::AddPart { part, .. } if is_this(&part.file) => {
                (part.file_bytes, part.fingerprint) = (len, None);
            }
            Change::MoveValues { file, file_bytes, .. } if is_this(file) => *file_bytes = len,
            Change::SaveIndex { index, .. } | Change::SaveChanges { changes: index, .. }
                if is_this(&index.file) =>
            {
                index.file_bytes = len;
            }
            _ => {}
        });
        if let Some((name, bytes)) = manifest {
            std::fs::write(dir.join(name), bytes).expect("a manifest is written");
        }
    }

    fn u64_at(&self, at: usize) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes.get(at..at + 8)?.try_into().ok()?))
    }

    /// With other bytes at a place; none where the same bytes are there already, or the file ends
    /// before.
    fn patched(&self, at: usize, said: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = self.bytes.clone();
        let place = bytes.get_mut(at..at + said.len())?;
        if place.iter().all(|byte| *byte == 0) || place == said {
            return None;
        }
        place.copy_from_slice(said);
        Some(bytes)
    }

    /// The same, where the checksum follows the bytes that it covers.
    fn sealed(&self, at: usize, said: &[u8], covered: std::ops::Range<usize>) -> Option<Vec<u8>> {
        let mut bytes = self.patched(at, said)?;
        let sum = hash64(place_seed(self.number, covered.start as u64), &bytes[covered.clone()]);
        bytes[covered.end..covered.end + 8].copy_from_slice(&sum.to_le_bytes());
        Some(bytes)
    }

    // ---- manifest -------------------------------------------------------------------------------

    /// A manifest of one snapshot, in which the last length of this kind is false.
    fn changed(&self, length: fn(&mut Change) -> Option<&mut u64>) -> Option<Vec<u8>> {
        let mut has_it = 0;
        manifest_of(&self.dir, |change| has_it += usize::from(length(change).is_some()));
        let mut left = has_it;
        let (name, bytes) = manifest_of(&self.dir, |change| {
            if let Some(length) = length(change) {
                left -= 1;
                if left == 0 {
                    *length = HUGE;
                }
            }
        })?;
        (has_it > 0 && name == self.name).then_some(bytes)
    }

    // ---- log ------------------------------------------------------------------------------------

    /// With another payload in the last batch that can be changed in this way. The frames after it
    /// are closed again.
    fn reframed(&self, change: fn(&[u8]) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
        let header = SegmentHeader::decode(&self.bytes, FileNumber(self.number)).ok()?;
        let mut frames: Vec<(FrameHead, Vec<u8>, usize)> = Vec::new();
        let mut at = SEGMENT_HEADER_BYTES;
        while let Ok(Some(frame)) = decode_frame(
            self.bytes.get(at..)?,
            header.salt,
            header.first_lsn + (at - SEGMENT_HEADER_BYTES) as u64,
        ) {
            frames.push((frame.head, frame.payload.to_vec(), at));
            at += frame.len_bytes;
        }
        let is_batch = |frame: &(FrameHead, Vec<u8>, usize)| frame.0.kind == FrameKind::Batch;
        let chosen = (0..frames.len())
            .rev()
            .find(|&number| is_batch(&frames[number]) && change(&frames[number].1).is_some())?;
        frames[chosen].1 = change(&frames[chosen].1)?;
        let mut bytes = self.bytes[..frames[chosen].2].to_vec();
        let mut prev_hash = frames[chosen].0.prev_hash;
        for (head, payload, _) in &frames[chosen..] {
            let lsn = header.first_lsn + (bytes.len() - SEGMENT_HEADER_BYTES) as u64;
            prev_hash = put_frame(&mut bytes, header.salt, lsn, &FrameHead { prev_hash, ..*head }, payload);
        }
        bytes.resize(self.bytes.len().max(bytes.len()), 0);
        Some(bytes)
    }

    // ---- parts ----------------------------------------------------------------------------------

    fn part_footer(&self) -> Option<(usize, Footer)> {
        let at = self.bytes.len().checked_sub(FOOTER_BYTES)?;
        let bytes = self.bytes.last_chunk::<FOOTER_BYTES>()?;
        Some((at, Footer::read(bytes, self.number, self.bytes.len() as u64).ok()?))
    }

    /// With the longest length that fits at this place of its footer.
    fn footer(&self, at: usize) -> Option<Vec<u8>> {
        let (footer_at, _) = self.part_footer()?;
        let mut bytes = self.patched(footer_at + at, &u32::MAX.to_le_bytes())?;
        let sum = hash32(place_seed(self.number, footer_at as u64), &bytes[footer_at..footer_at + 60]);
        bytes[footer_at + 60..].copy_from_slice(&sum.to_le_bytes());
        Some(bytes)
    }

    fn seed(&self, place: Place) -> u64 {
        place_seed(self.number, place.offset)
    }

    fn piece(&self, place: Place) -> Option<&[u8]> {
        self.bytes.get(usize::try_from(place.offset).ok()?..usize::try_from(place.end()).ok()?)
    }

    fn read_meta(&self, footer: &Footer) -> Option<Meta> {
        Meta::open(self.piece(footer.meta)?, self.seed(footer.meta), footer.file_bytes).ok()
    }

    fn read_top_index(&self, footer: &Footer) -> Option<TopIndex> {
        TopIndex::open(self.piece(footer.top_index)?, self.seed(footer.top_index)).ok()
    }

    /// With other facts.
    fn meta(&self, change: fn(&mut Meta) -> Option<()>) -> Option<Vec<u8>> {
        let (_, footer) = self.part_footer()?;
        let mut meta = self.read_meta(&footer)?;
        change(&mut meta)?;
        self.part_of(&footer, &self.read_top_index(&footer)?, &meta)
    }

    /// With another top index.
    fn top_index(&self, change: fn(&mut TopIndex) -> Option<()>) -> Option<Vec<u8>> {
        let (_, footer) = self.part_footer()?;
        let mut top = self.read_top_index(&footer)?;
        change(&mut top)?;
        self.part_of(&footer, &top, &self.read_meta(&footer)?)
    }

    fn part_of(&self, footer: &Footer, top: &TopIndex, meta: &Meta) -> Option<Vec<u8>> {
        let mut bytes = self.bytes[..usize::try_from(footer.top_index.offset).ok()?].to_vec();
        top.put(&mut bytes, self.seed(footer.top_index));
        let meta_at = bytes.len() as u64;
        meta.put(&mut bytes, place_seed(self.number, meta_at));
        let footer_at = bytes.len() as u64;
        let place = |from: u64, to: u64| Place { offset: from, len_bytes: (to - from) as u32 };
        let file_bytes = footer_at + FOOTER_BYTES as u64;
        let (top_index, meta) = (place(footer.top_index.offset, meta_at), place(meta_at, footer_at));
        Footer { file_bytes, top_index, meta, ..*footer }.put(&mut bytes);
        Some(bytes)
    }

    /// The first leaf says that its first block is longer than the file. It says so in twelve
    /// bytes, unless it is compressed.
    fn block_in_its_leaf(&self) -> Option<Vec<u8>> {
        let (_, footer) = self.part_footer()?;
        let leaf = self.read_top_index(&footer)?.leaves.first()?.place;
        let from = usize::try_from(leaf.offset).ok()?;
        let stored = self.piece(leaf)?;
        let first = (1..self.bytes.len() as u32).find_map(|len_bytes| {
            let mut said = Vec::new();
            Place { offset: 0, len_bytes }.put(&mut said);
            stored.windows(said.len()).position(|window| window == said)
        })?;
        self.resealed(leaf, from + first + 8, &u32::MAX.to_le_bytes())
    }

    /// A compressed block says that it was longer than any.
    fn compressed_block(&self) -> Option<Vec<u8>> {
        let (_, footer) = self.part_footer()?;
        let end = self.read_meta(&footer)?.data_bytes;
        let place = (6..=end as u32)
            .map(|len_bytes| Place { offset: 0, len_bytes })
            .find(|place| self.piece(*place).is_some_and(|stored| is_closed(stored, self.seed(*place))))?;
        let is_compressed = self.piece(place)?[place.len_bytes as usize - 5] == 1;
        if is_compressed { self.resealed(place, 0, &u32::MAX.to_le_bytes()) } else { None }
    }

    /// With other bytes in a piece, whose checksum is right.
    fn resealed(&self, piece: Place, at: usize, said: &[u8]) -> Option<Vec<u8>> {
        let mut bytes = self.patched(at, said)?;
        let stored =
            bytes.get_mut(usize::try_from(piece.offset).ok()?..usize::try_from(piece.end()).ok()?)?;
        let (body, sum) = stored.split_last_chunk_mut::<4>()?;
        *sum = hash32(self.seed(piece), body).to_le_bytes();
        Some(bytes)
    }

    // ---- values ---------------------------------------------------------------------------------

    /// With another length in the head of the record at this offset.
    fn record_head(&self, at: usize) -> Option<Vec<u8>> {
        let head = RecordHead::decode(self.bytes.get(at..)?).ok().filter(|head| head.key_len > 0)?;
        let key_at = at + RECORD_HEAD_BYTES;
        let key = self.bytes.get(key_at..key_at + usize::from(head.key_len))?;
        let mut said = Vec::new();
        put_head(&mut said, (head.table, key), HUGE, head.hash, head.front_is_behind);
        self.patched(at, &said)
    }

    fn carried(&self) -> Option<Vec<u8>> {
        let footer_at = self.bytes.len().checked_sub(RELOCATED_FOOTER_BYTES)?;
        let top_at = usize::try_from(self.u64_at(footer_at + 32)?).ok()?;
        let mut top = Vec::new();
        put_varint(&mut top, HUGE);
        top.extend_from_slice(self.bytes.get(top_at + 1..footer_at)?);
        let mut bytes = self.bytes[..top_at].to_vec();
        bytes.extend_from_slice(&top);
        let start = bytes.len();
        bytes.extend_from_slice(&self.bytes[footer_at..footer_at + 40]);
        put_u64(&mut bytes, top.len() as u64);
        put_u64(&mut bytes, hash64(place_seed(self.number, top_at as u64), &top));
        let sum = hash64(place_seed(self.number, start as u64), &bytes[start..]);
        put_u64(&mut bytes, sum);
        Some(bytes)
    }

    // ---- indexes of hashed tables ---------------------------------------------------------------

    /// With another directory.
    fn directory(&self, change: fn(&mut Directory) -> Option<()>) -> Option<Vec<u8>> {
        let bytes = self.bytes.last_chunk::<CHECKPOINT_FOOTER_BYTES>()?;
        let footer = CheckpointFooter::read(bytes, self.number, self.bytes.len() as u64).ok()?;
        let range = footer.directory();
        let stored = self.bytes.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)?;
        let mut directory = Directory::read(stored, self.number, range.start).ok()?;
        change(&mut directory)?;
        let mut bytes = self.bytes[..usize::try_from(range.start).ok()?].to_vec();
        directory.put(&mut bytes, self.number, range.start);
        let file_bytes = (bytes.len() + CHECKPOINT_FOOTER_BYTES) as u64;
        CheckpointFooter { file_bytes, ..footer }.put(&mut bytes);
        Some(bytes)
    }
}

/// Whether these bytes are a piece with its checksum.
fn is_closed(stored: &[u8], seed: u64) -> bool {
    stored.split_last_chunk::<4>().is_some_and(|(body, sum)| hash32(seed, body).to_le_bytes() == *sum)
}

/// The manifest of a store as one snapshot, with some of it changed: the name of its file, and its
/// bytes.
fn manifest_of(dir: &Path, mut change: impl FnMut(&mut Change)) -> Option<(String, Vec<u8>)> {
    let loaded = folddb_manifest::load(&Host::real(), dir).ok()?;
    let mut changes = loaded.state.snapshot();
    changes.iter_mut().for_each(&mut change);
    let mut bytes = Vec::new();
    let is_put = put_edit(&mut bytes, loaded.number, 0, EditKind::Snapshot, &changes);
    is_put.then(|| (FileName::Manifest(loaded.number).to_string(), bytes))
}

/// A payload whose first record says that its key, or its payload, is longer than anything.
fn with_record(payload: &[u8], is_key: bool) -> Option<Vec<u8>> {
    let first = records(payload).next()?.ok()?;
    let mut changed = Vec::new();
    put_varint(&mut changed, u64::from(first.table.0));
    changed.push(first.op.code());
    if is_key {
        put_varint(&mut changed, HUGE);
    } else {
        put_varint(&mut changed, first.key.len() as u64);
        changed.extend_from_slice(first.key);
        put_varint(&mut changed, HUGE);
    }
    changed.extend_from_slice(first.payload);
    Some(changed)
}

/// A payload in which the last pointer leads to a value that is longer than anything.
fn with_pointer(payload: &[u8]) -> Option<Vec<u8>> {
    let all: Vec<_> = records(payload).collect::<Result<_, _>>().ok()?;
    let is_plain = |bytes: &[u8]| !matches!(bytes[..4], [0xff | 0xfe, 0xff, 0xff, 0xff]);
    let chosen = all.iter().rposition(|record| record.pointer().is_some_and(is_plain))?;
    let mut changed = Vec::new();
    for (number, record) in all.iter().enumerate() {
        let mut payload = record.payload.to_vec();
        if number == chosen {
            let pointer = Pointer::decode(record.pointer()?).ok()?;
            payload.truncate(record.payload.len() - record.pointer()?.len());
            Pointer { len: HUGE, ..pointer }.put(&mut payload);
        }
        folddb_layout::frame::put_record(&mut changed, record.table, record.op, record.key, &payload);
    }
    Some(changed)
}
