//! Expressions over the columns of a row: for keys, operands of folds, and `--where`.
//!
//! ```text
//!   or       = and { ("||" | "or") and }              and = not { ("&&" | "and") not }      not = ("!" | "not") not | compare
//!   compare  = sum [ ("==" | "=" | "!=" | "<" | "<=" | ">" | ">=") sum | "in" "[" list "]" ]
//!   sum      = product { ("+" | "-") product }         product = sign { ("*" | "/" | "%") sign }
//!   sign     = "-" sign | primary
//!   primary  = number | "text" | 'text' | true | false | null | column | `column` | function "(" list ")" | "(" or ")"
//! ```
//!
//! The parts are in `expr/`: the words of a text, what a row gives them, the functions, and the
//! reading of an expression. decisions/0054 says why this is no crate.

pub(crate) mod value;
pub(crate) mod function;
mod words;
pub(crate) mod parse;
pub(crate) mod split;
pub(crate) mod normal;

use std::borrow::Cow;
use std::convert::Infallible;

use jiff::tz::TimeZone;

use crate::import::row::{BadRow, Fields, Slot};
use function::{Function, Kind};
use value::{Operator, Value};

/// An expression.
#[derive(Clone, Debug)]
pub(crate) enum Expr {
    Constant(Value<'static>),
    Column { name: String, slot: Option<Slot> },
    Not(Box<Expr>),
    Minus(Box<Expr>),
    Two(Operator, Box<(Expr, Expr)>),
    Call(Function, Vec<Expr>),
    List(Vec<Expr>),
}

impl Expr {
    /// A column that is found.
    pub(crate) fn of_column(name: &str, slot: Slot) -> Expr {
        Expr::Column { name: name.to_owned(), slot: Some(slot) }
    }

    /// What it gives for each row.
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Expr::Constant(Value::Bool(_)) | Expr::Not(_) => Kind::Bool,
            Expr::Constant(Value::Whole(_)) => Kind::Whole,
            Expr::Two(Operator::Plus | Operator::Minus | Operator::Times | Operator::Modulo, both)
                if both.0.kind() == Kind::Whole && both.1.kind() == Kind::Whole =>
            {
                Kind::Whole
            }
            Expr::Two(
                Operator::Plus | Operator::Minus | Operator::Times | Operator::Over | Operator::Modulo,
                _,
            ) => Kind::Other,
            Expr::Two(..) => Kind::Bool,
            Expr::Call(function, _) => function.kind(),
            _ => Kind::Other,
        }
    }

    /// The zone of the times that it gives, where it says one.
    pub(crate) fn zone(&self) -> Option<&TimeZone> {
        match self {
            Expr::Call(Function::Coalesce, arguments) => arguments.iter().find_map(Expr::zone),
            Expr::Call(Function::If, arguments) => arguments.iter().skip(1).find_map(Expr::zone),
            Expr::Call(function, _) => function.zone(),
            _ => None,
        }
    }

    /// What it gives for every row, if it has no columns.
    pub(crate) fn constant(&self) -> Option<Result<Value<'_>, BadRow>> {
        self.columns().is_empty().then(|| self.value(&NoRow))
    }

    /// Such as it gives for a row, where all that it gives is of one kind.
    pub(crate) fn sample(&self) -> Option<Value<'static>> {
        match (self.kind(), self) {
            (Kind::Bool, _) => Some(Value::Bool(true)),
            (Kind::Whole, _) => Some(Value::Whole(1)),
            (_, Expr::Call(function, _)) => function.sample(),
            _ => None,
        }
    }

    /// Has it give moments where it gives times, or their beginnings, as text.
    pub(crate) fn give_moments(&mut self) {
        match self {
            Expr::Call(Function::Coalesce, arguments) => arguments.iter_mut().for_each(Expr::give_moments),
            Expr::Call(Function::If, arguments) => {
                arguments.iter_mut().skip(1).for_each(Expr::give_moments);
            }
            Expr::Call(function, _) if function.gives_times() => {
                *function = Function::Begins(Box::new(function.clone()));
            }
            _ => {}
        }
    }

    /// Whether it gives numbers only.
    fn is_number(&self) -> bool {
        use Operator::{Minus, Modulo, Over, Plus, Times};
        match self {
            Expr::Constant(Value::Whole(_) | Value::Float(_)) | Expr::Minus(_) => true,
            Expr::Two(Plus | Minus | Times | Over | Modulo, _) => true,
            Expr::Call(function, _) => function.gives_numbers(),
            _ => false,
        }
    }

    /// Finds its columns.
    pub(crate) fn bind<E>(&mut self, find: &mut impl FnMut(&str) -> Result<Slot, E>) -> Result<(), E> {
        match self {
            Expr::Constant(_) => Ok(()),
            Expr::Column { name, slot } => {
                *slot = Some(find(name)?);
                Ok(())
            }
            Expr::Not(of) | Expr::Minus(of) => of.bind(find),
            Expr::Two(_, both) => {
                both.0.bind(find)?;
                both.1.bind(find)
            }
            Expr::Call(_, arguments) | Expr::List(arguments) => {
                arguments.iter_mut().try_for_each(|argument| argument.bind(find))
            }
        }
    }

    /// A column that is compared with a text of no letters, where equality is asked for.
    pub(crate) fn compared_with_nothing(&self) -> Option<&str> {
        let is_nothing = |expr: &Expr| matches!(expr, Expr::Constant(Value::Text(text)) if text.is_empty());
        match self {
            Expr::Two(Operator::Equal, both) => match &**both {
                (Expr::Column { name, .. }, other) | (other, Expr::Column { name, .. })
                    if is_nothing(other) =>
                {
                    Some(name)
                }
                (one, two) => one.compared_with_nothing().or(two.compared_with_nothing()),
            },
            Expr::Two(Operator::In, both) if matches!(&both.1, Expr::List(items) if items.iter().any(is_nothing)) => {
                if let Expr::Column { name, .. } = &both.0 {
                    Some(name)
                } else {
                    None
                }
            }
            Expr::Two(_, both) => both.0.compared_with_nothing().or(both.1.compared_with_nothing()),
            Expr::Not(of) | Expr::Minus(of) => of.compared_with_nothing(),
            Expr::Call(_, arguments) | Expr::List(arguments) => {
                arguments.iter().find_map(Expr::compared_with_nothing)
            }
            Expr::Constant(_) | Expr::Column { .. } => None,
        }
    }

    /// The names of its columns.
    pub(crate) fn columns(&self) -> Vec<String> {
        let mut names = Vec::new();
        let mut note = |name: &str| {
            names.push(name.to_owned());
            Ok::<_, Infallible>(Slot(0))
        };
        let Ok(()) = self.clone().bind(&mut note);
        names
    }

    /// What the present row gives.
    pub(crate) fn value<'a>(&'a self, rows: &'a impl Fields) -> Result<Value<'a>, BadRow> {
        Ok(match self {
            Expr::Constant(value) => value.borrowed(),
            Expr::Column { slot: None, .. } => Value::Null,
            Expr::Column { slot: Some(slot), .. } => match rows.field(*slot)? {
                Some(text) if text.is_empty() && rows.is_delimited() => Value::Null,
                Some(text) => Value::Field(text),
                None => Value::Null,
            },
            Expr::Not(of) => match of.value(rows)?.truth().map_err(BadRow::whole)? {
                Some(truth) => Value::Bool(!truth),
                None => Value::Null,
            },
            Expr::Minus(of) => Value::Whole(0).minus(of.value(rows)?).map_err(BadRow::whole)?,
            Expr::Two(operator, both) => return Expr::two(*operator, &both.0, &both.1, rows),
            Expr::Call(Function::Coalesce, arguments) => return Expr::first_of(arguments, rows),
            Expr::Call(Function::If, arguments) => {
                let truth = arguments[0].value(rows)?.truth().map_err(BadRow::whole)?;
                return arguments[if truth == Some(true) { 1 } else { 2 }].value_or_list(rows);
            }
            Expr::Call(function, arguments) => {
                if let [Expr::Column { slot: Some(slot), .. }] = arguments[..]
                    && let Some(text) = rows.quoted(slot)
                    && function.guesses(text)
                {
                    return function.of_quoted(text.into()).map_err(BadRow::whole);
                }
                let values = arguments.iter().map(|argument| argument.value_or_list(rows));
                let called = match arguments.len() {
                    // Without an allocation, as most are.
                    len @ 0..=3 => {
                        let mut few = [const { Value::Null }; 3];
                        for (place, value) in few.iter_mut().zip(values) {
                            *place = value?;
                        }
                        function.call(&few[..len])
                    }
                    _ => function.call(&values.collect::<Result<Vec<_>, _>>()?),
                };
                called.map_err(BadRow::whole)?
            }
            Expr::List(items) => {
                Value::List(items.iter().map(|item| item.value(rows)).collect::<Result<_, _>>()?)
            }
        })
    }

    /// The same; a column that has a list gives its elements, and not its text.
    fn value_or_list<'a>(&'a self, rows: &'a impl Fields) -> Result<Value<'a>, BadRow> {
        match (self.value(rows)?, self) {
            (Value::Field(text), Expr::Column { slot: Some(slot), .. }) if text.starts_with('[') => {
                Ok(rows.elements(*slot).map_or(Value::Field(text), |items| {
                    Value::List(items.map(|text| text.map_or(Value::Null, Value::Field)).collect())
                }))
            }
            (value, _) => Ok(value),
        }
    }

    fn first_of<'a>(arguments: &'a [Expr], rows: &'a impl Fields) -> Result<Value<'a>, BadRow> {
        for argument in arguments {
            match argument.value_or_list(rows)? {
                Value::Null => {}
                value => return Ok(value),
            }
        }
        Ok(Value::Null)
    }

    fn two<'a>(
        operator: Operator,
        left: &'a Expr,
        right: &'a Expr,
        rows: &'a impl Fields,
    ) -> Result<Value<'a>, BadRow> {
        let one = left.value(rows)?;
        let done = match operator {
            Operator::Or | Operator::And => {
                let decides = operator == Operator::Or;
                match one.truth().map_err(BadRow::whole)? {
                    Some(truth) if truth == decides => Ok(Value::Bool(decides)),
                    known => match (known, right.value(rows)?.truth().map_err(BadRow::whole)?) {
                        (_, Some(truth)) if truth == decides => Ok(Value::Bool(decides)),
                        (Some(_), Some(_)) => Ok(Value::Bool(!decides)),
                        _ => Ok(Value::Null),
                    },
                }
            }
            Operator::Plus => one.plus(right.value(rows)?),
            Operator::Minus => one.minus(right.value(rows)?),
            Operator::Times => one.times(right.value(rows)?),
            Operator::Over => one.over(right.value(rows)?),
            Operator::Modulo => one.modulo(right.value(rows)?),
            Operator::In => one.among(right.value(rows)?),
            compared => one.compare(compared, right.value(rows)?),
        };
        done.map_err(BadRow::whole)
    }
}

/// The row of an expression without columns.
struct NoRow;

impl Fields for NoRow {
    fn field(&self, _: Slot) -> Result<Option<Cow<'_, str>>, BadRow> {
        Ok(None)
    }

    fn quoted(&self, _: Slot) -> Option<&str> {
        None
    }

    fn elements(&self, _: Slot) -> Option<impl Iterator<Item = Option<Cow<'_, str>>>> {
        None::<std::iter::Empty<_>>
    }

    fn is_delimited(&self) -> bool {
        true
    }
}

#[cfg(test)]
#[path = "expr/tests.rs"]
mod tests;
