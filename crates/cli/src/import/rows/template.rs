//! What makes rows of the pieces of a file, on other threads.

use std::collections::VecDeque;
use std::io::{BufRead, Cursor};

use crate::failure::Failure;
use crate::import::delimited::Records;
use crate::import::delimited_rows::Delimited;
use crate::import::dialect::Dialect;
use crate::import::json_rows::{Ndjson, Unseen};
use crate::import::lines::{Lines, Pattern};
use crate::import::row::ROW_BYTES_MAX;
use crate::import::tape::{Content, Mark};

use super::{Form, Header, Rows};

/// What makes rows of a piece of a file.
#[derive(Clone)]
pub(crate) struct Template {
    source_name: String,
    nulls: Vec<String>,
    may_grow: bool,
    comment: Option<u8>,
    form: TemplateForm,
}

#[derive(Clone)]
enum TemplateForm {
    Delimited { dialect: Dialect, columns: Vec<String> },
    Ndjson { columns: Vec<String>, is_logfmt: bool },
    Lines(Pattern),
}

impl Rows {
    /// What makes rows of its pieces.
    pub(crate) fn template(&self) -> Template {
        let comment = match &self.form {
            Form::Delimited(form) => form.records.dialect().comment,
            Form::Ndjson(Ndjson { lines, .. }) | Form::Lines(Lines { lines, .. }) => lines.comment,
        };
        let form = match &self.form {
            Form::Delimited(form) => {
                TemplateForm::Delimited { dialect: form.records.dialect(), columns: form.columns.clone() }
            }
            Form::Ndjson(form) => {
                TemplateForm::Ndjson { columns: form.columns.clone(), is_logfmt: form.is_logfmt }
            }
            Form::Lines(form) => TemplateForm::Lines(form.pattern.clone()),
        };
        let (source_name, nulls) = (self.source_name.clone(), self.nulls.clone());
        Template { source_name, nulls, may_grow: self.may_grow, comment, form }
    }
}

impl Template {
    /// Whether columns have the same slots in files like this and like another one, and fields mean
    /// the same.
    pub(crate) fn is_like(&self, other: &Template) -> bool {
        self.nulls == other.nulls && self.form.is_like(&other.form)
    }

    /// The rows of what is left of a pipe, after so many lines.
    pub(crate) fn rows_after(&self, lines: u64, reader: Box<dyn BufRead>) -> Rows {
        let mut rows = self.rows(Vec::new(), lines == 0, false);
        rows.line = lines;
        match &mut rows.form {
            Form::Delimited(form) => form.records = form.records.after(lines, reader),
            Form::Ndjson(Ndjson { lines, .. }) | Form::Lines(Lines { lines, .. }) => lines.reader = reader,
        }
        rows
    }

    /// The rows of a piece of the file, which begins and ends with a line. If it is not the last
    /// one, the row that follows has not arrived yet.
    pub(crate) fn rows(&self, text: Vec<u8>, begins: bool, is_last: bool) -> Rows {
        let mut form = match &self.form {
            TemplateForm::Delimited { dialect, columns } => Form::Delimited(Delimited {
                records: Records::of_text(text, is_last, *dialect, ROW_BYTES_MAX)
                    .that_may_grow(self.may_grow)
                    .with_width(columns.len()),
                columns: columns.clone(),
                pending: VecDeque::new(),
                is_pending: false,
                spans: None,
                notes: Vec::new(),
            }),
            TemplateForm::Ndjson { columns, is_logfmt } => Form::Ndjson(Ndjson {
                unseen: Unseen { slots: (0..columns.len()).collect(), ..Unseen::default() },
                ..Ndjson::new(Box::new(Cursor::new(text)), columns.clone(), *is_logfmt)
            }),
            TemplateForm::Lines(pattern) => {
                Form::Lines(Lines::new(Box::new(Cursor::new(text)), pattern.clone(), ROW_BYTES_MAX))
            }
        };
        if let Form::Ndjson(Ndjson { lines, .. }) | Form::Lines(Lines { lines, .. }) = &mut form {
            (lines.begins, lines.comment) = (begins, self.comment);
        }
        let (source_name, nulls) = (self.source_name.clone(), self.nulls.clone());
        let (may_grow, line, header, notes) = (self.may_grow, 0, Header::Yes, Vec::new());
        Rows { source_name, nulls, may_grow, line, header, notes, form }
    }

    /// The error of a file that cannot be read on.
    pub(crate) fn failed(&self, lines: u64, error: &std::io::Error) -> Failure {
        Failure::Refused(format!("cannot read {} after line {lines}: {error}", self.source_name))
    }

    /// Whether rows are lines, whose text is not kept while they are read.
    pub(crate) fn is_of_lines(&self) -> bool {
        !matches!(self.form, TemplateForm::Delimited { .. })
    }

    /// How many lines are before a place.
    pub(crate) fn lines_before(&self, mark: &Mark) -> u64 {
        if self.is_of_lines() { mark.line } else { mark.line - 1 }
    }

    /// The place behind so many lines, with this content.
    pub(crate) fn mark(&self, content: Content, lines: u64) -> Mark {
        match self.form {
            TemplateForm::Delimited { .. } => Mark { content, line: lines + 1 },
            TemplateForm::Ndjson { .. } | TemplateForm::Lines(_) => Mark { content, line: lines },
        }
    }
}

impl TemplateForm {
    fn is_like(&self, other: &TemplateForm) -> bool {
        match (self, other) {
            (
                TemplateForm::Delimited { dialect, columns },
                TemplateForm::Delimited { dialect: other, columns: of_other },
            ) => dialect == other && columns == of_other,
            (
                TemplateForm::Ndjson { columns, is_logfmt },
                TemplateForm::Ndjson { columns: of_other, is_logfmt: other },
            ) => is_logfmt == other && columns == of_other,
            (TemplateForm::Lines(pattern), TemplateForm::Lines(other)) => pattern.is(other),
            _ => false,
        }
    }
}
