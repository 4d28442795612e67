//! Which rules of a table may be altered, and when what is altered applies.
//!
//! A rule may be altered if the bytes that are stored already mean the same under the old and the
//! new one: it only says how the next parts are written, or what becomes of the next writes. All
//! others are refused, each with the way to a table that has the rules that are wanted.
//!
//! | rule | altered |
//! |---|---|
//! | block_bytes, compression, bottom_compression, filter_bits, summaries | yes: merges write their parts by the new rule |
//! | separate | yes, to another length: for values that are written from then on; not taken away |
//! | value_placement | of a sorted table, for values that are written from then on |
//! | expire | yes, to another time, for values that are written from then on; not from or to never |
//! | keep | a window may be longer or shorter, the versions of a sorted table fewer |
//! | key_names | yes |
//! | index | by adding and dropping indexes |
//! | all others | no |

use folddb_base::{Error, ErrorKind};

use super::choices::{Compression, FoldName, TableKind};
use super::data::{KEY_NAMES, TableRules};
use crate::time::{Expire, Keep};

/// A rule that is altered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleChange {
    /// Its name, as in the text of the rules: `block_bytes`.
    pub rule: &'static str,
    /// What it was, as text.
    pub from: String,
    /// What it is now, as text.
    pub to: String,
    /// From when on it applies.
    pub applies: Applies,
}

/// From when on an altered rule applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Applies {
    /// To all that is stored, at once.
    AtOnce,
    /// To what is written from now on; what is stored stays as it is.
    ToWrites,
    /// To the parts that flushes and merges write from now on. Parts that were written before are
    /// outdated until a merge has rewritten them.
    ByMerges,
}

/// What to do instead of altering a rule that decides what the stored bytes mean.
const ADVICE: &str = "dump the table (`folddb dump STORE TABLE`), change the rule in its line, leave out the last line, and load that into another store (`folddb load --partial`)";

/// The same for rules about the past.
const ADVICE_PAST: &str = "keep this table for its past, which no dump has; dump it (`folddb dump STORE TABLE`), change the rule in its line, leave out the last line, and load that into another store (`folddb load --partial`)";

/// What to do instead of taking the threshold away.
const ADVICE_SEPARATE: &str =
    "give a length that no value has, and new values stay inline: separate=4294967295";

/// What to do instead of altering indexes.
const ADVICE_INDEXES: &str =
    "add and drop indexes by themselves: `add_index` and `drop_index`, or `folddb index`";

impl TableRules {
    /// What changes from these rules of a table to `wanted`, in the order of their names; nothing
    /// if they mean the same. The rules are examined alone: whether `wanted` are possible together
    /// is for [`TableRules::check`].
    ///
    /// ```
    /// # use folddb_rules as folddb;
    /// use folddb::table_rules::TableRules;
    /// let rules = TableRules::counter();
    /// let changes = rules.changes_to(&rules.clone().block_bytes(8192)).unwrap();
    /// assert_eq!((changes[0].rule, &*changes[0].to), ("block_bytes", "8192"));
    /// assert!(rules.changes_to(&rules.clone().fold("sum:u64")).is_err(), "sums would not be read right");
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::RulesMismatch`] if a rule differs that cannot be altered, naming it, why, and
    /// what to do instead.
    pub fn changes_to(&self, wanted: &TableRules) -> Result<Vec<RuleChange>, Error> {
        self.check_meaning(wanted)?;
        self.check_indexes_stay(wanted)?;
        self.check_separation_stays(wanted)?;
        self.check_placement_stays(wanted)?;
        self.check_expiry_stays(wanted)?;
        self.check_past_stays(wanted)?;
        Ok(self.changes(wanted))
    }

    /// Rules that decide what bytes mean.
    fn check_meaning(&self, wanted: &TableRules) -> Result<(), Error> {
        // All rules are named, so that a new one has to be decided on.
        let TableRules { kind, key, order, value, fold, delete, short_circuit, head, archives_log, .. } =
            self;
        let TableRules { index_of, unknown, .. } = self;
        let fixed = [
            ("kind", *kind == wanted.kind, "a sorted and a hashed table store their records differently"),
            ("key", *key == wanted.key, "it says what the bytes of the stored keys are"),
            ("order", *order == wanted.order, "the stored keys are in this order"),
            ("value", *value == wanted.value, "it says what the bytes of the stored values are"),
            (
                fold_name(fold),
                fold.canonical() == wanted.fold.canonical(),
                "the stored values and operands are of this fold",
            ),
            ("delete", *delete == wanted.delete, "stored values may be absent by it"),
            ("short_circuit", *short_circuit == wanted.short_circuit, "merges have dropped values by it"),
            ("head", *head == wanted.head, "the heads of the stored values were taken by it"),
            (
                "archive_log",
                *archives_log == wanted.archives_log,
                "a log is archived from the first write on, or the runs could not be rebuilt from it",
            ),
            ("index_of", *index_of == wanted.index_of, "it says whose entries the table has"),
        ];
        if let Some((rule, _, why)) = fixed.iter().find(|(_, is_same, _)| !is_same) {
            let advice = if *rule == "archive_log" { ADVICE_PAST } else { ADVICE };
            return Err(refused(rule, why, advice));
        }
        let others = |rules: &TableRules| {
            let mut others = rules.unknown.clone();
            others.remove(KEY_NAMES);
            others
        };
        if others(self) != others(wanted) {
            let differs = |name: &&String| unknown.get(*name) != wanted.unknown.get(*name);
            let mut names = unknown.keys().chain(wanted.unknown.keys()).filter(|name| *name != KEY_NAMES);
            let first = names.find(differs);
            let name = first.map_or("", String::as_str);
            return Err(refused(name, "this version does not know what it means", ADVICE));
        }
        Ok(())
    }

    fn check_indexes_stay(&self, wanted: &TableRules) -> Result<(), Error> {
        let same = self.indexes.len() == wanted.indexes.len()
            && self.indexes.iter().all(|index| wanted.indexes.contains(index));
        if same { Ok(()) } else { Err(refused("index", "an index has entries to be built", ADVICE_INDEXES)) }
    }

    fn check_separation_stays(&self, wanted: &TableRules) -> Result<(), Error> {
        match (self.separate, wanted.separate) {
            (Some(_), None) => {
                Err(refused("separate", "values that are separated already stay separated", ADVICE_SEPARATE))
            }
            _ => Ok(()),
        }
    }

    /// Segments and directories are numbered as they are begun, and each kind is written to for as
    /// long as it has room: after a change, what is newer could have the lower number.
    fn check_placement_stays(&self, wanted: &TableRules) -> Result<(), Error> {
        if self.kind == TableKind::Sorted || self.value_placement == wanted.value_placement {
            return Ok(());
        }
        let why = "a hashed table tells the newest of the values of a key by where they are";
        Err(refused("value_placement", why, ADVICE))
    }

    fn check_expiry_stays(&self, wanted: &TableRules) -> Result<(), Error> {
        if self.expire.has_stamps() == wanted.expire.has_stamps() {
            return Ok(());
        }
        let why = match self.expire {
            Expire::Never => "the stored values have no times, as those of a table with expiry have",
            _ => "the stored values have times, as those of a table without expiry have not",
        };
        Err(refused("expire", why, ADVICE))
    }

    /// How much of the past is kept may change as far as the past that is kept already can be told
    /// from the one that is not.
    fn check_past_stays(&self, wanted: &TableRules) -> Result<(), Error> {
        let why = match (self.keep, wanted.keep) {
            (has, wants) if has == wants => return Ok(()),
            _ if self.kind == TableKind::Hashed => "a hashed table has a place for each version of a key",
            (Keep::Window(has), Keep::Window(wants)) if wants < has || !self.expire.has_stamps() => {
                return Ok(());
            }
            (Keep::Window(_), Keep::Window(_)) => {
                "values that have expired are gone, and nothing would tell that a longer window lacks them"
            }
            (Keep::Versions(has), Keep::Versions(wants)) if wants < has => return Ok(()),
            (Keep::Versions(_), Keep::Versions(_)) => {
                "versions beyond those that were kept are gone, and nothing would tell which keys lack some"
            }
            _ => "the past that it keeps now is not the one that it would keep",
        };
        Err(refused("keep", why, ADVICE_PAST))
    }

    /// The rules that differ, among those that may be altered.
    fn changes(&self, wanted: &TableRules) -> Vec<RuleChange> {
        let both = self.alterable().into_iter().zip(wanted.alterable());
        both.filter(|((_, from, _), (_, to, _))| from != to)
            .map(|((rule, from, applies), (_, to, _))| RuleChange { rule, from, to, applies })
            .collect()
    }

    /// The rules that may be altered, as text, by name.
    fn alterable(&self) -> [(&'static str, String, Applies); 10] {
        let separate = self.separate.map_or("none".to_owned(), |bytes| bytes.to_string());
        let summaries = if self.summaries { "on" } else { "off" };
        let bottom = self.bottom_compression.map_or("as compression", Compression::name).to_owned();
        [
            ("block_bytes", self.block_bytes.to_string(), Applies::ByMerges),
            ("bottom_compression", bottom, Applies::ByMerges),
            ("compression", self.compression.to_string(), Applies::ByMerges),
            ("expire", self.expire.to_string(), Applies::ToWrites),
            ("filter_bits", self.filter_bits.to_string(), Applies::ByMerges),
            ("keep", self.keep.to_string(), Applies::AtOnce),
            ("key_names", self.names_of_key().collect::<Vec<_>>().join(","), Applies::AtOnce),
            ("separate", separate, Applies::ToWrites),
            ("summaries", summaries.to_owned(), Applies::ByMerges),
            ("value_placement", self.value_placement.to_string(), Applies::ToWrites),
        ]
    }
}

fn fold_name(fold: &FoldName) -> &'static str {
    match fold {
        FoldName::BuiltIn(_) => "fold",
        FoldName::Custom { .. } => "custom_fold",
    }
}

fn refused(rule: &str, why: &str, advice: &'static str) -> Error {
    let message = format!("the rule `{rule}` cannot be altered: {why}");
    Error::new(ErrorKind::RulesMismatch, message).advise(advice)
}

#[cfg(test)]
#[path = "alter/tests.rs"]
mod tests;
