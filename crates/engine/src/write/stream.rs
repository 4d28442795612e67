//! Values of any length, written and read piece by piece: no more than a piece of one is ever in
//! memory.
//!
//! ```text
//!   write   fills a piece; a full one goes into the value log as a record of its own        nothing points to it yet
//!   finish  the last piece, then one op whose payload is the list of pieces (`base/rope.rs`)   one record of the log, as of any write
//!   drop    without `finish`: nothing was written; the pieces are dead bytes, and go with their segments
//! ```
//!
//! Values of a hashed table go into one file, piece by piece (`long.rs`): one slot points to a
//! value, so it is one record.
//!
//! If a value cannot be split into pieces (it is checked as a whole, or its table keeps values
//! inline), the writer holds all of it, and writes it like any other, up to the largest length of
//! those.
//!
//! A value of at most one piece (four in a hashed table) is written like any other. While a writer
//! lives, the segments with its pieces are *pinned*: they are not settled, so their values do not
//! count as dead (`values/settle.rs`, `fence`). Pins are per segment, instead of the lock that
//! shorter writes hold while they place their values, since a stream may take hours.
//!
//! Called by `table` and `snapshot`.

use std::collections::BTreeSet;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::Arc;

use folddb_base::limits::{STREAM_BYTES_MAX, VALUE_BYTES_MAX};
use folddb_base::{Error, ErrorKind, OpKind, Piece, Pointer, Result, Rope, RopeBuilder};
use folddb_layout::hash_front::FRONT_BYTES;
use folddb_layout::values::put_record;
use folddb_rules::State;
use folddb_rules::head::Heads;
use folddb_value_log::long_value::LongValue;

use crate::options::Durability;
use crate::read::locate::{FilePiece, Locate};
use crate::read::{get, locate};
use crate::seq::Seq;
use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::state::log_sync;
use crate::state::snapshots::At;
use crate::values::hashed_record::is_long;
use crate::values::{load, long, put};
use crate::write::encoded_batch::{Encoded, check_expires, check_lengths};
use crate::write::ops::Lifetime;
use crate::write::{commit, stall};
use folddb_value_log::SegmentMap;

// ---- writing ------------------------------------------------------------------------------------

/// Writes one value, piece by piece. Nothing is visible before [`ValueWriter::finish`]; a writer
/// that is dropped without it, or that failed, has written nothing.
#[must_use = "nothing is written until it is finished"]
pub struct ValueWriter {
    engine: Arc<Engine>,
    core: Arc<TableCore>,
    durability: Durability,
    kind: OpKind,
    key: Vec<u8>,
    /// Bytes that are not in the value log yet: less than a piece.
    piece: Vec<u8>,
    /// The record of a piece, reused.
    record: Vec<u8>,
    rope: RopeBuilder,
    /// The written part of a value of a hashed table.
    long: Option<LongValue>,
    head: Vec<u8>,
    /// The segments that hold its pieces.
    pinned: BTreeSet<u32>,
    /// Why its table needs the value as a whole, if it does, and which tables do not.
    whole: Option<Whole>,
    lifetime: Lifetime,
    failure: Option<Error>,
}

/// A writer of the value of a key.
pub fn writer(
    engine: &Arc<Engine>,
    core: &Arc<TableCore>,
    kind: OpKind,
    key: &[u8],
    how: (Durability, Lifetime),
) -> Result<ValueWriter> {
    ValueWriter::new(engine, core, kind, key, how)
}

impl ValueWriter {
    fn new(
        engine: &Arc<Engine>,
        core: &Arc<TableCore>,
        kind: OpKind,
        key: &[u8],
        (durability, lifetime): (Durability, Lifetime),
    ) -> Result<ValueWriter> {
        engine.check_not_read_only()?;
        core.check_alive()?;
        check_lengths(core, key, &[])?;
        core.rules.check_writable()?;
        if lifetime != Lifetime::Default {
            check_expires(core)?;
        }
        let whole = whole_because(core);
        check_op(core, kind)?;
        Ok(ValueWriter {
            engine: Arc::clone(engine),
            core: Arc::clone(core),
            durability,
            kind,
            key: key.to_vec(),
            piece: Vec::new(),
            record: Vec::new(),
            rope: RopeBuilder::default(),
            long: None,
            head: Vec::new(),
            pinned: BTreeSet::new(),
            whole,
            lifetime,
            failure: None,
        })
    }

    /// Fails if a value of this many bytes is too long.
    fn check_len(&self, len_bytes: u64) -> Result<()> {
        let name = &self.core.name;
        match self.whole {
            Some((why, instead)) if len_bytes > VALUE_BYTES_MAX as u64 => Err(Error::invalid(format!(
                "a value of more than {VALUE_BYTES_MAX} bytes is too long for table `{name}`, which takes each whole, since {why}; \
                 for longer ones, up to {STREAM_BYTES_MAX} bytes, {instead}"
            ))),
            None if len_bytes > STREAM_BYTES_MAX => Err(Error::invalid(format!(
                "a value of more than {STREAM_BYTES_MAX} bytes is too long for table `{name}`"
            ))),
            _ => Ok(()),
        }
    }

    /// Bytes written so far.
    pub fn len_bytes(&self) -> u64 {
        let long = self.long.as_ref().map_or(0, LongValue::len);
        self.rope.len() + long + self.piece.len() as u64
    }

    /// How much of a value is held.
    fn held_bytes(&self) -> usize {
        match self.core.hashed {
            _ if self.whole.is_some() => usize::MAX,
            Some(_) => long::long_from_bytes(&self.engine),
            None => self.engine.options.stream_piece_bytes_now(),
        }
    }

    /// Writes everything that `from` gives.
    ///
    /// # Errors
    /// `from` fails, and then so has the writer; as [`ValueWriter::finish`].
    pub fn write_from(&mut self, from: &mut impl Read) -> Result<()> {
        let piece_bytes = self.held_bytes();
        loop {
            let room = self.room(piece_bytes)?;
            let before = self.piece.len();
            let read = from.by_ref().take(room as u64).read_to_end(&mut self.piece);
            if let Err(error) = read {
                // The bytes before it are not a value, and must not be finished.
                let failure = Error::new(ErrorKind::Io, format!("cannot read the value: {error}"));
                return Err(self.failure.insert(failure).clone());
            }
            if self.piece.len() - before < room {
                return Ok(());
            }
        }
    }

    /// Room for at least a byte, up to the end of a piece.
    fn room(&mut self, piece_bytes: usize) -> Result<usize> {
        self.engine.check_here()?;
        if let Some(failure) = &self.failure {
            return Err(failure.clone());
        }
        if self.piece.len() >= piece_bytes {
            self.put_piece().inspect_err(|error| self.failure = Some(error.clone()))?;
        }
        // One byte more than allowed, so that a value is either whole or refused.
        if let Err(error) = self.check_len(self.len_bytes()) {
            return Err(self.failure.insert(error).clone());
        }
        let len_max = if self.whole.is_some() { VALUE_BYTES_MAX as u64 } else { STREAM_BYTES_MAX };
        let left = (len_max + 1).saturating_sub(self.len_bytes());
        Ok((piece_bytes - self.piece.len()).min(usize::try_from(left).unwrap_or(usize::MAX)))
    }

    /// Puts the held bytes into the value log, as a piece.
    fn put_piece(&mut self) -> Result<()> {
        let ValueWriter { engine, core, .. } = self;
        stall::admit_piece(engine)?;
        if core.hashed.is_some() {
            return self.put_long_piece().inspect_err(|error| log_sync::note_lack(&self.engine, error));
        }
        if self.rope.is_empty() && matches!(core.rules.heads, Heads::First(_)) {
            core.rules.heads.put(&self.key, &self.piece, &mut self.head);
        }
        self.record.clear();
        let hash = put_record(&mut self.record, core.id, &self.key, &self.piece);
        let placing = engine.values.placing.read();
        let place = put::put_value(engine, core.value_placement(), &self.record)?;
        if self.pinned.insert(place.segment) {
            engine.values.pin(place.segment);
        }
        drop(placing);
        engine.counters.value_bytes_written.add(self.record.len() as u64);
        self.rope.push_separated(place, hash, self.piece.len() as u64);
        self.piece.clear();
        Ok(())
    }

    /// Appends the held bytes to the long value; the first call begins it.
    fn put_long_piece(&mut self) -> Result<()> {
        let long = match &mut self.long {
            Some(long) => long,
            None => self.long.insert(long::begin_long(&self.engine, &self.core, &self.key)?),
        };
        long.push(&self.piece)?;
        self.piece.clear();
        Ok(())
    }

    /// Makes what was written the value (or the operand), and returns its sequence number.
    ///
    /// # Errors
    /// What went wrong before; a value that is too long; [`ErrorKind::NoSpace`] on a full disk; any
    /// failed write.
    pub fn finish(mut self) -> Result<Seq> {
        if let Some(failure) = self.failure.take() {
            return Err(failure);
        }
        self.check_len(self.len_bytes())?;
        let mut batch = Encoded::default();
        batch.clear();
        let lifetime = self.lifetime;
        if self.long.is_some() {
            self.put_piece()?;
            if let Some(mut long) = self.long.take() {
                let has_front = self.core.records_of().has_fronts;
                let ended = if has_front { long.make_durable() } else { long.finish(&[]) };
                ended.inspect_err(|error| log_sync::note_lack(&self.engine, error))?;
                batch.put_long(&self.core, (self.kind, &self.key), long, lifetime);
            }
        } else if self.rope.is_empty() {
            self.push_whole(&mut batch)?;
        } else {
            if !self.piece.is_empty() {
                self.put_piece()?;
            }
            put::begin_ropes(&self.engine, self.core.has_stamps)?;
            let (rope, op) = (std::mem::take(&mut self.rope), (self.kind, &self.key[..]));
            let time_ms = self.engine.host.clock.unix_millis();
            batch.push_placed(&self.core, op, rope, (time_ms, &self.head), lifetime);
        }
        commit::commit(&self.engine, &mut batch, self.durability).map(Seq::from)
    }
}

impl ValueWriter {
    /// Appends the op of a value that is all here, checked as any other.
    fn push_whole(&self, batch: &mut Encoded) -> Result<()> {
        let ValueWriter { core, kind, key, piece, lifetime, .. } = self;
        let wrong = |cause| Error::invalid(format!("this is not a value of table `{}`: {cause}", core.name));
        core.rules.check_value(piece).map_err(wrong)?;
        batch.push_lasting(core, *kind, key, piece, *lifetime)
    }
}

impl Write for ValueWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let piece_bytes = self.held_bytes();
        if bytes.is_empty() {
            return Ok(0);
        }
        let room = self.room(piece_bytes).map_err(io::Error::from)?;
        let taken = bytes.len().min(room);
        self.piece.extend_from_slice(&bytes[..taken]);
        Ok(taken)
    }

    /// Nothing: what was written is there when it is finished, and not before.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for ValueWriter {
    fn drop(&mut self) {
        if self.engine.health.is_forked() {
            return;
        }
        self.pinned.iter().for_each(|&segment| self.engine.values.unpin(segment));
    }
}

/// Why a table takes no values piece by piece, and what to do instead.
pub type Whole = (&'static str, &'static str);

/// Why a table takes no values piece by piece; none if it does: its values are separated, and never
/// examined as a whole.
pub fn whole_because(core: &TableCore) -> Option<Whole> {
    if core.fold.has_delete() {
        return Some(("it has a delete rule, which needs the whole value", INSTEAD));
    }
    if core.hashed.is_some() && core.separates_operands {
        return Some(("it is hashed, and a hashed table folds operands when they are written", INSTEAD));
    }
    if !core.rules.takes_any_bytes() {
        return Some(("its values are checked as a whole", INSTEAD));
    }
    let is_inline = core.hashed.is_none() && core.separate_from() == usize::MAX;
    is_inline.then_some((
        "it keeps its values inline: it has no separation threshold",
        "create it with a separation threshold (`separate`)",
    ))
}

/// The tables that take streams, whatever a table is that does not.
const INSTEAD: &str = "use a sorted table with a separation threshold (`separate`) and no delete rule, whose values are bytes that \
                       replace one another, or are joined by `append`";

/// Whether the value of an op may be streamed: not if folding would have to examine it.
fn check_op(core: &TableCore, kind: OpKind) -> Result<()> {
    match kind {
        OpKind::Set | OpKind::Insert => Ok(()),
        OpKind::Fold if core.separates_operands => Ok(()),
        _ => Err(Error::invalid(format!(
            "only puts, and operands that the fold appends, can be streamed into table `{}`; fold an operand as \
             one op, up to {VALUE_BYTES_MAX} bytes",
            core.name
        ))),
    }
}

// ---- reading ------------------------------------------------------------------------------------

/// Reads one value, piece by piece: the value that the key had when the reader was created,
/// regardless of later writes. Each piece is read at once and its hash checked before any of it is
/// returned; a long value of a hashed table is one piece, which is read and checked completely
/// first, through a small window, and then read again as it is returned.
pub struct ValueReader {
    engine: Arc<Engine>,
    core: Arc<TableCore>,
    key: Vec<u8>,
    of: Option<Arc<SegmentMap>>,
    /// The pieces, and where in the value each begins.
    pieces: Vec<(u64, OwnPiece)>,
    len_bytes: u64,
    at: u64,
    /// A long value, and its file once it was checked.
    long: Option<(Pointer<'static>, Option<FilePiece>)>,
    /// The piece in `record`, and where its bytes begin there.
    loaded: Option<(usize, usize)>,
    record: Vec<u8>,
}

enum OwnPiece {
    Inline(Vec<u8>),
    Separated(Pointer<'static>),
    /// A section of a long value: its offset and its length.
    Slice(u64, usize),
}

impl OwnPiece {
    fn pointer(&self) -> Option<Pointer<'static>> {
        match self {
            OwnPiece::Inline(_) | OwnPiece::Slice(..) => None,
            OwnPiece::Separated(pointer) => Some(*pointer),
        }
    }
}

impl ValueReader {
    /// Bytes of the value.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// The bytes from here to the end of the piece.
    fn here(&mut self) -> Result<&[u8]> {
        if self.at >= self.len_bytes {
            return Ok(&[]);
        }
        let index = self.pieces.partition_point(|(from, _)| *from <= self.at) - 1;
        let skip = (self.at - self.pieces[index].0) as usize;
        let from = match (self.pieces[index].1.pointer(), self.loaded) {
            (Some(_), Some((loaded, from))) if loaded == index => from,
            (Some(pointer), _) => self.load(index, &pointer)?,
            (None, Some((loaded, _))) if loaded == index => 0,
            (None, _) => self.load_section(index)?,
        };
        Ok(match &self.pieces[index].1 {
            OwnPiece::Inline(bytes) => &bytes[skip..],
            OwnPiece::Separated(_) | OwnPiece::Slice(..) => &self.record[from + skip..],
        })
    }

    /// Loads a section of a long value, which was completely read and checked before.
    fn load_section(&mut self, index: usize) -> Result<usize> {
        let &OwnPiece::Slice(at, len) = &self.pieces[index].1 else { return Ok(0) };
        let Some((pointer, lies)) = &mut self.long else { return Ok(0) };
        self.loaded = None;
        let file = match lies {
            Some(file) => file,
            None => {
                let of = self.of.get_or_insert_with(|| self.engine.values.files.present());
                let found = locate::locate_piece(
                    &self.engine,
                    (of, &self.core),
                    &self.key,
                    pointer,
                    Locate::default(),
                );
                lies.insert(found?)
            }
        };
        self.record.resize(len, 0);
        let read = file.read_exact_at(at, &mut self.record);
        read.map_err(|error| load::of_key(&self.core, &self.key, Error::io("read", file.path(), error)))?;
        self.loaded = Some((index, 0));
        Ok(0)
    }

    fn load(&mut self, index: usize, pointer: &Pointer<'_>) -> Result<usize> {
        self.loaded = None;
        let of = self.of.get_or_insert_with(|| self.engine.values.files.present());
        let len = load::load_piece(&self.engine, of, &self.core, &self.key, pointer, &mut self.record)?.len();
        let from = self.record.len() - len;
        self.loaded = Some((index, from));
        Ok(from)
    }
}

/// Whether both have the same bytes from their present positions. Reads no further than the
/// first difference.
pub fn is_same(one: &mut ValueReader, other: &mut ValueReader) -> Result<bool> {
    if one.len_bytes != other.len_bytes {
        return Ok(false);
    }
    loop {
        let (ours, theirs) = (one.here()?, other.here()?);
        let len = ours.len().min(theirs.len());
        if ours[..len] != theirs[..len] {
            return Ok(false);
        }
        if len == 0 {
            return Ok(true);
        }
        one.at += len as u64;
        other.at += len as u64;
    }
}

/// A reader of a value in memory.
pub fn reader_of(engine: &Arc<Engine>, core: &Arc<TableCore>, key: &[u8], value: Vec<u8>) -> ValueReader {
    ValueReader {
        engine: Arc::clone(engine),
        core: Arc::clone(core),
        key: key.to_vec(),
        of: None,
        len_bytes: value.len() as u64,
        pieces: vec![(0, OwnPiece::Inline(value))],
        at: 0,
        long: None,
        loaded: None,
        record: Vec::new(),
    }
}

impl Read for ValueReader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        self.engine.check_here().map_err(io::Error::from)?;
        let here = self.here().map_err(io::Error::from)?;
        let taken = here.len().min(buf.len());
        buf[..taken].copy_from_slice(&here[..taken]);
        self.at += taken as u64;
        Ok(taken)
    }
}

impl Seek for ValueReader {
    /// Beyond the end nothing is read.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.len_bytes.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        Ok(self.at)
    }
}

/// A reader of the value of `key`, as a reader at `at` (or now) sees it.
pub fn read_value(
    engine: &Arc<Engine>,
    core: &Arc<TableCore>,
    key: &[u8],
    at: Option<At>,
) -> Result<Option<ValueReader>> {
    get::with_state(engine, core, key, at, |state, of| {
        let pieces = match state {
            None => return Ok(None),
            Some(State::Value(value)) => vec![OwnPiece::Inline(value.to_vec())],
            Some(State::Separated(payload)) => own_pieces(&load::rope(core, key, payload)?),
        };
        let has_front = core.hashed.is_some() && core.records_of().has_fronts;
        let behind_bytes = if has_front { FRONT_BYTES as u64 } else { 0 };
        let long = long_piece(&pieces);
        let of = of.cloned().or_else(|| long.map(|_| engine.values.files.present()));
        if let (Some(pointer), Some(of)) = (&long, &of) {
            // A damaged length is found before it is used.
            locate::locate_piece(engine, (of, core), key, pointer, Locate::default().verify(false))?;
        }
        let in_more = |pointer: Pointer<'_>| {
            in_pieces(pointer.len - behind_bytes, engine.options.stream_piece_bytes_now())
        };
        let pieces = long.map_or(pieces, in_more);
        let mut len_bytes = 0;
        let pieces = pieces.into_iter().map(|piece| {
            let from = len_bytes;
            len_bytes += match &piece {
                OwnPiece::Inline(bytes) => bytes.len() as u64,
                OwnPiece::Separated(pointer) => pointer.len,
                OwnPiece::Slice(_, len) => *len as u64,
            };
            (from, piece)
        });
        Ok(Some(ValueReader {
            engine: Arc::clone(engine),
            core: Arc::clone(core),
            key: key.to_vec(),
            of,
            pieces: pieces.collect(),
            len_bytes,
            at: 0,
            long: long.map(|pointer| (pointer, None)),
            loaded: None,
            record: Vec::new(),
        }))
    })
}

/// The only piece of a long value; none if the value is anything else.
fn long_piece(pieces: &[OwnPiece]) -> Option<Pointer<'static>> {
    match pieces {
        &[OwnPiece::Separated(pointer)] if is_long(pointer.len) => Some(pointer),
        _ => None,
    }
}

/// The sections in which a long value of this many bytes is read.
fn in_pieces(len: u64, piece_bytes: usize) -> Vec<OwnPiece> {
    let len_at = |at: u64| (len - at).min(piece_bytes as u64) as usize;
    (0..len).step_by(piece_bytes).map(|at| OwnPiece::Slice(at, len_at(at))).collect()
}

fn own_pieces(rope: &Rope<'_>) -> Vec<OwnPiece> {
    let own = |piece: Piece<'_>| match (piece, piece.pointer()) {
        (_, Some(pointer)) => OwnPiece::Separated(pointer),
        (Piece::Inline(bytes), None) => OwnPiece::Inline(bytes.to_vec()),
        (Piece::Separated { .. }, None) => OwnPiece::Inline(Vec::new()), // cannot be
    };
    rope.iter().map(own).collect()
}

impl std::fmt::Debug for ValueWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ValueWriter({} bytes for table `{}`)", self.len_bytes(), self.core.name)
    }
}

impl std::fmt::Debug for ValueReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ValueReader({} of {} bytes of table `{}`)", self.at, self.len_bytes, self.core.name)
    }
}
