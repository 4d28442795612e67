//! Which columns of a file make the key of a record, and which feed its value.
//!
//! 1. [`Stated`] is the command line, read without a file or a store.
//! 2. [`Stated::rules`] makes the rules of a new table from it, or checks it against those of an
//!    existing table.
//! 3. [`Mapping::bind`] finds the columns in the file.
//! 4. [`Mapping::fill`] makes the key and value of a row. It allocates nothing for rows like the
//!    previous one, unless they are computed by expressions.

use folddb::DynamicRules;
use folddb::ParseError;
use folddb::codec::{ElementType, KeyCodec, ValueCodec};
use folddb::folds::{Columns, FoldSpec, Record, SPECS, Source};
use folddb::limits::KEY_BYTES_MAX;
use folddb::table_rules::TableRules;
use folddb::{Datum, ErrorKind, datum};

use jiff::tz::TimeZone;

use crate::args::ImportArgs;
use crate::failure::Failure;
use crate::human;
use crate::import::expr::function::Kind;
use crate::import::expr::split::{self, MARK};
use crate::import::expr::value::Value;
use crate::import::expr::{Expr, parse};
use crate::import::rows::{BadRow, Rows, Slot};
use crate::import::times;
use crate::keys;
use crate::rules_words::check_value_type;

/// What the command line says about keys and values.
pub(crate) struct Stated {
    key_columns: Vec<String>,
    key_codec: Option<KeyCodec>,
    /// The fold with its sources, if given, and those that are more than a column.
    columns: Option<Columns>,
    sources: Vec<Vec<String>>,
    /// Only the rows of which this is true.
    only: Option<String>,
    zone: TimeZone,
    value_column: Option<String>,
    value_codec: Option<ValueCodec>,
    value_json: bool,
}

impl Stated {
    /// Reads the command line.
    pub(crate) fn parse(args: &ImportArgs) -> Result<Stated, Failure> {
        let parse_fold = |text: &String| {
            text.parse::<Columns>().map_err(|error| {
                let error = mistaken_fold(text).unwrap_or(error);
                Failure::Usage(format!("in --fold: {error}").replace(MARK, "#"))
            })
        };
        let zone = args.zone.as_deref().map_or(Ok(TimeZone::UTC), times::zone);
        let zone = zone.map_err(|wrong| Failure::Usage(format!("in --zone: {wrong}")))?;
        let (fold, sources) = args.fold.as_deref().map(split::sources).unzip();
        let sources: Vec<Vec<String>> = sources.unwrap_or_default();
        let key_columns = key_columns(args);
        let read = |text: &String| parse::parse(text, &zone).map(drop).map_err(Failure::Usage);
        // What is wrong with an expression is said before a file is read.
        key_columns.iter().filter(|text| split::is_expression(text)).try_for_each(read)?;
        sources.iter().flatten().filter(|text| split::is_expression(text)).try_for_each(read)?;
        args.only.iter().try_for_each(read)?;
        let parse_value = |name: &String| {
            name.parse::<ValueCodec>().map_err(|error| Failure::Usage(format!("in --value-type: {error}")))
        };
        Ok(Stated {
            key_codec: key_codec_of(args, &key_columns, &zone)?,
            key_columns,
            columns: fold.as_ref().map(parse_fold).transpose()?,
            sources,
            only: args.only.clone(),
            zone,
            value_column: args.value.clone(),
            value_codec: args.value_type.as_ref().map(parse_value).transpose()?,
            value_json: args.value_json,
        })
    }

    /// The options that make rows of a file, as they are typed.
    pub(crate) fn how(&self, args: &ImportArgs) -> String {
        let mut how = format!("--key '{}'", self.key_columns.join(","));
        let mut add = |name: &str, value: Option<&str>| {
            if let Some(value) = value {
                how.push_str(&format!(" {name} '{value}'"));
            }
        };
        add("--fold", args.fold.as_deref());
        add("--value", args.value.as_deref());
        add("--where", args.only.as_deref());
        add("--zone", args.zone.as_deref());
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
        if let Some(codec) = &self.key_codec {
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
            let message = format!("table `{table}` has different rules: {difference}");
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

/// What makes the key: columns, and expressions over them.
fn key_columns(args: &ImportArgs) -> Vec<String> {
    let keys = args.key.iter().flat_map(|keys| split::at_commas(keys));
    let bare = |key: &str| {
        let inner = key.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
        inner.filter(|inner| !inner.contains('`')).unwrap_or(key).to_owned()
    };
    keys.map(str::trim).filter(|key| !key.is_empty()).map(bare).collect()
}

/// The codec of keys with given types, or with expressions that give whole numbers.
fn key_codec_of(args: &ImportArgs, columns: &[String], zone: &TimeZone) -> Result<Option<KeyCodec>, Failure> {
    if let Some(types) = &args.key_types {
        return key_codec(columns, types).map(Some);
    }
    let kind = |text: &String| match split::is_expression(text) {
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

/// Where a piece of a value comes from.
enum Feed {
    Column(Slot),
    Literal,
    Computed(Box<Computed>),
}

/// What is computed for each row.
struct Computed {
    expr: Expr,
    text: String,
}

impl Computed {
    /// Reads an expression, and finds its columns.
    fn bind(text: &str, zone: &TimeZone, rows: &mut Rows) -> Result<Computed, Failure> {
        let mut expr = parse::parse(text, zone).map_err(Failure::Usage)?;
        expr.bind(&mut |name| rows.slot(name))?;
        Ok(Computed { expr, text: text.to_owned() })
    }

    fn value<'a>(&'a self, rows: &'a Rows) -> Result<Value<'a>, BadRow> {
        self.expr.value(rows).map_err(|bad| match bad.column {
            Some(_) => bad,
            None => BadRow { column: Some(self.text.clone()), ..bad },
        })
    }

    /// Sets the datum to what the row gives; false if that is nothing.
    fn put(&self, datum: &mut Datum, rows: &Rows, takes: &Takes) -> Result<bool, BadRow> {
        match self.value(rows)? {
            Value::Null => Ok(false),
            Value::List(items) if items.contains(&Value::Null) => Ok(false),
            Value::List(items) => {
                let item = |item: &Value<'_>| Datum::Text(item.text().unwrap_or_default().into_owned());
                *datum = Datum::List(items.iter().map(item).collect());
                Ok(true)
            }
            Value::Bool(truth) if takes.numbers() => {
                put_text(datum, if truth { "1" } else { "0" });
                Ok(true)
            }
            value => {
                let text = value.text().unwrap_or_default();
                put_text(datum, &text);
                Ok(!text.is_empty())
            }
        }
    }
}

/// What makes an element of the key.
enum KeyPart {
    Column(Slot),
    Computed(Box<Computed>),
}

/// The found columns of a file: makes keys and values of its rows.
pub(crate) struct Mapping {
    key_parts: Vec<KeyPart>,
    /// The columns among them.
    key_slots: Vec<Slot>,
    /// Only the rows of which this is true.
    only: Option<Computed>,
    nullable: Vec<Nullable>,
    /// Whether each element of the key may be a list.
    is_tuple: Vec<bool>,
    key: Datum,
    value: ValueMap,
}

/// What takes the value of a column.
enum Takes {
    /// The fold of this spec.
    Fold(String),
    /// A codec, as text or bytes.
    Codec,
    /// A codec, as JSON: from NDJSON any value, from CSV its text.
    Json,
}

impl Takes {
    /// Whether true and false are 1 and 0 here.
    fn numbers(&self) -> bool {
        let stem = |spec: &str| spec.split(':').next().unwrap_or_default().to_owned();
        matches!(self, Takes::Fold(spec) if ["sum", "min", "max", "stats", "quantiles"].contains(&&*stem(spec)))
    }
}

enum ValueMap {
    /// One column or constant is the value. An empty field of CSV contributes nothing to a fold,
    /// but is a value if values replace.
    Plain { feed: Feed, takes: Takes, datum: Datum },
    /// Columns and constants are the fields; empty ones are absent.
    Record { record: Box<Record>, takes: Vec<Takes>, feeds: Vec<Feed>, datum: Datum },
    /// All columns outside the key.
    Json,
}

impl Mapping {
    /// Finds the columns.
    pub(crate) fn bind(stated: &Stated, rules: &TableRules, rows: &mut Rows) -> Result<Mapping, Failure> {
        let key_parts: Vec<KeyPart> =
            stated.key_columns.iter().map(|name| key_part(name, stated, rows)).collect::<Result<_, _>>()?;
        let only = stated.only.as_ref().map(|text| Computed::bind(text, &stated.zone, rows)).transpose()?;
        let key_slots: Vec<Slot> = key_parts.iter().filter_map(KeyPart::slot).collect();
        let types = rules.key_codec().element_types().unwrap_or_default();
        let nullable = (0..key_parts.len()).map(|index| Nullable::of(types.get(index))).collect();
        let texts = vec![Datum::Text(String::new()); key_parts.len()];
        let key = if rules.key_codec().is_tuple() { Datum::List(texts) } else { Datum::Text(String::new()) };
        let is_tuple = (0..key_parts.len()).map(|index| types.get(index).is_none_or(takes_lists));
        let is_tuple = is_tuple.map(|takes_lists| takes_lists && rules.key_codec().is_tuple()).collect();
        let value = ValueMap::bind(stated, rules, rows)?;
        Ok(Mapping { key_parts, key_slots, only, nullable, is_tuple, key, value })
    }

    /// Whether the present row is asked for.
    pub(crate) fn wants(&self, rows: &Rows) -> Result<bool, BadRow> {
        let Some(only) = &self.only else { return Ok(true) };
        only.value(rows)?
            .truth()
            .map(|truth| truth == Some(true))
            .map_err(|reason| BadRow { column: Some(only.text.clone()), reason })
    }

    /// Makes the key and value of the present row. False if the row contributes nothing.
    pub(crate) fn fill(
        &mut self,
        rows: &Rows,
        rules: &DynamicRules,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<bool, BadRow> {
        key.clear();
        value.clear();
        self.fill_key(rows, rules, key)?;
        if !self.value.fill(rows, rules, &self.key_slots, value)? {
            return Ok(false);
        }
        Ok(true)
    }

    fn fill_key(&mut self, rows: &Rows, rules: &DynamicRules, key: &mut Vec<u8>) -> Result<(), BadRow> {
        for index in 0..self.key_parts.len() {
            self.fill_part(index, rows)?;
        }
        rules.as_table_rules().key_codec().encode(&self.key, key).map_err(|cause| {
            match &self.key_parts[..] {
                [part] => BadRow::column(part.name(rows), cause.message()),
                _ => BadRow { column: None, reason: format!("key: {cause}") },
            }
        })?;
        if key.len() > KEY_BYTES_MAX {
            let len = key.len();
            return Err(BadRow::whole(format!("a key of {len} bytes is too long: at most {KEY_BYTES_MAX}")));
        }
        Ok(())
    }

    /// Sets an element of the key.
    fn fill_part(&mut self, index: usize, rows: &Rows) -> Result<(), BadRow> {
        let datum = match &mut self.key {
            Datum::List(items) => &mut items[index],
            one => one,
        };
        let (part, nullable) = (&self.key_parts[index], &self.nullable[index]);
        let missing = || BadRow::column(part.name(rows), "it is missing, and is part of the key");
        let slot = match part {
            KeyPart::Column(slot) => *slot,
            KeyPart::Computed(computed) => {
                match (computed.value(rows)?.text(), nullable) {
                    (None, Nullable::No) => return Err(missing()),
                    (None, _) => *datum = Datum::Null,
                    (Some(text), _) => put_text(datum, &text),
                }
                return Ok(());
            }
        };
        match (rows.field(slot)?, nullable) {
            (None, Nullable::No) => return Err(missing()),
            (None, _) => *datum = Datum::Null,
            (Some(_), _)
                if rows.nested(slot).is_some_and(|nested| !self.is_tuple[index] || is_wrapped(nested)) =>
            {
                *datum = wrapped_key(rows, slot)?;
            }
            (Some(text), Nullable::EvenEmpty) if text.is_empty() => *datum = Datum::Null,
            (Some(text), _) => put_text(datum, &text),
        }
        Ok(())
    }
}

impl KeyPart {
    fn slot(&self) -> Option<Slot> {
        match self {
            KeyPart::Column(slot) => Some(*slot),
            KeyPart::Computed(_) => None,
        }
    }

    fn name<'a>(&'a self, rows: &'a Rows) -> &'a str {
        match self {
            KeyPart::Column(slot) => rows.column(*slot),
            KeyPart::Computed(computed) => &computed.text,
        }
    }
}

/// What makes an element of the key: the column of this name, or what an expression gives.
fn key_part(name: &str, stated: &Stated, rows: &mut Rows) -> Result<KeyPart, Failure> {
    if !split::is_expression(name) || rows.has_column(name) {
        return Ok(KeyPart::Column(rows.slot(name)?));
    }
    Ok(KeyPart::Computed(Box::new(Computed::bind(name, &stated.zone, rows)?)))
}

/// Whether an element of a tuple may be a tuple itself.
fn takes_lists(element: &ElementType) -> bool {
    match element {
        ElementType::Tuple(_) | ElementType::AnyTuple | ElementType::Any => true,
        ElementType::Optional(inner) => takes_lists(inner),
        _ => false,
    }
}

/// Whether an element of the key may be null.
enum Nullable {
    No,
    /// If the value is missing.
    Missing,
    /// Also if the field is empty: it would not be a value of the type.
    EvenEmpty,
}

impl Nullable {
    fn of(element: Option<&ElementType>) -> Nullable {
        match element {
            Some(ElementType::Optional(inner)) => match **inner {
                ElementType::Text | ElementType::Bytes => Nullable::Missing,
                _ => Nullable::EvenEmpty,
            },
            _ => Nullable::No,
        }
    }
}

/// Whether this is the object form of bytes, or a misspelled one.
fn is_wrapped(nested: &Datum) -> bool {
    matches!(nested, Datum::Bytes(_))
        || datum::unwrapped(nested).is_some()
        || datum::why_not_wrapped(nested).is_some()
}

/// Bytes in NDJSON. No other object or list is a key: it would be confused with the same text.
fn wrapped_key(rows: &Rows, slot: Slot) -> Result<Datum, BadRow> {
    let nested = rows.nested(slot).unwrap_or(&Datum::Null);
    match (nested, datum::unwrapped(nested)) {
        (Datum::Bytes(bytes), _) => Ok(Datum::Bytes(bytes.clone())),
        (_, Some(bytes)) => Ok(Datum::Bytes(bytes)),
        (_, None) => {
            let wanted = "text, a number or bytes as a key";
            let wrong = datum::why_not_wrapped(nested).unwrap_or_else(|| datum::expected(wanted, nested));
            Err(BadRow::column(rows.column(slot), wrong))
        }
    }
}

/// Sets the datum to the contents of a column, in the form for the fold of this spec; codecs take
/// text.
fn put_field(
    datum: &mut Datum,
    (rows, slot, text): (&Rows, Slot, &str),
    takes: &Takes,
) -> Result<(), BadRow> {
    let read = match (takes, rows.nested(slot)) {
        (Takes::Json, _) => {
            let json = rows.json(slot).map(datum::json::text_of);
            json.map(Datum::Text)
        }
        (Takes::Fold(spec), Some(_)) if spec == "json-merge" => None,
        (_, Some(Datum::Bytes(bytes))) => Some(Datum::Bytes(bytes.clone())),
        (_, Some(nested)) if is_wrapped(nested) => match datum::unwrapped(nested) {
            Some(bytes) => Some(Datum::Bytes(bytes)),
            None => {
                let wrong = datum::why_not_wrapped(nested).unwrap_or_default();
                return Err(BadRow::column(rows.column(slot), wrong));
            }
        },
        // For `patch` any text is an object; lists and objects of JSON are edits, as in exports.
        (Takes::Fold(spec), Some(nested)) if keys::is_structured(spec) || spec == "patch" => {
            Some(nested.clone())
        }
        (Takes::Fold(spec), None) if rows.is_delimited() => keys::csv_datum(spec, text),
        (Takes::Fold(_) | Takes::Codec, _) => None,
    };
    match read {
        Some(read) => *datum = read,
        None => put_text(datum, text),
    }
    Ok(())
}

/// Sets the datum to this text, reusing the buffer of an earlier text.
fn put_text(datum: &mut Datum, text: &str) {
    match datum {
        Datum::Text(present) => {
            present.clear();
            present.push_str(text);
        }
        other => *other = Datum::Text(text.to_owned()),
    }
}

impl ValueMap {
    fn bind(stated: &Stated, rules: &TableRules, rows: &mut Rows) -> Result<ValueMap, Failure> {
        if stated.value_json {
            return Ok(ValueMap::Json);
        }
        let of_table;
        let columns = match &stated.columns {
            Some(columns) => columns,
            None => {
                let spec = rules.fold.spec();
                of_table = spec.parse::<Columns>().map_err(|error| Failure::Usage(error.to_string()))?;
                &of_table
            }
        };
        match columns {
            Columns::Plain(fold, source) => {
                let (feed, datum) = match (source, &stated.value_column) {
                    (Some(_), Some(_)) => {
                        return Err(Failure::Usage(
                            "the value is named twice: by --value and in --fold".to_owned(),
                        ));
                    }
                    (Some(source), None) => feed(source, stated, rows)?,
                    (None, Some(column)) => feed(&Source::Column(column.clone()), stated, rows)?,
                    (None, None) => return Err(Failure::Usage(no_source(&fold.spec()))),
                };
                let takes = match (fold.spec().as_str(), rules.value_codec()) {
                    ("replace" | "first", ValueCodec::Json) => Takes::Json,
                    ("replace" | "first", _) => Takes::Codec,
                    (spec, _) => Takes::Fold(spec.to_owned()),
                };
                Ok(ValueMap::Plain { feed, takes, datum })
            }
            Columns::Record(record, sources) => match &stated.value_column {
                Some(column) if sources.iter().all(Option::is_none) => {
                    let (feed, datum) = feed(&Source::Column(column.clone()), stated, rows)?;
                    Ok(ValueMap::Plain { feed, takes: Takes::Fold(record.fold().spec()), datum })
                }
                _ => ValueMap::of_record(record, sources, stated, rows),
            },
        }
    }

    fn of_record(
        record: &Record,
        sources: &[Option<Source>],
        stated: &Stated,
        rows: &mut Rows,
    ) -> Result<ValueMap, Failure> {
        if stated.value_column.is_some() {
            let message = "the value is a record: say in --fold which column feeds which field";
            return Err(Failure::Usage(message.to_owned()));
        }
        let (mut feeds, mut fields) = (Vec::new(), Vec::new());
        for (index, name) in record.names().enumerate() {
            let by_name = Source::Column(name.to_owned());
            let source = sources.get(index).and_then(Option::as_ref).unwrap_or(&by_name);
            let (feed, datum) = feed(source, stated, rows)?;
            feeds.push(feed);
            fields.push((name.to_owned(), datum));
        }
        let specs = (0..feeds.len()).filter_map(|index| Some(record.field_fold(index)?.spec()));
        let takes = specs.map(Takes::Fold).collect();
        Ok(ValueMap::Record { record: Box::new(record.clone()), takes, feeds, datum: Datum::Map(fields) })
    }

    fn fill(
        &mut self,
        rows: &Rows,
        rules: &DynamicRules,
        key_slots: &[Slot],
        value: &mut Vec<u8>,
    ) -> Result<bool, BadRow> {
        match self {
            ValueMap::Plain { feed, takes, datum } => {
                let mut is_empty = false;
                if let Feed::Column(slot) = feed {
                    match (rows.field(*slot)?, rows.json(*slot), &takes) {
                        // A value of JSON may be null.
                        (None, Some(Datum::Null), Takes::Json) => put_text(datum, "null"),
                        (None, ..) => return Ok(false),
                        (Some(text), ..) => {
                            is_empty = matches!(takes, Takes::Fold(_)) && text.is_empty();
                            put_field(datum, (rows, *slot, &text), takes)?;
                        }
                    }
                }
                if let Feed::Computed(computed) = feed
                    && !computed.put(datum, rows, takes)?
                {
                    return Ok(false);
                }
                if is_empty && rows.is_delimited() {
                    return Ok(false);
                }
                match (rules.read_value(datum, value), feed) {
                    (Ok(()), _) => Ok(true),
                    // In JSON an empty text is an operand if the fold takes it, otherwise it is
                    // nothing.
                    (Err(_), _) if is_empty => Ok(false),
                    (Err(cause), Feed::Column(slot)) => {
                        Err(BadRow::column(rows.column(*slot), cause.message()))
                    }
                    (Err(cause), Feed::Literal) => Err(BadRow::whole(cause.message())),
                    (Err(cause), Feed::Computed(computed)) => {
                        Err(BadRow::column(&computed.text, cause.message()))
                    }
                }
            }
            ValueMap::Record { record, takes, feeds, datum } => {
                let Datum::Map(fields) = &mut *datum else { return Ok(false) };
                for ((feed, (_, datum)), takes) in feeds.iter().zip(fields).zip(&*takes) {
                    match feed {
                        Feed::Literal => {}
                        Feed::Column(slot) => match rows.field(*slot)? {
                            Some(text) if !text.is_empty() => {
                                put_field(datum, (rows, *slot, &text), takes)?;
                            }
                            _ => *datum = Datum::Null,
                        },
                        Feed::Computed(computed) => {
                            if !computed.put(datum, rows, takes)? {
                                *datum = Datum::Null;
                            }
                        }
                    }
                }
                let read = rules.read_value(datum, value);
                read.map_err(|cause| blame(record, feeds, datum, rows, cause.message()))?;
                Ok(has_fields(datum))
            }
            ValueMap::Json => {
                let object = rows.object_without(key_slots)?;
                let read = rules.read_value(&Datum::Text(datum::json::text_of(&object)), value);
                read.map_err(|cause| BadRow::whole(cause.message()))?;
                Ok(true)
            }
        }
    }
}

fn has_fields(datum: &Datum) -> bool {
    matches!(datum, Datum::Map(fields) if fields.iter().any(|(_, field)| *field != Datum::Null))
}

/// Finds the column that could not be read as a field of a record.
fn blame(record: &Record, feeds: &[Feed], datum: &Datum, rows: &Rows, cause: &str) -> BadRow {
    let Datum::Map(fields) = datum else { return BadRow::whole(cause) };
    for (index, ((name, field), feed)) in fields.iter().zip(feeds).enumerate() {
        let Some(fold) = record.field_fold(index) else { continue };
        if *field == Datum::Null {
            continue;
        }
        if let Err(cause) = fold.read(field, &mut Vec::new()) {
            return match feed {
                Feed::Column(slot) => BadRow::column(rows.column(*slot), cause.message()),
                Feed::Literal => BadRow::whole(format!("field `{name}`: {cause}")),
                Feed::Computed(computed) => BadRow::column(&computed.text, cause.message()),
            };
        }
    }
    BadRow::whole(cause)
}

fn feed(source: &Source, stated: &Stated, rows: &mut Rows) -> Result<(Feed, Datum), Failure> {
    let empty = Datum::Text(String::new());
    let name = match source {
        Source::Literal(text) => return Ok((Feed::Literal, Datum::Text(text.clone()))),
        Source::Column(name) => name,
    };
    let marked = name.strip_prefix(MARK).and_then(|number| stated.sources.get(number.parse::<usize>().ok()?));
    let text = match marked.map(Vec::as_slice) {
        None => return Ok((Feed::Column(rows.slot(name)?), empty)),
        Some([one]) if rows.has_column(one) => return Ok((Feed::Column(rows.slot(one)?), empty)),
        Some([one]) => one.clone(),
        Some(several) => return Ok((Feed::Computed(Box::new(pair(several, stated, rows)?)), empty)),
    };
    Ok((Feed::Computed(Box::new(Computed::bind(&text, &stated.zone, rows)?)), empty))
}

/// Several sources of a field, as a list.
fn pair(sources: &[String], stated: &Stated, rows: &mut Rows) -> Result<Computed, Failure> {
    let mut items = Vec::new();
    for source in sources {
        items.push(match split::is_expression(source) && !rows.has_column(source) {
            true => Computed::bind(source, &stated.zone, rows)?.expr,
            false => constant(source).map_or_else(
                || rows.slot(source.trim_matches('`')).map(|slot| Expr::of_column(source, slot)),
                Ok,
            )?,
        });
    }
    Ok(Computed { expr: Expr::List(items), text: sources.join(", ") })
}

/// A number or a text in quotes.
fn constant(source: &str) -> Option<Expr> {
    let is_constant = source.starts_with('"') || source.parse::<f64>().is_ok();
    is_constant.then(|| parse::parse(source, &TimeZone::UTC).ok()).flatten()
}

fn no_source(spec: &str) -> String {
    match spec {
        "replace" => {
            "say what the value is: --value COLUMN, --value-json, or --fold 'name: fold = column, ...'"
                .to_owned()
        }
        spec => format!("say what feeds the fold: --fold '{spec} = COLUMN', or --value COLUMN"),
    }
}
