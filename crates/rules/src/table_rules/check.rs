//! Whether a table may be created with given rules: which rules go together.

use std::collections::BTreeSet;

use folddb_base::Error;

use super::bound::BoundRules;
use super::choices::{FoldName, TableKind};
use super::custom::Custom;
use super::data::{BLOCK_BYTES, FILTER_BITS_MAX, HASHED_VERSIONS_MAX, SEPARATE_BYTES_MIN, TableRules};
use crate::folds;
use crate::head::HeadRule;
use crate::order::KeyOrder;
use crate::time::Keep;
use crate::value_placement::ValuePlacement;

impl TableRules {
    fn check_separation(&self, bound: &BoundRules) -> Result<(), Error> {
        let keeps_all_inline = self.kind == TableKind::Sorted && self.separate.is_none();
        if keeps_all_inline && self.value_placement == ValuePlacement::Files {
            return Err(Error::invalid(
                "value_placement=files is given, but no value of the table is separated: give `separate` too, or make it hashed",
            ));
        }
        let Some(bytes) = self.separate else { return Ok(()) };
        if bytes < SEPARATE_BYTES_MIN {
            let message = format!("separate is {bytes}, but must be at least {SEPARATE_BYTES_MIN} bytes");
            return Err(Error::invalid(message));
        }
        if self.asks_values() || bound.fold.has_delete() {
            return Err(Error::invalid(
                "separate is given, but a table with a delete rule or a short-circuit keeps all of its values inline",
            ));
        }
        Ok(())
    }

    /// A hashed table separates all values and has no order, so some rules are not possible.
    fn check_kind(&self) -> Result<(), Error> {
        if self.kind == TableKind::Sorted {
            return Ok(());
        }
        let cannot =
            |what: &str, instead: &str| Err(Error::invalid(format!("a hashed table {what}; {instead}")));
        if self.order != KeyOrder::Bytewise.name() {
            return cannot("has no order of keys", "use a sorted table for one");
        }
        if !matches!(self.keep, Keep::Latest | Keep::Versions(1..=HASHED_VERSIONS_MAX)) {
            let instead = format!(
                "give keep=versions:N up to {HASHED_VERSIONS_MAX}, or use a sorted table for more history"
            );
            return cannot("keeps only a few of the newest versions of each key", &instead);
        }
        if self.summaries {
            return cannot("has no ranges", "leave `summaries` out");
        }
        if self.archives_log {
            return cannot("is rebuilt from its values", "leave `archive_log` out");
        }
        if self.separate.is_some() {
            return cannot("keeps all of its separated values", "leave `separate` out");
        }
        if self.head != HeadRule::None {
            return cannot(
                "keeps no heads in memory",
                "use a sorted table with `separate` for heads of your own",
            );
        }
        Ok(())
    }

    fn check_summaries(&self) -> Result<(), Error> {
        if self.summaries && (self.keep.keeps_past() || self.expire.has_stamps()) {
            return Err(Error::invalid(
                "summaries are given, but of a table that keeps its past, or whose values expire, a block does not say what it shows; leave \
                 `summaries` out",
            ));
        }
        Ok(())
    }

    /// Rules are stored and read back, so a time that cannot be written is not a rule.
    fn check_times(&self) -> Result<(), Error> {
        self.keep.check().map_err(|why| Error::invalid(format!("in keep: {why}")))?;
        self.expire.check().map_err(|why| Error::invalid(format!("in expire: {why}")))
    }

    fn check_indexes(&self) -> Result<(), Error> {
        let names: BTreeSet<&str> = self.indexes.iter().map(|index| index.name.as_str()).collect();
        if names.len() < self.indexes.len() {
            return Err(Error::invalid("two indexes have the same name"));
        }
        if self.kind == TableKind::Hashed && !self.indexes.is_empty() {
            return Err(Error::invalid("a hashed table has no indexes; use a sorted table for them"));
        }
        Ok(())
    }

    /// Checks that a table may be created with these rules by a program without custom folds,
    /// orders and heads. `Store::check_table` does so for a program with those of its options.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](folddb_base::ErrorKind::InvalidInput), saying what is wrong or
    /// missing.
    pub fn check(&self) -> Result<(), Error> {
        self.validate(&Custom::default())
    }

    /// Checks that a table may be created with these rules and the available functions.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`](folddb_base::ErrorKind::InvalidInput), saying what is wrong or
    /// missing.
    pub(crate) fn validate(&self, custom: &Custom) -> Result<(), Error> {
        if !BLOCK_BYTES.contains(&self.block_bytes) {
            let (least, most) = BLOCK_BYTES.into_inner();
            let found = self.block_bytes;
            return Err(Error::invalid(format!(
                "block_bytes is {found}, but must be from {least} to {most}"
            )));
        }
        if self.filter_bits > FILTER_BITS_MAX {
            let found = self.filter_bits;
            return Err(Error::invalid(format!(
                "filter_bits is {found}, but must be at most {FILTER_BITS_MAX}"
            )));
        }
        if let FoldName::BuiltIn(spec) = &self.fold {
            folds::parse(spec).map_err(|error| Error::invalid(error.to_string()))?;
        }
        let bound = self.bind(custom).map_err(|error| Error::invalid(error.message()))?;
        self.check_separation(&bound)?;
        self.check_kind()?;
        self.check_times()?;
        self.check_summaries()?;
        self.check_indexes()?;
        match bound.missing {
            Some(missing) => Err(Error::invalid(missing)),
            None => Ok(()),
        }
    }
}
