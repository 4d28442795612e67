//! What is between the fields of a delimited text, and around some of them.

/// What is around fields where nothing else is said.
pub(crate) const USUAL_QUOTE: u8 = b'"';

/// What escapes quotes where they are not doubled, in the files of most programs that do so.
pub(crate) const USUAL_ESCAPE: u8 = b'\\';

/// What is known of the sign that escapes quotes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Escape {
    /// The first rows tell.
    Find,
    /// It is this one; or quotes are only doubled.
    Is(Option<u8>),
}

/// What is between fields, and around some of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    pub(crate) delimiter: u8,
    /// None: no sign is a quote.
    pub(crate) quote: Option<u8>,
    /// What escapes a quote in quotes, and itself, besides a second quote.
    pub(crate) escape: Option<u8>,
    /// Lines that begin with it, where a record would, are passed over.
    pub(crate) comment: Option<u8>,
    /// The lines of a quoted field are its text, also where they look like rows.
    pub(crate) is_multiline: bool,
}

impl Dialect {
    /// Fields between these, in the usual quotes.
    #[cfg(test)]
    pub(crate) fn of(delimiter: u8) -> Dialect {
        Dialect { delimiter, quote: Some(USUAL_QUOTE), escape: None, comment: None, is_multiline: false }
    }

    /// Whether this byte ends a field that is in no quotes.
    pub(crate) fn is_end(self, byte: u8) -> bool {
        byte == self.delimiter || is_line_end(byte)
    }
}

/// Whether this byte ends a record, alone or with another one.
pub(crate) fn is_line_end(byte: u8) -> bool {
    matches!(byte, b'\n' | b'\r')
}
