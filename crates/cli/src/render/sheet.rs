//! Rows for people, page after page: side by side in columns under one header, or upright, a line
//! for each column. Where the width of a line is known, long texts are cut so that the columns fit;
//! where they do not fit even so, rows are upright. Figures and times are never cut.

use std::borrow::Borrow;
use std::io::{self, Write};

use comfy_table::{CellAlignment, ColumnConstraint, LineStyle, Table, TableStyle, Width};
use console::{measure_text_width, truncate_str};
use folddb::Datum;

use crate::human;
use crate::render::figures;
use crate::render::look::Look;

/// Longest text that a cell shows, in characters.
const CELL_CHARS_MAX: usize = 120;

/// To how many characters a text may be cut so that columns fit.
const TEXT_MIN: usize = 8;

/// Between a cell and the next column.
const GAP: usize = 2;

const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Pages of rows under one header.
pub(crate) struct Sheet {
    header: Vec<String>,
    look: Look,
    layout: Option<Layout>,
    /// How wide the columns were so far.
    widths: Vec<usize>,
    rows: u64,
}

/// How the columns of rows stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// Side by side, each at most this wide, unless it has figures.
    SideBySide(Vec<usize>),
    /// Below each other.
    Upright,
}

/// What the layout depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// The width that it has in any case.
    pub(crate) name: usize,
    pub(crate) cells: usize,
    /// Its texts are never cut.
    pub(crate) is_whole: bool,
}

impl Measured {
    /// How wide it is where its texts are cut to this width.
    fn cut_to(self, width: usize) -> usize {
        self.name.max(if self.is_whole { self.cells } else { self.cells.min(width) })
    }
}

/// How columns stand where lines have this width.
pub(crate) fn layout(columns: &[Measured], width: Option<usize>) -> Layout {
    let Some(width) = width else { return Layout::SideBySide(vec![usize::MAX; columns.len()]) };
    let room = width.saturating_sub((columns.len() * GAP).saturating_sub(1));
    let needed = |cut: usize| columns.iter().map(|column| column.cut_to(cut)).sum::<usize>();
    let widest = columns.iter().map(|column| column.cells).max().unwrap_or(0);
    match (TEXT_MIN..=widest.max(TEXT_MIN)).rev().find(|&cut| needed(cut) <= room) {
        Some(cut) => Layout::SideBySide(columns.iter().map(|column| column.cut_to(cut)).collect()),
        None if columns.len() == 1 => Layout::SideBySide(vec![room.max(TEXT_MIN)]),
        None => Layout::Upright,
    }
}

impl Sheet {
    /// Rows of these columns.
    pub(crate) fn new(header: Vec<String>, look: Look) -> Sheet {
        let widths = vec![0; header.len()];
        Sheet { header, look, layout: look.is_upright.then_some(Layout::Upright), widths, rows: 0 }
    }

    /// Writes a page of rows. Columns get wider where its texts are longer than those before, so
    /// that no key is cut that fits; once rows are upright, all others are.
    pub(crate) fn page<D: Borrow<Datum>>(&mut self, out: &mut dyn Write, rows: &[Vec<D>]) -> io::Result<()> {
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0).max(self.header.len());
        self.header.resize(columns, String::new()); // a last column may have no name
        self.widths.resize(columns, 0);
        let texts: Vec<Vec<String>> = rows
            .iter()
            .map(|row| row.iter().map(|datum| cell(datum.borrow(), self.look.is_full)).collect())
            .collect();
        let all = |index: usize, is_one: fn(&Datum) -> bool| {
            !rows.is_empty() && rows.iter().filter_map(|row| row.get(index)).all(|one| is_one(one.borrow()))
        };
        let figures: Vec<bool> = (0..columns).map(|index| all(index, is_number)).collect();
        let whole: Vec<bool> = (0..columns).map(|index| all(index, is_number_or_time)).collect();
        let layout = match self.layout.take() {
            Some(Layout::Upright) => Layout::Upright,
            _ => layout(&self.measure(&texts, &whole), self.look.width),
        };
        match &layout {
            Layout::Upright => {
                let is_whole = |row: usize, index: usize| is_number_or_time(rows[row][index].borrow());
                self.write_upright(out, &texts, is_whole)?;
            }
            Layout::SideBySide(widths) => self.write_side_by_side(out, texts, (&figures, &whole), widths)?,
        }
        self.rows += rows.len() as u64;
        self.layout = Some(layout);
        Ok(())
    }

    fn measure(&self, texts: &[Vec<String>], whole: &[bool]) -> Vec<Measured> {
        let cells = |index: usize| {
            texts
                .iter()
                .filter_map(|row| row.get(index))
                .map(|text| measure_text_width(text))
                .max()
                .unwrap_or(0)
        };
        let columns = self.header.iter().zip(whole).enumerate();
        columns
            .map(|(index, (name, &is_whole))| Measured {
                name: measure_text_width(name).max(self.widths[index]), // what it has, it keeps
                cells: cells(index),
                is_whole,
            })
            .collect()
    }

    fn write_side_by_side(
        &mut self,
        out: &mut dyn Write,
        texts: Vec<Vec<String>>,
        (figures, whole): (&[bool], &[bool]),
        widths: &[usize],
    ) -> io::Result<()> {
        let mut table = Table::new();
        table.load_style(STYLE);
        if self.rows == 0 {
            table.set_header(self.header.iter().map(String::as_str));
        }
        let fitted = |(index, text): (usize, String)| match widths.get(index) {
            Some(&width) if !whole[index] && measure_text_width(&text) > width => {
                truncate_str(&text, width, "…").into_owned()
            }
            _ => text,
        };
        for row in texts {
            let row: Vec<String> = row.into_iter().enumerate().map(fitted).collect();
            for (width, text) in self.widths.iter_mut().zip(&row) {
                *width = measure_text_width(text).max(*width);
            }
            table.add_row(row);
        }
        for (width, name) in self.widths.iter_mut().zip(&self.header) {
            *width = measure_text_width(name).max(*width);
        }
        for (index, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 1));
            let with_padding = u16::try_from(self.widths[index] + 1).unwrap_or(u16::MAX);
            column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(with_padding)));
            if figures[index] {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table.lines().try_for_each(|line| writeln!(out, "{}", line.trim_end()))
    }

    fn write_upright(
        &self,
        out: &mut dyn Write,
        texts: &[Vec<String>],
        is_whole: impl Fn(usize, usize) -> bool,
    ) -> io::Result<()> {
        let widest_of =
            |texts: &[String]| texts.iter().map(|text| measure_text_width(text)).max().unwrap_or(0);
        // A long name is cut before the values are.
        let values = texts.iter().map(|row| widest_of(row)).max().unwrap_or(0);
        let for_names = |width: usize| width.saturating_sub(GAP + values.min(width / 2)).max(TEXT_MIN);
        let widest = widest_of(&self.header).min(self.look.width.map_or(usize::MAX, for_names));
        let room = self.look.width.map_or(usize::MAX, |width| width.saturating_sub(widest + GAP).max(1));
        for (at, row) in texts.iter().enumerate() {
            writeln!(out, "── {} ──", human::count(self.rows + 1 + at as u64))?;
            for (index, (name, text)) in self.header.iter().zip(row).enumerate() {
                let room = if is_whole(at, index) { usize::MAX } else { room };
                let name = truncate_str(name, widest, "…");
                let pad = " ".repeat(widest + GAP - measure_text_width(&name));
                writeln!(out, "{}", format!("{name}{pad}{}", truncate_str(text, room, "…")).trim_end())?;
            }
        }
        Ok(())
    }
}

fn is_number(datum: &Datum) -> bool {
    matches!(datum, Datum::Int(_) | Datum::Float(_) | Datum::Number(_) | Datum::Null)
}

/// Whether it is a number, or a time as keys and values show it: `2026-11-30T08:00:00Z`.
fn is_number_or_time(datum: &Datum) -> bool {
    let Datum::Text(text) = datum else { return is_number(datum) };
    let is_digit_or = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        10 => byte == b'T',
        13 => byte == b':',
        _ => byte.is_ascii_digit(),
    };
    text.len() >= "2026-11-30T08:00".len() && text.bytes().take(16).enumerate().all(is_digit_or)
}

/// A value as a cell: one line, null empty; figures rounded and texts cut, unless all is wanted.
pub(crate) fn cell(datum: &Datum, is_full: bool) -> String {
    match (datum, is_full) {
        (Datum::Null, _) => String::new(),
        (Datum::Float(value), true) => figures::in_full(*value),
        (Datum::Float(value), false) => figures::rounded(*value),
        (other, true) => human::one_line(other.to_string()),
        (other, false) => cut(other.to_string()).0,
    }
}

/// A text as one line that is not too long, and whether it was cut.
pub(crate) fn cut(text: String) -> (String, bool) {
    let printable = human::one_line(text);
    match printable.char_indices().nth(CELL_CHARS_MAX) {
        Some((end, _)) => (format!("{}…", &printable[..end]), true),
        None => (printable, false),
    }
}

#[cfg(test)]
#[path = "sheet/tests.rs"]
mod tests;
