//! The results of a bench: figures by name, in order, as JSON and as text.

use std::fmt;

use serde_json::{Map, Value, json};

/// The figures of one run of a bench. Names carry their units (`_s`, `_us`, `_bytes`, `_per_s`).
#[derive(Clone, Debug)]
pub struct Report {
    name: &'static str,
    verified: bool,
    figures: Map<String, Value>,
}

impl Report {
    pub(crate) fn new(name: &'static str) -> Report {
        Report { name, verified: false, figures: Map::new() }
    }

    /// Adds a figure.
    pub(crate) fn put(&mut self, name: &str, value: impl Into<Value>) {
        self.figures.insert(name.to_owned(), value.into());
    }

    /// Says whether the state of the store is what an independent computation says it must be.
    pub(crate) fn verify(&mut self, verified: bool) {
        self.verified = verified;
    }

    /// The name of the bench.
    pub fn name(&self) -> &str {
        self.name
    }

    /// True when the final state is what an independent computation says. A program that prints the
    /// report ends with an error when it is not.
    pub fn verified(&self) -> bool {
        self.verified
    }

    /// A figure by its path: `["load", "rows_per_s"]`.
    pub fn figure(&self, path: &[&str]) -> Option<&Value> {
        let (first, rest) = path.split_first()?;
        rest.iter().try_fold(self.figures.get(*first)?, |value, name| value.get(*name))
    }

    /// All of it as one object.
    pub fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("bench".to_owned(), json!(self.name));
        object.extend(self.figures.clone());
        object.insert("verified".to_owned(), json!(self.verified));
        Value::Object(object)
    }
}

/// Aligned text: one line per figure, groups under their names.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.name)?;
        write_group(f, &self.figures, 1)?;
        write!(
            f,
            "  {:<28}{}",
            "verified",
            if self.verified { "yes" } else { "NO: the final state is wrong" }
        )
    }
}

fn write_group(f: &mut fmt::Formatter<'_>, group: &Map<String, Value>, depth: usize) -> fmt::Result {
    let indent = "  ".repeat(depth);
    let width = 30usize.saturating_sub(indent.len());
    for (name, value) in group {
        match value {
            Value::Object(inner) => {
                writeln!(f, "{indent}{name}")?;
                write_group(f, inner, depth + 1)?;
            }
            value => writeln!(f, "{indent}{name:<width$}{}", text(value))?,
        }
    }
    Ok(())
}

fn text(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text).collect::<Vec<_>>().join("  "),
        Value::Number(number) => match number.as_u64() {
            Some(whole) => with_separators(whole),
            None => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// Digits in groups of three.
fn with_separators(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
#[path = "report/tests.rs"]
mod tests;
