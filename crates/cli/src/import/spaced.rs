//! Words between runs of spaces, as programs print them for people: `ps`, `df`, `free`, `ls -l`.
//!
//! ```text
//!   Filesystem  1K-blocks  Used Mounted on     the names of columns: of `df` the last one has a space
//!   /dev/sda1         100    10 /mnt/my disk   the last column takes the rest of the line
//!
//!                 total   used                 a first column without a name is called c1
//!   Mem:            400    300
//!
//!   total 8                                    passed over, where lines of `ls -l` follow
//!   -rw-r--r-- 1 ann staff 12 Nov  1 06:00 a b
//! ```
//!
//! Where no line names the columns, there are as many as the shortest of the first lines has words.
//! A line with fewer words than columns is a bad row.

use std::ops::Range;

use crate::import::header;
use crate::import::row::without_mark;

/// So many lines say how many columns there are, in so much of a text.
const LINES_FIRST: usize = 10;
const HEAD_BYTES: usize = 1 << 16;

/// A line of `ls -l` without owner and group, or with a time in one word, has these; one with fewer
/// is cut, and says nothing of columns.
const LISTED_WORDS_MIN: usize = 7;

/// How the names of the columns of `df` end, the last of which is this.
const MOUNTED_ON: &str = "Mounted on";

/// The columns of words between runs of spaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) names: Vec<String>,
    /// Lines such as `total 48` are passed over.
    pub(crate) passes_totals: bool,
}

/// The first lines of a text.
pub(crate) struct Begin {
    lines: Vec<String>,
    /// They are those of `ls -l`.
    pub(crate) is_listing: bool,
}

impl Begin {
    /// The lines that are whole, or the only one.
    pub(crate) fn of(head: &[u8]) -> Begin {
        let head = without_mark(head);
        let head = &head[..head.len().min(HEAD_BYTES)];
        let whole = &head[..memchr::memrchr(b'\n', head).unwrap_or(head.len())];
        let text = String::from_utf8_lossy(whole);
        let lines = || text.lines().filter(|line| !line.trim().is_empty());
        let is_listing = lines().find(|line| !is_total(line.as_bytes())).is_some_and(is_listed);
        let rows = lines().filter(|line| !(is_listing && is_total(line.as_bytes())));
        Begin { lines: rows.take(LINES_FIRST).map(str::to_owned).collect(), is_listing }
    }

    /// Whether they are words with runs of spaces between them, and no delimiter.
    pub(crate) fn is_spaced(&self) -> bool {
        let has_run = |line: &String| line.trim().contains("  ");
        let is_aligned = |line: &String| has_run(line) && !line.contains([',', ';', '\t', '|', '"']);
        match &self.lines[..] {
            _ if self.is_listing => true,
            [first, ..] if first.trim_end().ends_with(MOUNTED_ON) => true,
            [first, second, ..] => is_aligned(first) && has_run(second),
            _ => false,
        }
    }

    /// Whether the first one is a row, and names no columns.
    pub(crate) fn is_row(&self, is_asked_for: impl Fn(&str) -> bool) -> bool {
        let [first, second, ..] = &self.lines[..] else { return self.is_listing };
        let (first, second) = (words(first), words(second));
        // The last column may have any number of words.
        let common = first.len().min(second.len());
        let is_named = first.iter().any(|word| is_asked_for(word));
        self.is_listing || !is_named && header::is_row(&first[..common], &second[..common], |_| false)
    }

    /// How many columns there are where none has a name.
    pub(crate) fn columns(&self) -> usize {
        let least = if self.is_listing { LISTED_WORDS_MIN } else { 0 };
        self.lines.iter().map(|line| words(line).len()).filter(|&words| words >= least).min().unwrap_or(least)
    }

    /// The names of columns in a line, which is the first one.
    pub(crate) fn names(&self, line: &str) -> Vec<String> {
        let mut names = words(line);
        if line.trim_end().ends_with(MOUNTED_ON) {
            names.truncate(names.len() - 2);
            names.push(MOUNTED_ON.to_owned());
        }
        let begin = |line: &str| line.chars().take_while(|letter| letter.is_whitespace()).count();
        let end = |line: &str| {
            begin(line) + line.trim_start().chars().take_while(|letter| !letter.is_whitespace()).count()
        };
        if self.lines.get(1).is_some_and(|next| end(next) <= begin(line)) {
            names.insert(0, "c1".to_owned());
        }
        names
    }
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

/// Whether a line may be the first one of words, which the second one tells.
pub(crate) fn may_be_words(line: &str) -> bool {
    let begin = Begin { lines: vec![line.to_owned(), line.to_owned()], is_listing: false };
    begin.is_spaced()
}

/// Whether a line says how much a directory has in all, as the first one of `ls -l` does.
pub(crate) fn is_total(line: &[u8]) -> bool {
    let size = line.trim_ascii().strip_prefix(b"total ").unwrap_or_default();
    size.first().is_some_and(u8::is_ascii_digit) && !size.contains(&b' ')
}

/// Whether a line of `ls -l` is about a file: its mode, and how many names it has.
fn is_listed(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let (mode, names) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (kind, rights) = mode.split_at_checked(1).unwrap_or_default();
    let rights = rights.strip_suffix(['.', '+', '@']).unwrap_or(rights);
    "-bcdlps".contains(kind)
        && rights.len() == 9
        && rights.bytes().all(|letter| b"-rwxsStT".contains(&letter))
        && names.parse::<u64>().is_ok()
}

/// Finds the words of a line, the last of which is its rest.
pub(crate) fn put_words(text: &str, fields: &mut [Option<Range<usize>>]) -> Result<(), String> {
    let (wanted, mut at) = (fields.len(), 0);
    for (index, field) in fields.iter_mut().enumerate() {
        let begin = text.len() - text[at..].trim_start().len();
        let space = text[begin..].find(char::is_whitespace).filter(|_| index + 1 < wanted);
        at = space.map_or(text.len(), |space| begin + space);
        if begin == text.len() {
            return Err(format!("expected {wanted} words, found {index}"));
        }
        *field = Some(begin..at);
    }
    Ok(())
}

#[cfg(test)]
#[path = "spaced/tests.rs"]
mod tests;
