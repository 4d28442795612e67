//! Which columns the rows of a table have: the elements of the key, then the fields of the value.
//!
//! Columns are known before the first row, from the rules: `{flights: sum:u64, delay: stats:f64}`
//! has `flights`, `delay.count`, `delay.sum`, ... A value without named fields is one column,
//! `value`.

use folddb::DynamicRules;
use folddb::codec::{ElementType, ValueCodec};
use folddb::folds::{FoldSpec, Record};
use folddb::{Datum, Fold, datum};

use crate::column_names;
use crate::failure::Failure;
use crate::human;
use crate::keys;
use crate::render::quantiles::{self, Quantiles};

/// The fields of heads, as columns.
pub(crate) const HEAD_FIELDS: [&str; 7] =
    ["size_bytes", "hash", "version", "separated", "written", "deadline", "head"];

/// The number of the column of terms.
const TERM: usize = usize::MAX;

/// What a full counter of 64 bits shows.
const FULL: i128 = u64::MAX as i128;

/// A column of the value: its name, and the fields that lead to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// The names of the fields, outermost first; none for the value itself.
    pub(crate) fields: Vec<String>,
    /// The value is a counter that stays at 2^64-1 once it gets there.
    saturates: bool,
    /// It is one of the two parts that make a value of `lww`.
    is_of_pair: bool,
    /// It is a part of quantiles.
    is_of_quantiles: bool,
}

impl Path {
    fn of(fields: Vec<String>) -> Path {
        Path { fields, saturates: false, is_of_pair: false, is_of_quantiles: false }
    }

    fn find_mut<'a>(&self, value: &'a mut Datum) -> Option<&'a mut Datum> {
        self.fields.iter().try_fold(value, |value, name| match value {
            Datum::Map(fields) => fields.iter_mut().find(|(of, _)| of == name).map(|(_, value)| value),
            _ => None,
        })
    }

    /// Marks a full counter, for people.
    fn mark_full(&self, value: &mut Datum) {
        if let (true, Some(number @ Datum::Int(FULL))) = (self.saturates, self.find_mut(value)) {
            *number = Datum::Text(format!("{FULL} or more"));
        }
    }

    /// The name of the column.
    pub(crate) fn name(&self) -> String {
        if self.fields.is_empty() { "value".to_owned() } else { self.fields.join(".") }
    }

    /// The value at the end of the path; null where a field is absent.
    pub(crate) fn find<'a>(&self, value: &'a Datum) -> &'a Datum {
        self.fields.iter().fold(value, |value, name| value.field(name).unwrap_or(&Datum::Null))
    }
}

/// The fields of a value that folds by `spec`, as columns.
pub(crate) fn value_paths(spec: &str) -> Vec<Path> {
    let mut paths = Vec::new();
    if let Ok(record) = spec.parse::<Record>() {
        record_paths(&record, &mut Vec::new(), &mut paths);
    } else if let Ok(fold) = spec.parse::<FoldSpec>() {
        fold_paths(&**fold.as_fold(), &mut Vec::new(), &mut paths);
    }
    if paths.is_empty() {
        paths.push(Path::of(Vec::new()));
    }
    paths
}

/// A value that folds by `spec`, as people read it: full counters are marked.
pub(crate) fn for_people(paths: &[Path], mut value: Datum) -> Datum {
    paths.iter().for_each(|path| path.mark_full(&mut value));
    value
}

fn record_paths(record: &Record, at: &mut Vec<String>, paths: &mut Vec<Path>) {
    let names: Vec<String> = record.names().map(str::to_owned).collect();
    for (index, name) in names.into_iter().enumerate() {
        at.push(name);
        if let Some(fold) = record.field_fold(index) {
            fold_paths(fold, at, paths);
        }
        at.pop();
    }
}

fn fold_paths(fold: &dyn Fold, at: &mut Vec<String>, paths: &mut Vec<Path>) {
    let spec = fold.spec();
    if let Ok(record) = spec.parse::<Record>() {
        return record_paths(&record, at, paths);
    }
    let parts = parts_of(fold, &spec);
    if parts.is_empty() {
        return paths.push(Path { saturates: spec == "sum:u64", ..Path::of(at.clone()) });
    }
    for part in parts {
        let fields = at.iter().cloned().chain([part]).collect();
        let (is_of_pair, is_of_quantiles) = (spec.starts_with("lww"), quantiles::is_of(&spec));
        paths.push(Path { is_of_pair, is_of_quantiles, ..Path::of(fields) });
    }
}

/// The named parts of the folds that always have the same ones, as the fold itself shows them.
fn parts_of(fold: &dyn Fold, spec: &str) -> Vec<String> {
    let sample = match spec.split(':').next() {
        Some("stats" | "quantiles") => "0",
        Some("lww") => "0 x",
        _ => return Vec::new(),
    };
    let mut bytes = Vec::new();
    let read = fold.read(&Datum::Text(sample.to_owned()), &mut bytes);
    match read.and_then(|()| fold.show(&bytes)) {
        Ok(Datum::Map(parts)) => parts.into_iter().map(|(name, _)| name).collect(),
        _ => Vec::new(),
    }
}

/// What shows a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// A codec: the leading 0x distinguishes bytes from text.
    ByCodec,
    /// A fold.
    ByFold,
    /// A codec, as JSON; all of it stays JSON.
    Json,
}

/// A row on its way out.
pub(crate) struct Row {
    /// The term that it was found by; null where it was not.
    pub(crate) term: Datum,
    pub(crate) key: Datum,
    pub(crate) value: Datum,
}

/// The name of the column of terms beside these, one of which may have its usual name.
fn term_name(names: &[String]) -> &'static str {
    if names.iter().any(|name| name == "term") { "index.term" } else { "term" }
}

/// The columns of the rows of a table, and how to fill them.
pub(crate) struct Columns {
    /// The first column is the term that a row was found by.
    has_term: bool,
    keys: Vec<String>,
    /// Keys are lists, of which each element is a column.
    splits_keys: bool,
    paths: Vec<Path>,
    picked: Option<Vec<usize>>,
    /// The elements of the key that rows are folded over: they have no values.
    folded: Vec<usize>,
    hex: bool,
    values: Shown,
    /// For each column of the key, whether CSV cannot distinguish an absent element from an empty
    /// one.
    unclear_nulls: Vec<bool>,
}

impl Columns {
    /// All columns of a table. An untyped tuple is one column.
    pub(crate) fn of(rules: &DynamicRules, keys_only: bool, hex: bool) -> Columns {
        let codec = rules.as_table_rules().key_codec();
        let key_count = if hex { 1 } else { codec.element_types().map_or(1, <[_]>::len) };
        let named: Vec<String> = rules.as_table_rules().names_of_key().map(str::to_owned).collect();
        let keys = match key_count {
            count if count == named.len() => named,
            1 => vec!["key".to_owned()],
            count => (1..=count).map(|number| format!("key.{number}")).collect(),
        };
        let folds = rules.fold().is_some();
        let paths = match (keys_only, folds) {
            (true, _) => Vec::new(),
            (false, true) => value_paths(rules.as_table_rules().fold.spec()),
            (false, false) => vec![Path::of(Vec::new())],
        };
        let values = match (rules.as_table_rules().fold.spec(), rules.as_table_rules().value_codec()) {
            ("replace" | "first", ValueCodec::Json) => Shown::Json,
            ("replace" | "first", _) => Shown::ByCodec,
            _ => Shown::ByFold,
        };
        let unclear = |element: &ElementType| match element {
            ElementType::Optional(inner) => matches!(**inner, ElementType::Text | ElementType::Bytes),
            _ => false,
        };
        let unclear_nulls = codec.element_types().unwrap_or_default().iter().map(unclear).collect();
        Columns {
            has_term: false,
            keys,
            splits_keys: codec.element_types().is_some(),
            paths,
            picked: None,
            folded: Vec::new(),
            hex,
            values,
            unclear_nulls,
        }
    }

    /// The same, with one column for each value that an import takes: `lww` gets one, not one per
    /// part.
    pub(crate) fn for_import(mut self) -> Columns {
        let mut paths: Vec<Path> = Vec::new();
        for mut path in std::mem::take(&mut self.paths) {
            if path.is_of_pair {
                path.fields.pop();
            }
            if paths.last() != Some(&path) {
                paths.push(path);
            }
        }
        Columns { paths, ..self }
    }

    /// The column in which CSV would not say that an element of the key is absent, if there is one.
    pub(crate) fn unclear_null(&self, key: &Datum) -> Option<&str> {
        let Datum::List(items) = key else { return None };
        let is_unclear = |(item, unclear): (&Datum, &bool)| *unclear && *item == Datum::Null;
        let index = items.iter().zip(&self.unclear_nulls).position(is_unclear)?;
        self.keys.get(index).map(String::as_str)
    }

    /// The columns of keys and heads.
    pub(crate) fn of_heads(rules: &DynamicRules, hex: bool) -> Columns {
        let paths = HEAD_FIELDS.iter().map(|name| Path::of(vec![(*name).to_owned()])).collect();
        Columns { paths, values: Shown::ByCodec, ..Columns::of(rules, true, hex) }
    }

    /// The same with columns for these quantiles, before the largest number of each sketch.
    pub(crate) fn with_quantiles(mut self, quantiles: &Quantiles) -> Columns {
        let mut paths = Vec::new();
        for path in self.paths {
            if path.is_of_quantiles && path.fields.last().is_some_and(|name| name == "max") {
                let sketch = &path.fields[..path.fields.len() - 1];
                let column = |name: &str| Path::of(sketch.iter().cloned().chain([name.to_owned()]).collect());
                paths.extend(quantiles.names().map(column));
            }
            paths.push(path);
        }
        self.paths = paths;
        self
    }

    /// The same after a column of terms, if one is wanted.
    pub(crate) fn behind_terms(self, has_term: bool) -> Columns {
        Columns { has_term, ..self }
    }

    /// Only the columns with these names, in this order, several in a text between commas, each
    /// once. The name of a field is all of its parts.
    pub(crate) fn pick(mut self, names: &[String]) -> Result<Columns, Failure> {
        if names.is_empty() {
            return Ok(self);
        }
        let all = self.all_names();
        let mut picked: Vec<usize> = Vec::new();
        for name in &column_names::split(names) {
            let parts = |(_, column): &(usize, &String)| {
                column.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
            };
            let parts: Vec<usize> = all.iter().enumerate().filter(parts).map(|(index, _)| index).collect();
            let named = match parts.is_empty() || all.contains(name) {
                true => vec![self.find(name)?],
                false => parts, // of a field
            };
            named.iter().try_for_each(|&index| self.check_kept(index))?;
            named.into_iter().for_each(|index| {
                if !picked.contains(&index) {
                    picked.push(index);
                }
            });
        }
        self.picked = Some(picked);
        Ok(self)
    }

    /// The number of the column of this name.
    pub(crate) fn find(&self, name: &str) -> Result<usize, Failure> {
        let all = self.all_names();
        if self.has_term && name == term_name(&all) {
            return Ok(TERM);
        }
        let found = all.iter().position(|known| known == name).ok_or_else(|| {
            let known: Vec<&str> = all.iter().map(String::as_str).collect();
            let hint = human::suggestion(name, &known);
            Failure::Usage(format!("the table has no column `{name}` ({hint})"))
        })?;
        self.check_kept(found).map(|()| found)
    }

    /// Refuses a column that rows are folded over.
    fn check_kept(&self, index: usize) -> Result<(), Failure> {
        match self.keys.get(index).filter(|_| self.folded.contains(&index)) {
            None => Ok(()),
            Some(name) => {
                Err(Failure::Usage(format!("the column `{name}` is folded over: name it in --by, too")))
            }
        }
    }

    /// Only these elements of the key, and the values.
    pub(crate) fn by(mut self, elements: &[usize]) -> Columns {
        let values = self.keys.len()..self.keys.len() + self.paths.len();
        self.folded = (0..self.keys.len()).filter(|index| !elements.contains(index)).collect();
        self.picked = Some(elements.iter().copied().chain(values).collect());
        self
    }

    /// The elements of a key that are columns; none where it is one.
    pub(crate) fn elements_of(&self, key: Datum) -> Result<Vec<Datum>, Datum> {
        match key {
            Datum::List(items) if self.splits_keys && items.len() == self.keys.len() => Ok(items),
            key => Err(key),
        }
    }

    /// The elements of a key, without those that are folded over.
    pub(crate) fn elements_shown<'a>(&self, key: &'a Datum) -> Vec<&'a Datum> {
        match key {
            Datum::List(items) => {
                let kept = items.iter().enumerate().filter(|(index, _)| !self.folded.contains(index));
                kept.map(|(_, item)| item).collect()
            }
            key => vec![key],
        }
    }

    /// The columns of the values.
    pub(crate) fn paths(self) -> Vec<Path> {
        self.paths
    }

    /// The names of the elements of the key.
    pub(crate) fn keys(&self) -> &[String] {
        &self.keys
    }

    /// A field of a row, by the number of its column.
    pub(crate) fn field_of<'a>(&self, column: usize, row: &'a Row) -> &'a Datum {
        if column == TERM { &row.term } else { self.field(column, &row.key, &row.value) }
    }

    fn all_names(&self) -> Vec<String> {
        self.keys.iter().cloned().chain(self.paths.iter().map(Path::name)).collect()
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> Vec<String> {
        let all = self.all_names();
        match &self.picked {
            None => {
                let term = self.has_term.then(|| term_name(&all).to_owned());
                term.into_iter().chain(all).collect()
            }
            Some(picked) => {
                let name = |&index: &usize| all.get(index).map_or(term_name(&all), String::as_str).to_owned();
                picked.iter().map(name).collect()
            }
        }
    }

    /// For each column, what shows it.
    pub(crate) fn kinds(&self) -> Vec<Shown> {
        let is_key = |index: usize| index < self.keys.len() || index == TERM;
        let of = |index: usize| if is_key(index) { Shown::ByCodec } else { self.values };
        match &self.picked {
            Some(picked) => picked.iter().map(|&index| of(index)).collect(),
            None => {
                let term = self.has_term.then_some(Shown::ByCodec);
                term.into_iter().chain((0..self.keys.len() + self.paths.len()).map(of)).collect()
            }
        }
    }

    /// True when rows have the term that they were found by.
    pub(crate) fn has_term(&self) -> bool {
        self.has_term
    }

    /// True when only some columns are wanted.
    pub(crate) fn are_picked(&self) -> bool {
        self.picked.is_some()
    }

    /// True when values are shown.
    pub(crate) fn has_values(&self) -> bool {
        !self.paths.is_empty()
    }

    /// A value as people read it.
    pub(crate) fn for_people(&self, value: Datum) -> Datum {
        for_people(&self.paths, value)
    }

    /// A value for a file that may be imported: there an empty text is a missing one, so that one
    /// that a fold shows is written as bytes.
    pub(crate) fn for_files(&self, mut value: Datum) -> Datum {
        if self.values == Shown::ByFold {
            for path in &self.paths {
                if let Some(field) = path.find_mut(&mut value)
                    && *field == Datum::Text(String::new())
                {
                    *field = datum::wrapped(b"");
                }
            }
        }
        value
    }

    /// The key as a value of its own.
    pub(crate) fn key(&self, rules: &DynamicRules, key: &[u8]) -> Datum {
        if self.hex {
            return Datum::Text(datum::hex(key));
        }
        keys::shown(rules, key)
    }

    /// The fields of a row, in the order of the columns.
    pub(crate) fn fields<'a>(&self, row: &'a Row) -> Vec<&'a Datum> {
        let field = |index| self.field(index, &row.key, &row.value);
        match &self.picked {
            None => {
                let term = self.has_term.then_some(&row.term);
                term.into_iter().chain((0..self.keys.len() + self.paths.len()).map(field)).collect()
            }
            Some(picked) => picked.iter().map(|&index| self.field_of(index, row)).collect(),
        }
    }

    fn field<'a>(&self, index: usize, key: &'a Datum, value: &'a Datum) -> &'a Datum {
        if let Some(path) = index.checked_sub(self.keys.len()) {
            return self.paths[path].find(value);
        }
        match key {
            Datum::List(items) if self.splits_keys && items.len() == self.keys.len() => &items[index],
            // A key that is not of the table's type is shown whole, in the first column.
            one if index == 0 => one,
            _ => &Datum::Null,
        }
    }
}
