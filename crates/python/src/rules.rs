//! The rules of a table, from the arguments that Python gives. These have the names of the rules in
//! a store: `key=(str, str), fold="stats:f64"`.

use std::time::Duration;

use folddb::codec::{KeyCodec, ValueCodec};
use folddb::table_rules::{Compression, TableKind, TableRules};
use folddb::{Expire, HeadRule, IndexRule, Keep, ParseError, ValuePlacement};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyString, PyTuple, PyType};

use crate::convert::shown;
use crate::errors::invalid;

/// The rules that these arguments say. All others have their defaults.
///
/// # Errors
/// InvalidInput for an unknown name, and for a value that does not fit it.
pub(crate) fn of(arguments: &Bound<'_, PyDict>) -> PyResult<TableRules> {
    let mut rules = match arguments.get_item("rules")? {
        Some(text) => typed(&text.extract::<String>()?)?,
        None => TableRules::replace(),
    };
    for (name, value) in arguments {
        rules = set(rules, &name.cast::<PyString>()?.to_string(), &value)?;
    }
    Ok(rules)
}

/// The name of ready-made rules, or lines of them.
fn typed(text: &str) -> PyResult<TableRules> {
    text.parse().map_err(refused)
}

/// Why a text is not a part of rules.
fn refused(error: ParseError) -> PyErr {
    invalid(error.to_string())
}

fn set(rules: TableRules, name: &str, value: &Bound<'_, PyAny>) -> PyResult<TableRules> {
    let wrong = || invalid(format!("a table has no {name} that is {}", shown(value)));
    Ok(match name {
        "rules" => rules,
        "key" => rules.key(key(value)?),
        "fold" => match custom(value)? {
            Some((name, version)) => rules.custom_fold(&name, version),
            None => rules.fold(&fold(value)?),
        },
        "value" => rules.value(self::value(value)?),
        "kind" => rules.kind(text(value)?.parse::<TableKind>().map_err(refused)?),
        "order" => rules.order(&text(value)?),
        "separate" => rules.separate(value.extract::<Option<u32>>().map_err(|_| wrong())?),
        "expire" => rules.expire(expire(value)?.ok_or_else(wrong)?),
        "keep" => rules.keep(keep(value)?.ok_or_else(wrong)?),
        "head" => rules.head(value.str()?.to_cow()?.parse::<HeadRule>().map_err(refused)?),
        "index" => indexes(rules, value)?,
        "compression" => rules.compression(text(value)?.parse::<Compression>().map_err(refused)?),
        "bottom_compression" => {
            rules.bottom_compression(Some(text(value)?.parse::<Compression>().map_err(refused)?))
        }
        "value_placement" => rules.value_placement(text(value)?.parse::<ValuePlacement>().map_err(refused)?),
        "block_bytes" => rules.block_bytes(value.extract().map_err(|_| wrong())?),
        "filter_bits" => rules.filter_bits(value.extract().map_err(|_| wrong())?),
        "summaries" => rules.summaries(value.extract().map_err(|_| wrong())?),
        "archive_log" => rules.archive_log(value.extract().map_err(|_| wrong())?),
        "key_names" => {
            let names = value.extract::<Vec<String>>().map_err(|_| wrong())?;
            rules.key_names(names.iter().map(String::as_str))
        }
        _ => return Err(invalid(format!("`{name}` is not a rule of a table; help(Store.table) lists them"))),
    })
}

fn text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    match value.cast::<PyString>() {
        Ok(text) => Ok(text.to_cow()?.into_owned()),
        Err(_) => Err(invalid(format!("{} is not a str", shown(value)))),
    }
}

/// Types of Python as types of keys and their elements.
fn element(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if let Ok(types) = value.cast::<PyTuple>() {
        let types = types.iter().map(|of| element(&of)).collect::<PyResult<Vec<_>>>()?;
        return Ok(format!("tuple({})", types.join(",")));
    }
    let Ok(of) = value.cast::<PyType>() else { return text(value) };
    let name = of.name()?.to_string();
    Ok(match name.as_str() {
        "str" => "text",
        "float" => "double",
        "UUID" => "uuid",
        "int" | "bytes" | "bool" | "tuple" => name.as_str(),
        _ => return Err(invalid(format!("no element of a key is a {name}"))),
    }
    .to_owned())
}

fn key(value: &Bound<'_, PyAny>) -> PyResult<KeyCodec> {
    let name = match element(value)? {
        name if !value.is_instance_of::<PyType>() => name,
        name => match name.as_str() {
            "text" => "utf8".to_owned(),
            "int" => "i64".to_owned(),
            "bytes" | "tuple" => name,
            _ => format!("tuple({name})"),
        },
    };
    name.parse::<KeyCodec>().map_err(refused)
}

/// The type of values that replace each other, or that a fold in Python takes.
///
/// # Errors
/// InvalidInput if there is no such type.
pub(crate) fn value(value: &Bound<'_, PyAny>) -> PyResult<ValueCodec> {
    let name = match value.cast::<PyType>() {
        Err(_) => text(value)?,
        Ok(of) => match of.name()?.to_string().as_str() {
            "str" => "utf8".to_owned(),
            "int" => "i64".to_owned(),
            "float" => "f64".to_owned(),
            "dict" | "list" => "json".to_owned(),
            other => other.to_owned(),
        },
    };
    name.parse::<ValueCodec>().map_err(refused)
}

/// The name and the version of a fold that is written in Python.
fn custom(value: &Bound<'_, PyAny>) -> PyResult<Option<(String, u32)>> {
    if value.get_type().name()? != "CustomFold" {
        return Ok(None);
    }
    Ok(Some((value.getattr("name")?.extract()?, value.getattr("version")?.extract()?)))
}

/// A fold by its spec; a record of several as a dict of them.
fn fold(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let Ok(fields) = value.cast::<PyDict>() else { return text(value) };
    let field = |(name, spec): (Bound<'_, PyAny>, Bound<'_, PyAny>)| -> PyResult<String> {
        Ok(format!("{}: {}", text(&name)?, fold(&spec)?))
    };
    let fields = fields.iter().map(field).collect::<PyResult<Vec<_>>>()?;
    Ok(format!("{{{}}}", fields.join(", ")))
}

fn expire(value: &Bound<'_, PyAny>) -> PyResult<Option<Expire>> {
    if value.is_none() {
        return Ok(Some(Expire::Never));
    }
    if let Ok(time) = value.extract::<Duration>() {
        return Ok(Some(Expire::After(time)));
    }
    value.extract::<String>().ok().map(|text| text.parse::<Expire>().map_err(refused)).transpose()
}

fn keep(value: &Bound<'_, PyAny>) -> PyResult<Option<Keep>> {
    if value.is_instance_of::<PyInt>() {
        return Ok(value.extract().ok().map(Keep::Versions));
    }
    if let Ok(time) = value.extract::<Duration>() {
        return Ok(Some(Keep::Window(time)));
    }
    value.extract::<String>().ok().map(|text| text.parse::<Keep>().map_err(refused)).transpose()
}

/// Indexes as a dict of names to rules, or as a list of lines.
fn indexes(mut rules: TableRules, value: &Bound<'_, PyAny>) -> PyResult<TableRules> {
    let lines = match (value.cast::<PyDict>(), value.cast::<PyList>()) {
        (Ok(named), _) => {
            named.iter().map(|(name, rule)| Ok(format!("{name}:{rule}"))).collect::<PyResult<Vec<_>>>()?
        }
        (_, Ok(lines)) => lines.iter().map(|line| text(&line)).collect::<PyResult<_>>()?,
        _ => vec![text(value)?],
    };
    for line in lines {
        rules = rules.index(index(&line)?);
    }
    Ok(rules)
}

/// The rule of an index.
///
/// # Errors
/// InvalidInput if it is not a rule of an index.
pub(crate) fn index(line: &str) -> PyResult<IndexRule> {
    line.parse().map_err(refused)
}
