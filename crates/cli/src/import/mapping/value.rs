//! The value of a row, or the operand that is folded into the value of its key.

use folddb::codec::ValueCodec;
use folddb::folds::{Columns, Record, Source};
use folddb::table_rules::TableRules;
use folddb::{Datum, DynamicRules, FoldFailure, datum};

use crate::failure::Failure;
use crate::import::expr::split;
use crate::import::expr::{Expr, parse};
use crate::import::row::{BadRow, Fields, Slot};
use crate::import::rows::Rows;
use crate::keys;

use super::computed::{Computed, Known, Takes, check_is_no_column, constant, put_text, put_time, takes_of};
use super::key::is_wrapped;
use super::stated::Stated;

/// What makes the value.
pub(super) enum ValueMap {
    /// One column or constant is the value. An empty field of CSV contributes nothing to a fold,
    /// but is a value if values replace.
    Plain { feed: Feed, takes: Takes, datum: Datum },
    /// Columns and constants are the fields; empty ones are absent.
    Record { record: Box<Record>, takes: Vec<Takes>, feeds: Vec<Feed>, datum: Datum, operands: Operands },
    /// All columns outside the key.
    Json,
}

/// Where a piece of a value comes from.
pub(super) enum Feed {
    Column(Slot),
    Literal,
    Computed(Box<Computed>),
}

impl Feed {
    /// Has it give moments where times are taken.
    fn suit(&mut self, takes: &Takes) {
        if let (Feed::Computed(computed), Takes::Time(..)) = (self, takes) {
            computed.expr.give_moments();
        }
    }
}

impl ValueMap {
    /// Finds the columns.
    pub(super) fn bind(stated: &Stated, rules: &TableRules, rows: &mut Rows) -> Result<ValueMap, Failure> {
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
                let (mut feed, datum) = match (source, &stated.value_column) {
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
                    ("replace" | "first", ValueCodec::Time) => Takes::Time(stated.zone.clone(), false),
                    ("replace" | "first", _) => Takes::Codec,
                    (spec, _) => takes_of(spec, &stated.zone),
                };
                if let (Feed::Computed(computed), true) = (&feed, takes.folds()) {
                    computed.check_fits(&**fold, &takes, Known::Kind)?;
                }
                feed.suit(&takes);
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
        let takes: Vec<Takes> = specs.map(|spec| takes_of(&spec, &stated.zone)).collect();
        for (index, (feed, takes)) in feeds.iter().zip(&takes).enumerate() {
            if let (Feed::Computed(computed), Some(fold)) = (feed, record.field_fold(index)) {
                computed.check_fits(fold, takes, Known::Kind)?;
            }
        }
        feeds.iter_mut().zip(&takes).for_each(|(feed, takes)| feed.suit(takes));
        let constants = feeds.iter().zip(&fields).enumerate();
        let constants = constants.map(|(index, (feed, (_, datum)))| match feed {
            Feed::Literal => constant_operand(record, index, datum),
            Feed::Column(_) | Feed::Computed(_) => None,
        });
        let operands = Operands { constants: constants.collect(), ..Operands::default() };
        let datum = Datum::Map(fields);
        Ok(ValueMap::Record { record: Box::new(record.clone()), takes, feeds, datum, operands })
    }

    /// Makes the value of the present row. False if the row contributes nothing.
    pub(super) fn fill(
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
                            is_empty = text.is_empty() && takes.folds();
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
                        Err(BadRow::column(rows.column(*slot), takes.refuses(cause.message())))
                    }
                    (Err(cause), Feed::Literal) => Err(BadRow::whole(cause.message())),
                    (Err(cause), Feed::Computed(computed)) => {
                        Err(computed.bad(datum, takes, cause.message()))
                    }
                }
            }
            ValueMap::Record { record, takes, feeds, datum, operands } => {
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
                let read = put_record(record, datum, operands, value);
                read.map_err(|cause| blame(record, (feeds, takes), datum, rows, cause.message()))?;
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

/// The operands of the fields of a record.
#[derive(Default)]
pub(super) struct Operands {
    /// Of those that are the same for all rows.
    constants: Vec<Option<Vec<u8>>>,
    /// Those of a row, one after the other.
    bytes: Vec<u8>,
    places: Vec<Option<(usize, usize)>>,
}

/// The operand that a constant is, if the fold takes it.
fn constant_operand(record: &Record, index: usize, datum: &Datum) -> Option<Vec<u8>> {
    let mut operand = Vec::new();
    record.field_fold(index)?.read(datum, &mut operand).ok()?;
    Some(operand)
}

/// Appends the record of these fields.
fn put_record(
    record: &Record,
    datum: &Datum,
    operands: &mut Operands,
    out: &mut Vec<u8>,
) -> Result<(), FoldFailure> {
    let Operands { constants, bytes, places } = operands;
    bytes.clear();
    places.clear();
    let Datum::Map(fields) = datum else { return Ok(()) };
    for (index, (_, field)) in fields.iter().enumerate() {
        let begin = bytes.len();
        let is_there = match (constants.get(index), record.field_fold(index)) {
            (Some(Some(constant)), _) => {
                bytes.extend_from_slice(constant);
                true
            }
            (_, Some(fold)) if *field != Datum::Null => fold.read(field, bytes).map(|()| true)?,
            _ => false,
        };
        places.push(is_there.then_some((begin, bytes.len())));
    }
    let mut operands = places.iter().map(|place| place.map(|(begin, end)| &bytes[begin..end]));
    match operands.len() {
        // Without an allocation, where they are few.
        0..=8 => {
            let few: [Option<&[u8]>; 8] = std::array::from_fn(|_| operands.next().flatten());
            record.put(&few[..places.len()], out)
        }
        _ => record.put(&operands.collect::<Vec<_>>(), out),
    }
}

fn has_fields(datum: &Datum) -> bool {
    matches!(datum, Datum::Map(fields) if fields.iter().any(|(_, field)| *field != Datum::Null))
}

/// Finds the column that could not be read as a field of a record.
fn blame(
    record: &Record,
    (feeds, takes): (&[Feed], &[Takes]),
    datum: &Datum,
    rows: &Rows,
    cause: &str,
) -> BadRow {
    let Datum::Map(fields) = datum else { return BadRow::whole(cause) };
    for (index, (((name, field), feed), takes)) in fields.iter().zip(feeds).zip(takes).enumerate() {
        let Some(fold) = record.field_fold(index) else { continue };
        if *field == Datum::Null {
            continue;
        }
        if let Err(cause) = fold.read(field, &mut Vec::new()) {
            return match feed {
                Feed::Column(slot) => BadRow::column(rows.column(*slot), takes.refuses(cause.message())),
                Feed::Literal => BadRow::whole(format!("field `{name}`: {cause}")),
                Feed::Computed(computed) => computed.bad(field, takes, cause.message()),
            };
        }
    }
    BadRow::whole(cause)
}

fn feed(source: &Source, stated: &Stated, rows: &mut Rows) -> Result<(Feed, Datum), Failure> {
    let empty = Datum::Text(String::new());
    let name = match source {
        Source::Literal(text) => {
            check_is_no_column(text, rows)?;
            return Ok((Feed::Literal, Datum::Text(text.clone())));
        }
        Source::Column(name) => name,
    };
    let text = match split::marked(name, &stated.sources).map(Vec::as_slice) {
        None => return Ok((Feed::Column(rows.slot(name)?), empty)),
        Some([one]) if rows.has_column(one) && !parse::is_bare_constant(one) => {
            return Ok((Feed::Column(rows.slot(one)?), empty));
        }
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
            false => match constant(source) {
                Some(constant) => {
                    check_is_no_column(source, rows)?;
                    constant
                }
                None => Expr::of_column(source, rows.slot(source.trim_matches('`'))?),
            },
        });
    }
    Ok(Computed { expr: Expr::List(items), text: sources.join(", ") })
}

fn no_source(spec: &str) -> String {
    match spec {
        "replace" => {
            "say what the value is: --value COLUMN, --value-json, or --fold 'name: fold = column, ...'"
                .to_owned()
        }
        spec => {
            match spec.strip_prefix("append:\"").and_then(|rest| rest.strip_suffix('"')?.rsplit_once('=')) {
                Some((separator, column)) => format!(
                    "say what feeds the fold: all behind `append:` is the separator, unless that is in quotes: --fold \
                 'append:\"{}\" = {}'",
                    separator.trim_end(),
                    column.trim()
                ),
                None => format!("say what feeds the fold: --fold '{spec} = COLUMN', or --value COLUMN"),
            }
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
    if let Takes::Time(zone, _) = takes {
        return put_time(datum, text, zone).map_err(|wrong| BadRow::column(rows.column(slot), wrong));
    }
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
            Some(without_nulls(spec, nested))
        }
        (Takes::Fold(spec), None) if rows.is_delimited() && is_like_json(text) => keys::csv_datum(spec, text),
        (Takes::Fold(_) | Takes::Codec | Takes::Time(..), _) => None,
    };
    match read {
        Some(read) => *datum = read,
        None => put_text(datum, text),
    }
    Ok(())
}

/// The same; a list of members or numbers, or a map of counts, without those that are null.
fn without_nulls(spec: &str, nested: &Datum) -> Datum {
    match nested {
        Datum::List(items) if keys::takes_elements(spec) => {
            Datum::List(items.iter().filter(|item| **item != Datum::Null).cloned().collect())
        }
        Datum::Map(fields) if keys::takes_members(spec) => {
            Datum::Map(fields.iter().filter(|(_, count)| *count != Datum::Null).cloned().collect())
        }
        other => other.clone(),
    }
}

/// Whether a text may be an object or a list of JSON.
fn is_like_json(text: &str) -> bool {
    text.starts_with(['{', '['])
}
