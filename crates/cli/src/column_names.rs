//! Names of columns as they are written on the command line, several between commas.

/// The names of columns in texts of them between commas. A name may have commas inside of brackets,
/// as `split(path, "/", 2)`, or stand in backquotes, in which blanks around it are part of it.
pub(crate) fn split(texts: &[String]) -> Vec<String> {
    texts.iter().flat_map(|text| names_in(text)).collect()
}

fn names_in(text: &str) -> Vec<String> {
    let (mut pieces, mut piece) = (Vec::new(), String::new());
    let (mut depth, mut quote) = (0_usize, None);
    for letter in text.chars() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), _) => {}
            // Elsewhere quotes are letters of a name, as in `it's`.
            (None, '`') => quote = Some(letter),
            (None, '"' | '\'') if depth > 0 => quote = Some(letter),
            (None, '(' | '[') => depth += 1,
            (None, ')' | ']') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                pieces.push(std::mem::take(&mut piece));
                continue;
            }
            (None, _) => {}
        }
        piece.push(letter);
    }
    pieces.push(piece);
    if depth > 0 || quote.is_some() {
        // Brackets that are letters of a name.
        return text.split(',').map(|name| name.trim().to_owned()).collect();
    }
    let bare = |name: &String| {
        let name = name.trim();
        let inner = name.strip_prefix('`').and_then(|rest| rest.strip_suffix('`'));
        inner.filter(|inner| !inner.contains('`')).unwrap_or(name).to_owned()
    };
    pieces.iter().map(bare).collect()
}

#[cfg(test)]
mod tests;
