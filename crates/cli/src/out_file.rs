//! New files that commands write: packed where their names end in .gz or .zst. A file gets its name
//! once it is whole and synced, so no end of the program leaves a partial file that passes for a
//! whole one.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::file_names::{self, Packing};
use crate::interrupt;

/// The ending of the name of a file that is not whole yet.
const PARTIAL: &str = ".partial";

/// Creates a file, which must not exist yet, and has it written.
///
/// A file that could not be written in full is removed, also where Ctrl-C asks to stop. It stays
/// where its writer has reported the trouble itself ([`Failure::Reported`]).
pub(crate) fn write_new<T>(
    name: &str,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    file_names::check_written(name)?;
    let failed = |error: io::Error| Failure::file("create", name, &error);
    let path = Path::new(name);
    if path.symlink_metadata().is_ok() {
        return Err(failed(io::ErrorKind::AlreadyExists.into()));
    }
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    if !folder.exists() {
        let message = format!("cannot create {name}: there is no directory {}", folder.display());
        return Err(Failure::NoFile(message));
    }
    let file_name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut partial = tempfile::Builder::new();
    partial.prefix(&*file_name).suffix(PARTIAL).permissions(readable());
    let mut file = partial.tempfile_in(folder).map_err(|error| failed(bare(error)))?;
    let written = fill(&mut file, name, write);
    if matches!(written, Ok(_) | Err(Failure::Reported(_))) {
        file.persist_noclobber(path).map_err(|error| failed(error.error))?;
        sync_folder(folder).map_err(|error| Failure::file("sync", name, &error))?;
    }
    written
}

/// An error without the name of the temporary file.
fn bare(error: io::Error) -> io::Error {
    let inner = error.get_ref().and_then(|named| named.source()?.downcast_ref::<io::Error>());
    match inner.and_then(io::Error::raw_os_error) {
        Some(code) => io::Error::from_raw_os_error(code),
        None => error,
    }
}

/// The umask of the process decides, as for any other file.
fn readable() -> std::fs::Permissions {
    use std::os::unix::fs::PermissionsExt;
    std::fs::Permissions::from_mode(0o666)
}

/// Makes a new name durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn fill<T>(
    file: &mut NamedTempFile,
    name: &str,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let failed = |error: io::Error| Failure::file("write", name, &error);
    let mut out = Stoppable(BufWriter::new(file.as_file_mut()));
    let written = match file_names::packing(name) {
        Some(Packing::Gzip) => {
            let mut packed = GzEncoder::new(&mut out, Compression::default());
            let written = write(&mut packed);
            packed.finish().map_err(failed).map(|_| written)
        }
        Some(Packing::Zstd) => {
            let mut packed = ZstdFrames { out: &mut out, frame: Vec::new() };
            let written = write(&mut packed);
            packed.end_frame().map_err(failed).map(|()| written)
        }
        None => Ok(write(&mut out)),
    };
    interrupt::check()?; // a stop goes before the result of `write`
    let written = written?;
    out.0.flush().map_err(failed)?;
    drop(out);
    file.as_file().sync_all().map_err(|error| Failure::file("sync", name, &error))?;
    written
}

/// How much is packed together.
const FRAME_BYTES: usize = 1 << 20;

/// A file packed with zstd, as frames one after the other.
struct ZstdFrames<W> {
    out: W,
    frame: Vec<u8>,
}

impl<W: Write> ZstdFrames<W> {
    fn end_frame(&mut self) -> io::Result<()> {
        let packed = compress_to_vec(self.frame.as_slice(), CompressionLevel::Fastest);
        self.frame.clear();
        self.out.write_all(&packed)
    }
}

impl<W: Write> Write for ZstdFrames<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(FRAME_BYTES - self.frame.len());
        self.frame.extend_from_slice(&bytes[..len]);
        if self.frame.len() == FRAME_BYTES {
            self.end_frame()?;
        }
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A file that takes no more bytes once Ctrl-C asks to stop.
struct Stoppable<W>(W);

impl<W: Write> Write for Stoppable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        interrupt::check().map_err(|stopped| io::Error::other(stopped.to_string()))?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
