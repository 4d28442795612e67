//! A picture of a column while its rows come: a bar for each row, or a sparkline for each group of
//! rows whose keys differ in their last element only, which is often a time.

use std::io::Write;

use folddb::Datum;

use crate::failure::Failure;
use crate::human;
use crate::render::columns::{Columns, Row};
use crate::render::look::Picture;
use crate::render::plot;
use crate::render::sorted::number;
use crate::render::steps;

/// Most bars of a picture: their scale is known when the last one is.
const BARS_MAX: usize = 1000;

/// What was drawn and gathered so far.
pub(crate) struct Drawing {
    column: usize,
    name: String,
    is_sparkline: bool,
    width: usize,
    is_empty: bool,
    group: Group,
}

/// Rows that are drawn together.
#[derive(Default)]
struct Group {
    /// What all keys begin with, and in words.
    begin: Vec<Datum>,
    label: String,
    /// The last elements of the first key and of the last one.
    ends: Option<(String, String)>,
    bars: Vec<(String, Option<f64>)>,
    values: Vec<Option<f64>>,
    /// The last elements, of a sparkline.
    places: Vec<String>,
}

impl Drawing {
    /// A picture of a column.
    pub(crate) fn of(picture: &Picture, columns: &Columns, width: Option<usize>) -> Result<Drawing, Failure> {
        let (name, is_sparkline) = match picture {
            Picture::Bars(name) => (name, false),
            Picture::Sparkline(name) => (name, true),
        };
        let (column, width) = (columns.find(name)?, width.unwrap_or(plot::WIDTH_USUAL));
        let (name, group) = (name.clone(), Group::default());
        Ok(Drawing { column, name, is_sparkline, width, is_empty: true, group })
    }

    /// Takes a row.
    pub(crate) fn row(&mut self, out: &mut dyn Write, columns: &Columns, row: &Row) -> Result<(), Failure> {
        self.is_empty = false;
        let value = match columns.field_of(self.column, row) {
            Datum::Null => None,
            field => Some(number(field).ok_or_else(|| {
                Failure::Usage(format!("the column `{}` has {field}, which is no number to draw", self.name))
            })?),
        };
        let mut elements = columns.elements_shown(&row.key);
        if !self.is_sparkline {
            self.group.bars.push((words(&elements), value));
            let more = "more than 1,000 bars: choose rows (--limit, --prefix), or draw a sparkline (--spark)";
            return match self.group.bars.len() > BARS_MAX {
                true => Err(Failure::Usage(more.to_owned())),
                false => Ok(()),
            };
        }
        let last = words(elements.split_off(elements.len().saturating_sub(1)).as_slice());
        if self.group.ends.is_some() && !self.group.begin.iter().eq(elements.iter().copied()) {
            self.end_group(out)?;
        }
        let first = self.group.ends.take().map_or_else(|| last.clone(), |(first, _)| first);
        self.group.places.push(last.clone());
        self.group.ends = Some((first, last));
        self.group.label = words(&elements);
        self.group.begin = elements.into_iter().cloned().collect();
        self.group.values.push(value);
        Ok(())
    }

    /// Draws what is left; where there is no row, it is said.
    pub(crate) fn finish(mut self, out: &mut dyn Write) -> Result<(), Failure> {
        if self.is_empty {
            return Ok(writeln!(out, "(0 rows)")?);
        }
        if self.is_sparkline {
            return self.end_group(out);
        }
        plot::bars(&self.group.bars, self.width).iter().try_for_each(|line| writeln!(out, "{line}"))?;
        Ok(())
    }

    fn end_group(&mut self, out: &mut dyn Write) -> Result<(), Failure> {
        let group = std::mem::take(&mut self.group);
        let Some((first, last)) = group.ends else { return Ok(()) };
        let of = if group.label.is_empty() { String::new() } else { format!("{}: ", group.label) };
        let span = plot::span(&group.values);
        let (signs, what) = match steps::of(&group.places, &group.values) {
            Some(signs) => (signs, "step"),
            None => (group.values, "row"),
        };
        let density = plot::density(signs.len(), self.width, what);
        writeln!(out, "{of}{first} to {last}; {} {span}{density}", self.name)?;
        writeln!(out, "{}", plot::sparkline(&signs, self.width).trim_end())?;
        Ok(())
    }
}

/// Elements of a key as a label.
fn words(elements: &[&Datum]) -> String {
    let shown = elements.iter().filter(|element| ***element != Datum::Null);
    human::one_line(shown.map(ToString::to_string).collect::<Vec<_>>().join(" "))
}
