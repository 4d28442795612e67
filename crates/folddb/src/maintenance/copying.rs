//! Files of backups: copied in pieces and synced, or hard-linked.
//!
//! After `Ok` everything is durable except the names in the directory, which the caller syncs once
//! for all.

use std::io;
use std::ops::Range;
use std::path::Path;

use folddb_base::checksum::hash64;
use folddb_base::{Error, Result, error};
use folddb_host::{Files, ReadFile};
use folddb_layout::backup::TAIL_BYTES_MAX;
use folddb_layout::file_name::FileName;
use folddb_value_log::directories::remove_directory;
use folddb_value_log::relocated::read_past_errors;

/// Bytes copied at a time.
const PIECE_BYTES: usize = 1 << 20;

/// After this many bytes the system is asked to write them, so that the sync at the end is short.
const WRITEBACK_BYTES: u64 = 16 << 20;

/// The source of a copy: bytes at the front, and a range of a file.
type Source<'a> = (&'a [u8], &'a dyn ReadFile, Range<u64>);

/// Writes a new file that begins with `head` and continues with the bytes `range` of `from`. Calls
/// `moved` for every piece.
pub(crate) fn copy(
    files: &dyn Files,
    (head, from, range): Source<'_>,
    (source, to): (&Path, &Path),
    moved: &mut dyn FnMut(u64),
) -> Result<()> {
    let whole = &mut |at, piece: &mut [u8]| {
        from.read_exact_at(at, piece).map_err(|error| Error::io("read", source, error))?;
        moved(piece.len() as u64);
        Ok(piece.len())
    };
    copy_by(files, (head, from, range), to, whole).map(drop)
}

/// The same for a file that its writer may cut to its end during the copy: up to its end. Returns
/// how many bytes of it were copied.
pub(crate) fn copy_to_end(
    files: &dyn Files,
    (from, range): (&dyn ReadFile, Range<u64>),
    (source, to): (&Path, &Path),
    moved: &mut dyn FnMut(u64),
) -> Result<u64> {
    copy_by(files, (&[], from, range), to, &mut |at, piece| {
        let len = read_to_end(from, at, piece).map_err(|error| Error::io("read", source, error))?;
        moved(len as u64);
        Ok(len)
    })
}

/// Fills `piece` from `at` on, or as much of it as the file has by now.
fn read_to_end(from: &dyn ReadFile, at: u64, piece: &mut [u8]) -> io::Result<usize> {
    let Err(error) = from.read_exact_at(at, piece) else { return Ok(piece.len()) };
    let left = from.len_bytes()?.saturating_sub(at).min(piece.len() as u64) as usize;
    if error.kind() != io::ErrorKind::UnexpectedEof || left == piece.len() {
        return Err(error);
    }
    from.read_exact_at(at, &mut piece[..left])?;
    Ok(left)
}

/// The same with zeros for bytes that cannot be read. Returns how many those are.
pub(crate) fn copy_past_errors(files: &dyn Files, (head, from, range): Source<'_>, to: &Path) -> Result<u64> {
    let mut unread = 0;
    copy_by(files, (head, from, range), to, &mut |at, piece| {
        unread += read_past_errors(from, at, piece);
        Ok(piece.len())
    })?;
    Ok(unread)
}

/// Copies the pieces of the range that `read` fills; a partly filled one is the last. Returns how
/// many bytes of the file were copied.
fn copy_by(
    files: &dyn Files,
    (head, from, range): Source<'_>,
    to: &Path,
    read: &mut dyn FnMut(u64, &mut [u8]) -> Result<usize>,
) -> Result<u64> {
    let mut file = files.create(to).map_err(|error| Error::io("create", to, error))?;
    let failed = |error| Error::io("write", to, error);
    if !head.is_empty() {
        file.append(head).map_err(failed)?;
    }
    let mut piece = vec![0; PIECE_BYTES.min(usize::try_from(range.end - range.start).unwrap_or(PIECE_BYTES))];
    let mut at = range.start;
    let mut unsent = 0;
    from.will_need(at, range.end - at);
    while at < range.end {
        let wanted = (range.end - at).min(piece.len() as u64) as usize;
        let len = read(at, &mut piece[..wanted])?;
        file.append(&piece[..len]).map_err(failed)?;
        at += len as u64;
        if len < wanted {
            break;
        }
        unsent += len as u64;
        if unsent >= WRITEBACK_BYTES {
            file.start_writeback();
            unsent = 0;
        }
    }
    file.sync().map_err(|error| Error::io("sync", to, error))?;
    Ok(at - range.start)
}

/// Writes a new file of these bytes.
pub(crate) fn write(files: &dyn Files, to: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = files.create(to).map_err(|error| Error::io("create", to, error))?;
    if !bytes.is_empty() {
        file.append(bytes).map_err(|error| Error::io("write", to, error))?;
    }
    file.sync().map_err(|error| Error::io("sync", to, error))
}

/// The bytes of a small file; none if there is no such file. A file longer than `bytes_max` is
/// damaged.
pub(crate) fn read_small(files: &dyn Files, path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>> {
    let file = match files.open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(Error::io("open", path, error)),
    };
    let failed = |error| Error::io("read", path, error);
    let len = file.len_bytes().map_err(failed)?;
    if len > bytes_max {
        return Err(error::corrupt(path, bytes_max, format!("it has {len} bytes, which is too many")));
    }
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(0, &mut bytes).map_err(failed)?;
    Ok(Some(bytes))
}

/// The hash of the end of a file, which distinguishes it from another of the same name and length.
pub(crate) fn tail_hash(file: &dyn ReadFile, len_bytes: u64) -> io::Result<u64> {
    let mut tail = vec![0; len_bytes.min(TAIL_BYTES_MAX) as usize];
    file.read_exact_at(len_bytes - tail.len() as u64, &mut tail)?;
    Ok(hash64(0, &tail))
}

/// Makes the names in a directory durable.
pub(crate) fn sync_dir(files: &dyn Files, dir: &Path) -> Result<()> {
    files.sync_dir(dir).map_err(|error| Error::io("sync the directory", dir, error))
}

/// Makes a directory for values in files of their own.
pub(crate) fn make_directory(files: &dyn Files, path: &Path) -> Result<()> {
    files.create_dir(path).map_err(|error| Error::io("create the directory", path, error))
}

/// Removes a directory and its contents, including directories of values. The next backup retries
/// what stays.
pub(crate) fn remove_all(files: &dyn Files, dir: &Path) {
    for name in files.list(dir).unwrap_or_default() {
        match FileName::parse(&name) {
            Some(FileName::ValueDirectory(_)) => remove_directory(files, &dir.join(name)),
            _ => drop(files.remove(&dir.join(name))),
        }
    }
    let _ = files.remove_dir(dir);
}
