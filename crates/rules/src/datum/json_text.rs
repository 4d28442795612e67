//! JSON text (RFC 8259) as a tree. Its leaves are kept as they are written. This is the only reader
//! of JSON.
//!
//! Numbers stay text, so no digit is lost and printing what was read gives the same text. Strings
//! are read and written in one form. Nothing panics, and depth is bounded before anything recurses.
//! Errors are text: what was expected, and at which byte.

use std::borrow::Cow;

/// Deepest nesting of arrays and objects in a document.
pub(crate) const DEPTH_MAX: usize = 128;

/// The name that marks an object as replacing what was there.
pub(crate) const SET: &str = "$set";

/// A piece of JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node<'a> {
    /// `null`, a bool or a number, as written.
    Word(&'a str),
    /// A string, decoded.
    Text(Cow<'a, str>),
    Array(Vec<Node<'a>>),
    /// Sorted by name, or in order; of repeated names the last counts.
    Object(Vec<(Cow<'a, str>, Node<'a>)>),
}

impl<'a> Node<'a> {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Node::Word(word) => out.extend_from_slice(word.as_bytes()),
            Node::Text(text) => put_text(text, out),
            Node::Array(items) => {
                out.push(b'[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.put(out);
                }
                out.push(b']');
            }
            Node::Object(fields) => {
                put_value_file(out, fields.iter().map(|(name, node)| (name.as_ref(), node)), |node, out| {
                    node.put(out)
                });
            }
        }
    }

    /// Its text, in one form.
    pub(crate) fn into_text(self) -> Cow<'a, str> {
        if let Node::Word(word) = self {
            return Cow::Borrowed(word);
        }
        let mut out = Vec::new();
        self.put(&mut out);
        Cow::Owned(String::from_utf8_lossy(&out).into_owned())
    }
}

/// Appends an object; `put` appends a member's value.
pub(crate) fn put_value_file<'n, T>(
    out: &mut Vec<u8>,
    fields: impl Iterator<Item = (&'n str, T)>,
    put: impl Fn(T, &mut Vec<u8>),
) {
    out.push(b'{');
    for (index, (name, value)) in fields.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put_text(name, out);
        out.push(b':');
        put(value, out);
    }
    out.push(b'}');
}

/// Appends a string: only quotes, backslashes and control characters are escaped.
pub(crate) fn put_text(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text.bytes() {
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..0x20 => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

/// Reads one JSON text.
///
/// # Errors
/// Says what was expected, and at which byte.
pub(crate) fn parse(text: &str) -> Result<Node<'_>, String> {
    Parser { text, at: 0, keeps_order: false }.whole(DEPTH_MAX)
}

/// The same with the names of objects in their original order, nested at most this deep.
///
/// # Errors
/// As [`parse`].
pub(crate) fn parse_in_order(text: &str, depth_max: usize) -> Result<Node<'_>, String> {
    Parser { text, at: 0, keeps_order: true }.whole(depth_max)
}

/// Appends what is at a JSON pointer (RFC 6901) in a value; nothing if the value is not JSON or has
/// nothing there.
pub(crate) fn put_at(value: &[u8], pointer: &str, out: &mut Vec<u8>) {
    let root = std::str::from_utf8(value).ok().and_then(|text| parse(text).ok());
    let mut node = root.as_ref();
    for step in pointer.split('/').skip(1) {
        let name = step.replace("~1", "/").replace("~0", "~");
        node = match node {
            Some(Node::Object(fields)) => {
                fields.iter().find(|(field, _)| *field == name).map(|(_, node)| node)
            }
            Some(Node::Array(items)) => name.parse().ok().and_then(|index: usize| {
                items.get(index).filter(|_| index.to_string() == name) // no other way to write it
            }),
            _ => None,
        };
    }
    if let Some(node) = node {
        node.put(out);
    }
}

/// The steps of a JSON pointer (RFC 6901).
pub(crate) fn steps(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

/// What is at the end of these steps in a text; none if the text is not JSON or has nothing there.
/// Only that piece becomes a tree. With `sees_through_set`, an object that holds only [`SET`]
/// counts as the value of [`SET`].
pub(crate) fn find<'a>(text: &'a str, steps: &[String], sees_through_set: bool) -> Option<Node<'a>> {
    let mut parser = Parser { text, at: 0, keeps_order: false };
    let found = parser.find(Some(steps), DEPTH_MAX, sees_through_set).ok()?;
    parser.skip_space();
    found.filter(|_| parser.at == text.len())
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    /// Names of objects stay in their original order.
    keeps_order: bool,
}

impl<'a> Parser<'a> {
    fn whole(mut self, depth_max: usize) -> Result<Node<'a>, String> {
        let node = self.value(depth_max, true)?;
        self.skip_space();
        if self.at < self.text.len() { self.fail("the end of the JSON text") } else { Ok(node) }
    }

    fn fail<T>(&self, expected: &str) -> Result<T, String> {
        Err(format!("expected {expected} at byte {}", self.at))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// `set_is_free`: one `$set` on the way down does not count as nesting, so that the object it
    /// marks may be as deep as any other.
    fn value(&mut self, depth_left: usize, set_is_free: bool) -> Result<Node<'a>, String> {
        self.skip_space();
        match self.peek() {
            Some(b'{' | b'[') if depth_left == 0 => self.fail("less nesting"),
            Some(b'{') => self.object(depth_left - 1, set_is_free),
            Some(b'[') => self.array(depth_left - 1),
            Some(b'"') => Ok(Node::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.word(),
        }
    }

    /// Skips a value, and returns what is in it at the end of these steps, if there are any.
    fn find(
        &mut self,
        steps: Option<&[String]>,
        depth_left: usize,
        sees_through_set: bool,
    ) -> Result<Option<Node<'a>>, String> {
        self.skip_space();
        let is_object = self.peek() == Some(b'{');
        let is_here = steps.is_some_and(<[String]>::is_empty);
        if !is_object && self.peek() != Some(b'[') {
            return Ok(Some(self.value(depth_left, false)?).filter(|_| is_here));
        }
        if is_here && !(is_object && sees_through_set) {
            return self.value(depth_left, false).map(Some);
        }
        let Some(depth_left) = depth_left.checked_sub(1) else { return self.fail("less nesting") };
        let close = if is_object { b'}' } else { b']' };
        self.at += 1;
        self.skip_space();
        if self.take(close) {
            return Ok(None);
        }
        let step = steps.and_then(<[String]>::split_first);
        let (mut found, mut count) = (None, 0usize);
        loop {
            let name = if is_object { Some(self.member_name()?) } else { None };
            let is_step = step.is_some_and(|(step, _)| match &name {
                Some(name) => step == name,
                None => *step == count.to_string(),
            });
            count += 1;
            if is_step {
                // Of repeated names the last counts.
                found = self.find(step.map(|(_, rest)| rest), depth_left, sees_through_set)?;
            } else if sees_through_set && name.is_some_and(|name| name == SET) {
                found = self.find(steps, depth_left, true)?;
            } else {
                self.find(None, depth_left, false)?;
            }
            self.skip_space();
            if self.take(close) {
                return Ok(found);
            }
            if !self.take(b',') {
                return self.fail("the next, or an end");
            }
        }
    }

    fn member_name(&mut self) -> Result<Cow<'a, str>, String> {
        self.skip_space();
        let name = self.string()?;
        self.skip_space();
        if self.take(b':') { Ok(name) } else { self.fail("`:`") }
    }

    fn word(&mut self) -> Result<Node<'a>, String> {
        let rest = &self.text[self.at..];
        for word in ["null", "true", "false"] {
            if rest.starts_with(word) {
                self.at += word.len();
                return Ok(Node::Word(&rest[..word.len()]));
            }
        }
        self.fail("a JSON value")
    }

    fn digits(&mut self) -> Result<(), String> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start { self.fail("a digit") } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Node<'a>, String> {
        let start = self.at;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(Node::Word(&self.text[start..self.at]))
    }

    fn array(&mut self, depth_left: usize) -> Result<Node<'a>, String> {
        self.at += 1;
        let mut items = Vec::new();
        self.skip_space();
        if self.take(b']') {
            return Ok(Node::Array(items));
        }
        loop {
            items.push(self.value(depth_left, false)?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Node::Array(items));
            }
            if !self.take(b',') {
                return self.fail("`,` or `]`");
            }
        }
    }

    fn object(&mut self, depth_left: usize, set_is_free: bool) -> Result<Node<'a>, String> {
        self.at += 1;
        let mut fields: Vec<(Cow<'a, str>, Node<'a>)> = Vec::new();
        self.skip_space();
        if self.take(b'}') {
            return Ok(Node::Object(fields));
        }
        loop {
            self.skip_space();
            let name = self.string()?;
            self.skip_space();
            if !self.take(b':') {
                return self.fail("`:`");
            }
            let free = set_is_free && name == SET;
            let value = self.value(depth_left + usize::from(free), set_is_free && !free)?;
            fields.push((name, value));
            self.skip_space();
            if self.take(b'}') {
                return Ok(Node::Object(if self.keeps_order { once(fields) } else { sorted(fields) }));
            }
            if !self.take(b',') {
                return self.fail("`,` or `}`");
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, String> {
        if !self.take(b'"') {
            return self.fail("a string in quotes");
        }
        let start = self.at;
        let mut decoded: Option<String> = None;
        loop {
            let from = self.at;
            while let Some(byte) = self.peek()
                && byte != b'"'
                && byte != b'\\'
                && byte >= 0x20
            {
                self.at += 1;
            }
            if let Some(text) = &mut decoded {
                text.push_str(&self.text[from..self.at]);
            }
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(match decoded {
                        Some(text) => Cow::Owned(text),
                        None => Cow::Borrowed(&self.text[start..self.at - 1]),
                    });
                }
                Some(b'\\') => {
                    let text = decoded.get_or_insert_with(|| self.text[start..self.at].to_owned());
                    let (escaped, end) = escape(self.text, self.at)?;
                    text.push(escaped);
                    self.at = end;
                }
                _ => return self.fail("the end of a string"),
            }
        }
    }
}

/// The character of the escape at `at`, and where it ends.
fn escape(text: &str, at: usize) -> Result<(char, usize), String> {
    let wrong = || format!("expected an escape sequence at byte {at}");
    let plain = match text.as_bytes().get(at + 1).ok_or_else(wrong)? {
        b'"' => '"',
        b'\\' => '\\',
        b'/' => '/',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode_escape(text, at).ok_or_else(wrong),
        _ => return Err(wrong()),
    };
    Ok((plain, at + 2))
}

fn unicode_escape(text: &str, at: usize) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        u32::from_str_radix(digits, 16).ok()
    };
    let first = unit(at)?;
    if !(0xd800..0xdc00).contains(&first) {
        return Some((char::from_u32(first)?, at + 6));
    }
    let second = unit(at + 6).filter(|second| (0xdc00..0xe000).contains(second))?;
    Some((char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00))?, at + 12))
}

/// By name; of repeated names the last.
fn sorted<'a>(mut fields: Vec<(Cow<'a, str>, Node<'a>)>) -> Vec<(Cow<'a, str>, Node<'a>)> {
    if fields.windows(2).all(|pair| pair[0].0 < pair[1].0) {
        return fields;
    }
    fields.reverse();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    fields.dedup_by(|later, earlier| later.0 == earlier.0);
    fields
}

/// Each name once, at its first place; repeated names with the value of the last.
fn once<'a>(fields: Vec<(Cow<'a, str>, Node<'a>)>) -> Vec<(Cow<'a, str>, Node<'a>)> {
    let mut order: Vec<usize> = (0..fields.len()).collect();
    order.sort_by(|&a, &b| fields[a].0.cmp(&fields[b].0)); // stable: of equal names the first in front
    if order.windows(2).all(|pair| fields[pair[0]].0 != fields[pair[1]].0) {
        return fields;
    }
    let mut last: Vec<usize> = (0..fields.len()).collect(); // for each first place of a name
    let mut is_first = vec![true; fields.len()];
    let mut first = 0;
    for (index, &at) in order.iter().enumerate() {
        match index > 0 && fields[at].0 == fields[first].0 {
            true => (last[first], is_first[at]) = (at, false),
            false => first = at,
        }
    }
    let mut fields: Vec<Option<_>> = fields.into_iter().map(Some).collect();
    let firsts = (0..fields.len()).filter(|&at| is_first[at]);
    let mut taken = Vec::with_capacity(fields.len());
    for at in firsts {
        taken.extend(fields[last[at]].take());
    }
    taken
}
