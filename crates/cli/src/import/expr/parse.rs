//! Reading an expression.

use jiff::tz::TimeZone;

use super::Expr;
use super::function::Function;
use super::value::{Operator, Value};
use super::words::{Word, words};
use crate::import::times::{self, NoTime};
use crate::zones;

/// How deep an expression may be nested.
const DEPTH_MAX: usize = 64;

/// Reads an expression; times are in this zone where none is given.
pub(crate) fn parse(text: &str, zone: &TimeZone) -> Result<Expr, String> {
    let place = |at: usize, wrong: String| {
        let before: String = text[..at.min(text.len())].chars().rev().take(24).collect();
        let before: String = before.chars().rev().collect();
        match before.trim() {
            "" => format!("in `{text}`: {wrong}"),
            before => format!("in `{text}`, after `{before}`: {wrong}"),
        }
    };
    let words = words(text).map_err(|(at, wrong)| place(at, wrong))?;
    let mut reader = Reader { words, at: 0, zone, depth: 0, end: text.len() };
    let read = reader.or().and_then(|read| match reader.peek() {
        None => Ok(read),
        Some(word) => Err(format!("expected an operator, found {}", shown(word))),
    });
    read.map_err(|wrong| place(reader.place(), wrong))
}

/// The numbers, `true`, `false` and `null` in an expression, as they are written, unless they stand
/// in brackets of their own.
pub(crate) fn bare_constants(text: &str) -> Vec<&str> {
    let words = words(text).unwrap_or_default();
    let is = |at: Option<usize>, sign| {
        at.and_then(|at| words.get(at)).is_some_and(|(_, word)| *word == Word::Sign(sign))
    };
    let is_function = |at: Option<usize>| {
        at.and_then(|at| words.get(at))
            .is_some_and(|(_, word)| matches!(word, Word::Name(name) if !is_word(name)))
    };
    let written = |at: usize| {
        let end = words.get(at + 1).map_or(text.len(), |(next, _)| *next);
        text[words[at].0..end].trim_end()
    };
    let is_bare = |at: &usize| {
        let has_brackets = is(at.checked_sub(1), "(") && is(Some(at + 1), ")");
        !has_brackets || is_function(at.checked_sub(2))
    };
    (0..words.len()).filter(is_bare).map(written).filter(|word| is_bare_constant(word)).collect()
}

/// Whether a word is a constant, though a column may be called so.
pub(crate) fn is_bare_constant(word: &str) -> bool {
    word.parse::<f64>().is_ok() || matches!(word, "true" | "false" | "null")
}

/// Whether a name is a word between values, and no function.
fn is_word(name: &str) -> bool {
    matches!(name, "and" | "or" | "not" | "in")
}

struct Reader<'a> {
    words: Vec<(usize, Word)>,
    at: usize,
    zone: &'a TimeZone,
    depth: usize,
    end: usize,
}

fn shown(word: &Word) -> String {
    match word {
        Word::Number(value) => format!("`{value}`"),
        Word::Whole(value) => format!("`{value}`"),
        Word::Text(text) => format!("\"{text}\""),
        Word::Name(name) | Word::Column(name) => format!("`{name}`"),
        Word::Sign(sign) => format!("`{sign}`"),
    }
}

impl Reader<'_> {
    fn peek(&self) -> Option<&Word> {
        self.words.get(self.at).map(|(_, word)| word)
    }

    fn place(&self) -> usize {
        self.words.get(self.at).map_or(self.end, |(at, _)| *at)
    }

    fn takes(&mut self, signs: &[&str]) -> Option<String> {
        let sign = match self.peek()? {
            Word::Sign(sign) if signs.contains(sign) => (*sign).to_owned(),
            Word::Name(name) if signs.contains(&name.as_str()) => name.clone(),
            _ => return None,
        };
        self.at += 1;
        Some(sign)
    }

    fn wants(&mut self, sign: &str) -> Result<(), String> {
        match (self.takes(&[sign]), self.peek()) {
            (Some(_), _) => Ok(()),
            (None, Some(word)) => Err(format!("expected `{sign}`, found {}", shown(word))),
            (None, None) => Err(format!("expected `{sign}`")),
        }
    }

    fn or(&mut self) -> Result<Expr, String> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err("the expression is nested too deeply".to_owned());
        }
        let mut left = self.and()?;
        while self.takes(&["||", "or"]).is_some() {
            left = Expr::Two(Operator::Or, Box::new((left, self.and()?)));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn and(&mut self) -> Result<Expr, String> {
        let mut left = self.not()?;
        while self.takes(&["&&", "and"]).is_some() {
            left = Expr::Two(Operator::And, Box::new((left, self.not()?)));
        }
        Ok(left)
    }

    fn not(&mut self) -> Result<Expr, String> {
        let mut count = 0;
        while self.takes(&["!", "not"]).is_some() {
            count += 1;
        }
        let mut read = self.compare()?;
        for _ in 0..count {
            read = Expr::Not(Box::new(read));
        }
        Ok(read)
    }

    fn compare(&mut self) -> Result<Expr, String> {
        let left = self.sum()?;
        let Some(sign) = self.takes(&["==", "=", "!=", "<>", "<", "<=", ">", ">=", "in"]) else {
            return Ok(left);
        };
        let operator = match sign.as_str() {
            "==" | "=" => Operator::Equal,
            "!=" | "<>" => Operator::NotEqual,
            "<" => Operator::Less,
            "<=" => Operator::LessOrEqual,
            ">" => Operator::Greater,
            ">=" => Operator::GreaterOrEqual,
            _ => {
                self.wants("[")?;
                let items = self.list("]")?;
                items.iter().try_for_each(|item| comparable(&left, item, false))?;
                return among(&left, items, self.zone);
            }
        };
        let right = self.sum()?;
        let is_order = !matches!(operator, Operator::Equal | Operator::NotEqual);
        comparable(&left, &right, is_order)?;
        let both = match are_times(&left, &right, is_order) {
            true => {
                let zone = zone_of(&left, &right, self.zone).clone();
                (moment(left, &zone, !is_order)?, moment(right, &zone, !is_order)?)
            }
            false => (left, right),
        };
        Ok(Expr::Two(operator, Box::new(both)))
    }

    fn sum(&mut self) -> Result<Expr, String> {
        let mut left = self.product()?;
        while let Some(sign) = self.takes(&["+", "-"]) {
            let operator = if sign == "+" { Operator::Plus } else { Operator::Minus };
            let right = self.product()?;
            let both = match operator == Operator::Minus && is_time(&left) && is_time(&right) {
                true => (moment(left, self.zone, false)?, moment(right, self.zone, false)?),
                false => (left, right),
            };
            left = Expr::Two(operator, Box::new(both));
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Expr, String> {
        let mut left = self.sign()?;
        while let Some(sign) = self.takes(&["*", "/", "%"]) {
            let operator = match sign.as_str() {
                "*" => Operator::Times,
                "/" => Operator::Over,
                _ => Operator::Modulo,
            };
            left = Expr::Two(operator, Box::new((left, self.sign()?)));
        }
        Ok(left)
    }

    fn sign(&mut self) -> Result<Expr, String> {
        let mut count = 0;
        while self.takes(&["-"]).is_some() {
            count += 1;
        }
        let read = self.primary()?;
        Ok(match (count % 2, read) {
            (0, read) => read,
            (_, Expr::Constant(Value::Whole(value))) => Expr::Constant(Value::Whole(-value)),
            (_, Expr::Constant(Value::Float(value))) => Expr::Constant(Value::Float(-value)),
            (_, read) => Expr::Minus(Box::new(read)),
        })
    }

    fn primary(&mut self) -> Result<Expr, String> {
        let Some(word) = self.peek().cloned() else { return Err("expected a value".to_owned()) };
        self.at += 1;
        Ok(match word {
            Word::Whole(value) => Expr::Constant(Value::Whole(value)),
            Word::Number(value) => Expr::Constant(Value::Float(value)),
            Word::Text(text) => Expr::Constant(Value::Text(text.into())),
            Word::Column(name) => Expr::Column { name, slot: None },
            Word::Sign("(") => {
                let read = self.or()?;
                self.wants(")")?;
                read
            }
            Word::Sign(sign) => {
                self.at -= 1;
                let hint = match sign {
                    "/" => " (a field inside of another is written in backquotes: `/user/id`)",
                    _ => "",
                };
                return Err(format!("expected a value, found `{sign}`{hint}"));
            }
            Word::Name(name) => return self.named(name),
        })
    }

    fn named(&mut self, name: String) -> Result<Expr, String> {
        if self.takes(&["("]).is_some() {
            let at = self.at;
            let mut arguments = self.list(")")?;
            let constant = |argument: &Expr| match argument {
                Expr::Constant(value) => Some(value.clone()),
                _ => None,
            };
            let constants: Vec<_> = arguments.iter().map(constant).collect();
            let made = Function::of(&name, &constants, self.zone).inspect_err(|_| self.at = at - 1);
            let (function, count) = made?;
            arguments.truncate(count);
            return Ok(Expr::Call(function, arguments));
        }
        Ok(match name.as_str() {
            "true" => Expr::Constant(Value::Bool(true)),
            "false" => Expr::Constant(Value::Bool(false)),
            "null" => Expr::Constant(Value::Null),
            _ => Expr::Column { name, slot: None },
        })
    }

    fn list(&mut self, end: &str) -> Result<Vec<Expr>, String> {
        let mut items = Vec::new();
        if self.takes(&[end]).is_some() {
            return Ok(items);
        }
        loop {
            items.push(self.or()?);
            if self.takes(&[","]).is_none() {
                self.wants(end)?;
                return Ok(items);
            }
        }
    }
}

/// Whether an expression gives times, or their beginnings.
fn is_time(expr: &Expr) -> bool {
    matches!(expr, Expr::Call(function, _) if function.gives_times())
}

/// The zone of the times of two sides.
fn zone_of<'z>(left: &'z Expr, right: &'z Expr, zone: &'z TimeZone) -> &'z TimeZone {
    left.zone().or(right.zone()).unwrap_or(zone)
}

/// Whether two sides are compared as times: one gives times and the other one does not give
/// numbers, as of years; or a column has what is asked for by a time in quotes, which the form of
/// its times need not have. A number in quotes is no such time: it may be anything.
fn are_times(left: &Expr, right: &Expr, is_order: bool) -> bool {
    let is_number =
        |expr: &Expr| expr.is_number() || matches!(expr, Expr::Constant(Value::Bool(_) | Value::Null));
    let is_quoted = |expr: &Expr| match expr {
        Expr::Constant(Value::Text(text)) => {
            let is_moment = text.contains(':');
            let is_time = || times::parse(text, &TimeZone::UTC).is_ok();
            (is_order || is_moment) && text.parse::<f64>().is_err() && is_time()
        }
        _ => false,
    };
    let may_be = |expr: &Expr| match expr {
        Expr::Column { .. } => true,
        Expr::Call(function, _) => !function.gives_texts(),
        _ => false,
    };
    let one_way = |one: &Expr, two: &Expr| is_time(one) && !is_number(two) || is_quoted(one) && may_be(two);
    one_way(left, right) && !is_number(left) || one_way(right, left) && !is_number(right)
}

/// What gives the moment that is compared. That of a constant is known now. Of a text it may be no
/// mistake that it is none, where it is only asked whether it is the same.
fn moment(expr: Expr, zone: &TimeZone, is_maybe: bool) -> Result<Expr, String> {
    if let Expr::Constant(Value::Text(text)) = &expr {
        let number = if times::is_epoch(text) {
            format!("; a number is made one: time({text})")
        } else {
            String::new()
        };
        return match times::moment(text, zone) {
            Ok(at) if number.is_empty() => Ok(Expr::Constant(Value::Moment(at))),
            Err(NoTime::Unclear(..)) => Err(zones::unclear(text)),
            _ => Err(format!(
                "expected a time beside a time (as 2013-01-01, 2013-01-01T05:15:00Z), found \"{text}\"{number}"
            )),
        };
    }
    let (function, arguments) = match expr {
        Expr::Call(function, arguments) if function.gives_times() => {
            (Function::compared(Some(&function), zone, false), arguments)
        }
        other => (Function::compared(None, zone, is_maybe), vec![other]),
    };
    if let [Expr::Constant(value)] = &arguments[..] {
        return Ok(Expr::Constant(function.call(std::slice::from_ref(value))?));
    }
    Ok(Expr::Call(function, arguments))
}

/// Whether a value is one of a list: equal to one of its items, each of which is compared as by
/// `==`. Those that are compared as times of one zone are a list of moments.
fn among(left: &Expr, items: Vec<Expr>, zone: &TimeZone) -> Result<Expr, String> {
    let is_in = |left: Expr, items| Expr::Two(Operator::In, Box::new((left, Expr::List(items))));
    let (mut moments, mut others): (Vec<(TimeZone, Vec<Expr>)>, Vec<Expr>) = (Vec::new(), Vec::new());
    for item in items {
        if !are_times(left, &item, false) {
            others.push(item);
            continue;
        }
        let zone = zone_of(left, &item, zone).clone();
        let item = moment(item, &zone, true)?;
        match moments.iter_mut().find(|(known, _)| *known == zone) {
            Some((_, items)) => items.push(item),
            None => moments.push((zone, vec![item])),
        }
    }
    let mut found = Vec::new();
    if !others.is_empty() || moments.is_empty() {
        found.push(is_in(left.clone(), others));
    }
    for (zone, items) in moments {
        found.push(is_in(moment(left.clone(), &zone, true)?, items));
    }
    let or = |one, two| Expr::Two(Operator::Or, Box::new((one, two)));
    found.into_iter().reduce(or).ok_or_else(|| "`in` needs a list: [a, b]".to_owned())
}

/// Refuses a comparison of a number with a text that is none, which is never equal, and the order
/// of a field and a number in quotes, which would be that of texts.
fn comparable(left: &Expr, right: &Expr, is_order: bool) -> Result<(), String> {
    for (one, two) in [(left, right), (right, left)] {
        if matches!(two, Expr::Constant(Value::Null)) {
            let name = if let Expr::Column { name, .. } = one { name } else { "a" };
            return Err(format!(
                "nothing is equal to null, which is what is missing: coalesce({name}, \"\") == \"\" is true where \
                 `{name}` is missing or empty"
            ));
        }
        let Expr::Constant(Value::Text(text)) = two else { continue };
        let is_number = Value::Text(text.as_ref().into()).float().is_ok();
        if one.is_number() && !is_number {
            return Err(format!("a number is never the text \"{text}\""));
        }
        if is_number && (one.is_number() || is_order && matches!(one, Expr::Column { .. })) {
            return Err(format!(
                "\"{text}\" is a text, and \"9\" comes after \"10\": numbers stand without quotes"
            ));
        }
    }
    Ok(())
}
