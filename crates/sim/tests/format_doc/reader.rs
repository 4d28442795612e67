//! A reader of stores that knows only `docs/FORMAT.md`, and not the code that writes them.
//!
//! It is slow and trusts nothing: any difference from the document is a failed assertion. From the
//! code it uses only xxh3-64 itself.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use folddb_base::checksum::hash64;

use super::document::{Document, Fields};

/// A record of a frame or a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) seq: Option<u64>,
    pub(crate) kind: u64,
    pub(crate) key: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

/// A frame of the journal.
pub(crate) struct FoundFrame {
    pub(crate) kind: u64,
    /// When its batch was written, where it has that.
    pub(crate) time: Option<u64>,
    pub(crate) first_seq: u64,
    /// Low half of its own hash, and of the hash of the frame before it, as it states that.
    pub(crate) hash: u64,
    pub(crate) prev_hash: u64,
    pub(crate) bytes: Vec<u8>,
    /// Table and record.
    pub(crate) records: Vec<(u64, Found)>,
}

/// A change of the manifest, its fields by name.
#[derive(Clone, Debug)]
pub(crate) struct FoundChange {
    pub(crate) tag: u8,
    pub(crate) name: String,
    pub(crate) fields: BTreeMap<String, Value>,
}

/// A field of a change.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(u128),
    Numbers(Vec<u64>),
    Bytes(Vec<u8>),
    Group(BTreeMap<String, Value>),
}

impl Value {
    pub(crate) fn number(&self) -> u64 {
        match self {
            Value::Number(number) => u64::try_from(*number).expect("at most 64 bits"),
            other => panic!("{other:?} is no number"),
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Value::Bytes(bytes) => bytes,
            other => panic!("{other:?} is no slice"),
        }
    }

    pub(crate) fn group(&self) -> &BTreeMap<String, Value> {
        match self {
            Value::Group(group) => group,
            other => panic!("{other:?} is no group"),
        }
    }
}

/// What a record has of a separated value.
pub(crate) struct FoundPointer {
    segment: u64,
    unit: u64,
    hash: u64,
    len: u64,
}

/// A part, read whole.
pub(crate) struct FoundPart {
    pub(crate) records: Vec<Found>,
    pub(crate) min_seq: u64,
    pub(crate) max_seq: u64,
    pub(crate) order: String,
    /// Encodings and compressions of the data blocks.
    pub(crate) blocks: Vec<(u64, u64)>,
    pub(crate) filters: usize,
    pub(crate) leaves: usize,
    pub(crate) has_summaries: bool,
    pub(crate) has_leading: bool,
    pub(crate) fingerprint: u64,
}

/// Bit 6 of the flags of a frame: it has the time when it was written.
const TIME_FLAG: u64 = 1 << 6;

/// The summary of a block.
type FoundSummary = Option<(u64, Option<Vec<u8>>)>;

/// Reads from the front.
pub(crate) struct Bytes<'a>(pub(crate) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(crate) fn take(&mut self, len: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(len);
        self.0 = rest;
        head
    }

    pub(crate) fn fixed(&mut self, len: usize) -> u64 {
        little_endian(self.take(len))
    }

    pub(crate) fn varint(&mut self) -> u64 {
        let mut value = 0u64;
        for place in 0.. {
            let byte = self.fixed(1);
            value |= (byte & 0x7f) << (7 * place);
            if byte & 0x80 == 0 {
                assert!(byte != 0 || place == 0, "the shortest form");
                break;
            }
        }
        value
    }

    pub(crate) fn slice(&mut self) -> &'a [u8] {
        let len = self.varint() as usize;
        self.take(len)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// Reads stores by the document.
pub(crate) struct Reader<'d> {
    doc: &'d Document,
}

impl<'d> Reader<'d> {
    pub(crate) fn new(doc: &'d Document) -> Reader<'d> {
        Reader { doc }
    }

    pub(crate) fn place_seed(&self, a: u64, b: u64) -> u64 {
        a.wrapping_mul(self.doc.constant("place.multiplier")) ^ b
    }

    // ---- FORMAT ---------------------------------------------------------------------------------

    /// The identity of the store.
    pub(crate) fn store_id(&self, dir: &Path) -> u128 {
        let text = std::fs::read_to_string(dir.join("FORMAT")).expect("FORMAT is text");
        let line = text.strip_suffix('\n').expect("one line");
        let (said, sum) = line.split_once(" sum ").expect("a sum");
        assert_eq!(format!("{:016x}", hash64(0, said.as_bytes())), sum);
        let words: Vec<&str> = said.split(' ').collect();
        let [folddb, format, major, required, none, optional, none_too, store, id] = words[..] else {
            panic!("{said} is not as the document says");
        };
        assert_eq!(
            [folddb, format, required, optional, store],
            ["folddb", "format", "required", "optional", "store"]
        );
        assert_eq!(major.parse(), Ok(self.doc.constant("format.major")));
        assert_eq!(none, format!("{:016x}", self.doc.constant("format.features_known")));
        assert_eq!(none_too, "0000000000000000");
        u128::from_str_radix(id, 16).expect("a hexadecimal number")
    }

    // ---- journal --------------------------------------------------------------------------------

    /// All frames of a segment.
    pub(crate) fn segment(&self, path: &Path, number: u64, store_id: u128) -> Vec<FoundFrame> {
        let bytes = std::fs::read(path).expect("the segment is there");
        let header = self.doc.layout("segment-header");
        let header_bytes = self.doc.constant("segment.header_bytes") as usize;
        assert_eq!(header.bytes(&bytes, "magic"), b"FoldLog\0");
        assert_eq!(header.number(&bytes, "format"), self.doc.constant("segment.format"));
        for zero in ["kind", "flags", "zero"] {
            assert_eq!(header.number(&bytes, zero), 0, "{zero}");
        }
        assert_eq!(header.number(&bytes, "number"), number);
        assert_eq!(header.wide(&bytes, "store_id"), store_id);
        // A segment that was left before it was full may be shorter.
        let whole_len = header_bytes as u64 + header.number(&bytes, "capacity");
        assert!(bytes.len() as u64 <= whole_len);
        let hash = hash64(self.place_seed(number, 0), &bytes[..header.offset("hash")]);
        assert_eq!(header.number(&bytes, "hash"), hash, "the header's hash");
        assert!(bytes[header.len()..header_bytes].iter().all(|byte| *byte == 0));

        let salt = header.number(&bytes, "salt");
        let begins_a_chain = header.number(&bytes, "previous") == 0;
        let mut lsn = header.number(&bytes, "first_lsn");
        let mut frames = Vec::<FoundFrame>::new();
        let mut rest = &bytes[header_bytes..];
        while let Some(frame) = self.frame(rest, salt, lsn) {
            match frames.last() {
                Some(before) => assert_eq!(frame.prev_hash, before.hash, "the chain of frames"),
                None if begins_a_chain => assert_eq!(frame.prev_hash, 0, "the first frame of a chain"),
                None => {}
            }
            lsn += frame.bytes.len() as u64;
            rest = &rest[frame.bytes.len()..];
            let seals = ["frame.kind.seal", "frame.kind.seal_for_next"];
            let is_seal = seals.iter().any(|seal| frame.kind == self.doc.constant(seal));
            frames.push(frame);
            if is_seal {
                break;
            }
        }
        assert!(rest.iter().all(|byte| *byte == 0), "zeros behind the last frame");
        frames
    }

    fn frame(&self, bytes: &[u8], salt: u64, lsn: u64) -> Option<FoundFrame> {
        let fixed = self.doc.layout("frame");
        if bytes.len() < fixed.len() || fixed.number(bytes, "magic") != self.doc.constant("frame.magic") {
            return None;
        }
        let bytes = &bytes[..fixed.number(bytes, "len") as usize];
        let hash = fixed.number(bytes, "hash");
        assert_eq!(hash, hash64(self.place_seed(salt, lsn), &bytes[fixed.offset("len")..]), "a frame's hash");
        let mut rest = Bytes(&bytes[fixed.len()..]);
        let (first_seq, count, behind) = (rest.varint(), rest.varint(), rest.varint());
        assert!(behind <= lsn);
        let flags = fixed.number(bytes, "flags");
        let time = (flags & TIME_FLAG != 0).then(|| rest.varint());
        let mut records = Vec::new();
        while !rest.is_empty() {
            let (table, kind) = (rest.varint(), rest.fixed(1));
            let (key, payload) = (rest.slice().to_vec(), rest.slice().to_vec());
            let seq = Some(first_seq + records.len() as u64);
            records.push((table, Found { seq, kind, key, payload }));
        }
        assert_eq!(records.len() as u64, count);
        let (kind, prev_hash) = (flags & !TIME_FLAG, fixed.number(bytes, "prev_hash"));
        let (hash, bytes) = (low_half(hash), bytes.to_vec());
        Some(FoundFrame { kind, time, first_seq, hash, prev_hash, bytes, records })
    }

    // ---- manifest -------------------------------------------------------------------------------

    /// All changes of a manifest.
    pub(crate) fn manifest(&self, path: &Path, number: u64) -> Vec<FoundChange> {
        let bytes = std::fs::read(path).expect("the manifest is there");
        let fixed = self.doc.layout("edit");
        let (changes, groups) = self.doc.changes();
        let mut found = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let edit = &bytes[at..at + fixed.number(&bytes[at..], "len") as usize];
            assert_eq!(fixed.number(edit, "magic"), self.doc.constant("edit.magic"));
            let kind = if at == 0 { "edit.kind.snapshot" } else { "edit.kind.edit" };
            assert_eq!(fixed.number(edit, "kind"), self.doc.constant(kind));
            let hash = hash64(self.place_seed(number, at as u64), &edit[fixed.offset("len")..]);
            assert_eq!(fixed.number(edit, "hash"), hash, "an edit's hash");
            let mut rest = Bytes(&edit[fixed.len()..]);
            while !rest.is_empty() {
                let tag = rest.fixed(1) as u8;
                let (name, fields) =
                    changes.get(&tag).unwrap_or_else(|| panic!("tag {tag} is not documented"));
                let mut body = Bytes(rest.slice());
                let fields = read_fields(&mut body, fields, &groups);
                assert!(body.is_empty(), "all of a {name} is documented");
                found.push(FoundChange { tag, name: name.clone(), fields });
            }
            at += edit.len();
        }
        found
    }

    // ---- parts ----------------------------------------------------------------------------------

    pub(crate) fn part(&self, path: &Path, number: u64) -> FoundPart {
        let file = std::fs::read(path).expect("the part is there");
        let layout = self.doc.layout("footer");
        let footer_at = file.len() - layout.len();
        let footer = &file[footer_at..];
        assert_eq!(layout.bytes(footer, "magic"), b"FoldPart");
        let version = layout.number(footer, "version");
        assert_eq!(layout.number(footer, "number"), number);
        assert_eq!(layout.number(footer, "file_bytes"), file.len() as u64);
        assert_eq!((layout.number(footer, "reserved"), layout.number(footer, "reserved_2")), (0, 0));
        let checksum_at = layout.offset("checksum");
        let seed = self.place_seed(number, footer_at as u64);
        assert_eq!(layout.number(footer, "checksum"), low_half(hash64(seed, &footer[..checksum_at])));
        let place = |offset: &str, len: &str| (layout.number(footer, offset), layout.number(footer, len));
        let (top, meta) = (place("top_offset", "top_len"), place("meta_offset", "meta_len"));
        assert_eq!(top.0 + top.1, meta.0);
        assert_eq!(meta.0 + meta.1, footer_at as u64);
        let pieces = Pieces { reader: self, file: &file, number, checksums: RefCell::default() };

        let mut rest = Bytes(pieces.body(meta, "piece.meta"));
        let [records, keys, min_seq, seqs, deletes, key_bytes, payload_bytes] =
            [(); 7].map(|()| rest.varint());
        let (low, high) = (rest.slice().to_vec(), rest.slice().to_vec());
        let order = String::from_utf8(rest.slice().to_vec()).expect("the name of an order is text");
        let (data_len, filter_bits) = (rest.varint(), rest.varint());
        let sketch: Vec<u64> = (0..rest.varint()).map(|_| rest.fixed(8)).collect();
        let (mut values, mut summaries, mut leading, mut of_pieces) = (None, None, Vec::new(), None);
        while !rest.is_empty() {
            let tag = rest.varint();
            let mut rest = Bytes(rest.slice());
            if tag == self.doc.constant("meta.extension.leading") {
                leading = rest.0.to_vec();
                continue;
            }
            if tag == self.doc.constant("meta.extension.pieces") {
                of_pieces = Some(rest.fixed(8));
                assert!(rest.is_empty(), "all of the extension is documented");
                continue;
            }
            if tag == self.doc.constant("meta.extension.summaries") {
                summaries = Some((self.place(&mut rest), self.summary(&mut rest)));
                assert!(rest.is_empty(), "all of the extension is documented");
                continue;
            }
            assert_eq!(tag, self.doc.constant("meta.extension.values"));
            let place = self.place(&mut rest);
            let uses: Vec<[u64; 4]> = (0..rest.varint()).map(|_| [(); 4].map(|()| rest.varint())).collect();
            assert!(rest.is_empty(), "all of the extension is documented");
            values = Some((place, uses));
        }
        let versions = ["part.version", "part.version.summaries"].map(|name| self.doc.constant(name));
        let zstd = self.doc.constant("part.version.zstd");
        assert!(version == zstd || version == versions[usize::from(summaries.is_some())]);

        let mut rest = Bytes(pieces.body(top, "piece.top_index"));
        let mut filters = Vec::new();
        for _ in 0..rest.varint() {
            filters.push(self.place(&mut rest));
        }
        let mut leaves = Vec::new();
        for _ in 0..rest.varint() {
            leaves.push((rest.slice(), self.place(&mut rest), rest.varint()));
        }
        assert!(rest.is_empty(), "all of the top index is documented");
        assert_eq!(filters.is_empty(), filter_bits == 0);
        assert!(leading.is_empty() || leading.len() == filters.len());

        let (mut found, mut hashes, mut blocks, mut next) = (Vec::<Found>::new(), Vec::new(), Vec::new(), 0);
        let mut counts = Vec::new();
        for (separator, leaf, filter) in &leaves {
            let (_, entries) = pieces.block(*leaf);
            assert_eq!(
                entries.last().map(|entry| &entry.key[..]),
                Some(*separator),
                "a leaf ends with its separator"
            );
            let number = filter.checked_sub(1).map(|number| number as usize);
            let filter = number.map(|number| pieces.body(filters[number], "piece.filter"));
            let known = number.and_then(|number| leading.get(number)).copied().unwrap_or(0);
            for entry in entries {
                assert_eq!((entry.kind, entry.seq), (self.doc.constant("op.set"), None));
                let place = self.place(&mut Bytes(&entry.payload));
                assert_eq!(place.0, next, "data blocks follow one another");
                next = place.0 + place.1;
                let (encodings, records) = pieces.block(place);
                blocks.push(encodings);
                counts.push(records.len() as u64);
                for record in records {
                    assert!(record.key <= entry.key, "a separator is at or after its block");
                    if found.last().is_none_or(|last| last.key != record.key) {
                        let hash = hash64(0, &record.key);
                        assert!(
                            filter.is_none_or(|lines| self.filter_has(lines, hash)),
                            "its filter has the key"
                        );
                        let knows = |elements: &[u8]| {
                            filter.is_none_or(|lines| self.filter_has(lines, hash64(1, elements)))
                        };
                        assert!(leading_elements(&record.key, known).all(knows), "and what it begins with");
                        hashes.push(hash);
                    }
                    found.push(record);
                }
            }
        }
        assert_eq!(next, data_len);
        let by_zstd = |block: &(u64, u64)| block.1 == self.doc.constant("compression.zstd");
        assert!(
            version == zstd || !blocks.iter().any(by_zstd),
            "older versions refuse what they cannot read"
        );
        let sum = |of: &dyn Fn(&Found) -> usize| found.iter().map(|record| of(record) as u64).sum::<u64>();
        assert_eq!((found.len() as u64, hashes.len() as u64), (records, keys));
        assert_eq!(sum(&|record| usize::from(record.kind == self.doc.constant("op.delete"))), deletes);
        assert_eq!(
            (sum(&|record| record.key.len()), sum(&|record| record.payload.len())),
            (key_bytes, payload_bytes)
        );
        assert_eq!((&found[0].key, &found[found.len() - 1].key), (&low, &high));
        let mut pointed: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
        for record in found.iter().filter(|record| record.kind >= self.doc.constant("op.set_separated")) {
            let pointer = self.pointer(&record.payload);
            let units = self.value_units(record.key.len(), pointer.len);
            pointed.entry(pointer.segment).or_default().push((pointer.unit, units));
        }
        assert_eq!(pointed.is_empty(), values.is_none());
        if let Some((place, uses)) = values {
            let mut rest = Bytes(pieces.body(place, "piece.liveness"));
            assert_eq!(rest.varint(), uses.len() as u64);
            for (used, (segment, mut units)) in uses.iter().zip(pointed) {
                units.sort_unstable();
                let bytes: u64 =
                    units.iter().map(|(_, units)| units * self.doc.constant("values.align")).sum();
                let end = units.iter().map(|(at, units)| at + units).max().unwrap_or(0);
                assert_eq!(*used, [segment, units.len() as u64, bytes, end]);
                assert_eq!([(); 4].map(|()| rest.varint()), *used);
                let mut last = 0;
                for (at, _) in units {
                    last += rest.varint();
                    assert_eq!(last, at);
                }
            }
            assert!(rest.is_empty(), "all of the piece is documented");
        }
        let (has_summaries, has_leading) = (summaries.is_some(), leading.iter().any(|known| *known > 0));
        if let Some((place, total)) = summaries {
            let mut rest = Bytes(pieces.body(place, "piece.summaries"));
            assert_eq!(rest.varint(), leaves.len() as u64);
            let mut told = Vec::new();
            for _ in &leaves {
                told.extend((0..rest.varint()).map(|_| self.summary(&mut rest)).collect::<Vec<_>>());
            }
            assert!(rest.is_empty(), "all of the piece is documented");
            assert_eq!(told.len(), counts.len(), "one for each block");
            let is_right =
                |(told, count): (&FoundSummary, &u64)| told.as_ref().is_none_or(|told| told.0 == *count);
            assert!(told.iter().zip(&counts).all(is_right), "a row for each record");
            let rows = told.iter().map(|told| told.as_ref().map(|told| told.0)).sum::<Option<u64>>();
            assert_eq!(rows, total.map(|total| total.0));
        }
        hashes.sort_unstable();
        hashes.truncate(self.doc.constant("sketch.hashes_max") as usize);
        assert_eq!(hashes, sketch);
        let (filters, leaves) = (filters.len(), leaves.len());
        assert_eq!(of_pieces, Some(hash64(0, &pieces.checksums(meta.0))), "the hash of the pieces");
        let stored_meta = &file[meta.0 as usize..(meta.0 + meta.1) as usize];
        FoundPart {
            fingerprint: hash64(0, stored_meta),
            records: found,
            min_seq,
            max_seq: min_seq + seqs,
            order,
            blocks,
            filters,
            leaves,
            has_summaries,
            has_leading,
        }
    }

    /// Rows, and the fold of their values.
    fn summary(&self, rest: &mut Bytes<'_>) -> FoundSummary {
        let rows = rest.varint().checked_sub(1)?;
        let fold = rest.varint().checked_sub(1).map(|len| rest.take(len as usize).to_vec());
        Some((rows, fold))
    }

    pub(crate) fn pointer(&self, payload: &[u8]) -> FoundPointer {
        let layout = self.doc.layout("pointer");
        let number = |name: &str| layout.number(payload, name);
        let (segment, unit, hash) = (number("segment"), number("unit"), number("hash"));
        let mut rest = Bytes(&payload[layout.len()..]);
        let len = rest.varint();
        assert!(rest.slice().is_empty() && rest.is_empty(), "there are no heads yet");
        FoundPointer { segment, unit, hash, len }
    }

    /// Units that the record of a value takes.
    fn value_units(&self, key_len: usize, value_len: u64) -> u64 {
        let head = self.doc.layout("value-record").len() as u64;
        (head + key_len as u64 + value_len).div_ceil(self.doc.constant("values.align"))
    }

    /// The value that a record points to.
    pub(crate) fn value(&self, dir: &Path, table: u64, record: &Found) -> Vec<u8> {
        let pointer = self.pointer(&record.payload);
        let align = self.doc.constant("values.align");
        if let Some((number, file)) = self.moved(dir, pointer.segment) {
            let unit = self.unit_in_relocated(&file, number, &pointer);
            return self.value_at(&file[(unit * align) as usize..], table, record, &pointer);
        }
        let file =
            std::fs::read(dir.join(format!("{:06}.values", pointer.segment))).expect("the segment is there");
        let header = self.doc.layout("values-header");
        assert_eq!(&file[..8], b"FoldVal\0");
        assert_eq!((header.number(&file, "kind"), header.number(&file, "number")), (1, pointer.segment));
        let hash_at = header.offset("hash");
        assert_eq!(
            header.number(&file, "hash"),
            hash64(self.place_seed(pointer.segment, 0), &file[..hash_at])
        );
        assert!(pointer.unit * align >= self.doc.constant("values.header_bytes"));
        self.value_at(&file[(pointer.unit * align) as usize..], table, record, &pointer)
    }

    /// The youngest file of relocated values that carries a segment, and its number.
    fn moved(&self, dir: &Path, segment: u64) -> Option<(u64, Vec<u8>)> {
        let names = std::fs::read_dir(dir).expect("a store").map(|entry| entry.expect("an entry").path());
        let moved = names.filter(|path| path.extension().is_some_and(|is| is == "moved"));
        let files = moved.map(|path| {
            let number = path.file_stem().and_then(|stem| stem.to_str()).expect("a number");
            (number.parse().expect("a number"), std::fs::read(&path).expect("the file is there"))
        });
        let carrying = files.filter(|(number, file)| self.pages(file, *number).contains_key(&segment));
        carrying.max_by_key(|(number, _)| *number)
    }

    /// The first units of the pages of a file of relocated values, by segment, with the offset of
    /// the first of them.
    fn pages(&self, file: &[u8], number: u64) -> BTreeMap<u64, (u64, Vec<u64>)> {
        let (header, footer) = (self.doc.layout("moved-header"), self.doc.layout("moved-footer"));
        assert_eq!(header.bytes(file, "magic"), b"FoldMov\0");
        assert_eq!((header.number(file, "format"), header.number(file, "number")), (1, number));
        let hash = hash64(self.place_seed(number, 0), &file[..header.offset("hash")]);
        assert_eq!(header.number(file, "hash"), hash);
        let footer_at = file.len() - footer.len();
        let end = &file[footer_at..];
        assert_eq!(footer.bytes(end, "magic"), b"FoldMovE");
        assert_eq!((footer.number(end, "format"), footer.number(end, "number")), (1, number));
        let hash = hash64(self.place_seed(number, footer_at as u64), &end[..footer.offset("hash")]);
        assert_eq!(footer.number(end, "hash"), hash);
        let top_at = footer.number(end, "top_at");
        let top = &file[top_at as usize..footer_at];
        assert_eq!(top.len() as u64, footer.number(end, "top_bytes"));
        assert_eq!(footer.number(end, "top_hash"), hash64(self.place_seed(number, top_at), top));
        let mut rest = Bytes(top);
        let mut next = footer.number(end, "map_at");
        let mut all = BTreeMap::new();
        for _ in 0..rest.varint() {
            let [segment, values, _bytes] = [(); 3].map(|()| rest.varint());
            let count = values.div_ceil(self.doc.constant("moved.page_values"));
            let mut first = 0;
            let firsts: Vec<u64> = (0..count)
                .map(|_| {
                    first += rest.varint();
                    first
                })
                .collect();
            all.insert(segment, (next, firsts));
            next += count * self.doc.constant("moved.page_bytes");
        }
        assert!(rest.is_empty(), "all of the top is documented");
        assert_eq!(next, top_at);
        all
    }

    /// The unit of a file of relocated values with the record that a pointer leads to.
    fn unit_in_relocated(&self, file: &[u8], number: u64, pointer: &FoundPointer) -> u64 {
        let (at, firsts) = &self.pages(file, number)[&pointer.segment];
        let page = firsts.partition_point(|first| *first <= pointer.unit) as u64 - 1;
        let offset = at + page * self.doc.constant("moved.page_bytes");
        let layout = self.doc.layout("moved-page");
        let page = &file[offset as usize..][..layout.len()];
        assert_eq!(layout.len() as u64, self.doc.constant("moved.page_bytes"));
        let hash = hash64(self.place_seed(number, offset), &page[layout.offset("segment")..]);
        assert_eq!((layout.number(page, "hash"), layout.number(page, "segment")), (hash, pointer.segment));
        let count = layout.number(page, "count") as usize;
        let words = |field: &str| -> Vec<u64> {
            let words = layout.bytes(page, field).chunks(4).take(count);
            words.map(|word| Bytes(word).fixed(4)).collect()
        };
        let found = words("old").binary_search(&pointer.unit).expect("the map tells of it");
        words("new")[found]
    }

    /// The value of the record at the front of `stored`.
    fn value_at(&self, stored: &[u8], table: u64, record: &Found, pointer: &FoundPointer) -> Vec<u8> {
        let layout = self.doc.layout("value-record");
        let number = |name: &str| layout.number(stored, name);
        assert_eq!((number("len"), number("table"), number("hash")), (pointer.len, table, pointer.hash));
        assert_eq!(number("key_len"), record.key.len() as u64);
        let (key, rest) = stored[layout.len()..].split_at(record.key.len());
        assert_eq!(key, record.key);
        let seed = hash64(0, &stored[..layout.offset("check")]);
        assert_eq!(number("check"), low_half(hash64(seed, key)));
        let value = &rest[..pointer.len as usize];
        assert_eq!(pointer.hash, low_half(hash64(hash64(0, key), value)));
        value.to_vec()
    }

    fn place(&self, rest: &mut Bytes<'_>) -> (u64, u64) {
        let layout = self.doc.layout("place");
        let bytes = rest.take(layout.len());
        (layout.number(bytes, "offset"), layout.number(bytes, "len"))
    }

    fn filter_has(&self, lines: &[u8], hash: u64) -> bool {
        let line_bytes = self.doc.constant("filter.line_bytes") as usize;
        assert_eq!(lines.len() % line_bytes, 0);
        let count = (lines.len() / line_bytes) as u64;
        let line = (((hash >> 32) * count) >> 32) as usize;
        let line = &lines[line * line_bytes..][..line_bytes];
        let mixed = hash.wrapping_mul(self.doc.constant("place.multiplier"));
        (0..self.doc.constant("filter.probes")).all(|probe| {
            let bit = mixed >> (55 - 9 * probe) & 511;
            let word = little_endian(&line[8 * (bit >> 6) as usize..][..8]);
            word >> (bit & 63) & 1 == 1
        })
    }
}

/// The first element of a key, the first two, and so on: of texts and of whole numbers of up to
/// eight bytes, which are all that the keys of this test have.
fn leading_elements(key: &[u8], most: u8) -> impl Iterator<Item = &[u8]> {
    let end_of = |start: usize| match key[start] {
        0x02 => start + 2 + key[start + 1..].iter().position(|&byte| byte == 0).expect("a text ends"),
        code => start + 1 + usize::from(code.abs_diff(0x14)),
    };
    let ends = std::iter::successors(Some(0), move |start| (*start < key.len()).then(|| end_of(*start)));
    ends.skip(1).take(usize::from(most)).map(|end| &key[..end])
}

/// The pieces of a part.
struct Pieces<'r> {
    reader: &'r Reader<'r>,
    file: &'r [u8],
    number: u64,
    /// Of the pieces that were opened, by offset.
    checksums: RefCell<BTreeMap<u64, u64>>,
}

impl<'r> Pieces<'r> {
    /// The checksums of the pieces up to an offset, all of which were opened.
    fn checksums(&self, end: u64) -> Vec<u8> {
        let checksums = self.checksums.borrow();
        checksums.range(..end).flat_map(|(_, checksum)| (*checksum as u32).to_le_bytes()).collect()
    }

    /// The body of a piece, its encoding and its compression.
    fn open(&self, (offset, len): (u64, u64)) -> (&'r [u8], u64, u64) {
        let layout = self.reader.doc.layout("trailer");
        let piece = &self.file[offset as usize..(offset + len) as usize];
        let (body, trailer) = piece.split_at(piece.len() - layout.len());
        let hashed = &piece[..body.len() + layout.offset("checksum")];
        let checksum = low_half(hash64(self.reader.place_seed(self.number, offset), hashed));
        assert_eq!(layout.number(trailer, "checksum"), checksum, "the checksum of the piece at {offset}");
        self.checksums.borrow_mut().insert(offset, checksum);
        (body, layout.number(trailer, "encoding"), layout.number(trailer, "compression"))
    }

    /// The body of a piece that is of this encoding and not compressed.
    fn body(&self, place: (u64, u64), encoding: &str) -> &'r [u8] {
        let (body, found, compression) = self.open(place);
        assert_eq!(found, self.reader.doc.constant(encoding), "{encoding}");
        assert_eq!(compression, self.reader.doc.constant("compression.none"));
        body
    }

    /// The records of a block, with its encoding and compression.
    fn block(&self, place: (u64, u64)) -> ((u64, u64), Vec<Found>) {
        let doc = self.reader.doc;
        let (body, encoding, compression) = self.open(place);
        let raw = if compression == doc.constant("compression.lz4") {
            let mut rest = Bytes(body);
            let len = rest.fixed(4) as usize;
            let raw = unpack_lz4(rest.0);
            assert_eq!(raw.len(), len);
            raw
        } else if compression == doc.constant("compression.zstd") {
            let mut rest = Bytes(body);
            let len = rest.fixed(4) as usize;
            let raw = unpack_zstd(rest.0);
            assert_eq!(raw.len(), len);
            raw
        } else {
            assert_eq!(compression, doc.constant("compression.none"));
            body.to_vec()
        };
        let records = if encoding == doc.constant("piece.generic") {
            generic(doc, &raw)
        } else {
            assert_eq!(encoding, doc.constant("piece.columnar"));
            columnar(doc, &raw)
        };
        ((encoding, compression), records)
    }
}

fn read_fields(
    bytes: &mut Bytes<'_>,
    fields: &Fields,
    groups: &BTreeMap<String, Fields>,
) -> BTreeMap<String, Value> {
    let mut read = |kind: &str| match kind {
        "varint" => Value::Number(bytes.varint().into()),
        "varints" => Value::Numbers((0..bytes.varint()).map(|_| bytes.varint()).collect()),
        "u128" => Value::Number(u128::from(bytes.fixed(8)) | u128::from(bytes.fixed(8)) << 64),
        "u64" => Value::Number(bytes.fixed(8).into()),
        "bool" => Value::Number(bytes.fixed(1).into()),
        "slice" | "text" => Value::Bytes(bytes.slice().to_vec()),
        group => Value::Group(read_fields(bytes, groups.get(group).expect("a type or a group"), groups)),
    };
    fields.iter().map(|(name, kind)| (name.clone(), read(kind))).collect()
}

/// Seqs and kinds of a block, from the beginning of their columns; and where these end.
fn sides(
    doc: &Document,
    rest: &mut Bytes<'_>,
    count: usize,
    base: u64,
    width: u64,
    kind: u64,
) -> Vec<(Option<u64>, u64)> {
    let seqs: Vec<Option<u64>> = if width == doc.constant("block.no_seqs") {
        vec![None; count]
    } else {
        (0..count).map(|_| Some(base + rest.fixed(width as usize))).collect()
    };
    let kinds: Vec<u64> = if kind == doc.constant("block.kind_column") {
        (0..count).map(|_| rest.fixed(1)).collect()
    } else {
        vec![kind; count]
    };
    seqs.into_iter().zip(kinds).collect()
}

fn generic(doc: &Document, body: &[u8]) -> Vec<Found> {
    let layout = doc.layout("generic-footer");
    let (body, footer) = body.split_at(body.len() - layout.len());
    let field = |name: &str| layout.number(footer, name);
    assert_eq!(field("reserved"), 0);
    let (count, entries_len) = (field("count") as usize, field("entries_len"));
    let (entries, columns) = body.split_at(entries_len as usize);
    let mut columns = Bytes(columns);
    let sides = sides(doc, &mut columns, count, field("seq_base"), field("seq_width"), field("kind"));
    let every = doc.constant("block.restart_every") as usize;
    let restart_width = if entries_len < doc.constant("block.wide_restarts_from") { 2 } else { 4 };
    let mut rest = Bytes(entries);
    let mut key = Vec::new();
    let mut records = Vec::new();
    for (index, (seq, kind)) in sides.into_iter().enumerate() {
        let at = entries.len() - rest.0.len();
        let [shared, unshared, payload] = [(); 3].map(|()| rest.varint() as usize);
        if index % every == 0 {
            assert_eq!((columns.fixed(restart_width), shared), (at as u64, 0), "a restart");
        }
        key.truncate(shared);
        key.extend_from_slice(rest.take(unshared));
        records.push(Found { seq, kind, key: key.clone(), payload: rest.take(payload).to_vec() });
    }
    assert!(rest.is_empty() && columns.is_empty(), "all of the block is documented");
    records
}

fn columnar(doc: &Document, body: &[u8]) -> Vec<Found> {
    let layout = doc.layout("columnar-footer");
    let (body, footer) = body.split_at(body.len() - layout.len());
    let field = |name: &str| layout.number(footer, name) as usize;
    assert_eq!(field("reserved"), 0);
    let (count, key_len, payload_len) = (field("count"), field("key_len"), field("payload_len"));
    let tail_len = key_len.min(doc.constant("block.key_tail_bytes") as usize);
    let (body, key_head) = body.split_at(body.len() - (key_len - tail_len));
    let (body, segments) = body.split_at(body.len() - 2 * field("segments"));
    let (body, template) = body.split_at(body.len() - payload_len);
    let mut columns = Bytes(body);
    let keys: Vec<u64> = (0..count).map(|_| columns.fixed(field("key_width"))).collect();
    let (base, width, kind) =
        (layout.number(footer, "seq_base"), field("seq_width") as u64, field("kind") as u64);
    let sides = sides(doc, &mut columns, count, base, width, kind);
    let mut records = Vec::new();
    for (delta, (seq, kind)) in keys.into_iter().zip(sides) {
        let tail = layout.wide(footer, "key_base") + u128::from(delta);
        let key = [key_head, &tail.to_be_bytes()[16 - tail_len..]].concat();
        let mut payload = template.to_vec();
        for segment in segments.chunks(2) {
            let (start, len) = (usize::from(segment[0]), usize::from(segment[1]));
            payload[start..start + len].copy_from_slice(columns.take(len));
        }
        if kind == doc.constant("op.delete") {
            payload.clear();
        }
        records.push(Found { seq, kind, key, payload });
    }
    assert!(columns.is_empty(), "all of the block is documented");
    records
}

/// LZ4's block format: a token, literals, an offset, a length; the last sequence is literals only.
fn unpack_lz4(packed: &[u8]) -> Vec<u8> {
    let mut rest = Bytes(packed);
    let mut out: Vec<u8> = Vec::new();
    let long = |rest: &mut Bytes<'_>, mut len: usize| {
        while len >= 15 {
            let more = rest.fixed(1) as usize;
            len += more;
            if more < 255 {
                break;
            }
        }
        len
    };
    loop {
        let token = rest.fixed(1) as usize;
        let literals = long(&mut rest, token >> 4);
        out.extend_from_slice(rest.take(literals));
        if rest.is_empty() {
            return out;
        }
        let offset = rest.fixed(2) as usize;
        for _ in 0..long(&mut rest, token & 15) + 4 {
            out.push(out[out.len() - offset]);
        }
    }
}

/// One zstd frame (RFC 8878), by another implementation than the one that writes it.
fn unpack_zstd(mut packed: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut frame = ruzstd::decoding::StreamingDecoder::new(&mut packed).expect("a frame");
    std::io::Read::read_to_end(&mut frame, &mut out).expect("it is whole");
    drop(frame);
    assert!(packed.is_empty(), "nothing follows the frame");
    out
}

fn low_half(hash: u64) -> u64 {
    hash & u64::from(u32::MAX)
}
