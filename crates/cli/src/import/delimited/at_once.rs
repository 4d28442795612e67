//! Records that are found at once: those that are wholly in the buffer, on one line, and whose
//! quotes are around whole fields, or doubled in one. Their fields are places in the buffer.

use crate::import::dialect::is_line_end;

use super::{Place, Records};

impl Records {
    /// Finds the fields of the next record, and its end; none if it is not on one line that is
    /// here, or has other quotes than around whole fields and doubled ones inside.
    pub(super) fn take_at_once(&mut self) -> Option<usize> {
        self.places.clear();
        self.unquoted.clear();
        let mut at = self.begin;
        loop {
            let next = match (*self.text.get(at)?, self.dialect.quote) {
                (byte, Some(quote)) if byte == quote => self.take_quoted_at_once(at + 1, quote)? + 1,
                _ => self.take_bare_at_once(at)?,
            };
            match *self.text.get(next)? {
                byte if byte == self.dialect.delimiter => at = next + 1,
                byte if is_line_end(byte) => return Some(next),
                _ => return None,
            }
        }
    }

    /// Finds the field that begins here; the place of the delimiter or line end behind it.
    #[inline]
    fn take_bare_at_once(&mut self, begin: usize) -> Option<usize> {
        let mut end = self.marks.next(&self.text, begin)?;
        while Some(self.text[end]) == self.dialect.quote {
            end = self.marks.next(&self.text, end + 1)?;
        }
        self.places.push(Place { begin, end, is_unquoted: false });
        Some(end)
    }

    /// Finds the field that begins here, behind its quote; the place of the closing one.
    #[inline]
    fn take_quoted_at_once(&mut self, begin: usize, quote: u8) -> Option<usize> {
        let (mut end, mut has_doubled) = (begin, false);
        let escape = self.dialect.escape;
        loop {
            end = self.marks.next(&self.text, end)?;
            match self.text[end] {
                byte if byte == quote
                    && escape.is_some_and(|sign| is_escaped(&self.text[begin..end], sign)) =>
                {
                    end += 1;
                }
                byte if byte == quote && *self.text.get(end + 1)? == quote => {
                    has_doubled = true;
                    end += 2;
                }
                byte if byte == quote => break,
                b'\n' => return None,
                _ => end += 1,
            }
        }
        let place = match (escape, has_doubled) {
            (Some(sign), _) if memchr::memchr(sign, &self.text[begin..end]).is_some() => {
                self.unescape(begin, end, (quote, sign))
            }
            (_, false) => Place { begin, end, is_unquoted: false },
            (_, true) => self.unquote(begin, end, quote),
        };
        self.places.push(place);
        Some(end)
    }

    /// Copies a field with single quotes for doubled ones.
    fn unquote(&mut self, begin: usize, end: usize, quote: u8) -> Place {
        let start = self.unquoted.len();
        let mut rest = &self.text[begin..end];
        while let Some(at) = memchr::memchr(quote, rest) {
            self.unquoted.extend_from_slice(&rest[..=at]);
            rest = &rest[at + 2..];
        }
        self.unquoted.extend_from_slice(rest);
        Place { begin: start, end: self.unquoted.len(), is_unquoted: true }
    }

    /// The same, of a field in which a sign escapes quotes and itself.
    fn unescape(&mut self, begin: usize, end: usize, (quote, sign): (u8, u8)) -> Place {
        let start = self.unquoted.len();
        let mut rest = &self.text[begin..end];
        while let Some(at) = memchr::memchr2(quote, sign, rest) {
            self.unquoted.extend_from_slice(&rest[..at]);
            let is_pair = rest.get(at + 1).is_some_and(|&next| next == quote || next == sign);
            let at = at + usize::from(is_pair);
            self.unquoted.push(rest[at]);
            rest = &rest[at + 1..];
        }
        self.unquoted.extend_from_slice(rest);
        Place { begin: start, end: self.unquoted.len(), is_unquoted: true }
    }
}

/// Whether what comes behind this text is escaped by a sign, which also escapes itself.
fn is_escaped(text: &[u8], sign: u8) -> bool {
    text.iter().rev().take_while(|&&byte| byte == sign).count() % 2 == 1
}
