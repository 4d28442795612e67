//! New files that commands write: packed where their names end in .gz, synced when they are whole,
//! and removed when they are not.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::failure::Failure;

/// Creates a file, which must not be there yet, and has it written.
///
/// A file that could not be written in full goes again, or it would be in the way of the next try.
/// One whose writer has told what is wrong itself ([`Failure::Told`]) stays.
pub(crate) fn write_new<T>(
    name: &str,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let file = OpenOptions::new().write(true).create_new(true).open(name);
    let file = file.map_err(|error| Failure::file("create", name, &error))?;
    let written = fill(file, name, write);
    if !matches!(written, Ok(_) | Err(Failure::Told(_))) {
        let _ = std::fs::remove_file(name);
    }
    written
}

fn fill<T>(
    file: File,
    name: &str,
    write: impl FnOnce(&mut dyn Write) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let failed = |error: std::io::Error| Failure::file("write", name, &error);
    let mut file = BufWriter::new(file);
    let written = if name.ends_with(".gz") {
        let mut packed = GzEncoder::new(&mut file, Compression::default());
        let written = write(&mut packed);
        packed.finish().map_err(failed)?;
        written
    } else {
        write(&mut file)
    };
    let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
    file.sync_all().map_err(|error| Failure::file("sync", name, &error))?;
    written
}
