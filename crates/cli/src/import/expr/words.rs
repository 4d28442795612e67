//! The words of an expression.

/// A word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    Number(f64),
    Whole(i64),
    Text(String),
    /// A column, a function, or a word such as `and`.
    Name(String),
    /// A name in backquotes: a column.
    Column(String),
    Sign(&'static str),
}

const SIGNS: [&str; 22] = [
    "==", "!=", "<=", ">=", "<>", "&&", "||", "(", ")", "[", "]", ",", "=", "<", ">", "!", "+", "-", "*",
    "/", "%", ";",
];

/// The words of a text, each with its place.
pub(super) fn words(text: &str) -> Result<Vec<(usize, Word)>, (usize, String)> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        if letter.is_whitespace() {
            at += letter.len_utf8();
            continue;
        }
        let (word, len) = match letter {
            '"' | '\'' => quoted(rest, letter).map_err(|wrong| (at, wrong))?,
            '`' => {
                let (name, len) = quoted(rest, letter).map_err(|wrong| (at, wrong))?;
                (if let Word::Text(name) = name { Word::Column(name) } else { name }, len)
            }
            '0'..='9' | '.' => number(rest).map_err(|wrong| (at, wrong))?,
            letter if letter.is_alphabetic() || letter == '_' || letter == '$' => name(rest),
            _ => match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
                Some(sign) => (Word::Sign(sign), sign.len()),
                None => return Err((at, format!("`{letter}` means nothing here"))),
            },
        };
        found.push((at, word));
        at += len;
    }
    Ok(found)
}

fn quoted(rest: &str, quote: char) -> Result<(Word, usize), String> {
    let mut text = String::new();
    let mut letters = rest.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' if quote != '`' => match letters.next() {
                Some((_, escaped)) if escaped == quote || escaped == '\\' => text.push(escaped),
                Some((_, other)) => text.extend(['\\', other]), // as in a regex
                None => break,
            },
            letter if letter == quote => return Ok((Word::Text(text), at + letter.len_utf8())),
            other => text.push(other),
        }
    }
    let advice = if quote == '\'' { " (a column with one in its name is written in backquotes)" } else { "" };
    Err(format!("the quote {quote} is not closed{advice}"))
}

fn number(rest: &str) -> Result<(Word, usize), String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '.' || letter == '_';
    let len = rest.find(|letter: char| !is_part(letter)).unwrap_or(rest.len());
    let text = &rest[..len];
    match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(whole), _) => Ok((Word::Whole(whole), len)),
        (_, Ok(value)) => Ok((Word::Number(value), len)),
        _ => Err(format!("`{text}` is no number (a column of this name is written in backquotes)")),
    }
}

fn name(rest: &str) -> (Word, usize) {
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '.' | '$');
    let len = rest.find(|letter: char| !is_part(letter)).unwrap_or(rest.len());
    (Word::Name(rest[..len].to_owned()), len)
}
