//! A line of the shell: its commands, and the words of a command.

/// The commands of a line: `;` is between them.
pub(super) fn commands_of(line: &str) -> Vec<&str> {
    let (mut commands, mut begin, mut quote, mut is_word) = (Vec::new(), 0, None, false);
    let mut letters = line.char_indices();
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (None | Some('"'), '\\') => drop(letters.next()),
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, '#') if !is_word => break, // the rest is a comment
            (None, ';') => {
                commands.push(&line[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        is_word = quote.is_some() || !(letter.is_whitespace() || letter == ';');
    }
    commands.push(&line[begin..]);
    commands
}

/// Splits a line into words: spaces separate them, both kinds of quotes group, a backslash escapes
/// the next character (inside single quotes it is literal), `#` at the start of a word begins a
/// comment.
pub(super) fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '#' if word.is_none() => break,
            '\'' | '"' => quoted(&mut letters, letter, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().extend(letters.next()),
            space if space.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

fn quoted(letters: &mut std::str::Chars<'_>, quote: char, word: &mut String) -> Result<(), String> {
    while let Some(letter) = letters.next() {
        match letter {
            letter if letter == quote => return Ok(()),
            '\\' if quote == '"' => match letters.next() {
                Some(escaped @ ('"' | '\\')) => word.push(escaped),
                other => word.extend(std::iter::once('\\').chain(other)),
            },
            other => word.push(other),
        }
    }
    Err(format!("a quote {quote} is not closed"))
}
