//! Spec strings: the names by which stores, command lines and other languages know the folds.
//!
//! ```text
//!   spec    = name { ":" argument } | record
//!   record  = "{" field { "," field } [","] "}"
//!   field   = name ":" spec [ "=" source ]            a source only in `Columns`
//!   name of a field, argument = bare word | "quoted \" \\ \n \r \t \xHH"; the first also `name`
//!   source  = column | `column` | number | "text"
//! ```
//!
//! Outside of records the separator of `append` may be any text without quotes, since shells remove
//! them. An error points at the byte where reading stopped, and offers the nearest spec that
//! exists.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::fold::Fold;
use crate::parse_error::{ParseError, nearest};

use super::append::Append;
#[cfg(feature = "bitmap")]
use super::bitmap::BitmapFold;
use super::built_in::BuiltIn;
use super::choose::{ExtremeBytes, First, LastWriter, Replace};
use super::counters::CountersFold;
use super::hll::{self, HllFold};
use super::json_merge::JsonMerge;
use super::matmul::{self, Matmul};
use super::number::{Extreme, NumberType, SumI64, SumI128, SumU64};
use super::patch::PatchFold;
use super::quantiles::{ALPHA_DEFAULT, Mapping, QuantilesFold};
use super::record::{Field, Record, RecordFold};
use super::set::{Keeps, SetFold};
use super::stats::StatsF64;
use super::sum_f64::SumF64;
use super::top::{self, TopFold};
use super::words::{is_bare, quoted, quoted_name};

/// Most fields of a record.
const FIELDS_MAX: usize = 256;
/// Deepest nesting of records.
const DEPTH_MAX: usize = 8;

/// Every fold, as the help of a tool shows it.
pub const SPECS: [&str; 28] = [
    "replace",
    "first",
    "sum:i64",
    "sum:u64",
    "sum:i128",
    "sum:f64",
    "min:i64",
    "min:u64",
    "min:f64",
    "min:time",
    "min:bytes",
    "max:i64",
    "max:u64",
    "max:f64",
    "max:time",
    "max:bytes",
    "stats:f64",
    "append",
    "set",
    "intersect",
    "bitmap",
    "counters",
    "lww:ts",
    "top:10",
    "hll:12",
    "quantiles",
    "json-merge",
    "patch",
];

/// Names that other systems have for a fold, and its spec here.
const ALIASES: [(&str, &str); 28] = [
    ("sum", "sum:i64"),
    ("min", "min:i64"),
    ("max", "max:i64"),
    ("stats", "stats:f64"),
    ("hll", "hll:12"),
    ("top", "top:10"),
    ("lww", "lww:ts"),
    ("matmul", "matmul:2:f64"),
    ("count", "sum:u64"),
    ("counter", "sum:u64"),
    ("add", "sum:i64"),
    ("avg", "stats:f64"),
    ("average", "stats:f64"),
    ("mean", "stats:f64"),
    ("variance", "stats:f64"),
    ("last", "replace"),
    ("put", "replace"),
    ("union", "set"),
    ("intersection", "intersect"),
    ("roaring", "bitmap"),
    ("concat", "append"),
    ("map", "counters"),
    ("topk", "top:10"),
    ("distinct", "hll:12"),
    ("hyperloglog", "hll:12"),
    ("ddsketch", "quantiles"),
    ("percentiles", "quantiles"),
    ("json", "json-merge"),
];

/// Where the operand of a field comes from when rows are imported. There are only these two
/// sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The column of this name.
    Column(String),
    /// The same text for each row.
    Literal(String),
}

/// A spec with fields that say where their operands come from, as an import takes it: `flights:
/// sum:u64 = 1, delay: stats:f64 = dep_delay`. A fold is of plain values or of records, and of
/// nothing else.
#[derive(Clone)]
pub enum Columns {
    /// A fold that is not a record, with a source if one was given.
    Plain(Arc<dyn Fold>, Option<Source>),
    /// A record, with a source for each field that names one.
    Record(Record, Vec<Option<Source>>),
}

/// The fold of a spec string.
pub(crate) fn parse(text: &str) -> Result<Arc<dyn Fold>, ParseError> {
    let fold: Arc<dyn Fold> = Parser::new(text, false).whole()?.fold;
    Ok(fold)
}

impl FromStr for Record {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Record, ParseError> {
        let parsed = Parser::new(text, false).whole()?;
        match parsed.record {
            Some((record, _)) => Ok(Record::from_fold(record)),
            None => Err(Parser::new(text, false).error(0, "expected a record, as in `{flights: sum:u64}`")),
        }
    }
}

/// The braces of the outermost record may be left out.
impl FromStr for Columns {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Columns, ParseError> {
        let mut parser = Parser::new(text, true);
        parser.skip_space();
        let bare_record = !text[parser.at..].starts_with('{')
            && Parser::new(text, true).whole().is_err()
            && text.contains([',', '=', ' ']);
        if bare_record {
            let (record, sources) = parser.fields(None, 0)?;
            return Ok(Columns::Record(Record::from_fold(record), sources));
        }
        let parsed = parser.whole()?;
        Ok(match parsed.record {
            Some((record, sources)) => Columns::Record(Record::from_fold(record), sources),
            None => Columns::Plain(parsed.fold, parsed.source),
        })
    }
}

impl fmt::Display for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Columns::Plain(fold, None) => f.write_str(&fold.spec()),
            Columns::Plain(fold, Some(source)) => write!(f, "{} = {source}", self_delimiting(fold.spec())),
            Columns::Record(record, sources) => {
                f.write_str("{")?;
                for (index, name) in record.names().enumerate() {
                    let between = if index > 0 { ", " } else { "" };
                    let spec = record.field_fold(index).map(Fold::spec).unwrap_or_default();
                    write!(f, "{between}{}: {spec}", quoted_name(name))?;
                    if let Some(Some(source)) = sources.get(index) {
                        write!(f, " = {source}")?;
                    }
                }
                f.write_str("}")
            }
        }
    }
}

impl fmt::Debug for Columns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Columns({self})")
    }
}

/// A spec that something else may follow: without quotes, the separator of `append` would reach to
/// the end of the text.
fn self_delimiting(spec: String) -> String {
    match spec.strip_prefix("append:") {
        Some(separator) if !separator.starts_with('"') => format!("append:\"{separator}\""),
        _ => spec,
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Literal(text) => f.write_str(&quoted(text.as_bytes())),
            Source::Column(name) if is_plain_column(name) => f.write_str(name),
            Source::Column(name) => write!(f, "`{name}`"),
        }
    }
}

/// Whether the name of a column needs no quotes.
fn is_plain_column(name: &str) -> bool {
    let is_word = !name.is_empty() && name.trim() == name && !name.contains([',', '}']);
    is_word && !name.starts_with(['`', '"']) && name.parse::<f64>().is_err()
}

struct Parsed {
    fold: Arc<dyn BuiltIn>,
    record: Option<(RecordFold, Vec<Option<Source>>)>,
    source: Option<Source>,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    takes_sources: bool,
}

/// An argument or a name, and its place.
struct Word {
    at: usize,
    bytes: Vec<u8>,
}

impl Word {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, takes_sources: bool) -> Parser<'a> {
        Parser { text, at: 0, takes_sources }
    }

    fn error(&self, at: usize, message: impl Into<String>) -> ParseError {
        ParseError::at_byte(self.text, at, message)
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn skip_space(&mut self) {
        while let Some(space) = self.peek().filter(|c| c.is_whitespace()) {
            self.at += space.len_utf8();
        }
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += if found { wanted.len_utf8() } else { 0 };
        found
    }

    fn whole(mut self) -> Result<Parsed, ParseError> {
        let mut parsed = self.spec(0)?;
        if parsed.record.is_none() {
            parsed.source = self.source()?;
        }
        self.skip_space();
        match self.peek() {
            None => Ok(parsed),
            Some(found) => Err(self.error(self.at, format!("expected the end of the spec, found `{found}`"))),
        }
    }

    fn spec(&mut self, depth: usize) -> Result<Parsed, ParseError> {
        self.skip_space();
        let start = self.at;
        if self.take('{') {
            if depth == DEPTH_MAX {
                return Err(self.error(start, format!("records nest at most {DEPTH_MAX} deep")));
            }
            let (record, sources) = self.fields(Some('}'), depth + 1)?;
            return Ok(Parsed {
                fold: Arc::new(record.clone()),
                record: Some((record, sources)),
                source: None,
            });
        }
        let name = self.word("the name of a fold")?;
        let mut arguments = Vec::new();
        while self.take(':') {
            arguments.push(if depth == 0 && name.bytes == b"append" {
                self.separator()?
            } else {
                self.argument()?
            });
        }
        let mut arguments = Arguments { parser: self, name: &name, left: arguments.into_iter() };
        let fold = arguments.fold()?;
        arguments.finish()?;
        Ok(Parsed { fold, record: None, source: None })
    }

    /// Fields up to `end`, or to the end of the text.
    fn fields(
        &mut self,
        end: Option<char>,
        depth: usize,
    ) -> Result<(RecordFold, Vec<Option<Source>>), ParseError> {
        let (mut fields, mut sources): (Vec<Field>, Vec<Option<Source>>) = (Vec::new(), Vec::new());
        loop {
            self.skip_space();
            if !fields.is_empty() && self.ends(end) {
                return Ok((RecordFold::new(fields), sources));
            }
            let at = self.at;
            let word = match self.backquoted("a field")? {
                Some(name) => Word { at, bytes: name.into_bytes() },
                None => self.word("the name of a field")?,
            };
            let name = String::from_utf8(word.bytes)
                .map_err(|_| self.error(word.at, "a field's name must be text"))?;
            if fields.iter().any(|field| field.name == name) {
                return Err(self.error(word.at, format!("there is a field `{name}` already")));
            }
            if fields.len() == FIELDS_MAX {
                return Err(self.error(word.at, format!("a record has at most {FIELDS_MAX} fields")));
            }
            self.skip_space();
            if !self.take(':') {
                return Err(self.error(self.at, format!("expected `:` and a fold after the field `{name}`")));
            }
            let fold = self.spec(depth.max(1))?.fold;
            fields.push(Field { name, fold });
            sources.push(self.source()?);
            self.skip_space();
            if !self.take(',') && !self.at_end(end) {
                let expected = end.map_or(String::from("`,`"), |end| format!("`,` or `{end}`"));
                return Err(self.error(self.at, format!("expected {expected} after a field")));
            }
        }
    }

    fn at_end(&self, end: Option<char>) -> bool {
        self.peek() == end
    }

    fn ends(&mut self, end: Option<char>) -> bool {
        match end {
            Some(end) => self.take(end),
            None => self.at == self.text.len(),
        }
    }

    fn source(&mut self) -> Result<Option<Source>, ParseError> {
        self.skip_space();
        if !self.takes_sources || !self.take('=') {
            return Ok(None);
        }
        self.skip_space();
        if let Some(name) = self.backquoted("a column")? {
            return Ok(Some(Source::Column(name)));
        }
        if self.peek() == Some('"') {
            return Ok(Some(Source::Literal(self.quoted()?.text())));
        }
        let rest = &self.text[self.at..];
        let word = rest[..rest.find([',', '}']).unwrap_or(rest.len())].trim_end();
        if word.is_empty() {
            return Err(self.error(self.at, "expected a column, a number or a text in quotes"));
        }
        self.at += word.len();
        let is_number = word.parse::<f64>().is_ok() && !word.starts_with(char::is_alphabetic);
        Ok(Some(if is_number { Source::Literal(word.to_owned()) } else { Source::Column(word.to_owned()) }))
    }

    /// A name in backquotes, if one comes next.
    fn backquoted(&mut self, of: &str) -> Result<Option<String>, ParseError> {
        if !self.take('`') {
            return Ok(None);
        }
        let rest = &self.text[self.at..];
        let Some(len) = rest.find('`') else {
            return Err(self.error(self.at, format!("expected a closing '`' after the name of {of}")));
        };
        self.at += len + 1;
        Ok(Some(rest[..len].to_owned()))
    }

    fn word(&mut self, what: &str) -> Result<Word, ParseError> {
        if self.peek() == Some('"') {
            return self.quoted();
        }
        let word = self.bare();
        if !word.bytes.is_empty() {
            return Ok(word);
        }
        Err(match self.peek() {
            None => self.error(word.at, format!("expected {what}, found the end")),
            Some(found) => self.error(word.at, format!("expected {what}, found `{found}`")),
        })
    }

    fn bare(&mut self) -> Word {
        let rest = &self.text[self.at..];
        let len = rest.find(|c: char| !is_bare(c)).unwrap_or(rest.len());
        let word = Word { at: self.at, bytes: rest.as_bytes()[..len].to_vec() };
        self.at += len;
        word
    }

    fn argument(&mut self) -> Result<Word, ParseError> {
        if self.peek() == Some('"') { self.quoted() } else { Ok(self.bare()) }
    }

    /// The separator of `append` outside of a record: all that follows, with escapes.
    fn separator(&mut self) -> Result<Word, ParseError> {
        if self.peek() == Some('"') && self.text.len() > self.at + 1 {
            return self.quoted();
        }
        let mut word = Word { at: self.at, bytes: Vec::new() };
        while let Some(c) = self.peek() {
            self.character(c, &mut word.bytes)?;
        }
        Ok(word)
    }

    fn quoted(&mut self) -> Result<Word, ParseError> {
        let mut word = Word { at: self.at, bytes: Vec::new() };
        self.at += 1;
        loop {
            match self.peek() {
                None => return Err(self.error(word.at, "expected a closing quote")),
                Some('"') => {
                    self.at += 1;
                    return Ok(word);
                }
                Some(c) => self.character(c, &mut word.bytes)?,
            }
        }
    }

    /// Takes the character `c`, or the escape that it begins.
    fn character(&mut self, c: char, bytes: &mut Vec<u8>) -> Result<(), ParseError> {
        let start = self.at;
        self.at += c.len_utf8();
        if c != '\\' {
            bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
            return Ok(());
        }
        let escaped = self.peek();
        self.at += escaped.map_or(0, char::len_utf8);
        bytes.push(match escaped {
            Some('n') => b'\n',
            Some('r') => b'\r',
            Some('t') => b'\t',
            Some('0') => 0,
            Some(c @ ('\\' | '"' | ':' | ',' | '}' | '{')) => c as u8,
            Some('x') => {
                let digits = self.text.get(self.at..self.at + 2);
                let byte = digits.filter(|d| d.bytes().all(|d| d.is_ascii_hexdigit()));
                self.at += byte.map_or(0, str::len);
                match byte.map(|digits| u8::from_str_radix(digits, 16)) {
                    Some(Ok(byte)) => byte,
                    _ => return Err(self.error(start, "expected two hex digits, as in `\\x1f`")),
                }
            }
            _ => return Err(self.error(start, "expected one of \\\\ \\\" \\n \\r \\t \\0 \\xHH")),
        });
        Ok(())
    }
}

/// The arguments of a fold, taken one by one.
struct Arguments<'p, 'a> {
    parser: &'p Parser<'a>,
    name: &'p Word,
    left: std::vec::IntoIter<Word>,
}

impl Arguments<'_, '_> {
    fn fold(&mut self) -> Result<Arc<dyn BuiltIn>, ParseError> {
        Ok(match self.name.text().as_str() {
            "replace" => Arc::new(Replace),
            "first" => Arc::new(First),
            "sum" => self.sum()?,
            "min" => self.extreme(false)?,
            "max" => self.extreme(true)?,
            "stats" => {
                self.choice("a number type", &["f64"])?;
                Arc::new(StatsF64)
            }
            "append" => {
                Arc::new(Append { separator: self.left.next().map(|word| word.bytes).unwrap_or_default() })
            }
            "set" => Arc::new(SetFold { keeps: Keeps::All }),
            "intersect" => Arc::new(SetFold { keeps: Keeps::Common }),
            #[cfg(feature = "bitmap")]
            "bitmap" => Arc::new(BitmapFold),
            #[cfg(not(feature = "bitmap"))]
            "bitmap" => return Err(self.needs_feature("bitmap")),
            "counters" => Arc::new(CountersFold),
            "lww" => {
                self.choice("the place of the time", &["ts"])?;
                Arc::new(LastWriter)
            }
            "top" => {
                let kept = self.number("how many members to keep", 1, top::KEPT_MAX)?;
                let whole_scores =
                    !self.left.as_slice().is_empty() && self.choice("a type of score", &["i64", "f64"])? == 0;
                Arc::new(TopFold { kept, whole_scores })
            }
            "hll" => {
                let (least, most) = (hll::PRECISION_MIN as usize, hll::PRECISION_MAX as usize);
                Arc::new(HllFold { precision: self.number("a precision", least, most)? as u32 })
            }
            "quantiles" => Arc::new(QuantilesFold { mapping: Mapping::new(self.alpha()?) }),
            "json-merge" => Arc::new(JsonMerge),
            "matmul" => {
                let side = self.number("the side of the matrices", 1, matmul::SIDE_MAX)?;
                let whole = self.choice("a number type", &["f64", "i64"])? == 1;
                Arc::new(Matmul { side, whole })
            }
            "patch" => Arc::new(PatchFold),
            name => return Err(self.unknown(name)),
        })
    }

    /// The fold is known, but the program was built without it.
    #[cfg(not(feature = "bitmap"))]
    fn needs_feature(&self, feature: &str) -> ParseError {
        let message =
            format!("the fold `{}` needs the feature `{feature}` of folddb, which is off", self.name.text());
        self.parser.error(self.name.at, message)
    }

    fn unknown(&self, name: &str) -> ParseError {
        let error = self.parser.error(self.name.at, format!("there is no fold `{name}`"));
        let wanted = name.to_ascii_lowercase();
        let alias = ALIASES.iter().find(|(alias, _)| *alias == wanted).map(|(_, spec)| *spec);
        let names = SPECS.iter().chain(ALIASES.iter().map(|(alias, _)| alias)).map(|spec| stem(spec));
        let near = || {
            let near = nearest(&wanted, names.chain(["matmul"]))?;
            Some(ALIASES.iter().find(|(alias, _)| *alias == near).map_or(near, |(_, spec)| *spec))
        };
        error.suggest(alias.or_else(near).map(str::to_owned))
    }

    /// The next argument; `usual` completes the suggestion when there is none.
    fn next(&mut self, what: &str) -> Result<Word, ParseError> {
        if let Some(word) = self.left.next() {
            return Ok(word);
        }
        let name = self.name.text();
        let at = self.name.at + self.name.bytes.len();
        let error = self.parser.error(at, format!("`{name}` needs {what} after a colon"));
        let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
        Err(error.suggest(alias.map(|(_, spec)| (*spec).to_owned())))
    }

    fn choice(&mut self, what: &str, choices: &[&str]) -> Result<usize, ParseError> {
        let word = self.next(&format!("{what} ({})", choices.join(", ")))?;
        let given = word.text();
        choices.iter().position(|choice| *choice == given).ok_or_else(|| {
            let name = self.name.text();
            let message = format!("expected {what} for `{name}`: {}; found `{given}`", choices.join(", "));
            let near = nearest(&given, choices.iter().copied()).or_else(|| usual_type(&given, choices));
            let whole = near.filter(|_| name != "matmul" && name != "top");
            self.parser.error(word.at, message).suggest(whole.map(|near| format!("{name}:{near}")))
        })
    }

    fn number(&mut self, what: &str, least: usize, most: usize) -> Result<usize, ParseError> {
        let what = format!("{what} ({least} to {most})");
        let word = self.next(&what)?;
        let given = word.text();
        let digits = given.bytes().all(|digit| digit.is_ascii_digit());
        given.parse().ok().filter(|number| digits && (least..=most).contains(number)).ok_or_else(|| {
            self.parser.error(word.at, format!("expected {what} for `{}`, found `{given}`", self.name.text()))
        })
    }

    fn alpha(&mut self) -> Result<f64, ParseError> {
        let Some(word) = self.left.next() else {
            return Ok(ALPHA_DEFAULT);
        };
        let given = word.text();
        given.parse().ok().filter(|alpha| (0.0001..=0.5).contains(alpha)).ok_or_else(|| {
            let message =
                format!("expected a relative error (0.0001 to 0.5) for `quantiles`, found `{given}`");
            self.parser.error(word.at, message)
        })
    }

    fn sum(&mut self) -> Result<Arc<dyn BuiltIn>, ParseError> {
        Ok(match self.choice("a number type", &["i64", "u64", "i128", "f64"])? {
            0 => Arc::new(SumI64),
            1 => Arc::new(SumU64),
            2 => Arc::new(SumI128),
            _ => Arc::new(SumF64),
        })
    }

    fn extreme(&mut self, largest: bool) -> Result<Arc<dyn BuiltIn>, ParseError> {
        let number = match self.choice("a type", &["i64", "u64", "f64", "time", "bytes"])? {
            0 => NumberType::I64,
            1 => NumberType::U64,
            2 => NumberType::F64,
            3 => NumberType::Time,
            _ => return Ok(Arc::new(ExtremeBytes { largest })),
        };
        Ok(Arc::new(Extreme { number, largest }))
    }

    fn finish(&mut self) -> Result<(), ParseError> {
        match self.left.next() {
            None => Ok(()),
            Some(word) => {
                let message = format!("`{}` takes no argument `{}`", self.name.text(), word.text());
                Err(self.parser.error(word.at, message))
            }
        }
    }
}

/// What other languages call the number types.
fn usual_type<'c>(given: &str, choices: &[&'c str]) -> Option<&'c str> {
    let meant = match given {
        "int" | "integer" | "int64" | "long" | "i32" => "i64",
        "uint" | "unsigned" | "uint64" | "u32" => "u64",
        "int128" | "u128" | "uint128" | "hugeint" => "i128",
        "float" | "double" | "f32" | "float64" | "real" => "f64",
        "str" | "string" | "text" | "utf8" => "bytes",
        "timestamp" | "datetime" | "date" => "time",
        _ => return None,
    };
    choices.iter().copied().find(|choice| *choice == meant)
}

fn stem(spec: &'static str) -> &'static str {
    spec.split(':').next().unwrap_or(spec)
}

#[cfg(test)]
#[path = "spec/tests.rs"]
mod tests;
