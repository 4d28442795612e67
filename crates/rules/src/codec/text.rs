//! Tuples as people type them: `["UA", 7, [null, 0x00ff]]`, split into tokens.
//!
//! What is shown can be typed again. Quoted text takes the escapes of JSON and those that showing
//! uses (`\u{7f}`, `\0`). The meaning of a bare word depends on the element's type, which the key
//! codec knows. Only the key codec calls this.

use std::iter::Peekable;
use std::str::Chars;

use super::CodecError;
use super::tuple::DEPTH_MAX;

/// A piece of a tuple that a person typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// A word without quotes.
    Bare(String),
    /// Text that was in quotes.
    Quoted(String),
    /// A list in brackets.
    List(Vec<Token>),
}

/// Splits one token: a list, quoted text, or a bare word.
///
/// # Errors
/// Says where the text does not fit the form.
pub fn parse_token(text: &str) -> Result<Token, CodecError> {
    let mut parser = Parser { rest: text.chars().peekable(), text };
    parser.skip_space();
    let token = parser.token(0)?;
    parser.skip_space();
    match parser.rest.next() {
        None => Ok(token),
        Some(letter) => Err(parser.fail(&format!("{letter:?} follows the end"))),
    }
}

/// True when the text has the form of a list.
pub fn is_list(text: &str) -> bool {
    let text = text.trim();
    text.starts_with('[') && text.ends_with(']')
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    text: &'a str,
}

impl Parser<'_> {
    fn fail(&self, what: &str) -> CodecError {
        CodecError::new(format!("cannot read {:?} as a tuple: {what}", self.text))
    }

    fn skip_space(&mut self) {
        while self.rest.next_if(|letter| letter.is_whitespace()).is_some() {}
    }

    fn token(&mut self, depth: usize) -> Result<Token, CodecError> {
        match self.rest.peek() {
            Some('[') => self.list(depth),
            Some('"') => self.quoted(),
            _ => self.bare(),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Token, CodecError> {
        if depth > DEPTH_MAX {
            return Err(self.fail("it nests too deep"));
        }
        self.rest.next();
        self.skip_space();
        let mut items = Vec::new();
        if self.rest.next_if_eq(&']').is_some() {
            return Ok(Token::List(items));
        }
        loop {
            self.skip_space();
            items.push(self.token(depth + 1)?);
            self.skip_space();
            match self.rest.next() {
                Some(',') => {}
                Some(']') => return Ok(Token::List(items)),
                _ => return Err(self.fail("a list is not closed by ]")),
            }
        }
    }

    fn bare(&mut self) -> Result<Token, CodecError> {
        let mut word = String::new();
        while let Some(letter) = self.rest.next_if(|letter| !matches!(letter, ',' | '[' | ']' | '"')) {
            word.push(letter);
        }
        match word.trim_end() {
            "" => Err(self.fail("a value is missing")),
            word => Ok(Token::Bare(word.to_owned())),
        }
    }

    fn quoted(&mut self) -> Result<Token, CodecError> {
        self.rest.next();
        let mut text = String::new();
        loop {
            match self.rest.next() {
                None => return Err(self.fail("a quote is not closed")),
                Some('"') => return Ok(Token::Quoted(text)),
                Some('\\') => text.push(self.escape()?),
                Some(letter) => text.push(letter),
            }
        }
    }

    fn escape(&mut self) -> Result<char, CodecError> {
        Ok(match self.rest.next() {
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('0') => '\0',
            Some(letter @ ('"' | '\\' | '/' | '\'')) => letter,
            Some('u') => return self.unicode(),
            _ => return Err(self.fail("an unknown escape")),
        })
    }

    /// `{1f525}`, `00e9`, or the two surrogates that JSON makes of a character beyond 16 bits.
    fn unicode(&mut self) -> Result<char, CodecError> {
        let code = if self.rest.next_if_eq(&'{').is_some() {
            self.braced_code()
        } else {
            match self.four_digits() {
                Some(high @ 0xd800..0xdc00) => self.low_surrogate(high),
                other => other,
            }
        };
        code.and_then(char::from_u32).ok_or_else(|| self.fail("an escape is not a character"))
    }

    fn braced_code(&mut self) -> Option<u32> {
        let mut code = None;
        for _ in 0..7 {
            let letter = self.rest.next()?;
            if letter == '}' {
                return code;
            }
            code = Some(code.unwrap_or(0) << 4 | letter.to_digit(16)?);
        }
        None
    }

    fn four_digits(&mut self) -> Option<u32> {
        (0..4).try_fold(0, |code, _| Some(code << 4 | self.rest.next()?.to_digit(16)?))
    }

    fn low_surrogate(&mut self, high: u32) -> Option<u32> {
        let escaped = self.rest.next() == Some('\\') && self.rest.next() == Some('u');
        let low = self.four_digits().filter(|low| escaped && (0xdc00..0xe000).contains(low))?;
        Some(0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00))
    }
}

#[cfg(test)]
#[path = "text/tests.rs"]
mod tests;
