//! The lines of a dump, as text and back. Pure; their effects are in `dump.rs` and `load.rs`.
//!
//! ```text
//!   {"folddb":"dump","version":1}
//!   {"table":"hits","rules":["rules 1","block_bytes=4096",...]}        the rows of this table follow
//!   {"key":["UA",7],"value":{"count":2}}                               if that reads back as the same bytes
//!   {"key_hex":"0x00ff","value_hex":"0x0102","shown":2.5}              if it does not; `shown` is for people only
//!   {"key":"k","ops":[["put","0x31"],["fold","0x32"]]}                 a key whose fold fails, oldest op first
//!   {"key":"k","value":"v","until":1800000000000}                      a value that lasts until then, in milliseconds since 1970
//!   {"key":"k","long":20000000}                                       a value of this many bytes, more than one is written at once;
//!   {"piece":"0x31…"}                                                its bytes, in as many of these lines as it takes
//!   {"end":"dump","tables":1,"records":3,"hash":"0123456789abcdef"}
//! ```
//!
//! Each is one line of JSON. The hash is a chain: xxh3-64 of each line with its newline, seeded
//! with the hash of those before it, the first with 0. The same content is the same text.
//!
//! Version 1 has no deadlines. A dump is of version 2 if the values of one of its tables may
//! expire, and of version 1 otherwise, so that earlier programs can read it.

use folddb_base::checksum::hash64;
use folddb_base::{Op, OpBuf};
use folddb_rules::Datum;
use folddb_rules::datum::{from_hex, hex, json};
use folddb_rules::table_rules::BoundRules;

use folddb_engine::write::encoded_batch::WriteOp;

/// The newest version of the form.
pub(crate) const VERSION: i128 = 2;

/// The version of dumps without deadlines.
pub(crate) const WITHOUT_DEADLINES: i128 = 1;

/// Longest line that is read, in bytes: a value of 16 MiB, each byte escaped, and its key. (Dumps
/// of earlier versions may have longer values on a line, within this limit.)
pub(crate) const LINE_BYTES_MAX: usize = 128 << 20;

/// The contents of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Line {
    Start { version: i128 },
    Table { name: String, rules_text: String },
    Record { key: Said, content: Content, until_ms: Option<u64> },
    Piece(Vec<u8>),
    End(Totals),
}

/// Bytes as a person reads them, or as they are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    Shown(Datum),
    Bytes(Vec<u8>),
}

/// The state of a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Content {
    Value(Said),
    /// This many bytes, in the lines that follow.
    Long(u64),
    /// Ops that do not fold, oldest first.
    Ops(Vec<(WriteOp, Vec<u8>)>),
}

/// The totals at the end of a dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) tables: u64,
    pub(crate) records: u64,
    pub(crate) hash: u64,
}

/// The hash of all lines up to one.
pub(crate) fn chain(before: u64, line: &[u8]) -> u64 {
    hash64(before, line)
}

// ---- writing ------------------------------------------------------------------------------------

pub(crate) fn put_start(has_deadlines: bool, out: &mut String) {
    let version = if has_deadlines { VERSION } else { WITHOUT_DEADLINES };
    out.push_str(&format!("{{\"folddb\":\"dump\",\"version\":{version}}}\n"));
}

pub(crate) fn put_table(name: &str, rules_text: &str, out: &mut String) {
    out.push_str("{\"table\":");
    json::put(&Datum::Text(name.to_owned()), out);
    out.push_str(",\"rules\":");
    json::put(&Datum::List(rules_text.lines().map(|line| Datum::Text(line.to_owned())).collect()), out);
    out.push_str("}\n");
}

pub(crate) fn put_end(totals: &Totals, out: &mut String) {
    let Totals { tables, records, hash } = totals;
    out.push_str(&format!(
        "{{\"end\":\"dump\",\"tables\":{tables},\"records\":{records},\"hash\":\"{hash:016x}\"}}\n"
    ));
}

/// Appends a piece of the value whose key precedes it.
pub(crate) fn put_piece(bytes: &[u8], out: &mut String) {
    out.push_str(&format!("{{\"piece\":\"{}\"}}\n", hex(bytes)));
}

/// Writes rows of one table, each in a form that reads back as the same bytes.
pub(crate) struct RowWriter<'a> {
    pub(crate) rules: &'a BoundRules,
    scratch: Vec<u8>,
}

impl<'a> RowWriter<'a> {
    pub(crate) fn new(rules: &'a BoundRules) -> RowWriter<'a> {
        RowWriter { rules, scratch: Vec::new() }
    }

    /// Writes a key, its value, and its deadline if it has one.
    pub(crate) fn put_value(&mut self, key: &[u8], value: &[u8], until_ms: Option<u64>, out: &mut String) {
        self.put_key(key, out);
        let shown = self.rules.show_value(value).ok();
        let read =
            |rules: &BoundRules, datum: &Datum, back: &mut Vec<u8>| rules.read_value(datum, back).is_ok();
        // Text and bytes show nothing more than their digits.
        let says_more = |datum: &&Datum| !matches!(datum, Datum::Text(_) | Datum::Bytes(_));
        let is_shown = self.put("value", value, shown.as_ref(), read, out);
        put_until(until_ms, out);
        if !is_shown && let Some(shown) = shown.as_ref().filter(says_more) {
            out.push_str(",\"shown\":");
            json::put(shown, out);
        }
        out.push_str("}\n");
    }

    /// Writes a key whose value follows in pieces.
    pub(crate) fn put_long(&mut self, key: &[u8], bytes: u64, until_ms: Option<u64>, out: &mut String) {
        self.put_key(key, out);
        out.push_str(&format!(",\"long\":{bytes}"));
        put_until(until_ms, out);
        out.push_str("}\n");
    }

    /// Writes a key whose ops do not fold, given newest first, and their common deadline.
    pub(crate) fn put_ops(&mut self, key: &[u8], ops: &[OpBuf], until_ms: Option<u64>, out: &mut String) {
        self.put_key(key, out);
        out.push_str(",\"ops\":[");
        for (index, op) in ops.iter().rev().enumerate() {
            let (word, value) = plain_op(op, index == 0);
            let comma = if index > 0 { "," } else { "" };
            out.push_str(&format!("{comma}[\"{word}\",\"{}\"]", hex(value)));
        }
        out.push(']');
        put_until(until_ms, out);
        out.push_str("}\n");
    }

    fn put_key(&mut self, key: &[u8], out: &mut String) {
        out.push('{');
        let shown = self.rules.rules.key_codec().show(key).ok();
        let read = |rules: &BoundRules, datum: &Datum, back: &mut Vec<u8>| {
            rules.rules.key_codec().encode(datum, back).is_ok()
        };
        self.put("key", key, shown.as_ref(), read, out);
    }

    /// Appends `"name":shown` if that reads back as the bytes, otherwise `"name_hex":"0x…"`. True
    /// for the former.
    fn put(
        &mut self,
        name: &str,
        bytes: &[u8],
        shown: Option<&Datum>,
        read: impl Fn(&BoundRules, &Datum, &mut Vec<u8>) -> bool,
        out: &mut String,
    ) -> bool {
        let start = out.len();
        let comma = if name == "key" { "" } else { "," };
        if let Some(shown) = shown {
            out.push_str(&format!("{comma}\"{name}\":"));
            let json_at = out.len();
            json::put(shown, out);
            self.scratch.clear();
            let back = json::parse(&out[json_at..]).ok();
            let is_same =
                back.is_some_and(|back| read(self.rules, &back, &mut self.scratch)) && self.scratch == bytes;
            if is_same {
                return true;
            }
            out.truncate(start);
        }
        out.push_str(&format!("{comma}\"{name}_hex\":\"{}\"", hex(bytes)));
        false
    }
}

fn put_until(until_ms: Option<u64>, out: &mut String) {
    if let Some(until_ms) = until_ms {
        out.push_str(&format!(",\"until\":{until_ms}"));
    }
}

/// An op in the form that users write. An `InsertFold` becomes one of its two branches, since what
/// precedes it is known: nothing, or ops that leave the key present.
fn plain_op(op: &OpBuf, is_oldest: bool) -> (&'static str, &[u8]) {
    match op.op() {
        Ok(Op::Set(value)) => ("put", value),
        Ok(Op::Insert(value)) => ("put_if_absent", value),
        Ok(Op::Fold(operand)) => ("fold", operand),
        Ok(Op::InsertFold { absent, .. }) if is_oldest => ("put", absent),
        Ok(Op::InsertFold { present, .. }) => ("fold", present),
        Ok(Op::SetSeparated(pointer)) => ("put", pointer), // cannot happen: separated values are loaded before
        Ok(Op::InsertSeparated(pointer)) => ("put_if_absent", pointer),
        Ok(Op::FoldSeparated(pointer)) => ("fold", pointer),
        Ok(Op::Delete) | Err(_) => ("delete", &[]),
    }
}

// ---- reading ------------------------------------------------------------------------------------

/// Reads a line, without its newline.
pub(crate) fn parse(line: &str) -> Result<Line, String> {
    let Datum::Map(fields) = json::parse(line)? else { return Err("expected a JSON object".to_owned()) };
    let Some((first, _)) = fields.first() else {
        return Err("an empty object is not a line of a dump".to_owned());
    };
    match first.as_str() {
        "folddb" => start(&fields),
        "table" => table(&fields),
        "key" | "key_hex" => record(fields),
        "end" => end(&fields),
        "piece" => bytes(field(&fields, "piece")?).map(Line::Piece),
        other => Err(format!("a line of a dump cannot begin with `{other}`")),
    }
}

type Fields = [(String, Datum)];

fn field<'a>(fields: &'a Fields, name: &str) -> Result<&'a Datum, String> {
    let found = fields.iter().find(|(own, _)| own == name);
    found.map(|(_, datum)| datum).ok_or_else(|| format!("`{name}` is missing"))
}

fn text<'a>(fields: &'a Fields, name: &str) -> Result<&'a str, String> {
    match field(fields, name)? {
        Datum::Text(text) => Ok(text),
        _ => Err(format!("`{name}` is not text")),
    }
}

fn number(fields: &Fields, name: &str) -> Result<i128, String> {
    match field(fields, name)? {
        Datum::Int(number) => Ok(*number),
        _ => Err(format!("`{name}` is not a whole number")),
    }
}

fn start(fields: &Fields) -> Result<Line, String> {
    match text(fields, "folddb")? {
        "dump" => Ok(Line::Start { version: number(fields, "version")? }),
        other => Err(format!("this is a `{other}`, not a dump")),
    }
}

fn table(fields: &Fields) -> Result<Line, String> {
    let Datum::List(rules) = field(fields, "rules")? else { return Err("`rules` is not a list".to_owned()) };
    let mut rules_text = String::new();
    for line in rules {
        let Datum::Text(line) = line else { return Err("`rules` is not a list of text".to_owned()) };
        rules_text.push_str(line);
        rules_text.push('\n');
    }
    Ok(Line::Table { name: text(fields, "table")?.to_owned(), rules_text })
}

fn end(fields: &Fields) -> Result<Line, String> {
    let count =
        |name: &str| u64::try_from(number(fields, name)?).map_err(|_| format!("`{name}` is not a count"));
    if text(fields, "end")? != "dump" {
        return Err("this is not the end of a dump".to_owned());
    }
    let hash = text(fields, "hash")?;
    let hash = u64::from_str_radix(hash, 16).map_err(|_| "`hash` is not a hash".to_owned())?;
    Ok(Line::End(Totals { tables: count("tables")?, records: count("records")?, hash }))
}

fn record(fields: Vec<(String, Datum)>) -> Result<Line, String> {
    let mut fields = fields.into_iter();
    let (Some((key_name, key)), Some((name, content))) = (fields.next(), fields.next()) else {
        return Err("a record has a key and a value".to_owned());
    };
    let (mut next, mut until_ms) = (fields.next(), None);
    if let Some((_, until)) = next.take_if(|(name, _)| name == "until") {
        let Datum::Int(ms) = until else { return Err("`until` is not a time".to_owned()) };
        until_ms = Some(u64::try_from(ms).map_err(|_| "`until` is not a time".to_owned())?);
        next = fields.next();
    }
    match next {
        None => {}
        Some((name, _)) if name == "shown" && fields.next().is_none() => {}
        Some((name, _)) => return Err(format!("a record has a key and a value, and no `{name}`")),
    }
    let key = said("key", &key_name, key)?;
    let content = if name == "ops" {
        Content::Ops(ops(content)?)
    } else if name == "long" {
        let Datum::Int(bytes) = content else { return Err("`long` is not a count".to_owned()) };
        Content::Long(u64::try_from(bytes).map_err(|_| "`long` is not a count".to_owned())?)
    } else {
        Content::Value(said("value", &name, content)?)
    };
    Ok(Line::Record { key, content, until_ms })
}

fn said(wanted: &str, name: &str, datum: Datum) -> Result<Said, String> {
    match name.strip_prefix(wanted) {
        Some("") => Ok(Said::Shown(datum)),
        Some("_hex") => bytes(&datum).map(Said::Bytes),
        _ => Err(format!("expected `{wanted}` or `{wanted}_hex`, found `{name}`")),
    }
}

fn bytes(datum: &Datum) -> Result<Vec<u8>, String> {
    let bytes = if let Datum::Text(text) = datum { from_hex(text) } else { None };
    bytes.ok_or_else(|| "expected hexadecimal digits".to_owned())
}

fn ops(datum: Datum) -> Result<Vec<(WriteOp, Vec<u8>)>, String> {
    let Datum::List(ops) = datum else { return Err("`ops` is not a list".to_owned()) };
    ops.iter().map(op).collect()
}

fn op(datum: &Datum) -> Result<(WriteOp, Vec<u8>), String> {
    let Datum::List(pair) = datum else { return Err("an op is a list of two".to_owned()) };
    let [Datum::Text(word), value] = pair.as_slice() else { return Err("an op is a list of two".to_owned()) };
    let op = match word.as_str() {
        "put" | "set" => WriteOp::Put, // the second words are those of older dumps
        "put_if_absent" | "insert" => WriteOp::PutIfAbsent,
        "fold" => WriteOp::Fold,
        "delete" => WriteOp::Delete,
        other => return Err(format!("`{other}` is not an op")),
    };
    Ok((op, bytes(value)?))
}

#[cfg(test)]
mod tests;
