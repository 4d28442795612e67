//! Why a text is not what it should be, for every text form of rules: what was given, where reading
//! stopped, what is allowed, and the nearest text that is.

use std::fmt;
use std::str::FromStr;

use folddb_base::Error;

/// Why a text does not parse: the error of `text.parse()` for the parts of the rules of a table.
///
/// ```
/// # use folddb_rules as folddb;
/// let wrong = "forevr".parse::<folddb::Keep>().unwrap_err();
/// assert_eq!(wrong.suggestion(), Some("forever"));
/// let wrong = "sum:int".parse::<folddb::folds::FoldSpec>().unwrap_err();
/// assert_eq!((wrong.at(), wrong.suggestion()), (4, Some("sum:i64")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    text: String,
    /// The byte where reading stopped; none if the text as a whole is wrong.
    at: Option<usize>,
    message: String,
    suggestion: Option<String>,
}

impl ParseError {
    /// The text as a whole is wrong. The message names it.
    pub(crate) fn of(text: &str, message: impl Into<String>) -> ParseError {
        ParseError { text: text.to_owned(), at: None, message: message.into(), suggestion: None }
    }

    /// Reading stopped at this byte.
    pub(crate) fn at_byte(text: &str, at: usize, message: impl Into<String>) -> ParseError {
        ParseError { at: Some(at), ..ParseError::of(text, message) }
    }

    /// The same with a text that may have been meant.
    pub(crate) fn suggest(self, suggestion: Option<String>) -> ParseError {
        ParseError { suggestion, ..self }
    }

    /// The same with the nearest text that has another word before its colon, if that is a `T`.
    pub(crate) fn suggest_word<T: FromStr>(self, words: &[&str]) -> ParseError {
        let (word, rest) = self.text.split_at(self.text.find(':').unwrap_or(self.text.len()));
        let near = nearest(word, words.iter().copied().filter(|known| *known != word));
        let suggestion = near.map(|near| format!("{near}{rest}")).filter(|text| text.parse::<T>().is_ok());
        self.suggest(suggestion)
    }

    /// The same mistake in a longer text, which contains the given one from this byte on.
    #[must_use]
    pub fn within(self, text: &str, from: usize) -> ParseError {
        ParseError { text: text.to_owned(), at: Some(from + self.at()), ..self }
    }

    /// The text that was given.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The byte of the text where reading stopped.
    pub fn at(&self) -> usize {
        self.at.unwrap_or(0)
    }

    /// What is wrong, and what is allowed.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// A text that is valid and may have been meant.
    pub fn suggestion(&self) -> Option<&str> {
        self.suggestion.as_deref()
    }
}

/// A text that is wrong as a whole, for a text form of a crate above. The message names it.
pub fn of_whole(text: &str, message: impl Into<String>) -> ParseError {
    ParseError::of(text, message)
}

/// A text whose reading stopped at this byte, for a text form of a crate above.
pub fn at_byte(text: &str, at: usize, message: impl Into<String>) -> ParseError {
    ParseError::at_byte(text, at, message)
}

/// The message and the suggestion; if a part of the text is wrong, the text with a caret under the
/// place, too.
impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(at) = self.at {
            let before = self.text.get(..at).unwrap_or(&self.text);
            let line = self.text.replace(['\n', '\r', '\t'], " ");
            write!(f, "\n  {line}\n  {:width$}^", "", width = before.chars().count())?;
        }
        match (&self.suggestion, self.at) {
            (Some(text), Some(_)) => write!(f, " did you mean `{text}`?"),
            (Some(text), None) => write!(f, "; did you mean `{text}`?"),
            (None, _) => Ok(()),
        }
    }
}

impl std::error::Error for ParseError {}

impl From<ParseError> for Error {
    fn from(error: ParseError) -> Error {
        Error::invalid(error.to_string())
    }
}

/// The nearest candidate, if it is at most two edits away, and these are less than half of the
/// longer word.
pub(crate) fn nearest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let scored = candidates.map(|candidate| (edit_distance(word, candidate), candidate));
    let (distance, candidate) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= 2 && 2 * distance < candidate.len().max(word.len())).then_some(candidate)
}

/// Edits that turn one word into the other, swaps of neighbors counting as one (optimal string
/// alignment).
fn edit_distance(a: &str, b: &str) -> usize {
    const LEN_MAX: usize = 64;
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() > LEN_MAX || b.len() > LEN_MAX {
        return usize::MAX / 4;
    }
    let mut rows = vec![vec![0usize; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = match (i, j) {
                (0, _) => j,
                (_, 0) => i,
                _ => {
                    let change = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                    let mut best = change.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
                    if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                        best = best.min(rows[i - 2][j - 2] + 1);
                    }
                    best
                }
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
#[path = "parse_error/tests.rs"]
mod tests;
