//! The rules as text, both ways: what the manifest keeps. The form is drawn at the head of
//! `table_rules.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use folddb_base::{Error, ErrorKind};

use super::choices::{FoldName, PredicateRule};
use super::data::TableRules;
use super::escape::{escape, unescape};
use crate::head::HeadRule;
use crate::terms::IndexRule;
use crate::time::{Expire, Keep};
use crate::value_placement::ValuePlacement;

const FIRST_LINE: &str = "rules 1";

/// The rules as a store keeps them: the same rules are the same text.
impl fmt::Display for TableRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.stored())
    }
}

impl TableRules {
    fn stored(&self) -> String {
        let mut fields: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
        let mut put = |name: &'static str, value: &str| fields.insert(name, value.as_bytes().to_vec());
        if self.archives_log {
            put("archive_log", "on");
        }
        if let Some(compression) = self.bottom_compression {
            put("bottom_compression", compression.name());
        }
        put("block_bytes", &self.block_bytes.to_string());
        put("compression", self.compression.name());
        put("filter_bits", &self.filter_bits.to_string());
        match &self.fold {
            FoldName::BuiltIn(spec) => {
                put("fold", spec);
            }
            FoldName::Custom { name, version } => {
                put("custom_fold", name);
                put("fold_version", &version.to_string());
            }
        }
        if self.head != HeadRule::None {
            put("head", &self.head.to_string());
        }
        if self.expire != Expire::Never {
            put("expire", &self.expire.to_string());
        }
        if self.keep != Keep::Latest {
            put("keep", &self.keep.to_string());
        }
        if !self.indexes.is_empty() {
            let rules: Vec<String> = self.indexes.iter().map(IndexRule::to_string).collect();
            put("index", &rules.join("\n"));
        }
        if let Some(table) = &self.index_of {
            put("index_of", table);
        }
        put("key", &self.key.name());
        put("kind", self.kind.name());
        put("order", &self.order);
        if self.value_placement != ValuePlacement::Segments {
            put("value_placement", self.value_placement.name());
        }
        if let Some(bytes) = self.separate {
            put("separate", &bytes.to_string());
        }
        if self.summaries {
            put("summaries", "on");
        }
        put("value", self.value.name());
        fields.insert("delete", self.delete.to_bytes());
        fields.insert("short_circuit", self.short_circuit.to_bytes());
        fields.extend(self.unknown.iter().map(|(name, value)| (name.as_str(), value.clone())));

        let mut text = format!("{FIRST_LINE}\n");
        for (name, value) in fields {
            text.push_str(name);
            text.push('=');
            escape(&value, &mut text);
            text.push('\n');
        }
        text
    }

    /// Reads rules as a store keeps them, where text that cannot be read is damaged, or of a newer
    /// version. What is not said has its default.
    ///
    /// # Errors
    /// [`ErrorKind::NewerFormat`] for what only a newer version can mean, [`ErrorKind::Corruption`]
    /// for what is not of this form at all.
    pub(crate) fn from_stored(text: &str) -> Result<TableRules, Error> {
        let mut lines = text.lines();
        let first = lines.next().unwrap_or_default();
        if first != FIRST_LINE {
            return Err(wrong_first_line(first));
        }
        let mut fields = Fields::read(lines)?;
        let mut rules = TableRules::default();
        fields.take("kind", parsed, &mut rules.kind)?;
        fields.take("key", parsed, &mut rules.key)?;
        fields.take("order", |name| Some(name.to_owned()), &mut rules.order)?;
        fields.take("value", parsed, &mut rules.value)?;
        fields.take("block_bytes", parsed, &mut rules.block_bytes)?;
        fields.take("compression", parsed, &mut rules.compression)?;
        fields.take("bottom_compression", |name| parsed(name).map(Some), &mut rules.bottom_compression)?;
        fields.take("filter_bits", parsed, &mut rules.filter_bits)?;
        fields.take("separate", |number| parsed(number).map(Some), &mut rules.separate)?;
        fields.take("place", parsed, &mut rules.value_placement)?; // the word of older versions
        fields.take("value_placement", parsed, &mut rules.value_placement)?;
        fields.take("head", parsed, &mut rules.head)?;
        fields.take("keep", parsed, &mut rules.keep)?;
        fields.take("expire", parsed, &mut rules.expire)?;
        fields.take("log", |word| (word == "forever").then_some(true), &mut rules.archives_log)?; // of older versions
        fields.take("archive_log", |word| (word == "on").then_some(true), &mut rules.archives_log)?;
        fields.take("summaries", |word| (word == "on").then_some(true), &mut rules.summaries)?;
        fields.take("index", parse_indexes, &mut rules.indexes)?;
        fields.take("index_of", |name| Some(Some(name.to_owned())), &mut rules.index_of)?;
        rules.fold = fields.take_fold()?;
        fields.take_predicate("delete", &mut rules.delete)?;
        fields.take_predicate("short_circuit", &mut rules.short_circuit)?;
        rules.unknown = fields.left()?;
        Ok(rules)
    }
}

/// The fields of a text that have not been taken yet.
struct Fields(BTreeMap<String, Vec<u8>>);

impl Fields {
    fn read<'a>(lines: impl Iterator<Item = &'a str>) -> Result<Fields, Error> {
        let mut fields = BTreeMap::new();
        for line in lines {
            let (name, value) = line.split_once('=').ok_or_else(|| malformed(line))?;
            let value = unescape(value).ok_or_else(|| malformed(line))?;
            if name.is_empty() || fields.insert(name.to_owned(), value).is_some() {
                return Err(malformed(line));
            }
        }
        Ok(Fields(fields))
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, Error> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        String::from_utf8(value).map(Some).map_err(|_| malformed(name))
    }

    /// Stores the field of this name in `to`, if there is one.
    fn take<T>(&mut self, name: &str, parse: impl Fn(&str) -> Option<T>, to: &mut T) -> Result<(), Error> {
        if let Some(value) = self.text(name)? {
            *to = parse(&value).ok_or_else(|| newer(&format!("{name}={value}")))?;
        }
        Ok(())
    }

    fn take_predicate(&mut self, name: &str, to: &mut PredicateRule) -> Result<(), Error> {
        if let Some(value) = self.0.remove(name) {
            *to = PredicateRule::from_bytes(&value).ok_or_else(|| newer(name))?;
        }
        Ok(())
    }

    fn take_fold(&mut self) -> Result<FoldName, Error> {
        match (self.text("fold")?, self.text("custom_fold")?) {
            (Some(spec), None) => Ok(FoldName::BuiltIn(spec)),
            (None, Some(name)) => {
                let mut version = 1;
                self.take("fold_version", parsed, &mut version)?;
                Ok(FoldName::Custom { name, version })
            }
            _ => Err(malformed("fold")),
        }
    }

    /// The names that were not used; an error unless all of them may be ignored.
    fn left(self) -> Result<BTreeMap<String, Vec<u8>>, Error> {
        match self.0.keys().find(|name| !name.starts_with('?')) {
            Some(name) => Err(newer(name)),
            None => Ok(self.0),
        }
    }
}

fn parsed<T: FromStr>(text: &str) -> Option<T> {
    text.parse().ok()
}

fn parse_indexes(text: &str) -> Option<Vec<IndexRule>> {
    let rules: Vec<IndexRule> = text.split('\n').map(parsed).collect::<Option<_>>()?;
    let names: BTreeSet<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
    (names.len() == rules.len()).then_some(rules)
}

fn wrong_first_line(first: &str) -> Error {
    let is_newer = first.strip_prefix("rules ").is_some_and(|version| version.parse::<u32>().is_ok());
    if is_newer { newer(first) } else { malformed(first) }
}

fn newer(what: &str) -> Error {
    Error::new(
        ErrorKind::NewerFormat,
        format!("the rules of a table say `{what}`, which this version cannot read"),
    )
}

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::Corruption, format!("the rules of a table are not readable at {what:?}"))
}
