//! Expressions in one way of writing: those that differ in blanks, in the quotes around a text, or
//! in the sign for an operator, mean the same.

use super::parse::is_bare_constant;
use super::split::is_expression;
use super::words::{Word, words};

/// A source or a part of a key in one way of writing; the name of a column stays as it is.
pub(crate) fn source(text: &str) -> String {
    if is_expression(text) { expression(text) } else { text.trim().to_owned() }
}

/// An expression in one way of writing.
pub(crate) fn expression(text: &str) -> String {
    let Ok(words) = words(text) else { return text.trim().to_owned() };
    let words: Vec<&Word> = words.iter().map(|(_, word)| word).collect();
    let mut out = String::new();
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| words[before]);
        let of_before = at.checked_sub(2).map(|before| words[before]);
        if before.is_some_and(|before| has_blank(of_before, before, word)) {
            out.push(' ');
        }
        out.push_str(&shown(word, words.get(at + 1).copied()));
    }
    out
}

/// Whether a blank is between two words, the first of which comes behind another one.
fn has_blank(of_before: Option<&Word>, before: &Word, word: &Word) -> bool {
    match (before, word) {
        (_, Word::Sign(")" | "]" | ",")) | (Word::Sign("(" | "["), _) => false,
        (Word::Name(name), Word::Sign("(")) => is_between_values(name),
        (Word::Sign("-"), _) => of_before.is_some_and(is_end_of_value), // else it is a negative number
        _ => true,
    }
}

/// Whether a minus behind this word takes two values.
fn is_end_of_value(word: &Word) -> bool {
    match word {
        Word::Sign(sign) => matches!(*sign, ")" | "]"),
        Word::Name(name) => !is_between_values(name),
        Word::Number(_) | Word::Whole(_) | Word::Text(_) | Word::Column(_) => true,
    }
}

fn is_between_values(name: &str) -> bool {
    matches!(name, "and" | "or" | "not" | "in")
}

fn shown(word: &Word, next: Option<&Word>) -> String {
    match word {
        Word::Number(value) => format!("{value:?}"),
        Word::Whole(value) => value.to_string(),
        Word::Text(text) => quoted(text),
        Word::Name(name) => name.clone(),
        Word::Column(name) if is_plain(name) && next != Some(&Word::Sign("(")) => name.clone(),
        Word::Column(name) => format!("`{name}`"),
        Word::Sign("=") => "==".to_owned(),
        Word::Sign("<>") => "!=".to_owned(),
        Word::Sign("&&") => "and".to_owned(),
        Word::Sign("||") => "or".to_owned(),
        Word::Sign("!") => "not".to_owned(),
        Word::Sign(sign) => (*sign).to_owned(),
    }
}

/// Whether a name means the same without backquotes.
fn is_plain(name: &str) -> bool {
    let is_one_word = matches!(&words(name).as_deref(), Ok([(_, Word::Name(word))]) if word == name);
    is_one_word && !is_bare_constant(name) && !is_between_values(name)
}

/// A text in quotes. A backslash stands for itself, unless what follows would make it another one.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_escape = letter == '\\' && letters.peek().is_none_or(|next| matches!(next, '\\' | '"'));
        if letter == '"' || is_escape {
            out.push('\\');
        }
        out.push(letter);
    }
    out + "\""
}

#[cfg(test)]
#[path = "normal/tests.rs"]
mod tests;
