//! Every kind of thing that the document draws is in some fixture, so that later versions must read
//! it: files, changes of the manifest, layouts, frames, ops, pieces of parts. Kinds that no fixture
//! has are listed here, each with its reason; a kind that is added to the document and to no
//! fixture fails.
//!
//! Manifests and segments are read by the document, as in `reader.rs`; parts are read by the
//! project's own code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use folddb_base::checksum::place_seed;
use folddb_layout::block::{Block, BlockCursor, Encoding, Place, Sealed};
use folddb_layout::part::{FOOTER_BYTES, Footer, Meta, TopIndex};
use folddb_sim::fixtures::{copy, kept};

use crate::document::Document;
use crate::files;
use crate::reader::{Bytes, FoundChange, Reader};

/// The kinds that no fixture has, and why.
const NOT_KEPT: [(&str, &str); 6] = [
    ("frame.kind.seal_for_next", "a log of two segments is long; `harm` has one"),
    ("change MoveRun", "nothing writes it yet"),
    ("op.insert_fold in the log", "only composing makes it"),
    ("op.range_delete in parts", "range deletes stand in the manifest"),
    ("op.put_hashed in parts", "hashed tables have no parts"),
    ("op.remove_hashed in parts", "hashed tables have no parts"),
];

/// Everything that the document draws.
fn drawn(doc: &Document) -> BTreeSet<String> {
    let mut drawn: BTreeSet<String> = doc.file_names().into_iter().map(file_kind).collect();
    drawn.extend(doc.changes().0.into_values().map(|(name, _)| format!("change {name}")));
    drawn.extend(doc.layout_names().map(|name| format!("layout {name}")));
    for prefix in ["frame.kind.", "piece.", "compression.", "part.version", "meta.extension."] {
        drawn.extend(doc.constants_of(prefix).map(|(name, _)| name.to_owned()));
    }
    for (name, _) in doc.constants_of("op.") {
        drawn.extend([format!("{name} in the log"), format!("{name} in parts")]);
    }
    drawn
}

/// The name of a file with `#` for each of its numbers.
fn file_kind(name: &str) -> String {
    let mut kind = String::new();
    for letter in name.trim_end_matches('/').chars() {
        match letter {
            '0'..='9' if kind.ends_with('#') => {}
            '0'..='9' => kind.push('#'),
            _ => kind.push(letter),
        }
    }
    format!("file {kind}")
}

struct Kinds<'d> {
    doc: &'d Document,
    found: BTreeSet<String>,
}

impl Kinds<'_> {
    fn found(&mut self, kind: impl Into<String>) {
        self.found.insert(kind.into());
    }

    /// The constant with this number, of those that begin with this.
    fn constant(&self, prefix: &str, number: u64) -> String {
        let mut all = self.doc.constants_of(prefix).filter(|(_, value)| *value == number);
        all.next().unwrap_or_else(|| panic!("{prefix} {number} is not documented")).0.to_owned()
    }

    fn store(&mut self, dir: &Path) {
        for entry in std::fs::read_dir(dir).expect("a store") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|name| name.to_str()).expect("a plain name").to_owned();
            self.found(file_kind(&name));
            if path.is_dir() {
                self.directory(&path, &name);
            }
        }
        let reader = Reader::new(self.doc);
        for (number, path) in files(dir, "MANIFEST-") {
            let changes = reader.manifest(&path, number);
            self.found("layout edit");
            self.changes(&changes);
        }
        let id = reader.store_id(dir);
        for (number, path) in files(dir, ".log").into_iter().chain(files(dir, ".kept")) {
            self.segment(&reader, &path, number, id);
        }
        files(dir, ".part").into_iter().for_each(|(number, path)| self.part(&path, number));
        for ending in [".values", ".moved", ".index"] {
            files(dir, ending).into_values().for_each(|path| self.by_magic(&path));
        }
    }

    fn directory(&mut self, dir: &Path, directory: &str) {
        for entry in std::fs::read_dir(dir).expect("a value directory") {
            let name = entry.expect("an entry").file_name();
            self.found(file_kind(&format!("{directory}/{}", name.to_string_lossy())));
            self.found("layout value-record");
            let value_file = std::fs::read(dir.join(name)).expect("a value file is read");
            if value_file.get(14) == Some(&1) {
                self.found("a front behind its value");
            }
        }
    }

    fn changes(&mut self, changes: &[FoundChange]) {
        for change in changes {
            self.found(format!("change {}", change.name));
            let rules =
                change.fields.get("rules").map(|rules| String::from_utf8_lossy(rules.bytes()).into_owned());
            let has_front = |rules: &String| {
                rules.contains("kind=hashed") && (rules.contains("keep=") || rules.contains("expire="))
            };
            if rules.is_some_and(|rules| has_front(&rules)) {
                self.found("layout front");
            }
        }
    }

    fn segment(&mut self, reader: &Reader<'_>, path: &Path, number: u64, id: u128) {
        self.found("layout segment-header");
        for frame in reader.segment(path, number, id) {
            self.found("layout frame");
            self.found(self.constant("frame.kind.", frame.kind));
            if frame.time.is_some() {
                self.found("a time in a frame");
            }
            for (_, record) in frame.records {
                let op = self.constant("op.", record.kind);
                self.pointer(&op, &record.payload);
                self.found(format!("{op} in the log"));
            }
        }
    }

    /// The content of an op whose value is separated: a pointer or a rope.
    fn pointer(&mut self, op: &str, payload: &[u8]) {
        let separated = match op {
            "op.set_separated" | "op.insert_separated" | "op.fold_separated" => payload,
            "op.put_hashed" => &payload[8..],
            _ => return,
        };
        self.found(match separated[..4] {
            [0xff, 0xff, 0xff, 0xff] => "layout rope",
            [0xfe, 0xff, 0xff, 0xff] => "layout lasting-rope",
            _ => "layout pointer",
        });
    }

    /// The layouts at the front and at the end of a file.
    fn by_magic(&mut self, path: &Path) {
        let bytes = std::fs::read(path).expect("it is read");
        let ends = [Some(0), bytes.len().checked_sub(64)].into_iter().flatten();
        for magic in ends.filter_map(|at| bytes.get(at..at + 8)) {
            match magic {
                b"FoldVal\0" if bytes[4096..].iter().any(|byte| *byte != 0) => {
                    self.found("layout values-header");
                    self.found("layout value-record");
                }
                b"FoldMov\0" => self.found("layout moved-header"),
                b"FoldMovE" => {
                    self.found("layout moved-footer");
                    self.found("layout moved-page"); // there is at least one
                }
                b"FoldHash" => self.found("layout checkpoint-footer"),
                b"FoldHchg" => self.found("layout changes-footer"),
                _ => {}
            }
        }
    }

    // ---- parts ----------------------------------------------------------------------------------

    fn part(&mut self, path: &Path, number: u64) {
        let file = PartFile { bytes: std::fs::read(path).expect("the part is there"), number };
        let end = file.bytes.last_chunk::<FOOTER_BYTES>().expect("a footer");
        let footer = Footer::read(end, number, file.bytes.len() as u64).expect("a footer");
        self.found("layout footer");
        self.found(self.constant("part.version", u64::from(footer.version)));
        let (meta, seed) = file.piece(footer.meta);
        let meta = Meta::open(meta, seed, file.bytes.len() as u64).expect("the facts");
        self.extensions(&meta);
        let (top, seed) = file.piece(footer.top_index);
        let top = TopIndex::open(top, seed).expect("the index");
        let more = meta.liveness.into_iter().chain(meta.summaries.as_ref().map(|summaries| summaries.place));
        for place in
            [footer.meta, footer.top_index].into_iter().chain(top.filters.iter().copied()).chain(more)
        {
            self.piece(&file, place);
        }
        for leaf in &top.leaves {
            for entry in self.block(&file, leaf.place, "a leaf") {
                let mut place = Bytes(&entry);
                let place = Place { offset: place.fixed(8), len_bytes: place.fixed(4) as u32 };
                self.block(&file, place, "data");
            }
        }
    }

    fn extensions(&mut self, meta: &Meta) {
        for (is_there, name) in [
            (meta.liveness.is_some(), "meta.extension.values"),
            (meta.summaries.is_some(), "meta.extension.summaries"),
            (!meta.leading.is_empty(), "meta.extension.leading"),
            (meta.pieces_hash.is_some(), "meta.extension.pieces"),
            (meta.facts.stamps.is_some(), "stamps in meta"),
            (meta.facts.kept_since > 0, "a past in meta"),
        ] {
            if is_there {
                self.found(name);
            }
        }
    }

    fn piece(&mut self, file: &PartFile, place: Place) -> Encoding {
        let (stored, seed) = file.piece(place);
        let sealed = Sealed::open(stored, seed).expect("a piece");
        self.found(self.constant("piece.", sealed.encoding as u64));
        self.found(self.constant("compression.", sealed.compression as u64));
        self.found("layout trailer");
        self.found("layout place");
        sealed.encoding
    }

    /// The payloads of a block.
    fn block(&mut self, file: &PartFile, place: Place, what: &str) -> Vec<Vec<u8>> {
        let encoding = self.piece(file, place);
        self.found(if encoding == Encoding::Generic {
            "layout generic-footer"
        } else {
            "layout columnar-footer"
        });
        let (stored, seed) = file.piece(place);
        let block = Block::open(stored.to_vec(), seed).expect("a block");
        let (mut cursor, mut payloads) = (BlockCursor::new(0), Vec::new());
        cursor.enter(&block);
        for index in 0..block.count() {
            cursor.seek_index(&block, index).expect("a record");
            let record = cursor.record(&block).expect("a record");
            payloads.push(record.payload.to_vec());
            if what == "data" {
                let op = self.constant("op.", record.kind as u64);
                self.pointer(&op, record.payload);
                self.found(format!("{op} in parts"));
            }
        }
        payloads
    }
}

struct PartFile {
    bytes: Vec<u8>,
    number: u64,
}

impl PartFile {
    /// The bytes of a piece, and the seed of its checksum.
    fn piece(&self, place: Place) -> (&[u8], u64) {
        (&self.bytes[place.offset as usize..place.end() as usize], place_seed(self.number, place.offset))
    }
}

/// The stores of a directory of fixtures, and of the backups in it.
fn stores(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut stores = Vec::new();
    for path in entries.filter(|path| path.is_dir()) {
        if path.join("FORMAT").exists() { stores.push(path) } else { stores.extend(self::stores(&path)) }
    }
    stores
}

#[test]
fn every_kind_that_the_document_draws_is_among_the_fixtures() {
    let doc = Document::read();
    let mut kinds = Kinds { doc: &doc, found: BTreeSet::new() };
    for dir in kept().expect("the fixtures are there") {
        let work = tempfile::tempdir().expect("a directory");
        copy(&dir, "", work.path()).expect("fixtures are copied");
        stores(work.path()).iter().for_each(|store| kinds.store(store));
    }
    let excused: BTreeMap<&str, &str> = NOT_KEPT.into_iter().collect();
    let missing: Vec<String> = drawn(&doc)
        .into_iter()
        .filter(|kind| !kinds.found.contains(kind) && !excused.contains_key(&**kind))
        .collect();
    assert!(missing.is_empty(), "no fixture has: {missing:#?}");
    let needless: Vec<_> = NOT_KEPT.iter().filter(|(kind, _)| kinds.found.contains(*kind)).collect();
    assert!(needless.is_empty(), "some fixture has: {needless:#?}");
    for kind in ["a time in a frame", "stamps in meta", "a past in meta", "a front behind its value"] {
        assert!(kinds.found.contains(kind), "no fixture has {kind}");
    }
}
