//! How `%`, and bytes that are not printable ASCII, are written in rules: `%` and two digits.

/// What a text that cannot be read back should be.
pub(super) const ESCAPES: &str = "expected printable ASCII, and %XX for any other byte and for %";

/// Printable ASCII stays as it is; all other bytes and `%` become `%` and two digits.
pub(super) fn escape(bytes: &[u8], out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for &byte in bytes {
        if (b' '..=b'~').contains(&byte) && byte != b'%' {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push(char::from(DIGITS[usize::from(byte >> 4)]));
            out.push(char::from(DIGITS[usize::from(byte & 15)]));
        }
    }
}

/// Reads what [`escape`] writes, and only that.
pub(super) fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'%' => bytes.push(digit(rest.next()?)? << 4 | digit(rest.next()?)?),
            b' '..=b'~' => bytes.push(byte),
            _ => return None,
        }
    }
    Some(bytes)
}

fn digit(letter: u8) -> Option<u8> {
    char::from(letter).to_digit(16).map(|digit| digit as u8)
}
