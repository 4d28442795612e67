//! A line of the shell: its commands, and the words of a command.

use std::str::CharIndices;

/// A character of a line, as its quotes say: both kinds of them group, and a backslash escapes the
/// next character. Inside double quotes it escapes `"` and `\`, inside single quotes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Letter {
    /// Outside of quotes, where it may have a meaning.
    Bare(char),
    /// Itself, whatever it means elsewhere.
    Literal(char),
    /// What groups or escapes: it belongs to a word, and is nothing of it.
    Mark,
}

/// The characters of a line up to a comment, which `#` begins where a word would.
pub(super) struct Letters<'l> {
    rest: CharIndices<'l>,
    /// The quote that is open.
    quote: Option<char>,
    is_escaped: bool,
    /// What was read last belongs to a word.
    in_word: bool,
}

/// A character: its place, whether a word would begin with it, and what it is.
pub(super) type Placed = (usize, bool, Letter);

impl<'l> Letters<'l> {
    pub(super) fn of(line: &'l str) -> Letters<'l> {
        Letters { rest: line.char_indices(), quote: None, is_escaped: false, in_word: false }
    }

    fn kind(&mut self, letter: char) -> Letter {
        if std::mem::take(&mut self.is_escaped) {
            return Letter::Literal(letter);
        }
        match (self.quote, letter) {
            (Some(open), letter) if letter == open => self.quote = None,
            (None, '\'' | '"') => self.quote = Some(letter),
            (None, '\\') => self.is_escaped = true,
            (Some('"'), '\\') if self.rest.as_str().starts_with(['"', '\\']) => self.is_escaped = true,
            (Some(_), letter) => return Letter::Literal(letter),
            (None, letter) => return Letter::Bare(letter),
        }
        Letter::Mark
    }
}

impl Iterator for Letters<'_> {
    type Item = Placed;

    fn next(&mut self) -> Option<Placed> {
        let (at, letter) = self.rest.next()?;
        let (begins_word, kind) = (!self.in_word, self.kind(letter));
        if kind == Letter::Bare('#') && begins_word {
            return None;
        }
        self.in_word = !matches!(kind, Letter::Bare(letter) if letter.is_whitespace() || letter == ';');
        Some((at, begins_word, kind))
    }
}

/// The commands of a line: `;` is between them.
pub(super) fn commands_of(line: &str) -> Vec<&str> {
    let (mut commands, mut begin) = (Vec::new(), 0);
    for (at, ..) in Letters::of(line).filter(|(.., letter)| *letter == Letter::Bare(';')) {
        commands.push(&line[begin..at]);
        begin = at + 1;
    }
    commands.push(&line[begin..]);
    commands
}

/// Splits a line into words, which spaces separate.
pub(super) fn split(line: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word): (Vec<String>, Option<String>) = (Vec::new(), None);
    let mut letters = Letters::of(line);
    for (_, _, letter) in &mut letters {
        match letter {
            Letter::Bare(space) if space.is_whitespace() => words.extend(word.take()),
            Letter::Bare(letter) | Letter::Literal(letter) => word.get_or_insert_default().push(letter),
            Letter::Mark => word = Some(word.unwrap_or_default()),
        }
    }
    if let Some(quote) = letters.quote {
        return Err(format!("a quote {quote} is not closed"));
    }
    words.extend(word);
    Ok(words)
}

/// A line of one command whose last word is being typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Typing {
    /// The words before it.
    pub(crate) before: Vec<String>,
    /// Where the word begins in the line.
    pub(crate) begin: usize,
    /// What it is so far, without its quotes.
    pub(crate) word: String,
    /// The quote in which the line ends, and how much of the word is before that.
    pub(crate) quote: Option<(char, usize)>,
    /// How much of the word is up to the last of the characters that separate words for a program
    /// that reads the line.
    pub(crate) separated: usize,
}

impl Typing {
    /// Takes a line apart in which these characters separate words, too, outside of quotes.
    pub(crate) fn of(line: &str, separators: &str) -> Typing {
        let mut typing =
            Typing { before: Vec::new(), begin: line.len(), word: String::new(), quote: None, separated: 0 };
        let (mut letters, mut in_word) = (Letters::of(line), false);
        while let Some((at, _, letter)) = letters.next() {
            if matches!(letter, Letter::Bare(space) if space.is_whitespace()) {
                typing.before.extend(std::mem::take(&mut in_word).then(|| std::mem::take(&mut typing.word)));
                (typing.begin, typing.separated) = (line.len(), 0);
                continue;
            }
            if !std::mem::replace(&mut in_word, true) {
                typing.begin = at;
            }
            match letter {
                Letter::Bare(letter) | Letter::Literal(letter) => typing.word.push(letter),
                Letter::Mark => {}
            }
            if matches!(letter, Letter::Bare(letter) if separators.contains(letter)) {
                typing.separated = typing.word.len();
            }
            typing.quote = match (letters.quote, typing.quote) {
                (Some(quote), Some((open, before))) if open == quote => Some((quote, before)),
                (Some(quote), _) => Some((quote, typing.word.len())),
                (None, _) => None,
            };
        }
        typing
    }
}

#[cfg(test)]
#[path = "line/tests.rs"]
mod tests;
