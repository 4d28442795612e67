//! Evidence that the list of what lives is lost: all of it, if no manifest begins with an intact
//! snapshot; or the end of one whose edits are all intact.
//!
//! ```text
//!   names     of tables: what the bytes of a cut snapshot, and intact edits after it, still say
//!   numbers   of tables: the log has them in its records, also of tables that nothing names any more
//!   files     that nothing lists, and how many records their parts hold; parts do not name their table, but records
//!             of the value log do
//! ```
//!
//! The list of a backup restores what it has, so each message names it. Filled by the survey.

use std::collections::{BTreeMap, BTreeSet};

use folddb_base::{TableId, counted};

use crate::maintenance::finding::Loss;

/// What is lost of the list.
#[derive(Clone, Debug, Default)]
pub(crate) struct LostList {
    pub(super) is_all: bool,
    /// Tables that are not on the list, but are still named somewhere.
    pub(super) named: BTreeMap<TableId, String>,
    /// Tables that only the log names, and how many of their records it has.
    pub(super) nameless: BTreeSet<TableId>,
    pub(super) records: u64,
    /// Tables that only value files name. Some may have been dropped.
    pub(super) in_values: BTreeSet<TableId>,
    /// Files that are not on the list: how many, and the records of parts among them.
    pub(super) files: u64,
    pub(super) file_records: u64,
}

impl LostList {
    /// Whether any table is known to be lost.
    pub(crate) fn has_tables(&self) -> bool {
        !self.named.is_empty() || !self.nameless.is_empty() || !self.in_values.is_empty()
    }

    /// The tables that may be lost with it, in addition to those on the list.
    pub(crate) fn tables(&self) -> impl Iterator<Item = Loss> {
        let unnamed = match self.nameless.len() {
            0 if !self.in_values.is_empty() => Loss {
                keys: format!(
                    "{} whose names are gone, by number {}, unless dropped before, and any others",
                    counted(self.in_values.len() as u64, "table"),
                    numbers(&self.in_values)
                ),
                ..Loss::unnamed_tables()
            },
            0 if !self.named.is_empty() => {
                Loss { keys: "any others, whose names are gone".to_owned(), ..Loss::whole_table("") }
            }
            0 => Loss::unnamed_tables(),
            1 => Loss { keys: "at least 1 table whose name is gone".to_owned(), ..Loss::unnamed_tables() },
            count => Loss {
                keys: format!("at least {count} tables whose names are gone"),
                ..Loss::unnamed_tables()
            },
        };
        self.named.values().map(|name| Loss::whole_table(name)).chain([unnamed])
    }

    /// The evidence, and what to do.
    pub(crate) fn in_words(&self) -> String {
        let found = self.found().join("; ");
        match self.is_all {
            true => format!("nothing shows which tables there are: {found}. {WAY}"),
            false => format!("its end is lost: {found}. {WAY}"),
        }
    }

    /// What exists nevertheless.
    pub(crate) fn found(&self) -> Vec<String> {
        let mut found = Vec::new();
        let unlisted = if self.is_all { "" } else { " that it does not list" };
        if !self.named.is_empty() {
            let names: Vec<String> = self.named.values().map(|name| format!("`{name}`")).collect();
            found.push(format!("what is left of it still names {}", names.join(", ")));
        }
        match self.nameless.len() as u64 {
            tables @ 1.. => {
                let lists = if self.is_all { "nothing names" } else { "the manifest never had" };
                found.push(format!(
                    "the log holds {} of {} that {lists}, by number {}",
                    counted(self.records, "record"),
                    counted(tables, "table"),
                    numbers(&self.nameless),
                ));
            }
            0 if self.is_all => {}
            0 => found.push("something that its edits name is missing".to_owned()),
        }
        if self.files > 0 {
            let holds = if self.files == 1 { "holds" } else { "hold" };
            let records = counted(self.file_records, "record");
            found.push(format!("{}{unlisted} {holds} {records} in parts", counted(self.files, "file")));
        }
        if !self.in_values.is_empty() {
            let tables = counted(self.in_values.len() as u64, "table");
            found.push(format!(
                "value files hold values of {tables} that nothing names, by number {}",
                numbers(&self.in_values)
            ));
        }
        if self.file_records > 0 && self.nameless.is_empty() {
            found.push(
                "parts do not name their table, so it is not known how many tables there were".to_owned(),
            );
        }
        found
    }
}

/// What to do if a list is lost.
const WAY: &str =
    "A backup of the store that lists them can bring them back: folddb repair --list-from BACKUP";

/// The numbers of tables, as a range if there are many.
fn numbers(tables: &BTreeSet<TableId>) -> String {
    match (tables.first(), tables.last()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (first, _) => first.map(TableId::to_string).unwrap_or_default(),
    }
}
