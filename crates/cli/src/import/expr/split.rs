//! Texts of the command line in which expressions stand among other things: lists of them, and
//! folds with the sources of their fields.

/// Whether a text is an expression, and not the name of a column. An operator that is also in names
/// has spaces around it: `user-agent` is a column, `a - b` is none.
pub(crate) fn is_expression(text: &str) -> bool {
    let text = text.trim();
    let is_quoted = |quote: char| {
        text.len() > 1 && text.starts_with(quote) && text[1..].find(quote) == Some(text.len() - 2)
    };
    if is_quoted('`') || is_quoted('"') {
        return false;
    }
    let is_negated = text.len() > 1 && text.starts_with('-') && text.parse::<f64>().is_err();
    is_negated
        || text.contains(['(', ')', '<', '>', '=', '!', '*', '%', '&', '|', '`', '\'', '"'])
        || [" + ", " - ", " / ", " and ", " or ", " in "].iter().any(|operator| text.contains(operator))
        || text.starts_with("not ")
}

/// The pieces of a text between commas that are not inside of brackets or quotes.
pub(crate) fn at_commas(text: &str) -> Vec<&str> {
    let (mut pieces, mut begin) = (Vec::new(), 0);
    for at in top(text, |letter| letter == ',') {
        pieces.push(&text[begin..at]);
        begin = at + 1;
    }
    pieces.push(&text[begin..]);
    pieces
}

/// The places of letters outside of brackets and quotes.
fn top(text: &str, is_wanted: impl Fn(char) -> bool) -> Vec<usize> {
    let (mut found, mut depth, mut quote) = (Vec::new(), 0_usize, None);
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (Some('"' | '\''), '\\') => drop(letters.next()),
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'' | '`') => quote = Some(letter),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth = depth.saturating_sub(1),
            (None, letter) if depth == 0 && is_wanted(letter) => found.push(at),
            (None, _) => {}
        }
    }
    found
}

/// What stands for the sources of a field that are no column and no constant.
const MARK: char = '\u{1}';

/// A fold in which each source that is no column and no constant is replaced by a mark and its
/// number, and those sources. A field may have two: `top:5 = arr_delay, tailnum`.
pub(crate) fn sources(fold: &str) -> (String, Vec<Vec<String>>) {
    let (open, inner, close) = match fold.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
        Some(inner) => ("{", inner, "}"),
        None => ("", fold, ""),
    };
    let mut fields: Vec<(String, Vec<String>)> = Vec::new();
    for piece in at_commas(inner) {
        if let Some(name) = counted(piece) {
            fields.push((format!("{name}sum:u64"), vec!["1".to_owned()]));
            continue;
        }
        let source_at = top(piece, |letter| letter == '=').first().copied();
        match (source_at, fields.last_mut()) {
            (Some(at), _) if is_spec(&piece[..at]) => {
                fields.push((piece[..at].to_owned(), vec![piece[at + 1..].to_owned()]));
            }
            (_, Some((_, sources))) if !sources.is_empty() && !is_spec(piece) => {
                sources.push(piece.to_owned())
            }
            _ => fields.push((piece.to_owned(), Vec::new())),
        }
    }
    let (mut text, mut marked) = (open.to_owned(), Vec::new());
    for (index, (spec, sources)) in fields.into_iter().enumerate() {
        text.push_str(if index > 0 { "," } else { "" });
        text.push_str(&spec);
        match &sources[..] {
            [] => {}
            [one] if !is_expression(one) && !is_word_of_value(one.trim()) => {
                text.push_str(&format!("={one}"));
            }
            _ => {
                text.push_str(&format!("= `{MARK}{}`", marked.len()));
                marked.push(sources.iter().map(|source| source.trim().to_owned()).collect());
            }
        }
    }
    (text + close, marked)
}

/// Whether a source is a constant by a word, which the spec of a fold has no form for.
fn is_word_of_value(source: &str) -> bool {
    matches!(source, "true" | "false" | "null")
}

/// What stands before the word in `count` and `rows: count`, which is short for `sum:u64 = 1`.
fn counted(field: &str) -> Option<&str> {
    let before = field.trim_end().strip_suffix("count")?;
    let is_name = before.trim_end().strip_suffix(':').is_some_and(|name| !name.contains([':', '=']));
    (is_name || before.trim().is_empty()).then_some(before)
}

/// The sources of a field for which this name stands, if it is a mark.
pub(crate) fn marked<'s>(name: &str, sources: &'s [Vec<String>]) -> Option<&'s Vec<String>> {
    sources.get(name.strip_prefix(MARK)?.parse::<usize>().ok()?)
}

/// A message in which the sources stand again for their marks. A line that points to a place of the
/// line above with `^` still does.
pub(crate) fn without_marks(message: &str, sources: &[Vec<String>]) -> String {
    let (mut lines, mut grown) = (Vec::new(), Vec::new());
    for line in message.split('\n') {
        if line.trim_start().starts_with('^') {
            let at = line.chars().take_while(|letter| *letter == ' ').count();
            let more: isize = grown.iter().filter(|(mark, _)| *mark < at).map(|(_, more)| more).sum();
            lines.push(" ".repeat(at.saturating_add_signed(more)) + line.trim_start());
            continue;
        }
        let mut pieces = line.split(MARK);
        let mut text = pieces.next().unwrap_or_default().to_owned();
        grown.clear();
        let mut at = text.chars().count();
        for piece in pieces {
            let digits: String = piece.chars().take_while(char::is_ascii_digit).collect();
            let source = digits.parse::<usize>().ok().and_then(|number| sources.get(number));
            let source = source.map_or_else(String::new, |source| source.join(", "));
            let rest = piece[digits.len()..].trim_start_matches('`');
            text.pop();
            // The mark takes its digits and three signs more.
            grown.push((at, source.chars().count() as isize - digits.len() as isize - 3));
            at += digits.len() + 2 + rest.chars().count();
            text = text + &source + rest;
        }
        lines.push(text);
    }
    lines.join("\n")
}

/// Whether this is what stands before the source of a field: a fold, or a name and a fold.
fn is_spec(text: &str) -> bool {
    let stem = text.trim().split([':', ' ', '{']).next().unwrap_or_default();
    !top(text, |letter| letter == ':').is_empty() || folddb::folds::SPECS.contains(&stem)
}

#[cfg(test)]
#[path = "split/tests.rs"]
mod tests;
