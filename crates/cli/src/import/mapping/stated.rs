//! The command line of an import, read without a file or a store, and the rules that it makes.

use folddb::codec::{ElementType, KeyCodec, ValueCodec};
use folddb::folds::{Columns, FoldSpec, SPECS, Source};
use folddb::table_rules::TableRules;
use folddb::{Datum, ErrorKind, Fold, ParseError};

use jiff::tz::TimeZone;

use crate::args::ImportArgs;
use crate::failure::Failure;
use crate::human;
use crate::import::expr::function::Kind;
use crate::import::expr::{Expr, normal, parse, split};
use crate::rules_words::check_value_type;
use crate::zones::Zone;

use super::computed::{self, Computed, Known};

/// What the command line says about keys and values.
pub(crate) struct Stated {
    pub(super) key_columns: Vec<String>,
    /// Those of them that are columns, whatever is in their names: they are in backquotes.
    named_keys: Vec<String>,
    key_codec: Option<KeyCodec>,
    /// The types of the key are given, and not found out.
    has_key_types: bool,
    /// The fold with its sources, if given, and those that are more than a column.
    pub(super) columns: Option<Columns>,
    /// The same, as it is typed.
    fold_text: Option<String>,
    pub(super) sources: Vec<Vec<String>>,
    /// Only the rows of which this is true.
    pub(super) only: Option<String>,
    pub(super) zone: TimeZone,
    zone_name: Option<String>,
    pub(super) value_column: Option<String>,
    value_codec: Option<ValueCodec>,
    pub(super) value_json: bool,
    /// The columns that are asked for, once the rules of the table are known.
    asked: Vec<String>,
}

impl Stated {
    /// Reads the command line.
    pub(crate) fn parse(args: &ImportArgs, zone: Option<&Zone>) -> Result<Stated, Failure> {
        let zone_name = zone.map(|zone| zone.name.clone());
        let zone = zone.map_or(TimeZone::UTC, |zone| zone.zone.clone());
        let (fold, sources) = args.fold.as_deref().map(split::sources).unzip();
        let sources: Vec<Vec<String>> = sources.unwrap_or_default();
        let parse_fold = |text: &String| {
            text.parse::<Columns>().map_err(|error| {
                let error = mistaken_fold(text).unwrap_or(error);
                let error = error.to_string();
                Failure::Usage(split::without_marks(&format!("in --fold: {}", with_hint(error)), &sources))
            })
        };
        let (key_columns, named_keys) = key_columns(args);
        let columns = fold.as_ref().map(parse_fold).transpose()?;
        columns.iter().try_for_each(|columns| check_sources(columns, &sources, &zone))?;
        let read = |text: &String| parse::parse(text, &zone).map(drop).map_err(Failure::Usage);
        // What is wrong with an expression is said before a file is read.
        let is_computed = |text: &&String| split::is_expression(text) && !named_keys.contains(text);
        key_columns.iter().filter(is_computed).try_for_each(read)?;
        sources.iter().flatten().filter(|text| split::is_expression(text)).try_for_each(read)?;
        args.only.iter().try_for_each(read)?;
        let parse_value = |name: &String| {
            name.parse::<ValueCodec>().map_err(|error| Failure::Usage(format!("in --value-type: {error}")))
        };
        Ok(Stated {
            key_codec: key_codec_of(args, &key_columns, is_computed, &zone)?,
            has_key_types: args.key_types.is_some(),
            key_columns,
            named_keys,
            columns,
            fold_text: args.fold.clone(),
            sources,
            only: args.only.clone(),
            zone,
            zone_name,
            value_column: args.value.clone(),
            value_codec: args.value_type.as_ref().map(parse_value).transpose()?,
            value_json: args.value_json,
            asked: Vec::new(),
        })
    }

    /// Whether a part of the key is an expression, and not the name of a column.
    pub(super) fn is_computed(&self, key: &String) -> bool {
        split::is_expression(key) && !self.named_keys.contains(key)
    }

    /// Whether a column of this name is asked for.
    pub(crate) fn is_asked_for(&self, name: &str) -> bool {
        self.asked.iter().any(|asked| asked == name)
    }

    /// Notes which columns are asked for: those that are named, in expressions too, and by the
    /// table, which names the elements of its keys and the fields of its records.
    pub(crate) fn settle_asked(&mut self, rules: &TableRules) {
        let of_table = rules.fold.spec().parse::<Columns>().ok();
        let columns = self.columns.as_ref().or(of_table.as_ref());
        let mut asked: Vec<String> = rules.names_of_key().map(str::to_owned).collect();
        asked.extend(self.value_column.clone());
        asked.extend(columns.into_iter().flat_map(columns_of_fold));
        asked.extend(self.key_columns.iter().cloned());
        let sources = || self.sources.iter().flatten();
        let is_name = |text: &&String| !parse::is_bare_constant(text);
        asked.extend(sources().filter(is_name).map(|text| text.trim_matches('`').to_owned()));
        let keys = self.key_columns.iter().filter(|key| self.is_computed(key));
        let sources = sources().filter(|text| split::is_expression(text));
        for text in keys.chain(sources).chain(&self.only) {
            asked.extend(parse::parse(text, &self.zone).iter().flat_map(Expr::columns));
        }
        self.asked = asked;
    }

    /// The options that make rows of a file, in one way of writing: those that mean the same are
    /// the same.
    pub(crate) fn how(&self, args: &ImportArgs) -> String {
        let written = |key: &String| match split::is_expression(key) && self.named_keys.contains(key) {
            true => format!("`{key}`"),
            false => normal::source(key),
        };
        let keys: Vec<String> = self.key_columns.iter().map(written).collect();
        let mut how = format!("--key '{}'", keys.join(","));
        let mut add = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                how.push_str(&format!(" {name} '{value}'"));
            }
        };
        let fold = self.columns.as_ref().map(|columns| normal_fold(columns, &self.sources));
        add("--fold", fold.as_deref());
        add("--value", args.value.as_deref());
        add("--where", args.only.as_deref().map(normal::expression).as_deref());
        add("--zone", self.zone_name.as_deref());
        if let Some(sign) = args.escape {
            how.push_str(&format!(" --escape '{}'", char::from(sign)));
        }
        if args.multiline {
            how.push_str(" --multiline");
        }
        if let Some(comment) = args.comment {
            how.push_str(&format!(" --comment '{}'", char::from(comment)));
        }
        if args.value_json {
            how.push_str(" --value-json");
        }
        how
    }

    /// Takes the columns of the key from the names in an existing table, if none are given.
    ///
    /// # Errors
    /// None are given or known; or a given one has the name of another element, which would mix
    /// keys up.
    pub(crate) fn settle_key(&mut self, table: &str, existing: Option<&TableRules>) -> Result<(), Failure> {
        let names: Vec<&str> = existing.into_iter().flat_map(TableRules::names_of_key).collect();
        if self.key_columns.is_empty() && names.is_empty() {
            return Err(Failure::Usage("name the columns that make the key: --key COLUMNS".to_owned()));
        }
        if self.key_columns.is_empty() {
            self.key_columns = names.iter().map(|&name| name.to_owned()).collect();
            // What is no expression was a name in backquotes.
            let is_name = |key: &&String| parse::parse(key, &self.zone).is_err();
            self.named_keys = self.key_columns.iter().filter(is_name).cloned().collect();
        }
        let is_other = |(index, column): (usize, &String)| {
            names.get(index) != Some(&column.as_str()) && names.contains(&column.as_str())
        };
        if self.key_columns.iter().enumerate().any(is_other) {
            let (is, not) = (names.join(","), self.key_columns.join(","));
            let message =
                format!("the keys of table `{table}` are made of {is}, in this order, not of {not}");
            return Err(folddb::Error::new(ErrorKind::RulesMismatch, message)
                .advise("leave --key out, or name the columns in that order")
                .into());
        }
        Ok(())
    }

    /// The rules of the table: its own, which the command line must not contradict, or the given
    /// ones.
    pub(crate) fn rules(&self, table: &str, existing: Option<&TableRules>) -> Result<TableRules, Failure> {
        let Some(existing) = existing else { return Ok(self.new_rules()) };
        let mut asked = existing.clone();
        if let (Some(codec), true) = (&self.key_codec, self.has_key_types) {
            asked = asked.key(codec.clone());
        }
        if let Some(columns) = &self.columns {
            asked = asked.fold(&spec_of(columns));
        }
        if let Some(codec) = self.value_codec {
            let whose = format!("table `{table}` folds by");
            check_value_type("--value-type", codec, &whose, existing.fold.spec())?;
            asked = asked.value(codec);
        }
        if let Some(difference) = existing.diff(&asked) {
            let form = self.form_of_fold(existing).unwrap_or_default();
            let message = format!("table `{table}` has different rules: {difference}{form}");
            return Err(folddb::Error::new(ErrorKind::RulesMismatch, message).into());
        }
        let wanted = existing.key_codec().element_types().map(<[_]>::len);
        let wanted = if *existing.key_codec() == KeyCodec::Tuple {
            self.key_columns.len()
        } else {
            wanted.unwrap_or(1)
        };
        if wanted != self.key_columns.len() {
            let (codec, given) = (existing.key_codec(), self.key_columns.len());
            let message = format!(
                "the keys of table `{table}` are {codec}: name {}, not {given}",
                human::plural(wanted as u64, "column")
            );
            return Err(Failure::Usage(message));
        }
        Ok(existing.clone())
    }

    /// How `--fold` is written for a table that folds otherwise. A text may be in the way that is
    /// meant: all of `, = v` behind `append:` is the separator, unless that is in quotes.
    fn form_of_fold(&self, existing: &TableRules) -> Option<String> {
        let (given, spec) = (self.columns.as_ref()?, existing.fold.spec());
        existing.diff(&existing.clone().fold(&spec_of(given)))?; // it is not the fold that differs
        let form = match spec.parse::<Columns>().ok()? {
            Columns::Plain(..) => {
                let typed = self.fold_text.as_deref().and_then(|text| text.rsplit_once('='));
                let source = typed.map(|(_, source)| source.trim()).or(self.value_column.as_deref());
                format!("{spec} = {}", source.filter(|source| !source.is_empty()).unwrap_or("COLUMN"))
            }
            Columns::Record(..) => spec.trim_start_matches('{').trim_end_matches('}').to_owned(),
        };
        (!form.contains('\'')).then(|| format!("; for this table it is --fold '{form}'"))
    }

    fn new_rules(&self) -> TableRules {
        let text_keys = || match self.key_columns.len() {
            1 => KeyCodec::Utf8,
            count => KeyCodec::TypedTuple(vec![ElementType::Text; count]),
        };
        let rules = TableRules::new(self.key_codec.clone().unwrap_or_else(text_keys));
        let rules = rules.key_names(self.key_columns.iter().map(String::as_str));
        match &self.columns {
            Some(columns) => rules.fold(&spec_of(columns)),
            None if self.value_json => rules.value(ValueCodec::Json),
            None => rules.value(self.value_codec.unwrap_or(ValueCodec::Utf8)),
        }
    }
}

/// Refuses what feeds a fold and can never be right: a constant that it does not take, or another
/// number of sources.
fn check_sources(columns: &Columns, sources: &[Vec<String>], zone: &TimeZone) -> Result<(), Failure> {
    let check = |fold: &dyn Fold, source: Option<&Source>| {
        let wrong = |wrong: String| Err(Failure::Usage(format!("in --fold: {wrong}")));
        let several = match source {
            Some(Source::Literal(text)) => {
                let read = fold.read(&Datum::Text(text.clone()), &mut Vec::new());
                let column = if text.parse::<f64>().is_ok() {
                    format!(" (a column of this name: `{text}` in backquotes)")
                } else {
                    String::new()
                };
                return read.or_else(|cause| {
                    let spec = fold.spec();
                    wrong(format!("the constant `{text}` can never feed `{spec}`: {cause}{column}"))
                });
            }
            Some(Source::Column(name)) => split::marked(name, sources),
            None => None,
        };
        let (Some(several), spec) = (several, fold.spec()) else { return Ok(()) };
        match computed::pair_of(&spec) {
            Some((pair, example)) if several.len() > 2 => wrong(format!(
                "`{spec}` takes two sources, {pair}, as in `{example}`, and {} are named: {}",
                several.len(),
                several.join(", ")
            )),
            _ if matches!(spec.as_str(), "replace" | "first") => Ok(()), // any text is a value
            _ => {
                let takes = computed::takes_of(&spec, zone);
                Computed::unbound(several, zone)?.check_fits(fold, &takes, Known::Constant)
            }
        }
    };
    match columns {
        Columns::Plain(fold, source) => check(&**fold, source.as_ref()),
        Columns::Record(record, sources) => sources.iter().enumerate().try_for_each(|(index, source)| {
            record.field_fold(index).map_or(Ok(()), |fold| check(fold, source.as_ref()))
        }),
    }
}

/// The columns that feed a fold: those that are named, and else those with the names of its fields.
fn columns_of_fold(columns: &Columns) -> Vec<String> {
    let of_source = |source: &Source| match source {
        Source::Column(name) => Some(name.clone()),
        Source::Literal(_) => None,
    };
    match columns {
        Columns::Plain(_, source) => source.iter().filter_map(of_source).collect(),
        Columns::Record(record, sources) => {
            let of_field = |(index, name): (usize, &str)| match sources.get(index) {
                Some(Some(source)) => of_source(source),
                _ => Some(name.to_owned()),
            };
            record.names().enumerate().filter_map(of_field).collect()
        }
    }
}

/// A fold with its sources, in one way of writing. A field that the column of its name feeds names
/// none.
fn normal_fold(columns: &Columns, sources: &[Vec<String>]) -> String {
    let fed = |spec: String, source: Option<&Source>| match source {
        None => spec,
        Some(source) => format!("{} = {}", self_delimiting(spec), normal_source(source, sources)),
    };
    let (record, of_fields) = match columns {
        Columns::Plain(fold, source) => return fed(fold.spec(), source.as_ref()),
        Columns::Record(record, of_fields) => (record, of_fields),
    };
    let field = |(index, name): (usize, &str)| {
        let spec = record.field_fold(index).map(Fold::spec).unwrap_or_default();
        let source = of_fields.get(index).and_then(Option::as_ref);
        let source = source.filter(|source| **source != Source::Column(name.to_owned()));
        let is_bare = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.');
        let name = if name.chars().all(is_bare) { name.to_owned() } else { format!("`{name}`") };
        format!("{name}: {}", fed(spec, source))
    };
    record.names().enumerate().map(field).collect::<Vec<_>>().join(", ")
}

fn normal_source(source: &Source, sources: &[Vec<String>]) -> String {
    let several = |several: &Vec<String>| several.iter().map(|source| normal::source(source)).collect();
    match source {
        Source::Column(name) => match split::marked(name, sources).map(several) {
            Some::<Vec<String>>(several) => several.join(", "),
            None => source.to_string(),
        },
        Source::Literal(number) if number.parse::<f64>().is_ok() => number.clone(),
        Source::Literal(_) => source.to_string(),
    }
}

/// A spec that a source may follow: without quotes the separator of `append` would reach to the
/// end.
fn self_delimiting(spec: String) -> String {
    match spec.strip_prefix("append:") {
        Some(separator) if !separator.starts_with('"') => format!("append:\"{separator}\""),
        _ => spec,
    }
}

/// What makes the key: columns, and expressions over them; and which of them are in backquotes.
fn key_columns(args: &ImportArgs) -> (Vec<String>, Vec<String>) {
    let (mut all, mut named) = (Vec::new(), Vec::new());
    let keys = args.key.iter().flat_map(|keys| split::at_commas(keys));
    for key in keys.map(str::trim).filter(|key| !key.is_empty()) {
        let inner = key.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
        let inner = inner.filter(|inner| !inner.contains('`'));
        named.extend(inner.map(str::to_owned));
        all.push(inner.unwrap_or(key).to_owned());
    }
    (all, named)
}

/// The codec of keys with given types, or with expressions that give whole numbers or times.
fn key_codec_of(
    args: &ImportArgs,
    columns: &[String],
    is_computed: impl Fn(&&String) -> bool,
    zone: &TimeZone,
) -> Result<Option<KeyCodec>, Failure> {
    if let Some(types) = &args.key_types {
        return key_codec(columns, types).map(Some);
    }
    let kind = |text: &String| match is_computed(&text) {
        true => parse::parse(text, zone).map_or(Kind::Other, |expr| expr.kind()),
        false => Kind::Other,
    };
    let kinds: Vec<Kind> = columns.iter().map(kind).collect();
    if kinds.iter().all(|kind| *kind == Kind::Other) {
        return Ok(None);
    }
    let types: Vec<String> = kinds.iter().map(|kind| type_of(*kind, columns.len()).to_owned()).collect();
    key_codec(columns, &types).map(Some)
}

fn type_of(kind: Kind, count: usize) -> &'static str {
    match kind {
        Kind::Bool => "bool",
        Kind::Whole if count == 1 => "i64",
        Kind::Whole => "int",
        Kind::Time => "time",
        Kind::Other => "text",
    }
}

/// A mistake in `sum:u46 = n`, which could also be a field `sum`, counts as one in a fold if the
/// word before the colon is the name of a fold.
fn mistaken_fold(text: &str) -> Option<ParseError> {
    let spec = text.split('=').next().unwrap_or(text).trim_end();
    let stem = |spec: &str| spec.split(':').next().unwrap_or_default().trim().to_owned();
    let is_fold = SPECS.iter().any(|known| stem(known) == stem(spec));
    if !is_fold || text.contains(',') {
        return None;
    }
    Some(spec.parse::<FoldSpec>().err()?.within(text, 0))
}

/// The error of a fold that does not exist, with what does the same.
fn with_hint(error: String) -> String {
    const NO_FOLD: &str = "there is no fold `";
    let rest = error.split_once(NO_FOLD).map(|(_, rest)| rest);
    let Some((name, _)) = rest.and_then(|rest| rest.split_once('`')) else { return error };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let hint = match name {
        "median" | "percentile" | "percentiles" | "quantile" => "`quantiles` has p50, p90 and p99",
        name if name.strip_prefix('p').is_some_and(is_number) => "`quantiles` has p50, p90 and p99",
        "avg" | "average" | "mean" | "stddev" | "variance" => "`stats:f64` has mean and variance",
        "distinct" | "count_distinct" | "uniq" | "unique" => "`hll:12` estimates how many there are",
        _ => return error,
    };
    let found = format!("{NO_FOLD}{name}`");
    error.replacen(&found, &format!("{found} ({hint})"), 1)
}

/// The codec of keys of these columns.
fn key_codec(columns: &[String], types: &[String]) -> Result<KeyCodec, Failure> {
    if columns.len() != types.len() {
        let (columns, types) = (columns.len() as u64, types.len() as u64);
        let message =
            format!("{} and {}", human::plural(columns, "key column"), human::plural(types, "key type"));
        return Err(Failure::Usage(format!("{message}: name a type for each column")));
    }
    let tuple = format!("tuple({})", types.join(","));
    let name = match types {
        [one] if one == "text" => "utf8",
        [one] if one.parse::<KeyCodec>().is_ok() => one,
        _ => &tuple,
    };
    name.parse::<KeyCodec>().map_err(|error| Failure::Usage(format!("in --key-types: {error}")))
}

fn spec_of(columns: &Columns) -> String {
    match columns {
        Columns::Plain(fold, _) => fold.spec(),
        Columns::Record(record, _) => record.fold().spec(),
    }
}
