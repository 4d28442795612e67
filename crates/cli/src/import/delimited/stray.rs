//! Whether a quote is stray: the lines of the field that it opens are rows.

use std::io;

use crate::import::dialect::is_line_end;

use super::Records;

/// So many lines in a quote are rows where a row has two fields only.
const ROWS_OF_TWO_FIELDS_MIN: usize = 50;
/// What follows a quoted field of many lines on its last line is looked at up to so many bytes.
const LAST_LINE_MAX: usize = 1 << 16;

/// Lines of a quoted field that are like rows.
#[derive(Clone, Copy)]
pub(super) struct InField {
    /// The text ends within the last one.
    pub(super) is_undecided: bool,
    /// They have so many fields, or are so many, that they are no text.
    pub(super) are_surely: bool,
}

impl Records {
    /// Whether the lines of the field that has been read, and that closes before `at`, are rows
    /// between two stray quotes: the first and the last one, with what is around the field, have as
    /// many fields as a row, and so have nine of ten between them. A text that was quoted seldom
    /// has, nor has a table in a field, which comes beside the other fields.
    pub(super) fn rows_in_field(&mut self, at: usize) -> io::Result<Option<InField>> {
        let Some(width) = self.width else { return Ok(None) };
        let mut end = at;
        while self.byte(end)?.is_some_and(|byte| !is_line_end(byte)) && end < at + LAST_LINE_MAX {
            end += 1;
        }
        let is_undecided = self.byte(end)?.is_none();
        let delimiter = self.dialect.delimiter;
        let fields = |text: &[u8]| memchr::memchr_iter(delimiter, text).count() + 1;
        let mut lines = self.field.split(|&byte| byte == b'\n');
        let (Some(first), Some(last)) = (lines.next(), lines.next_back()) else { return Ok(None) };
        let behind = &self.text[self.begin + at..self.begin + end];
        if self.record.len() + fields(first) != width || fields(last) + fields(behind) - 1 != width {
            return Ok(None);
        }
        // Two fields, and one delimiter, many a line of text has.
        let has_both =
            |line: &[u8]| width > 2 || !line.starts_with(&[delimiter]) && !line.ends_with(&[delimiter]);
        let is_row = |line: &[u8]| fields(line) == width && has_both(line);
        let (rows, lines) =
            lines.fold((0, 0), |(rows, lines), line| (rows + usize::from(is_row(line)), lines + 1));
        let are_surely = width > 2 || rows >= ROWS_OF_TWO_FIELDS_MIN;
        Ok((rows * 10 >= lines * 9).then_some(InField { is_undecided, are_surely }))
    }

    /// Whether a delimiter in the field that has been read has a blank behind it, as a comma in a
    /// text has.
    pub(super) fn has_blanks_as_in_text(&self) -> bool {
        memchr::memmem::find(&self.field, &[self.dialect.delimiter, b' ']).is_some()
    }
}
