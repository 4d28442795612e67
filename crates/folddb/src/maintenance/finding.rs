//! What is wrong with a file of a store, where, and which keys may be lost.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use folddb_base::{Error, counted};
use folddb_rules::codec::KeyCodec;
use folddb_run::KeySpan;

/// How severe a finding is: a scale of three, which will not get more steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is lost: leftovers of a crash, and things that could not be checked.
    Note,
    /// Every byte is as a program wrote it, and the table does not take the value: the program had
    /// another type of values or another fold. Nothing is lost, and no repair can mend it: put such
    /// keys again, or delete them.
    Unfit,
    /// Bytes differ from what was written.
    Damage,
}

/// A problem of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Its severity.
    pub severity: Severity,
    /// The file's name in the store's directory.
    pub file: String,
    /// The offset in it, if known.
    pub offset: Option<u64>,
    /// What is wrong.
    pub what: String,
    /// What may be lost.
    pub losses: Vec<Loss>,
    /// The feeds that lose their places by it: they have to begin again, with the present rows.
    pub feeds: Vec<String>,
    /// The tables whose runs can no longer be rebuilt from the log that they archive.
    pub archives: Vec<String>,
    /// Whether the file was written after the manifest, which therefore is an older one.
    pub is_newer_file: bool,
}

/// Keys of a table whose values may be missing, outdated, or incompletely folded.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// The table; empty for tables whose names are lost.
    pub table: String,
    /// Only keys beyond this one, in the table's order; without it, from the first.
    pub after: Option<Vec<u8>>,
    /// Only keys up to this one, included; without it, to the last.
    pub through: Option<Vec<u8>>,
    /// The same in words.
    pub keys: String,
    /// How many records, if known.
    pub records: Option<u64>,
}

impl Finding {
    pub(crate) fn damage(file: impl Into<String>, offset: Option<u64>, what: impl Into<String>) -> Finding {
        Finding {
            severity: Severity::Damage,
            file: file.into(),
            offset,
            what: what.into(),
            losses: Vec::new(),
            feeds: Vec::new(),
            archives: Vec::new(),
            is_newer_file: false,
        }
    }

    pub(crate) fn unfit(file: impl Into<String>, offset: Option<u64>, what: impl Into<String>) -> Finding {
        Finding { severity: Severity::Unfit, ..Finding::damage(file, offset, what) }
    }

    pub(crate) fn note(file: impl Into<String>, what: impl Into<String>) -> Finding {
        Finding { severity: Severity::Note, ..Finding::damage(file, None, what) }
    }

    /// Whether the tables and all that is in them are as they were written, and only feeds have to
    /// begin again.
    pub fn is_of_feeds_only(&self) -> bool {
        !self.feeds.is_empty() && self.losses.is_empty() && self.archives.is_empty()
    }

    pub(crate) fn costs(mut self, loss: Loss) -> Finding {
        self.losses.push(loss);
        self
    }
}

impl Loss {
    /// All keys of a table.
    pub(crate) fn whole_table(table: &str) -> Loss {
        let keys = "all keys".to_owned();
        Loss { table: table.to_owned(), after: None, through: None, keys, records: None }
    }

    /// Tables whose names are lost.
    pub(crate) fn unnamed_tables() -> Loss {
        Loss { keys: "tables that nothing names any more".to_owned(), ..Loss::whole_table("") }
    }

    /// Keys of a span, shown by the codec of the table.
    pub(crate) fn of_span(table: &str, codec: &KeyCodec, span: &KeySpan) -> Loss {
        let KeySpan { last_read, next_read, .. } = span;
        // A separator of blocks is usually not a whole key: then its neighbors are shown.
        let shown = |key: &Option<Vec<u8>>, whole: &Option<Vec<u8>>| {
            let key = key.as_ref()?;
            let whole = whole.as_ref().filter(|_| codec.check(key).is_err());
            Some((codec.show_line(whole.unwrap_or(key)), whole.is_some()))
        };
        let after = shown(&span.after, last_read).map(|(after, _)| format!(" after {after}"));
        let through = shown(&span.through, next_read).map(|(through, is_beyond)| match is_beyond {
            true => format!(" before {through}"),
            false => format!(" up to {through}"),
        });
        let keys = match (after, through) {
            (None, None) => "all keys".to_owned(),
            (after, through) => format!("keys{}{}", after.unwrap_or_default(), through.unwrap_or_default()),
        };
        let (after, through) = (span.after.clone(), span.through.clone());
        Loss { table: table.to_owned(), after, through, keys, records: None }
    }

    /// Keys from one to another, both included.
    pub(crate) fn of_range(
        table: &str,
        codec: &KeyCodec,
        low: &[u8],
        high: &[u8],
        records: Option<u64>,
    ) -> Loss {
        let (first, last) = (codec.show_line(low), codec.show_line(high));
        let keys = match low == high {
            true => format!("key {first}"),
            false => format!("keys from {first} up to {last}"),
        };
        let through = Some(high.to_vec());
        Loss { table: table.to_owned(), after: None, through, keys, records }
    }
}

/// Records with errors, by the file at fault: the one that has them, or the one that should have
/// their values.
#[derive(Default)]
pub(crate) struct Misfits {
    by_file: BTreeMap<String, Misfit>,
}

/// Those of one file.
pub(crate) struct Misfit {
    /// The place of the first of them, and what is wrong with it.
    offset: Option<u64>,
    first: String,
    pub(crate) records: u64,
    /// The key of the last of them, if they are in order.
    pub(crate) last_key: Option<Vec<u8>>,
}

impl Misfits {
    /// Notes a record.
    pub(crate) fn add(&mut self, file: &str, offset: Option<u64>, key: Option<&[u8]>, what: String) {
        let new = || Misfit { offset, first: what, records: 0, last_key: None };
        let misfit = match self.by_file.get_mut(file) {
            Some(misfit) => misfit,
            None => self.by_file.entry(file.to_owned()).or_insert_with(new),
        };
        misfit.records += 1;
        misfit.last_key = key.map(<[u8]>::to_vec);
    }

    /// Notes a record whose value cannot be read, for the file that the error names; `dir` is the
    /// store's.
    pub(crate) fn add_value(&mut self, dir: &Path, own_file: &str, key: &[u8], error: &Error, said: &str) {
        match error.damage() {
            Some(damage) => {
                let what = format!("{said}: {}", damage.what);
                self.add(&name_in(dir, &damage.file), damage.offset, Some(key), what);
            }
            None => self.add(own_file, None, Some(key), format!("{said}: {}", error.message())),
        }
    }

    /// A finding for each file, with its records.
    pub(crate) fn findings(self) -> impl Iterator<Item = (Finding, Misfit)> {
        self.by_file.into_iter().map(|(file, misfit)| {
            let more = match misfit.records {
                1 => String::new(),
                records => format!(", and {} more", records - 1),
            };
            (Finding::damage(file, misfit.offset, format!("{}{more}", misfit.first)), misfit)
        })
    }
}

/// The name of a file in a store's directory.
pub(crate) fn name_in(dir: &Path, file: &Path) -> String {
    file.strip_prefix(dir).unwrap_or(file).display().to_string()
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.severity {
            Severity::Damage => write!(f, "damage: {}", self.file)?,
            Severity::Unfit => write!(f, "unfit: {}", self.file)?,
            Severity::Note => write!(f, "note: {}", self.file)?,
        }
        if let Some(offset) = self.offset {
            write!(f, " at offset {offset}")?;
        }
        write!(f, ": {}", self.what)?;
        for (number, loss) in self.losses.iter().enumerate() {
            write!(f, "{}{loss}", if number == 0 { "; may cost " } else { ", and " })?;
        }
        Ok(())
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.table.is_empty() {
            return f.write_str(&self.keys);
        }
        if let Some(records) = self.records {
            write!(f, "{} of ", counted(records, "record"))?;
        }
        write!(f, "table `{}`, {}", self.table, self.keys)
    }
}
