//! Words in spec strings: how they are quoted, and the nearest valid one.

/// The candidate that is at most two edits away, and less than half of the word.
pub(crate) fn nearest<'c>(word: &str, candidates: impl Iterator<Item = &'c str>) -> Option<&'c str> {
    let scored = candidates.map(|candidate| (edit_distance(word, candidate), candidate));
    let (distance, candidate) = scored.min_by_key(|(distance, _)| *distance)?;
    (distance <= 2 && 2 * distance < candidate.len().max(word.len())).then_some(candidate)
}

/// Edits that turn one word into the other, swaps of neighbours counting as one (optimal string
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

/// Characters that need no quotes.
pub(crate) fn is_bare(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | '|' | ';' | '+' | '*' | '#' | '@' | '%' | '~')
}

/// A field's name as a spec holds it.
pub(crate) fn quoted_name(name: &str) -> String {
    if !name.is_empty() && name.chars().all(is_bare) { name.to_owned() } else { quoted(name.as_bytes()) }
}

/// An argument as a spec holds it.
pub(crate) fn quoted_bytes(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.is_empty() && text.chars().all(is_bare) => text.to_owned(),
        _ => quoted(bytes),
    }
}

fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                '\n' => text.push_str("\\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                control if (control as u32) < 0x20 || control == '\x7f' => {
                    text.push_str(&format!("\\x{:02x}", control as u32))
                }
                other => text.push(other),
            }
        }
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02x}"));
        }
    }
    text.push('"');
    text
}
