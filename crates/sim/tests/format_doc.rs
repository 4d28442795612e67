//! Compares `docs/FORMAT.md` with the code: a store is read back by the document alone, and every
//! example in it is compared with what the code writes. `UPDATE=1` puts what the code writes into
//! the examples; read the difference before you commit it: existing stores do not have a changed
//! format.

#[path = "format_doc/document.rs"]
mod document;
#[path = "format_doc/reader.rs"]
mod reader;
#[path = "format_doc/kinds.rs"]
mod kinds;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use document::Document;
use folddb::codec::tuple::Element;
use folddb::codec::{AsKey, AsValue, Key, KeyCodec};
use folddb::folds::{Bitmap, ByteSet, Counters, Edit, ExactSum, Hll, Patch, Quantiles, Stats, Timed, TopK};
use folddb::table_rules::Compression;
use folddb::{BackgroundWork, Durability, Options, Rules, Store, folds};
use folddb_base::bytes::{put_slice, put_varint};
use folddb_base::checksum::{hash64, place_seed};
use folddb_base::rope::ROPE_BYTES_MAX;
use folddb_base::stamp::NEVER;
use folddb_base::{Op, OpKind, Pointer, RopeBuilder, Stamp, limits};
use folddb_host::{Chance, Host};
use folddb_layout::frame::LogOp;
use folddb_layout::hash_changes::{Changed, ChangesFooter, put_changes};
use folddb_layout::hash_checkpoint::{self, CheckpointFooter, Directory, Entry, PieceEntry, PointRange};
use folddb_layout::hash_front::Front;
use folddb_layout::manifest_edit::{FEATURE_LASTING_PIECES, FEATURE_LONG_VALUES, FEATURE_ROPES};
use reader::{Found, FoundChange, Reader};

const ALL_THE_SAME: u64 = 0x0123_4567_89ab_cdef;

/// No chance at all: identity and salts are known in advance.
struct NoChance;

impl Chance for NoChance {
    fn next_u64(&self) -> u64 {
        ALL_THE_SAME
    }
}

fn options() -> Options {
    Options::default()
        .host(Host { chance: Arc::new(NoChance), ..Host::real() })
        .memory_bytes(4 << 20)
        .tuning(|t| t.segment_bytes(1 << 20).part_bytes(64 << 10))
        .background(BackgroundWork::Manual)
}

// ---- examples -----------------------------------------------------------------------------------

#[test]
fn the_examples_are_what_the_code_writes() {
    let mut doc = Document::read();
    let written = examples(&doc);
    let in_doc = doc.examples();
    let labels: BTreeSet<&str> = in_doc.iter().map(|(label, _)| label.as_str()).collect();
    let known: BTreeSet<&str> = written.iter().map(|(label, _)| *label).collect();
    assert_eq!(labels, known, "the examples of the document and those that are written here");
    assert_eq!(labels.len(), in_doc.len(), "each example stands once");
    if std::env::var_os("UPDATE").is_some() {
        written.iter().for_each(|(label, bytes)| doc.mend(label, &hex(bytes)));
        doc.save();
        return;
    }
    for (label, bytes) in &written {
        let said = &in_doc.iter().find(|(found, _)| found == label).expect("all labels are there").1;
        assert_eq!(&hex(bytes), said, "{label}");
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

fn examples(doc: &Document) -> Vec<(&'static str, Vec<u8>)> {
    let mut all = Vec::new();
    for (label, number) in [
        ("varint 0", 0),
        ("varint 127", 127),
        ("varint 128", 128),
        ("varint 300", 300),
        ("varint 2^64-1", u64::MAX),
    ] {
        all.push((label, made(|out| put_varint(out, number))));
    }
    all.push(("slice \"fold\"", made(|out| put_slice(out, b"fold"))));
    all.push(("xxh3-64 of nothing, seed 0", hash64(0, b"").to_le_bytes().to_vec()));
    all.push(("place seed (7, 4096)", place_seed(7, 4096).to_le_bytes().to_vec()));
    let composed = Op::InsertFold { absent: b"a", present: b"mm" };
    all.push(("InsertFold \"a\" \"mm\" as payload", made(|out| composed.put_payload(out))));
    let place = folddb_base::ValuePlace { segment: 7, unit: 256 };
    let pointer = Pointer { place, time_ms: 1_763_706_400_000, hash: 0xdead_beef, len: 8192, head: &[] };
    all.push(("pointer to 8192 bytes at 4096 of segment 7", made(|out| pointer.put(out))));
    all.push(("rope of 8192 bytes at 4096 of segment 7, \", \", 64 at 4800 of 8", rope()));
    all.push(("the same, until 2000000000000", lasting_rope()));
    all.push(("piece of points 1 and 300 of file 7, at 4096", checkpoint_piece()));
    let [first, second] = first_frames(doc);
    all.push(("frame 1: fold hits \"k\" 5", first));
    all.push(("frame 2: a batch of two deletes", second));
    all.extend(keys());
    all.extend(values());
    all
}

fn rope() -> Vec<u8> {
    made(|out| pieces().put(1_763_706_400_000, b"", out))
}

fn lasting_rope() -> Vec<u8> {
    made(|out| {
        pieces().put_until(1_763_706_400_000, Some(2_000_000_000_000), b"", out);
    })
}

fn pieces() -> RopeBuilder {
    let mut rope = RopeBuilder::default();
    rope.push_separated(folddb_base::ValuePlace { segment: 7, unit: 256 }, 0xdead_beef, 8192);
    rope.push_inline(b", ");
    rope.push_separated(folddb_base::ValuePlace { segment: 8, unit: 300 }, 0xbeef_dead, 64);
    rope
}

fn made(put: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out);
    out
}

fn key<K: Key>(key: &(impl AsKey<K> + ?Sized)) -> Vec<u8> {
    made(|out| key.encode_key(out))
}

fn typed_key(codec: &str, parts: &[&str]) -> Vec<u8> {
    codec.parse::<KeyCodec>().expect("a codec").parse_text(parts).expect("a key")
}

fn keys() -> Vec<(&'static str, Vec<u8>)> {
    let mixed = ("a\0b".to_owned(), None::<String>, true);
    vec![
        ("key u64 258", key::<u64>(&258u64)),
        ("key i64 -1", key::<i64>(&-1i64)),
        ("key time 2026-11-22T08:30:00Z", typed_key("time", &["2026-11-22T08:30:00Z"])),
        ("key (\"a\", 1970-01-01T00:00:01Z)", typed_key("tuple(text,time)", &["a", "1970-01-01T00:00:01Z"])),
        ("key (\"UA\", \"EWR\")", key::<(String, String)>(&("UA", "EWR"))),
        ("key (-1, 0, 1, 256)", key::<Vec<Element<'static>>>(&[-1, 0, 1, 256].map(Element::Int)[..])),
        ("key (\"a\\0b\", null, true)", key::<(String, Option<String>, bool)>(&mixed)),
        ("key (1.5,)", key::<(f64,)>(&(1.5,))),
    ]
}

fn values() -> Vec<(&'static str, Vec<u8>)> {
    let u64_of = |number: u64| number.to_le_bytes().to_vec();
    let record = |spec: &str, fields: &[Option<&[u8]>]| {
        let record = spec.parse::<folds::Record>().expect("a spec");
        made(|out| record.put(fields, out).expect("the fields of the record"))
    };
    let a_set = ByteSet::of("a").to_bytes();
    vec![
        ("sum:u64 of 5", folded("sum:u64", &[u64_of(2), u64_of(3)])),
        ("sum:i128 of 5", folded("sum:i128", &[7i128, -2].map(|number| number.to_le_bytes().to_vec()))),
        ("sum:f64 of 1.5", folded("sum:f64", &[1.0, 0.5].map(|number| ExactSum::of(number).to_bytes()))),
        (
            "sum:f64 of 1 and 2^-60",
            folded("sum:f64", &[1.0, 0.5f64.powi(60)].map(|x| ExactSum::of(x).to_bytes())),
        ),
        ("stats:f64 of 12.5", Stats::of(12.5).to_bytes()),
        (
            "stats:f64 of 12.5 and -3",
            folded("stats:f64", &[12.5, -3.0].map(|number| Stats::of(number).to_bytes())),
        ),
        ("append:, of \"a\" and \"b\"", folded("append:,", &[b"a".to_vec(), b"b".to_vec()])),
        ("set of \"b\" and \"a\"", folded("set", &["b", "a"].map(|member| ByteSet::of(member).to_bytes()))),
        (
            "counters of a=2 and b=-1",
            folded("counters", &[("a", 2), ("b", -1)].map(|(n, c)| Counters::of(n, c).to_bytes())),
        ),
        ("lww:ts of 7 \"x\"", made(|out| AsValue::encode(&Timed { time: 7, value: "x".to_owned() }, out))),
        ("top:3 of 1.5 \"x\"", TopK::<3>::of(1.5, "x").to_bytes()),
        ("bitmap of 1 and 5", folded("bitmap", &[1, 5].map(|member| Bitmap::of(member).to_bytes()))),
        ("hll:12 of \"N12345\"", Hll::<12>::of(b"N12345").as_bytes().to_vec()),
        (
            "quantiles of 1 and 2",
            folded("quantiles", &[1.0, 2.0].map(|x| <Quantiles>::of(x).as_bytes().to_vec())),
        ),
        (
            "json-merge of a=1 and b=2",
            folded("json-merge", &[br#"{"a":1}"#.to_vec(), br#"{"b":2}"#.to_vec()]),
        ),
        ("patch object \"ab\"", Patch::object(b"ab").to_bytes()),
        ("patch append \"c\"", Patch::edits([Edit::Append(b"c")]).to_bytes()),
        (
            "record {n: sum:u64, m: sum:u64}",
            record("{n: sum:u64, m: sum:u64}", &[Some(&u64_of(1)), Some(&u64_of(2))]),
        ),
        ("record {n: sum:u64, s: set}", record("{n: sum:u64, s: set}", &[Some(&u64_of(1)), Some(&a_set)])),
        ("record {n: sum:u64, s: set} n", record("{n: sum:u64, s: set}", &[Some(&u64_of(1)), None])),
    ]
}

/// The fold of the operands, oldest first.
fn folded<const N: usize>(spec: &str, operands: &[Vec<u8>; N]) -> Vec<u8> {
    let fold = spec.parse::<folds::FoldSpec>().expect("a spec");
    let mut value = operands[0].clone();
    for operand in &operands[1..] {
        let mut out = Vec::new();
        match fold.as_fold().fold(b"", &value, operand, &mut out).expect("operands of the fold") {
            folddb::Outcome::Value => value = out,
            other => panic!("{spec}: {other:?}"),
        }
    }
    value
}

/// The first two frames of a store, as they are in its segment.
fn first_frames(doc: &Document) -> [Vec<u8>; 2] {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).expect("a new store");
    let hits = store.table("hits", Rules::sorted::<String, u64>().fold("sum:u64")).expect("a new table");
    hits.fold("k", &5).expect("written");
    store.batch().delete(&hits, "k").delete(&hits, "l").commit(Durability::Process).expect("written");
    let (number, segment) = the_only(&path, ".log");
    let reader = Reader::new(doc);
    let frames = reader.segment(&segment, number, reader.store_id(&path));
    let mut frames = frames.into_iter().map(|frame| frame.bytes);
    [frames.next().expect("the first frame"), frames.next().expect("the second frame")]
}

// ---- checkpoints of hashed tables, which this store does not have -------------------------------

const POINTS: PointRange = PointRange { start: 0, depth: 6 };

fn checkpoint_piece() -> Vec<u8> {
    let entries =
        [Entry { point: 1, slot: 7 << 24 | 256 }, Entry { point: 300, slot: 25 << 44 | 8 << 24 | 1000 }];
    made(|out| hash_checkpoint::put_piece(out, POINTS, &entries, 7, 4096))
}

#[test]
fn a_checkpoint_is_read_by_the_document() {
    let doc = Document::read();
    for (name, value) in [
        ("checkpoint.version", hash_checkpoint::CHECKPOINT_VERSION),
        ("checkpoint.point_bits", hash_checkpoint::POINT_BITS),
        ("checkpoint.slot_bits", hash_checkpoint::SLOT_BITS),
        ("checkpoint.address_bits", hash_checkpoint::ADDRESS_BITS),
        ("checkpoint.depth_min", hash_checkpoint::DEPTH_MIN),
        ("checkpoint.depth_max", hash_checkpoint::DEPTH_MAX),
    ] {
        assert_eq!(doc.constant(name), u64::from(value), "{name}");
    }
    let footer = CheckpointFooter { number: 7, file_bytes: 5000, directory_offset: 4800, salt: ALL_THE_SAME };
    let bytes = made(|out| footer.put(out));
    let layout = doc.layout("checkpoint-footer");
    assert_eq!((bytes.len(), layout.bytes(&bytes, "magic")), (layout.len(), &b"FoldHash"[..]));
    let said = ["version", "reserved", "number", "file_bytes", "directory_offset", "directory_len", "salt"];
    let said = said.map(|field| layout.number(&bytes, field));
    assert_eq!(said, [1, 0, 7, 5000, 4800, 5000 - 64 - 4800, ALL_THE_SAME]);
    let (before, sum) = bytes.split_at(layout.offset("checksum"));
    assert_eq!(sum, hash64(place_seed(7, 5000 - 64), before).to_le_bytes());

    // A piece: distances and slots, as far as the checksum.
    let piece = checkpoint_piece();
    let (body, sum) = piece.split_at(piece.len() - 8);
    assert_eq!(sum, hash64(place_seed(7, 4096), body).to_le_bytes());
    let first = [&[1][..], &(7u64 << 24 | 256).to_le_bytes()[..7]].concat();
    let second = [&[0xab, 0x02][..], &(25u64 << 44 | 8 << 24 | 1000).to_le_bytes()[..7]].concat();
    assert_eq!(body, [first, second].concat());

    // A directory: as many ranges of the least depth as are needed for all points, the first of
    // them with that piece.
    let rest = (1..64).map(|number| PieceEntry {
        range: PointRange { start: number << 34, depth: 6 },
        keys: 0,
        seq: 1,
        offset: piece.len() as u64 + 8 * (number - 1),
        len_bytes: 8,
    });
    let first = PieceEntry { range: POINTS, keys: 2, seq: 300, offset: 0, len_bytes: piece.len() as u64 };
    let directory = Directory { pieces: [first].into_iter().chain(rest).collect() };
    let at = piece.len() as u64 + 8 * 63;
    let bytes = made(|out| directory.put(out, 7, at));
    let said = [&[64, 6, 2, 0xac, 0x02, piece.len() as u8][..], &[6, 0, 1, 8].repeat(63)].concat();
    assert_eq!(bytes, [&said[..], &hash64(place_seed(7, at), &said).to_le_bytes()].concat());
}

#[test]
fn a_front_is_read_by_the_document() {
    let doc = Document::read();
    let layout = doc.layout("front");
    let stamp = Stamp { write_ms: 1_800_000_000_000, deadline_ms: NEVER };
    let bytes = Front { is_deleted: true, stamp }.bytes();
    assert_eq!((bytes.len(), layout.number(&bytes, "flags")), (layout.len(), 1));
    assert_eq!(layout.bytes(&bytes, "write"), &1_800_000_000_000u64.to_le_bytes()[..6]);
    assert_eq!(layout.bytes(&bytes, "deadline"), [0xff; 6]);
}

#[test]
fn changes_after_a_checkpoint_are_read_by_the_document() {
    let doc = Document::read();
    let footer = ChangesFooter { number: 8, file_bytes: 500, count: 2, checkpoint: 7, salt: ALL_THE_SAME };
    let bytes = made(|out| footer.put(out));
    let layout = doc.layout("changes-footer");
    assert_eq!((bytes.len(), layout.bytes(&bytes, "magic")), (layout.len(), &b"FoldHchg"[..]));
    let said = ["version", "reserved", "number", "file_bytes", "count", "checkpoint", "salt"];
    let said = said.map(|field| layout.number(&bytes, field));
    assert_eq!(said, [1, 0, 8, 500, 2, 7, ALL_THE_SAME]);
    let (before, sum) = bytes.split_at(layout.offset("checksum"));
    assert_eq!(sum, hash64(place_seed(8, 500 - 64), before).to_le_bytes());

    let (old, new) = (7 << 24 | 256, 25 << 44 | 8 << 24 | 1000);
    let changes =
        [Changed { seq: 300, point: 1, old: 0, new: old }, Changed { seq: 302, point: 1 << 39, old, new }];
    let stored = made(|out| put_changes(out, &changes, 8));
    let (body, sum) = stored.split_at(stored.len() - 8);
    assert_eq!(sum, hash64(place_seed(8, 0), body).to_le_bytes());
    let slot = |slot: u64| slot.to_le_bytes()[..7].to_vec();
    let first = [&[0xac, 0x02, 1, 0, 0, 0, 0][..], &[0; 7], &slot(old)].concat();
    let second = [&[2, 0, 0, 0, 0, 0x80][..], &slot(old), &slot(new)].concat();
    assert_eq!(body, [first, second].concat());
}

// ---- constants that no file shows ---------------------------------------------------------------

#[test]
fn limits_and_kinds_are_as_the_document_says() {
    let doc = Document::read();
    for (name, value) in [
        ("key.bytes_max", limits::KEY_BYTES_MAX as u64),
        ("value.bytes_max", limits::VALUE_BYTES_MAX as u64),
        ("batch.bytes_max", limits::BATCH_BYTES_MAX as u64),
        ("table_name.bytes_max", limits::TABLE_NAME_BYTES_MAX as u64),
        ("segment.bytes_default", limits::SEGMENT_BYTES),
        ("op.delete", OpKind::Delete as u64),
        ("op.set", OpKind::Set as u64),
        ("op.insert", OpKind::Insert as u64),
        ("op.fold", OpKind::Fold as u64),
        ("op.insert_fold", OpKind::InsertFold as u64),
        ("op.put_hashed", LogOp::PutHashed.code().into()),
        ("op.remove_hashed", LogOp::RemoveHashed.code().into()),
        ("op.set_separated", OpKind::SetSeparated as u64),
        ("op.insert_separated", OpKind::InsertSeparated as u64),
        ("op.fold_separated", OpKind::FoldSeparated as u64),
        ("rope.bytes_max", ROPE_BYTES_MAX as u64),
        ("feature.ropes", FEATURE_ROPES),
        ("feature.long_values", FEATURE_LONG_VALUES),
        ("feature.lasting_pieces", FEATURE_LASTING_PIECES),
    ] {
        assert_eq!(doc.constant(name), value, "{name}");
    }
}

#[test]
fn what_is_newer_is_refused() {
    let doc = Document::read();
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("store");
    Store::create(&path, options()).expect("a new store").close().expect("closed");
    let format = path.join("FORMAT");
    let line = std::fs::read_to_string(&format).expect("FORMAT is text");
    let (said, _) = line.split_once(" sum ").expect("a sum");
    let rewrite = |said: &str| {
        let line = format!("{said} sum {:016x}\n", hash64(0, said.as_bytes()));
        std::fs::write(&format, line).expect("FORMAT can be written");
        Store::open(&path, options()).map(|_| ()).map_err(|error| error.kind())
    };
    let major = doc.constant("format.major");
    let newer = said.replace(&format!("format {major}"), &format!("format {}", major + 1));
    assert_eq!(rewrite(&newer), Err(folddb::ErrorKind::NewerFormat));
    assert_eq!(rewrite(&said.replace("required 000", "required 800")), Err(folddb::ErrorKind::NewerFormat));
    assert_eq!(rewrite(&said.replace("optional 000", "optional 800")), Ok(()));
}

// ---- a whole store ------------------------------------------------------------------------------

/// The files of a kind, by number.
fn files(dir: &Path, suffix: &str) -> BTreeMap<u64, PathBuf> {
    let names = std::fs::read_dir(dir).expect("a store").map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.into_string().expect("a plain name"));
    let numbered = names.filter_map(|name| {
        let digits = match suffix {
            "MANIFEST-" => name.strip_prefix(suffix)?,
            _ => name.strip_suffix(suffix)?,
        };
        assert!(digits.len() >= 6, "{name} has six digits");
        Some((digits.parse().expect("a number"), dir.join(&name)))
    });
    numbered.collect()
}

fn the_only(dir: &Path, suffix: &str) -> (u64, PathBuf) {
    let mut files = files(dir, suffix);
    assert_eq!(files.len(), 1, "one file {suffix}");
    files.pop_first().expect("it is there")
}

/// What the manifest says about the parts of a table: which of its records may be shown.
struct Listed {
    part: BTreeMap<String, reader::Value>,
    age: u64,
}

/// The live parts, by table and file, after all changes.
fn living(changes: &[FoundChange]) -> BTreeMap<(u64, u64), Listed> {
    let mut living = BTreeMap::new();
    let mut ages = BTreeMap::new();
    for change in changes {
        let number = |name: &str| change.fields[name].number();
        match change.name.as_str() {
            "AddKnownPart" => {
                let mut part = change.fields["part"].group().clone();
                part.insert("fingerprint".to_owned(), change.fields["fingerprint"].clone());
                let age = *ages.entry(number("run")).or_insert_with(|| number("age"));
                living.insert((number("table"), part["file"].number()), Listed { part, age });
            }
            "RemovePart" => {
                living.remove(&(number("table"), number("file"))).expect("a part that lives");
            }
            "TrimPart" => {
                let listed = living.get_mut(&(number("table"), number("file"))).expect("a part that lives");
                listed.part.insert("low".to_owned(), change.fields["low"].clone());
                listed.part.insert("trimmed".to_owned(), reader::Value::Number(1));
            }
            "DropTable" => living.retain(|(table, _), _| *table != number("table")),
            _ => {}
        }
    }
    living
}

fn table_number(changes: &[FoundChange], name: &str) -> u64 {
    let created =
        changes.iter().find(|change| change.fields.get("name").is_some_and(|n| n.bytes() == name.as_bytes()));
    created.expect("the table is created").fields["table"].number()
}

/// The records of a table that its parts show, newest run first, each with its seq.
fn shown(reader: &Reader<'_>, dir: &Path, changes: &[FoundChange], table: u64) -> Vec<(u64, Found)> {
    let mut all = Vec::new();
    for ((of, file), listed) in living(changes) {
        if of != table {
            continue;
        }
        let part = reader.part(&dir.join(format!("{file:06}.part")), file);
        let field = |name: &str| listed.part[name].number();
        assert_eq!((part.min_seq, part.max_seq), (field("min_seq"), field("max_seq")));
        assert_eq!(part.records.len() as u64, field("records"));
        assert_eq!(part.fingerprint, field("fingerprint"));
        assert_eq!(part.order, "bytewise");
        let low = listed.part["low"].bytes();
        assert_eq!(field("trimmed") == 1, part.records[0].key != low);
        let visible = part.records.into_iter().filter(|record| record.key.as_slice() >= low);
        all.extend(
            visible.map(|record| (listed.age, Found { seq: record.seq.or(Some(part.max_seq)), ..record })),
        );
    }
    all.sort_by(|(_, a), (_, b)| (&a.key, b.seq).cmp(&(&b.key, a.seq)));
    all
}

/// Numbers that do not pack, so that there are several parts.
fn scattered(i: u64) -> u64 {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 8
}

fn word(i: u64) -> String {
    format!("{}{}", ["alpha", "beta", "gamma/delta"][(i % 3) as usize], i * i)
}

#[test]
fn a_store_is_read_back_by_the_document_alone() {
    const KEYS: u64 = 24_000;
    let doc = Document::read();
    let reader = Reader::new(&doc);
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).expect("a new store");
    let sums =
        store.table("sums", Rules::sorted::<u64, u64>().fold("sum:u64").summaries(true)).expect("a table");
    let words =
        store.table("words", Rules::sorted::<String, Vec<u8>>().fold("append:,").lz4()).expect("a table");
    let below = Rules::sorted::<String, Vec<u8>>().fold("append:;").compression(Compression::Zstd);
    let below = store.table("below", below).expect("a table");
    let gone = store.table("gone", Rules::sorted::<u64, u64>()).expect("a table");
    let separated =
        store.table("separated", Rules::sorted::<u64, Vec<u8>>().separate(2048)).expect("a table");
    let pairs = store.table("pairs", Rules::sorted::<(String, u64, u64), u64>()).expect("a table");
    store.table("dropped", Rules::sorted::<u64, u64>()).expect("a table");
    store.drop_table("dropped").expect("dropped");

    // Sums: parts of a kind each, with seqs where a snapshot lives, then merged into one run.
    let mut snapshot = None;
    for i in 0..KEYS {
        sums.fold(&(i * 3), &scattered(i)).expect("written");
        if i == KEYS / 2 {
            snapshot = Some(store.snapshot());
            sums.fold(&0, &7).expect("written");
        }
    }
    store.flush().expect("flushed");
    drop(snapshot);
    for i in 0..2_000u64 {
        words.put_if_absent(&word(i), &format!("first {i}").into_bytes()).expect("written");
        below.fold(&word(i), &format!("below {i}").into_bytes()).expect("written");
        gone.put(&i, &i).expect("written");
        pairs.put(&(word(i / 50), i / 10, i), &i).expect("written");
    }
    store.flush().expect("flushed");
    for i in 0..KEYS / 2 {
        sums.fold(&(i * 6), &1).expect("written");
    }
    for i in 1_000..3_000u64 {
        words.put_if_absent(&word(i), &b"second".to_vec()).expect("written");
        words.fold(&word(i), &format!("more {i}").into_bytes()).expect("written");
    }
    let long = |i: u64| vec![i as u8; 20_000 + i as usize];
    for i in 0..300u64 {
        separated.put(&i, &long(i)).expect("written"); // longer than a value segment of this store
    }
    separated.put_if_absent(&7, &long(8)).expect("written");
    words.delete(&word(5)).expect("written");
    gone.as_bytes().delete_range(&key::<u64>(&10u64), &key::<u64>(&500u64)).expect("written");
    store.flush().expect("flushed");

    let changes_of = |path: &Path| {
        let (number, manifest) = the_only(path, "MANIFEST-");
        reader.manifest(&manifest, number)
    };
    let changes = changes_of(&path);
    let in_words = shown(&reader, &path, &changes, table_number(&changes, "words"));
    let kinds: BTreeSet<u64> = in_words.iter().map(|(_, record)| record.kind).collect();
    assert!(kinds.contains(&doc.constant("op.insert_fold")), "{kinds:?}");
    assert!(kinds.contains(&doc.constant("op.delete")), "{kinds:?}");
    let in_gone = shown(&reader, &path, &changes, table_number(&changes, "gone"));
    assert_eq!(in_gone.len(), 2_000, "a range delete stands beside the records");
    assert_eq!(shown(&reader, &path, &changes, table_number(&changes, "below")).len(), 2_000);
    check_sums(&shown(&reader, &path, &changes, table_number(&changes, "sums")), KEYS);
    check_blocks(&doc, &reader, &path);
    store.flush().expect("a segment that is full and durable is sealed");
    let in_separated = shown(&reader, &path, &changes, table_number(&changes, "separated"));
    assert_eq!(in_separated.len(), 300);
    for (_, record) in in_separated {
        let i = u64::from_be_bytes(record.key[..].try_into().expect("8 bytes"));
        assert_eq!(record.kind, doc.constant("op.set_separated"));
        let table = table_number(&changes, "separated");
        assert!(reader.value(&path, table, &record) == long(i), "the value of key {i}");
    }
    check_relocated(&doc, &reader, &path, &store);

    for table in ["sums", "words", "gone"] {
        store.bytes_table(table).expect("a table").compact().expect("merged");
    }
    let changes = changes_of(&path);
    let names: BTreeSet<&str> = changes.iter().map(|change| change.name.as_str()).collect();
    let not_seen: Vec<_> = doc
        .changes()
        .0
        .into_values()
        .map(|(name, _)| name)
        .filter(|name| !names.contains(name.as_str()))
        .collect();
    // A value segment that nothing points to is removed at the next opening.
    assert_eq!(
        not_seen,
        [
            "AddPart",
            "MoveRun",
            "RemoveValues",
            "AddDirectory",
            "SealDirectory",
            "Require",
            "Times",
            "SaveIndex",
            "SaveChanges",
            "AlterTable",
            "SetFeed",
            "DropFeed",
            "ArchiveLog",
            "NoteTable",
            "BuildIndex"
        ],
        "the changes that this store does not make"
    );
    assert!(changes.iter().all(|change| doc.changes().0[&change.tag].0 == change.name));
    check_sums(&shown(&reader, &path, &changes, table_number(&changes, "sums")), KEYS);
    let settled = shown(&reader, &path, &changes, table_number(&changes, "words"));
    let rows = words.scan().into_iter().map(|row| row.expect("a row"));
    let rows: Vec<(Vec<u8>, Vec<u8>)> = rows.map(|(key, value)| (key.into_bytes(), value)).collect();
    let found: Vec<_> =
        settled.iter().map(|(_, record)| (record.key.clone(), record.payload.clone())).collect();
    assert_eq!(found, rows);
    assert_eq!(shown(&reader, &path, &changes, table_number(&changes, "gone")).len(), 1_510);

    check_journal(&doc, &reader, &path, &store);
}

/// Most of each segment is overwritten, and the live values are copied together.
fn check_relocated(doc: &Document, reader: &Reader<'_>, path: &Path, store: &Store) {
    let separated =
        store.table("separated", Rules::sorted::<u64, Vec<u8>>().separate(2048)).expect("the table");
    for i in (0..300u64).filter(|i| i % 5 > 0) {
        separated.delete(&i).expect("written");
    }
    store.bytes_table("separated").expect("a table").compact().expect("merged");
    assert!(store.reclaim().expect("moved").plans > 0);
    let (number, manifest) = the_only(path, "MANIFEST-");
    let changes = reader.manifest(&manifest, number);
    let table = table_number(&changes, "separated");
    let left = shown(reader, path, &changes, table);
    assert_eq!(left.len(), 60);
    for (_, record) in left {
        let i = u64::from_be_bytes(record.key[..].try_into().expect("8 bytes"));
        assert_eq!(record.kind, doc.constant("op.set_separated"));
        assert!(
            reader.value(path, table, &record) == vec![i as u8; 20_000 + i as usize],
            "the value of key {i}"
        );
    }
}

fn check_sums(records: &[(u64, Found)], keys: u64) {
    let mut sums: BTreeMap<u64, u64> = BTreeMap::new();
    for (_, record) in records {
        let key = u64::from_be_bytes(record.key[..].try_into().expect("8 bytes"));
        *sums.entry(key).or_default() += u64::from_le_bytes(record.payload[..].try_into().expect("8 bytes"));
    }
    let mut expected: BTreeMap<u64, u64> = (0..keys).map(|i| (i * 3, scattered(i))).collect();
    *expected.entry(0).or_default() += 7;
    (0..keys / 2).for_each(|i| *expected.entry(i * 6).or_default() += 1);
    assert!(sums == expected, "the sums are those that were written");
}

/// All encodings occurred, so the reader has shown that it can read them.
fn check_blocks(doc: &Document, reader: &Reader<'_>, path: &Path) {
    let parts: Vec<_> =
        files(path, ".part").into_iter().map(|(number, file)| reader.part(&file, number)).collect();
    let blocks: BTreeSet<(u64, u64)> = parts.iter().flat_map(|part| part.blocks.clone()).collect();
    let constant = |name| doc.constant(name);
    assert!(blocks.contains(&(constant("piece.columnar"), constant("compression.none"))), "{blocks:?}");
    for how in ["compression.none", "compression.lz4", "compression.zstd"] {
        assert!(blocks.contains(&(constant("piece.generic"), constant(how))), "{how}: {blocks:?}");
    }
    let seqs =
        |some: bool| parts.iter().flat_map(|part| &part.records).any(|record| record.seq.is_some() == some);
    assert!(seqs(true) && seqs(false), "blocks with seqs and without");
    assert!(parts.iter().any(|part| part.filters > 0 && part.leaves > 0));
    assert!(parts.iter().any(|part| part.has_summaries) && parts.iter().any(|part| !part.has_summaries));
    assert!(parts.iter().any(|part| part.has_leading) && parts.iter().any(|part| !part.has_leading));
}

/// The log: numbered without a gap, range deletes in it, marks when there are no writes, a seal at
/// the end of a segment.
fn check_journal(doc: &Document, reader: &Reader<'_>, path: &Path, store: &Store) {
    let gone = store.table("gone", Rules::sorted::<u64, u64>()).expect("the table is there");
    let first = u64::from(store.last_seq()) + 1;
    let mut batch = store.batch();
    for i in 0..1_000 {
        batch.put(&gone, &i, &(i * 2));
    }
    batch.delete_range(gone.as_bytes(), &key::<u64>(&3u64), &key::<u64>(&5u64));
    batch.commit(Durability::Sync).expect("written");
    let last = u64::from(store.last_seq());
    let deadline = std::time::Duration::from_millis(40);
    while store.background_step().expect("background work goes on").is_some() {}
    std::thread::sleep(deadline);
    store.background_step().expect("a mark is written when nothing else is");

    let id = reader.store_id(path);
    assert_eq!(id, u128::from(ALL_THE_SAME) << 64 | u128::from(ALL_THE_SAME));
    let segments = files(path, ".log");
    let frames: Vec<_> =
        segments.iter().flat_map(|(number, file)| reader.segment(file, *number, id)).collect();
    assert!(frames.windows(2).all(|pair| pair[1].prev_hash == pair[0].hash), "chained across segments");
    let batch = frames.iter().find(|frame| frame.first_seq == first).expect("the batch is a frame");
    assert_eq!((batch.kind, batch.records.len()), (doc.constant("frame.kind.batch"), 1_001));
    let (_, range) = &batch.records[1_000];
    assert_eq!((range.kind, range.seq), (doc.constant("op.range_delete"), Some(last)));
    assert_eq!((range.key.clone(), range.payload.clone()), (key::<u64>(&3u64), key::<u64>(&5u64)));
    let kinds: BTreeSet<u64> = frames.iter().map(|frame| frame.kind).collect();
    assert!(kinds.contains(&doc.constant("frame.kind.mark")), "{kinds:?}");
}
