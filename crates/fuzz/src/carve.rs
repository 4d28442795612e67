//! Cuts an input into pieces, for targets that take more than one.
//!
//! ```text
//!   piece      len u16 LE, cut down to what is left | bytes
//!   the last one is the rest of the input
//! ```
//!
//! Every input can be cut: there is no such thing as a malformed one.

/// What is left of an input.
#[derive(Clone, Copy, Debug)]
pub struct Carver<'a> {
    rest: &'a [u8],
}

impl<'a> Carver<'a> {
    /// All of the input is left.
    pub fn new(input: &'a [u8]) -> Carver<'a> {
        Carver { rest: input }
    }

    /// The next byte; zero at the end.
    pub fn byte(&mut self) -> u8 {
        match self.rest.split_first() {
            Some((&byte, rest)) => {
                self.rest = rest;
                byte
            }
            None => 0,
        }
    }

    /// One of these, as the next byte says.
    pub fn choice<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }

    /// The next piece.
    pub fn piece(&mut self) -> &'a [u8] {
        let len = usize::from(u16::from_le_bytes([self.byte(), self.byte()])).min(self.rest.len());
        let (piece, rest) = self.rest.split_at(len);
        self.rest = rest;
        piece
    }

    /// All that is left.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }
}

/// Appends a piece of at most 65,535 bytes, for an input.
pub fn put_piece(out: &mut Vec<u8>, piece: &[u8]) {
    let len = u16::try_from(piece.len()).unwrap_or(u16::MAX);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(&piece[..usize::from(len)]);
}

/// An input of these pieces, the last of which is the rest.
pub fn pieces(parts: &[&[u8]]) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some((last, others)) = parts.split_last() {
        others.iter().for_each(|piece| put_piece(&mut out, piece));
        out.extend_from_slice(last);
    }
    out
}
