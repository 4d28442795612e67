//! Files of a small store that were cut, removed, zeroed, made longer, swapped, or hold the bytes
//! of another file of their kind: the result of a partly restored backup, a misdirected write or a
//! careless user.
//!
//! ```text
//!   (1)  wherever `open` refuses, or a read fails        verify --deep finds damage, and repair finds something
//!   (2)  wherever repair says that nothing is lost       the new store holds what the damaged one opens with, or no
//!                                                        less than was synced
//!   (3)  wherever `open` succeeds, and all reads          nothing is missing that was synced
//!   (4)  a writer that opens a copy of it                 finds what a reader does, and so does the next one; or all are
//!                                                         refused
//!   (5)  where two segments of the log were swapped       repair loses nothing
//! ```
//!
//! [`Beyond`] lists what no store can detect; the harm and its file decide this, never the outcome.
//! A step that fails while the stores are being made panics: without it there is nothing to harm.
//! Called by `tests/harm.rs`, which takes a share each day.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use folddb::maintenance::{RepairOptions, RepairReport, VerifyOptions};
use folddb::table_rules::TableRules;
use folddb::{BackgroundWork, BytesTable, Durability, Options, Store, WriteOp, codec::KeyCodec};
use folddb_layout::file_name::FileName;
use folddb_layout::frame::{claimed_head, claimed_len};
use folddb_layout::segment::SEGMENT_HEADER_BYTES;

/// Bytes of the values that fill the log: two keys have them in turn.
const FILLER_BYTES: usize = 60 << 10;

/// A record of the value log, of a value of 200 bytes, takes no more.
const VALUE_RECORD_BYTES_MAX: usize = 256;

/// After these bytes, the header of a segment has only zeros.
const HEADER_SAYS_BYTES: usize = 80;

/// All rows of all tables.
pub type Dump = BTreeMap<String, Vec<(Vec<u8>, Vec<u8>)>>;

/// How a store is left before it is harmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Its process died two batches after a sync.
    Died,
    /// The same, but its last change was an edit of the manifest, after which nothing is in the
    /// log.
    DiedBehindAnEdit,
    /// The same, but the log had just rolled to another segment, without an edit of the manifest
    /// after that.
    DiedBehindARoll,
    /// The same, but it had been idle since the sync, and background work had noticed.
    DiedIdle,
    /// Closed normally.
    Closed,
}

/// A small store on disk, and what it holds.
pub struct Harmed {
    left: Left,
    dir: PathBuf,
    temp: PathBuf,
    /// The files as they were written, by name.
    files: BTreeMap<String, Vec<u8>>,
    /// Files that the store had earlier, by the name that they had.
    earlier: BTreeMap<String, Vec<u8>>,
    /// What the store may hold after a crash of its machine: all that was synced, and whole batches
    /// more.
    synced: Vec<Dump>,
    /// How far the log is durable according to the manifest.
    manifest_lsn: u64,
}

/// A harm to files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Harm {
    /// A file has the bytes of another; true where the store had that one earlier.
    Over(String, String, bool),
    /// It is cut to this many bytes.
    Cut(String, usize),
    /// It is gone.
    Gone(String),
    /// From here on it is all zeros.
    Zeros(String, usize),
    /// This many bytes of this value were added.
    Longer(String, usize, u8),
    /// Two files have each other's bytes.
    Swapped(String, String),
}

/// What no store can detect, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Beyond {
    /// Without the bytes after it, the last synced data looks like the end of a write that a power
    /// cut ended.
    LastGroup,
    /// The last edit of the manifest, where nothing else records what it did.
    LastEdit,
}

/// The outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Came {
    /// Opening or reading is refused.
    Refused,
    /// The store holds all that was synced.
    Whole,
    /// It does not, and no store could tell.
    Beyond(Beyond),
}

fn options() -> Options {
    Options::default()
        .memory_bytes(32 << 20)
        .tuning(|t| t.segment_bytes(1 << 20).value_segment_bytes(16 << 10).part_bytes(64 << 10))
        .disk_reserve_bytes(0)
        .background(BackgroundWork::Manual)
}

fn tables(store: &Store) -> folddb::Result<Vec<BytesTable>> {
    let rules = [
        ("text", TableRules::new(KeyCodec::Utf8).block_bytes(512)),
        ("sums", TableRules::new(KeyCodec::U64).fold("sum:u64").block_bytes(512)),
        ("blobs", TableRules::new(KeyCodec::U64).separate(Some(64)).block_bytes(512)),
        ("hashed", TableRules::hashed(KeyCodec::U64)),
    ];
    let table = |(name, rules)| store.bytes_table(name).or_else(|_| store.create_bytes_table(name, rules));
    rules.into_iter().map(table).collect()
}

/// Writes batch `i`, over all tables.
fn write(store: &Store, tables: &[BytesTable], i: u64) -> folddb::Result<()> {
    let [text, sums, blobs, hashed] = tables else { return Ok(()) };
    let mut batch = store.batch();
    let filler = vec![i as u8 | 1; FILLER_BYTES];
    batch.write(text, WriteOp::Put, format!("filler {}", i % 2).as_bytes(), &filler);
    batch.write(text, WriteOp::Put, format!("key {i:03}").as_bytes(), format!("of batch {i}").as_bytes());
    for n in 0..3 {
        batch.write(sums, WriteOp::Fold, &(i * n % 20).to_be_bytes(), &i.to_le_bytes());
    }
    let value: Vec<u8> =
        format!("the value of batch {i}; ").into_bytes().into_iter().cycle().take(200).collect();
    batch.write(blobs, WriteOp::Put, &(i % 9).to_be_bytes(), &value);
    batch.write(hashed, WriteOp::Put, &(i % 7).to_be_bytes(), &value);
    batch.commit(Durability::Process).map(drop)
}

impl Harmed {
    /// Writes a store into an empty directory, and leaves it in this state.
    ///
    /// # Errors
    /// The store's.
    ///
    /// # Panics
    /// The directory cannot be written to.
    pub fn new(within: &Path, left: Left) -> folddb::Result<Harmed> {
        let (written, dir) = (within.join("written"), within.join("store"));
        let store = Store::create(&written, options())?;
        let tables = tables(&store)?;
        let mut i = 0;
        let mut go_on = |count: u64| -> folddb::Result<()> {
            (0..count).try_for_each(|_| {
                i += 1;
                write(&store, &tables, i)
            })
        };
        // A part of each table, and segments that are no longer needed and are removed.
        go_on(20)?;
        store.sync()?;
        let mut earlier = read_all(&written);
        store.flush()?;
        go_on(20)?;
        earlier.extend(read_all(&written));
        store.flush()?;
        store.bytes_table("sums")?.compact()?;
        // The log that is needed: three segments.
        go_on(38)?;
        store.sync()?;
        let late = store.create_bytes_table("late", TableRules::new(KeyCodec::U64))?;
        late.write(WriteOp::Put, &1_u64.to_be_bytes(), b"late")?;
        go_on(2)?;
        store.sync()?;
        let mut synced = vec![dump(&store)?];
        match left {
            Left::Died => {
                for _ in 0..2 {
                    go_on(1)?;
                    synced.push(dump(&store)?);
                }
            }
            Left::DiedBehindAnEdit => {
                drop(store.create_bytes_table("later", TableRules::new(KeyCodec::U64))?)
            }
            Left::DiedBehindARoll => {
                for _ in 0..17 {
                    go_on(1)?;
                    store.sync()?;
                }
            }
            Left::DiedIdle => {
                for _ in 0..40 {
                    store.background_step_of(folddb::BackgroundJob::Log)?;
                    std::thread::sleep(std::time::Duration::from_millis(50));
                }
            }
            Left::Closed => {}
        }
        if matches!(left, Left::DiedBehindAnEdit | Left::DiedBehindARoll) {
            synced = vec![dump(&store)?];
        }
        if left == Left::Closed {
            store.close()?;
            copy(&written, &dir);
        } else {
            copy(&written, &dir);
            drop(store);
        }
        fs::remove_dir_all(&written).ok();
        let files = read_all(&dir);
        earlier.retain(|name, bytes| files.get(name) != Some(bytes));
        let manifest_lsn = folddb_manifest::load(&folddb_host::Host::real(), &dir)?.state.durable_lsn;
        Ok(Harmed { left, dir, temp: within.to_owned(), files, earlier, synced, manifest_lsn })
    }

    /// All harms, one after the other.
    pub fn harms(&self) -> Vec<Harm> {
        let mut harms = Vec::new();
        for (name, bytes) in &self.files {
            harms.push(Harm::Gone(name.clone()));
            let lengths = self.lengths(name, bytes);
            harms.extend(lengths.iter().map(|&len| Harm::Cut(name.clone(), len)));
            let used = used(bytes);
            harms.extend(lengths.iter().filter(|&&at| at < used).map(|&at| Harm::Zeros(name.clone(), at)));
            for (more, value) in [(1, 0), (4096, 0), (4096, 0xa7)] {
                harms.push(Harm::Longer(name.clone(), more, value));
            }
            for other in self.files.keys().filter(|other| *other != name && is_alike(name, other)) {
                harms.push(Harm::Over(name.clone(), other.clone(), false));
                if name < other {
                    harms.push(Harm::Swapped(name.clone(), other.clone()));
                }
            }
            for other in self.earlier.keys().filter(|other| is_alike(name, other)) {
                harms.push(Harm::Over(name.clone(), other.clone(), true));
            }
        }
        harms
    }

    /// Does the harm, judges the outcome, and restores the files.
    ///
    /// # Errors
    /// Says which of the promises does not hold.
    ///
    /// # Panics
    /// The files cannot be written.
    pub fn try_one(&self, harm: &Harm) -> Result<Came, String> {
        let changed = self.changed(harm);
        for (name, bytes) in &changed {
            put(&self.dir.join(name), bytes.as_deref());
        }
        let judged = catch_unwind(AssertUnwindSafe(|| self.judge(harm)));
        for (name, _) in &changed {
            put(&self.dir.join(name), self.files.get(name).map(Vec::as_slice));
        }
        judged.unwrap_or_else(|_| Err("it panics".to_owned())) // no damaged file may cause that
    }

    /// Files with the bytes that they get; none where they are removed.
    fn changed(&self, harm: &Harm) -> Vec<(String, Option<Vec<u8>>)> {
        let of = |name: &String| self.files.get(name).cloned().unwrap_or_default();
        let one = |name: &String, bytes: Vec<u8>| vec![(name.clone(), Some(bytes))];
        match harm {
            Harm::Over(name, from, false) => one(name, of(from)),
            Harm::Over(name, from, true) => one(name, self.earlier.get(from).cloned().unwrap_or_default()),
            Harm::Cut(name, len) => one(name, of(name)[..*len].to_vec()),
            Harm::Gone(name) => vec![(name.clone(), None)],
            Harm::Zeros(name, at) => {
                let mut bytes = of(name);
                bytes[*at..].fill(0);
                one(name, bytes)
            }
            Harm::Longer(name, more, value) => {
                let mut bytes = of(name);
                bytes.resize(bytes.len() + more, *value);
                one(name, bytes)
            }
            Harm::Swapped(a, b) => vec![(a.clone(), Some(of(b))), (b.clone(), Some(of(a)))],
        }
    }

    fn judge(&self, harm: &Harm) -> Result<Came, String> {
        let reading = options();
        let opened = Store::open_read_only(&self.dir, reading.clone()).and_then(|store| dump(&store));
        self.check_opened(&opened)?;
        let verified = Store::verify(&self.dir, &VerifyOptions::default().deep(true), &reading);
        let to = self.temp.join("new");
        let repaired = Store::repair(&self.dir, &to, &RepairOptions::default(), &options());
        let saved = Store::open_read_only(&to, reading).and_then(|store| dump(&store));
        fs::remove_dir_all(&to).ok();
        if let Err(error) = &opened {
            let is_found = verified.as_ref().map_or(true, |report| !report.is_clean());
            if !is_found {
                return Err(format!("(1) open says {error:?}, and verify calls it whole: {verified:?}"));
            }
            if repaired.as_ref().is_ok_and(|report| report.findings.is_empty()) {
                return Err(format!("(1) open says {error:?}, and repair finds nothing"));
            }
        }
        if let Harm::Swapped(a, b) = harm
            && used_segment(a, &self.files)
            && used_segment(b, &self.files)
            && !repaired.as_ref().is_ok_and(RepairReport::is_complete)
        {
            return Err(format!("(5) two segments were swapped, and repair loses something: {repaired:?}"));
        }
        if let Ok(report) = &repaired {
            self.check_saved(report, &opened, saved)?;
        }
        let Ok(found) = opened else { return Ok(Came::Refused) };
        match (self.synced.contains(&found), self.beyond(harm)) {
            (true, _) => Ok(Came::Whole),
            (false, Some(beyond)) => Ok(Came::Beyond(beyond)),
            (false, None) => Err(format!("(3) it opens without a word, with {}", self.differs(&found))),
        }
    }

    /// A writer that opens a copy of it finds what a reader does, and so does the opening after.
    fn check_opened(&self, read: &folddb::Result<Dump>) -> Result<(), String> {
        let to = self.temp.join("opened");
        copy(&self.dir, &to);
        let open = || -> folddb::Result<Dump> {
            let store = Store::open(&to, options())?;
            let dump = dump(&store)?;
            store.close()?;
            Ok(dump)
        };
        let (first, again) = (open(), open());
        fs::remove_dir_all(&to).ok();
        match (read, &first, &again) {
            (Ok(read), Ok(first), Ok(again)) if read == first && first == again => Ok(()),
            (Err(_), Err(_), _) => Ok(()),
            _ => Err(format!(
                "(4) a reader finds {}, a writer {}, and the next one {}",
                self.shown(read),
                self.shown(&first),
                self.shown(&again)
            )),
        }
    }

    fn shown(&self, found: &folddb::Result<Dump>) -> String {
        found.as_ref().map_or_else(|error| format!("{error:?}"), |dump| self.differs(dump))
    }

    fn check_saved(
        &self,
        report: &RepairReport,
        opened: &folddb::Result<Dump>,
        saved: folddb::Result<Dump>,
    ) -> Result<(), String> {
        if let Some(finding) = report.verified.damage().next() {
            return Err(format!("(2) the new store does not verify: {finding}"));
        }
        let saved = saved.map_err(|error| format!("(2) the new store does not read: {error:?}"))?;
        let is_right = opened.as_ref().is_ok_and(|opened| *opened == saved) || self.synced.contains(&saved);
        match report.is_complete() && !is_right {
            true => {
                let differs = self.differs(&saved);
                Err(format!("(2) repair says that nothing is lost, with {differs}: {:?}", report.findings))
            }
            false => Ok(()),
        }
    }

    /// How many rows there are of each table, and how many there should be.
    fn differs(&self, found: &Dump) -> String {
        let rows = |dump: &Dump| -> Vec<String> {
            dump.iter().map(|(table, rows)| format!("{table} {}", rows.len())).collect()
        };
        format!("{:?} rows, and not {:?}", rows(found), self.synced.first().map(rows))
    }

    /// Why no store can detect this harm, if none can.
    fn beyond(&self, harm: &Harm) -> Option<Beyond> {
        let (name, at) = match harm {
            Harm::Zeros(name, at) => (name, *at),
            Harm::Cut(name, len) if name.starts_with("MANIFEST") || name.ends_with(".values") => (name, *len),
            Harm::Gone(name) if name.starts_with("MANIFEST") => (name, 0),
            _ => return None,
        };
        let bytes = self.files.get(name)?;
        if name.ends_with(".values") {
            // The value of the last batch: it is synced before the frame that leads to it, which
            // nothing after it vouches for.
            let is_last = at + VALUE_RECORD_BYTES_MAX > used(bytes) && self.left == Left::DiedBehindARoll;
            return is_last.then_some(Beyond::LastGroup);
        }
        if name.starts_with("MANIFEST") {
            let ends = edit_ends(bytes);
            return (ends.len() > 1 && at >= ends[ends.len() - 2]).then_some(Beyond::LastEdit);
        }
        if !used_segment(name, &self.files) {
            return None;
        }
        let (p_lsn, vouched_lsn) = vouched_before(bytes, at);
        let others =
            self.files.iter().filter(|(other, _)| *other != name && used_segment(other, &self.files));
        let by_others = others.map(|(_, bytes)| vouched_before(bytes, bytes.len()).1).max().unwrap_or(0);
        let is_silent = p_lsn >= vouched_lsn.max(by_others).max(self.manifest_lsn);
        (is_silent && at >= HEADER_SAYS_BYTES).then_some(Beyond::LastGroup)
    }

    /// The lengths of a file that matter: its edges, a few between, and the ends of its frames.
    fn lengths(&self, name: &str, bytes: &[u8]) -> Vec<usize> {
        let (len, used) = (bytes.len(), used(bytes));
        let mut lengths = vec![0, 1, len / 4, len / 2, len / 4 * 3, len.saturating_sub(1), used / 2, used];
        lengths.extend([used.saturating_sub(1), used + 1, used / 3, used / 3 * 2]);
        if name.ends_with(".log") {
            let ends = frame_ends(bytes);
            lengths.extend([SEGMENT_HEADER_BYTES - 1, SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES + 1]);
            lengths.extend(ends.iter().flat_map(|&end| [end - 1, end, end + 1]));
        }
        if name.starts_with("MANIFEST") {
            lengths.extend(edit_ends(bytes).iter().flat_map(|&end| [end, end + 1]));
        }
        lengths.retain(|at| *at < len);
        lengths.sort_unstable();
        lengths.dedup();
        lengths
    }

    /// How it was left.
    pub fn left(&self) -> Left {
        self.left
    }
}

/// Whether two names are of files of a kind.
fn is_alike(a: &str, b: &str) -> bool {
    let kind = |name: &str| FileName::parse(name).map(|name| std::mem::discriminant(&name));
    kind(a) == kind(b)
}

/// The end of the bytes that are not zero.
fn used(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
}

/// Where the frames of a segment end.
fn frame_ends(bytes: &[u8]) -> Vec<usize> {
    let (mut ends, mut at) = (Vec::new(), SEGMENT_HEADER_BYTES);
    while let Some(len) = bytes.get(at..).and_then(claimed_len) {
        at += len;
        ends.push(at);
    }
    ends.retain(|end| *end <= bytes.len());
    ends
}

/// Whether a file is a segment of the log with a frame.
fn used_segment(name: &str, files: &BTreeMap<String, Vec<u8>>) -> bool {
    name.ends_with(".log") && files.get(name).is_some_and(|bytes| !frame_ends(bytes).is_empty())
}

/// The LSN at which a segment has its first frame that is not whole where all from `at` on is gone,
/// and what those before it vouch for.
fn vouched_before(bytes: &[u8], at: usize) -> (u64, u64) {
    let first_lsn = bytes.get(48..56).and_then(|lsn| lsn.try_into().ok()).map_or(0, u64::from_le_bytes);
    let (mut p, mut vouched_lsn) = (SEGMENT_HEADER_BYTES, 0);
    let lsn_of = |offset: usize| first_lsn + (offset - SEGMENT_HEADER_BYTES) as u64;
    let is_left = |end: &usize| *end <= at || used(&bytes[..*end]) <= at; // zeros that were zeros
    for end in frame_ends(bytes).into_iter().take_while(is_left) {
        let head = claimed_head(&bytes[p..end], lsn_of(p));
        vouched_lsn = head.map_or(0, |(head, _)| head.durable_lsn).max(vouched_lsn);
        p = end;
    }
    (lsn_of(p), vouched_lsn)
}

/// Where the edits of a manifest end; each says its length.
fn edit_ends(bytes: &[u8]) -> Vec<usize> {
    let (mut ends, mut at) = (Vec::new(), 0);
    while let Some(len) =
        bytes.get(at + 8..at + 12).and_then(|len| len.try_into().ok()).map(u32::from_le_bytes)
        && len > 0
        && at + len as usize <= bytes.len()
    {
        at += len as usize;
        ends.push(at);
    }
    ends
}

fn dump(store: &Store) -> folddb::Result<Dump> {
    let mut dump = Dump::new();
    for name in store.tables() {
        let table = store.bytes_table(&name)?;
        let mut rows = table.scan().into_iter().collect::<folddb::Result<Vec<_>>>()?;
        rows.sort(); // those of hashed tables come in no order
        for (key, value) in &rows {
            if table.get(key)?.as_ref() != Some(value) {
                return Err(folddb::Error::invalid(format!("get and scan of {name} differ at {key:?}")));
            }
        }
        dump.insert(name, rows);
    }
    Ok(dump)
}

// The files below are the test's own, in a directory that it has made: where the system refuses
// one, the store shows nothing, so the test ends there.

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the test makes directories where it has made one");
    for (name, bytes) in read_all(from) {
        put(&to.join(name), Some(&bytes));
    }
}

fn read_all(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("the directory was made by the test").flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if name != "LOCK" {
            files.insert(
                name,
                fs::read(entry.path()).expect("the file was just listed, and nobody else is there"),
            );
        }
    }
    files
}

/// Writes a file, of zeros at its end only the length; or removes it.
fn put(path: &Path, bytes: Option<&[u8]>) {
    let Some(bytes) = bytes else {
        return fs::remove_file(path).expect("the file was written by the test");
    };
    fs::write(path, &bytes[..used(bytes)]).expect("the test writes where it has written before");
    File::options()
        .write(true)
        .open(path)
        .and_then(|file| file.set_len(bytes.len() as u64))
        .expect("the file was just written");
}
