//! `json-merge`: JSON documents that merge object by object, like RFC 7386 merge patches, made
//! associative.
//!
//! ```text
//!   JSON text without white space, the names of an object sorted by their bytes and each once
//! ```
//!
//! A later document is merged into the earlier: if both are objects, name by name; otherwise the
//! later replaces the earlier; `null` removes a name. RFC 7386 alone is *not* associative: with the
//! operands x, p, q = {"a":1}, 5, {"b":2} the result of (x·p)·q is {"b":2}, yet p·q is {"b":2} as
//! well and x·{"b":2} is {"a":1,"b":2}. An operand must be able to replace what was there, so there
//! are three kinds of node:
//!
//! ```text
//!   leaf      null, true, 1, "text", [ ... ]      replaces; null inside of an object is a removal
//!   merge     { ... }                             merges into what was there
//!   replace   {"$set": { ... }}                   an object that replaces; no removals or merging inside
//!
//!   earlier \ later   leaf    replace   merge n
//!   leaf              later   later     replace (n on nothing)
//!   replace m         later   later     replace (m with n applied)
//!   merge m           later   later     merge (m·n name by name; removals are kept)
//! ```
//!
//! Each node is a function on documents. The table is the composition of these functions, so it is
//! associative. `$set` may be written by users too; an object that holds `$set` holds nothing else,
//! except below an array, where everything is data. To be shown, a value is applied to nothing:
//! removals and `$set` are gone. Leaves are carried verbatim, so numbers keep every digit. Depth is
//! limited to 128.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::datum::json_text::{self, Node, SET};
use crate::datum::{Datum, json};
use crate::fold::{Fold, FoldFailure, Outcome};

use super::built_in::{BuiltIn, unexpected};

/// A document by the kinds of its nodes.
#[derive(Clone, Debug, PartialEq)]
enum Doc<'a> {
    Leaf(Cow<'a, str>),
    Merge(Fields<'a>),
    Replace(Fields<'a>),
}

type Fields<'a> = Vec<(Cow<'a, str>, Doc<'a>)>;

impl<'a> Doc<'a> {
    fn parse(value: &'a [u8]) -> Result<Doc<'a>, FoldFailure> {
        let text = std::str::from_utf8(value)
            .map_err(|_| FoldFailure::new("expected JSON, found bytes that are not text"))?;
        Doc::from_node(json_text::parse(text).map_err(FoldFailure)?)
    }

    fn from_node(node: Node<'a>) -> Result<Doc<'a>, FoldFailure> {
        let Node::Object(mut fields) = node else {
            return Ok(Doc::Leaf(node.into_text()));
        };
        if !fields.iter().any(|(name, _)| name == SET) {
            let convert = |(name, node)| Ok((name, Doc::from_node(node)?));
            return Ok(Doc::Merge(fields.into_iter().map(convert).collect::<Result<_, FoldFailure>>()?));
        }
        match (fields.pop(), fields.is_empty()) {
            (Some((_, inner @ Node::Object(_))), true) => Ok(on_nothing(Doc::from_node(inner)?)),
            _ => Err(FoldFailure::new("expected JSON where `$set` is the only name and holds an object")),
        }
    }

    fn is_null(&self) -> bool {
        matches!(self, Doc::Leaf(text) if text == "null")
    }

    fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Doc::Leaf(text) => out.extend_from_slice(text.as_bytes()),
            Doc::Merge(fields) => put_fields(fields, out),
            Doc::Replace(fields) => {
                out.extend_from_slice(b"{\"$set\":");
                put_plain(fields, out);
                out.push(b'}');
            }
        }
    }

    fn datum(self) -> Result<Datum, FoldFailure> {
        match on_nothing(self) {
            Doc::Leaf(text) => Ok(json::datum_of(json_text::parse(&text).map_err(FoldFailure)?, false)),
            Doc::Merge(fields) | Doc::Replace(fields) => {
                let convert = |(name, doc): (Cow<'_, str>, Doc<'_>)| Ok((name.into_owned(), doc.datum()?));
                Ok(Datum::Map(fields.into_iter().map(convert).collect::<Result<_, FoldFailure>>()?))
            }
        }
    }
}

fn put_fields(fields: &Fields<'_>, out: &mut Vec<u8>) {
    json_text::put_value_file(out, fields.iter().map(|(name, doc)| (name.as_ref(), doc)), |doc, out| {
        doc.put(out)
    });
}

/// Inside an object that replaces, every object replaces, so `$set` is not written again.
fn put_plain(fields: &Fields<'_>, out: &mut Vec<u8>) {
    json_text::put_value_file(
        out,
        fields.iter().map(|(name, doc)| (name.as_ref(), doc)),
        |doc, out| match doc {
            Doc::Leaf(text) => out.extend_from_slice(text.as_bytes()),
            Doc::Merge(fields) | Doc::Replace(fields) => put_plain(fields, out),
        },
    );
}

/// What a document is when nothing was there before.
fn on_nothing(doc: Doc<'_>) -> Doc<'_> {
    match doc {
        Doc::Merge(fields) | Doc::Replace(fields) => {
            let present = fields.into_iter().filter(|(_, doc)| !doc.is_null());
            Doc::Replace(present.map(|(name, doc)| (name, on_nothing(doc))).collect())
        }
        leaf => leaf,
    }
}

/// Appends documents that merge to this one, each of at most this many bytes, name by name. None if
/// a leaf is longer.
fn cut<'a>(doc: Doc<'a>, bytes_max: usize, pieces: &mut Vec<Doc<'a>>) -> Option<()> {
    if doc.bytes().len() <= bytes_max {
        pieces.push(doc);
        return Some(());
    }
    let (fields, replaces) = match doc {
        Doc::Merge(fields) => (fields, false),
        Doc::Replace(fields) => (fields, true),
        Doc::Leaf(_) => return None,
    };
    if replaces {
        pieces.push(Doc::Replace(Vec::new()));
    }
    let (mut some, mut bytes) = (Vec::new(), 2);
    for (name, doc) in fields {
        let front = 6 * name.len() + 32; // escaped, with quotes, and inside of `$set`
        let own = front + doc.bytes().len();
        if bytes + own > bytes_max && !some.is_empty() {
            pieces.push(Doc::Merge(std::mem::take(&mut some)));
            bytes = 2;
        }
        if own < bytes_max {
            bytes += own;
            some.push((name, doc));
            continue;
        }
        let mut inner = Vec::new();
        cut(doc, bytes_max.checked_sub(front)?, &mut inner)?;
        pieces.extend(inner.into_iter().map(|doc| Doc::Merge(vec![(name.clone(), doc)])));
    }
    if !some.is_empty() {
        pieces.push(Doc::Merge(some));
    }
    Some(())
}

/// `earlier` then `later`, by the table above.
fn compose<'a>(earlier: Doc<'a>, later: Doc<'a>) -> Doc<'a> {
    match (earlier, later) {
        (_, later @ (Doc::Leaf(_) | Doc::Replace(_))) => later,
        (Doc::Leaf(_), merge) => on_nothing(merge),
        (Doc::Replace(m), Doc::Merge(n)) => {
            let fields = zip(m, n);
            let present = fields.into_iter().filter(|(_, doc)| !doc.is_null());
            Doc::Replace(present.map(|(name, doc)| (name, on_nothing(doc))).collect())
        }
        (Doc::Merge(m), Doc::Merge(n)) => Doc::Merge(zip(m, n)),
    }
}

/// Both lists of fields as one, in order; fields in both are composed.
fn zip<'a>(m: Fields<'a>, n: Fields<'a>) -> Fields<'a> {
    let mut fields = Vec::with_capacity(m.len() + n.len());
    let (mut left, mut right) = (m.into_iter().peekable(), n.into_iter().peekable());
    loop {
        let order = match (left.peek(), right.peek()) {
            (None, None) => return fields,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((a, _)), Some((b, _))) => a.cmp(b),
        };
        match order {
            Ordering::Less => fields.extend(left.next()),
            Ordering::Greater => fields.extend(right.next()),
            Ordering::Equal => {
                if let (Some((name, earlier)), Some((_, later))) = (left.next(), right.next()) {
                    fields.push((name, compose(earlier, later)));
                }
            }
        }
    }
}

/// `json-merge`.
pub(crate) struct JsonMerge;

impl Fold for JsonMerge {
    fn spec(&self) -> String {
        "json-merge".to_owned()
    }

    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        compose(Doc::parse(a)?, Doc::parse(b)?).put(out);
        Ok(Outcome::Value)
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        let mut canonical = Vec::with_capacity(value.len());
        Doc::parse(value)?.put(&mut canonical);
        if canonical == value {
            return Ok(());
        }
        Err(FoldFailure::new("expected JSON without white space, with sorted names, each once"))
    }

    /// Names with their documents, some at a time; if one document alone is too long, the names
    /// inside it.
    fn pieces(&self, value: &[u8], bytes_max: usize) -> Option<Vec<Vec<u8>>> {
        let mut pieces = Vec::new();
        cut(Doc::parse(value).ok()?, bytes_max, &mut pieces)?;
        Some(pieces.iter().map(Doc::bytes).collect())
    }

    /// The document, applied to nothing. A text or null is shown as its JSON, since text is read as
    /// JSON.
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        Ok(match Doc::parse(value)?.datum()? {
            document @ (Datum::Text(_) | Datum::Null) => Datum::Text(json::text_of(&document)),
            document => document,
        })
    }

    /// JSON text, or the document itself.
    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        let mut text = Vec::new();
        let json: Cow<'_, [u8]> = match datum {
            Datum::Text(text) => Cow::Borrowed(text.as_bytes()),
            other => {
                json::put_bytes(other, &mut text);
                Cow::Borrowed(&text)
            }
        };
        match Doc::parse(&json) {
            Ok(doc) => {
                doc.put(out);
                Ok(())
            }
            Err(cause) => unexpected(&format!("a JSON document ({cause})"), datum),
        }
    }
}

impl BuiltIn for JsonMerge {}

#[cfg(test)]
#[path = "json_merge/tests.rs"]
mod tests;
