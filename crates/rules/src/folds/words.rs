//! Words in spec strings, and how they are quoted.

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

pub(crate) fn quoted(bytes: &[u8]) -> String {
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
