//! The events of a world, in order: every call and its outcome, every crash. It prints, and two
//! runs of one seed print the same.

use std::fmt;
use std::sync::Arc;

use crate::faulty_files::Call;

/// One line of a diary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// A call of the host.
    Call {
        call: Call,
        name: Arc<str>,
        /// Where in the file, and how much; 0 where that means nothing.
        offset: u64,
        len_bytes: u64,
        /// A hash of the written bytes.
        hash: u32,
        /// The error, if it failed.
        error: Option<String>,
    },
    /// A note of the world, or of its player.
    Note(String),
}

/// The lines so far. Copies share earlier lines.
#[derive(Clone, Default)]
pub(crate) struct Diary {
    past: Option<Arc<Diary>>,
    lines: Vec<Entry>,
}

impl Diary {
    pub(crate) fn push(&mut self, entry: Entry) {
        self.lines.push(entry);
    }

    /// A diary that continues from here, as does this one.
    pub(crate) fn fork(&mut self) -> Diary {
        if !self.lines.is_empty() {
            let past = std::mem::take(self);
            self.past = Some(Arc::new(past));
        }
        self.clone()
    }

    /// The lines, oldest first.
    fn chapters(&self) -> Vec<&Diary> {
        let mut chapters = vec![self];
        while let Some(past) = chapters.last().and_then(|chapter| chapter.past.as_deref()) {
            chapters.push(past);
        }
        chapters.reverse();
        chapters
    }

    /// All lines, oldest first.
    pub(crate) fn all(&self) -> Vec<&Entry> {
        self.chapters().into_iter().flat_map(|chapter| &chapter.lines).collect()
    }

    /// The last `lines` lines as text, numbered from the first of all.
    pub(crate) fn tail(&self, lines: usize) -> String {
        let all = self.all();
        let from = all.len().saturating_sub(lines);
        let numbered = all.iter().enumerate().skip(from);
        numbered.map(|(at, entry)| format!("{at:5}  {entry}\n")).collect()
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Note(text) => write!(f, "-- {text}"),
            Entry::Call { call, name, offset, len_bytes, hash, error } => {
                write!(f, "{call:?} {name}")?;
                if *len_bytes > 0 {
                    write!(f, " {len_bytes} bytes at {offset}")?;
                }
                if *hash != 0 {
                    write!(f, " #{hash:08x}")?;
                }
                match error {
                    Some(error) => write!(f, ": {error}"),
                    None => Ok(()),
                }
            }
        }
    }
}
