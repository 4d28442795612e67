//! The codes in front of the elements of a tuple, and what each is called.

use super::super::CodecError;

/// Deepest nesting of tuples.
pub const DEPTH_MAX: usize = 32;

pub(in crate::codec) const NULL: u8 = 0x00;
pub(in crate::codec) const BYTES: u8 = 0x01;
pub(in crate::codec) const TEXT: u8 = 0x02;
pub(in crate::codec) const NESTED: u8 = 0x05;
pub(in crate::codec) const INT_LONG_NEGATIVE: u8 = 0x0b;
pub(in crate::codec) const INT_ZERO: u8 = 0x14;
pub(in crate::codec) const INT_LONG: u8 = 0x1d;
pub(in crate::codec) const FLOAT: u8 = 0x20;
pub(in crate::codec) const DOUBLE: u8 = 0x21;
pub(in crate::codec) const FALSE: u8 = 0x26;
pub(in crate::codec) const TRUE: u8 = 0x27;
pub(in crate::codec) const UUID: u8 = 0x30;
pub(in crate::codec) const STAMP_80: u8 = 0x32;
pub(in crate::codec) const STAMP_96: u8 = 0x33;
pub(in crate::codec) const ESCAPE: u8 = 0xff;

/// What an element with this code is called.
pub(in crate::codec) fn code_name(code: u8) -> &'static str {
    match code {
        NULL => "null",
        BYTES => "bytes",
        TEXT => "text",
        NESTED => "a nested tuple",
        INT_LONG_NEGATIVE..=INT_LONG => "an integer",
        FLOAT => "a float",
        DOUBLE => "a double",
        FALSE | TRUE => "true or false",
        UUID => "a uuid",
        STAMP_80 | STAMP_96 => "a version stamp",
        _ => "something unknown",
    }
}

#[cold]
pub(in crate::codec) fn mismatch(expected: &str, code: u8) -> CodecError {
    CodecError::new(format!("expected {expected} in a tuple, found {}", code_name(code)))
}

#[cold]
pub(super) fn unknown_code(code: u8) -> CodecError {
    CodecError::new(format!("{code:#04x} does not begin an element of a tuple"))
}
