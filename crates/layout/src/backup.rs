//! The two lists of a directory of backups, as text: what the directory is (`BACKUPS`), and what is
//! in one generation (`BACKUP`).
//!
//! ```text
//!   BACKUPS    folddb backups 1 store 0123…cdef sum 89ab…4567\n
//!
//!   BACKUP     folddb backup 1\n
//!              generation 3\n
//!              store 0123…cdef\n
//!              made 1763706328\n                      seconds since 1970
//!              seqs 120 4711\n                        the first and the last that can be restored
//!              file FORMAT 156 0123…cdef copied\n     name, length, hash of its end, and how it came here
//!              file 000009.part 34567 89ab…4567 linked\n
//!              sum 89ab…4567\n                        xxh3-64 of all before
//! ```
//!
//! The hash of a file's end is xxh3-64 with seed 0 of its last [`TAIL_BYTES_MAX`] bytes, or of the
//! whole file if it is shorter. It distinguishes a file from another of the same name; whether a
//! file is whole is shown by its own checksums.

use folddb_base::Seq;
use folddb_base::bytes::Malformed;
use folddb_base::checksum::hash64;

use crate::file_name::FileName;

/// The name of the file that makes a directory a place for backups.
pub const PLACE_FILE: &str = "BACKUPS";

/// The name of the list of a generation.
pub const LIST_FILE: &str = "BACKUP";

/// Longest list that is examined, in bytes: enough for a million files.
pub const LIST_FILE_BYTES_MAX: u64 = 64 << 20;

/// How many bytes at the end of a file are hashed to distinguish it from another.
pub const TAIL_BYTES_MAX: u64 = 64 << 10;

const PLACE_START: &str = "folddb backups ";
const LIST_START: &str = "folddb backup ";
const VERSION: u32 = 1;

/// The text of `BACKUPS`, for the backups of one store.
pub fn encode_place(store_id: u128) -> Vec<u8> {
    let said = format!("{PLACE_START}{VERSION} store {store_id:032x}");
    let sum = hash64(0, said.as_bytes());
    format!("{said} sum {sum:016x}\n").into_bytes()
}

/// The store whose backups these are.
///
/// # Errors
/// `Tag` if a newer version wrote it, anything else if it is damaged.
pub fn decode_place(bytes: &[u8]) -> Result<u128, Malformed> {
    let line = std::str::from_utf8(bytes).map_err(|_| Malformed::Text)?;
    let line = line.strip_suffix('\n').ok_or(Malformed::Short)?;
    check_version(line, PLACE_START)?;
    let (said, sum) = line.rsplit_once(" sum ").ok_or(Malformed::Text)?;
    check_sum(said.as_bytes(), sum)?;
    let (_, store_id) = said.split_once(" store ").ok_or(Malformed::Text)?;
    hex128(store_id)
}

/// How a file came into a generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It is a second name of the store's own file.
    Linked,
    /// Its bytes were copied, for this generation or an earlier one that it is linked from.
    Copied,
}

/// A file of a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// Its name, which is that of a file of a store.
    pub name: FileName,
    /// Its length.
    pub len_bytes: u64,
    /// The hash of its end.
    pub tail_hash: u64,
    /// How it came here.
    pub origin: Origin,
}

/// What is in a generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupList {
    /// Its number.
    pub generation: u64,
    /// The store that it belongs to.
    pub store_id: u128,
    /// When it was made, in seconds since 1970.
    pub made_unix_s: u64,
    /// The first seq that can be restored from it.
    pub first_seq: Seq,
    /// The last seq that can be restored from it: the state that it holds.
    pub last_seq: Seq,
    /// Its files, except the list itself and `LOCK`.
    pub files: Vec<ListedFile>,
}

impl BackupList {
    /// The text of `BACKUP`.
    pub fn encode(&self) -> Vec<u8> {
        let mut text = format!(
            "{LIST_START}{VERSION}\ngeneration {}\nstore {:032x}\nmade {}\nseqs {} {}\n",
            self.generation, self.store_id, self.made_unix_s, self.first_seq, self.last_seq
        );
        for file in &self.files {
            let ListedFile { name, len_bytes, tail_hash, origin } = file;
            let origin = match origin {
                Origin::Linked => "linked",
                Origin::Copied => "copied",
            };
            text.push_str(&format!("file {name} {len_bytes} {tail_hash:016x} {origin}\n"));
        }
        let sum = hash64(0, text.as_bytes());
        text.push_str(&format!("sum {sum:016x}\n"));
        text.into_bytes()
    }

    /// Reads the text back.
    ///
    /// # Errors
    /// `Tag` if a newer version wrote it, anything else if it is damaged.
    pub fn decode(bytes: &[u8]) -> Result<BackupList, Malformed> {
        let text = std::str::from_utf8(bytes).map_err(|_| Malformed::Text)?;
        check_version(text.lines().next().unwrap_or_default(), LIST_START)?;
        let text = text.strip_suffix('\n').ok_or(Malformed::Short)?;
        let (said, sum) = text.rsplit_once("sum ").ok_or(Malformed::Short)?;
        check_sum(said.as_bytes(), sum)?;
        let mut lines = said.lines().skip(1);
        let mut line = |name: &str| {
            let line = lines.next().ok_or(Malformed::Short)?;
            line.strip_prefix(name).ok_or(Malformed::Text)
        };
        let generation = number(line("generation ")?)?;
        let store_id = hex128(line("store ")?)?;
        let made_unix_s = number(line("made ")?)?;
        let (first_seq, last_seq) = line("seqs ")?.split_once(' ').ok_or(Malformed::Text)?;
        let (first_seq, last_seq) = (number(first_seq)?, number(last_seq)?);
        let files = lines.map(decode_file).collect::<Result<_, _>>()?;
        Ok(BackupList { generation, store_id, made_unix_s, first_seq, last_seq, files })
    }
}

fn decode_file(line: &str) -> Result<ListedFile, Malformed> {
    let mut words = line.split(' ');
    let mut word = || words.next().ok_or(Malformed::Short);
    if word()? != "file" {
        return Err(Malformed::Tag);
    }
    let name = FileName::parse(word()?).ok_or(Malformed::Text)?;
    let len_bytes = number(word()?)?;
    let tail_hash = u64::from_str_radix(word()?, 16).map_err(|_| Malformed::Text)?;
    let origin = match word()? {
        "linked" => Origin::Linked,
        "copied" => Origin::Copied,
        _ => return Err(Malformed::Tag),
    };
    Ok(ListedFile { name, len_bytes, tail_hash, origin })
}

fn check_version(line: &str, start: &str) -> Result<(), Malformed> {
    let version = line.strip_prefix(start).ok_or(Malformed::Text)?;
    let version = version.split(' ').next().unwrap_or_default();
    if number(version)? == u64::from(VERSION) { Ok(()) } else { Err(Malformed::Tag) }
}

fn check_sum(said: &[u8], sum: &str) -> Result<(), Malformed> {
    let is_right = sum.len() == 16 && u64::from_str_radix(sum, 16) == Ok(hash64(0, said));
    if is_right { Ok(()) } else { Err(Malformed::Checksum) }
}

fn number(text: &str) -> Result<u64, Malformed> {
    text.parse().map_err(|_| Malformed::Text)
}

fn hex128(text: &str) -> Result<u128, Malformed> {
    u128::from_str_radix(text, 16).map_err(|_| Malformed::Text)
}

#[cfg(test)]
#[path = "backup/tests.rs"]
mod tests;
