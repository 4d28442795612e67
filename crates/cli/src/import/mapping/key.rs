//! The key of a row: from columns, and from expressions over them.

use folddb::codec::{ElementType, KeyCodec};
use folddb::limits::KEY_BYTES_MAX;
use folddb::table_rules::TableRules;
use folddb::{Datum, DynamicRules, datum};

use jiff::tz::TimeZone;

use crate::failure::Failure;
use crate::import::expr::value::Value;
use crate::import::row::{BadRow, Fields, Slot};
use crate::import::rows::Rows;

use super::computed::{Computed, put_moment, put_text, put_time};
use super::stated::Stated;

/// What makes the key.
pub(super) struct KeyMap {
    parts: Vec<KeyPart>,
    /// The columns among them.
    pub(super) slots: Vec<Slot>,
    nullable: Vec<Nullable>,
    /// Whether each element of the key may be a list.
    is_tuple: Vec<bool>,
    /// The zone of each element that is a time.
    times: Vec<Option<TimeZone>>,
    key: Datum,
}

/// What makes an element of the key.
enum KeyPart {
    Column(Slot),
    Computed(Box<Computed>),
}

impl KeyMap {
    /// Finds the columns.
    pub(super) fn bind(stated: &Stated, rules: &TableRules, rows: &mut Rows) -> Result<KeyMap, Failure> {
        let mut parts: Vec<KeyPart> =
            stated.key_columns.iter().map(|name| key_part(name, stated, rows)).collect::<Result<_, _>>()?;
        let slots: Vec<Slot> = parts.iter().filter_map(KeyPart::slot).collect();
        let types = rules.key_codec().element_types().unwrap_or_default();
        let nullable = (0..parts.len()).map(|index| Nullable::of(types.get(index))).collect();
        let texts = vec![Datum::Text(String::new()); parts.len()];
        let key = if rules.key_codec().is_tuple() { Datum::List(texts) } else { Datum::Text(String::new()) };
        let is_tuple = (0..parts.len()).map(|index| types.get(index).is_none_or(takes_lists));
        let is_tuple = is_tuple.map(|takes_lists| takes_lists && rules.key_codec().is_tuple()).collect();
        let is_time = |index: usize| match types.get(index) {
            Some(element) => is_time(element),
            None => *rules.key_codec() == KeyCodec::Time,
        };
        let times: Vec<_> =
            (0..parts.len()).map(|index| is_time(index).then(|| stated.zone.clone())).collect();
        for (part, zone) in parts.iter_mut().zip(&times) {
            if let (KeyPart::Computed(computed), Some(_)) = (part, zone) {
                computed.expr.give_moments();
            }
        }
        Ok(KeyMap { parts, slots, nullable, is_tuple, times, key })
    }

    /// Makes the key of the present row.
    pub(super) fn fill(
        &mut self,
        rows: &Rows,
        rules: &DynamicRules,
        key: &mut Vec<u8>,
    ) -> Result<(), BadRow> {
        for index in 0..self.parts.len() {
            self.fill_part(index, rows)?;
        }
        rules.as_table_rules().key_codec().encode(&self.key, key).map_err(|cause| match &self.parts[..] {
            [part] => part.bad(rows, cause.message()),
            _ => BadRow::whole(format!("key: {cause}")),
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
        let (part, nullable, zone) = (&self.parts[index], &self.nullable[index], &self.times[index]);
        let missing = || part.missing(rows);
        let slot = match part {
            KeyPart::Column(slot) => *slot,
            KeyPart::Computed(computed) => {
                let value = computed.value(rows)?;
                if let Value::List(_) = value {
                    return Err(BadRow::computed(&computed.text, "expected a text as a key, found a list"));
                }
                if let Value::Moment(at) = value {
                    put_moment(datum, at);
                    return Ok(());
                }
                match (value.text(), nullable) {
                    (None, Nullable::No) => return Err(missing()),
                    (None, _) => *datum = Datum::Null,
                    (Some(text), _) => match zone {
                        Some(zone) => computed.put_time(datum, &text, zone)?,
                        None => put_text(datum, &text),
                    },
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
            (Some(text), _) => match zone {
                Some(zone) => {
                    put_time(datum, &text, zone).map_err(|wrong| BadRow::column(rows.column(slot), wrong))?
                }
                None => put_text(datum, &text),
            },
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

    /// It gives nothing, and a key cannot be made of that. An empty field is an empty key, but what
    /// is computed of one is nothing.
    fn missing(&self, rows: &Rows) -> BadRow {
        const REASON: &str = "it is missing, and is part of the key";
        match self {
            KeyPart::Computed(_) if rows.is_delimited() => {
                let hint = "an empty field is a key with coalesce(…, \"\")";
                self.bad(rows, &format!("{REASON} ({hint})"))
            }
            _ => self.bad(rows, REASON),
        }
    }

    fn bad(&self, rows: &Rows, reason: &str) -> BadRow {
        match self {
            KeyPart::Column(slot) => BadRow::column(rows.column(*slot), reason),
            KeyPart::Computed(computed) => BadRow::computed(&computed.text, reason),
        }
    }
}

/// What makes an element of the key: the column of this name, or what an expression gives.
fn key_part(name: &String, stated: &Stated, rows: &mut Rows) -> Result<KeyPart, Failure> {
    if !stated.is_computed(name) || rows.has_column(name) {
        return Ok(KeyPart::Column(rows.slot(name)?));
    }
    Ok(KeyPart::Computed(Box::new(Computed::bind(name, &stated.zone, rows)?)))
}

/// Whether an element of a tuple is a time.
fn is_time(element: &ElementType) -> bool {
    match element {
        ElementType::Time => true,
        ElementType::Optional(inner) => is_time(inner),
        _ => false,
    }
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
pub(super) fn is_wrapped(nested: &Datum) -> bool {
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
