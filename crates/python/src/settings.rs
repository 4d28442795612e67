//! Settings of a store and of a write, from the arguments of Python.

use std::time::{Duration, SystemTime};

use folddb::{AsOf, BackgroundWork, Durability, Lifetime, Options};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyString};

use crate::convert::shown;
use crate::custom::CustomFold;
use crate::errors::invalid;
use crate::events::listener;
use crate::shared::SharedOf;

/// `buffered`, `process` or `sync`.
pub(crate) fn durability(word: &str) -> PyResult<Durability> {
    Ok(match word {
        "buffered" => Durability::Buffered,
        "process" => Durability::Process,
        "sync" => Durability::Sync,
        _ => return Err(invalid(format!("durability is buffered, process or sync, not `{word}`"))),
    })
}

/// For how long a value lasts: a `timedelta`, until an aware `datetime`, or forever by `None`.
pub(crate) fn lifetime(of: &Bound<'_, PyAny>) -> PyResult<Lifetime> {
    if of.is_none() {
        return Ok(Lifetime::Forever);
    }
    if let Ok(time) = of.extract::<Duration>() {
        return Ok(Lifetime::For(time));
    }
    if let Ok(moment) = of.extract::<SystemTime>() {
        return Ok(Lifetime::Until(moment));
    }
    Err(invalid(format!(
        "a lifetime is a timedelta that is not negative, a datetime with a time zone, or None for forever, not {}",
        shown(of)
    )))
}

/// A past moment: a seq, or an aware `datetime`.
pub(crate) fn as_of(of: &Bound<'_, PyAny>) -> PyResult<AsOf> {
    if of.is_instance_of::<PyInt>() {
        return Ok(AsOf::Seq(of.extract::<u64>()?.into()));
    }
    match of.extract::<SystemTime>() {
        Ok(moment) => Ok(AsOf::Time(moment)),
        Err(_) => {
            Err(invalid(format!("a moment is a seq, or a datetime with a time zone, not {}", shown(of))))
        }
    }
}

/// Settings by the names that they have in Rust: sizes in bytes, ages as `timedelta`.
///
/// # Errors
/// InvalidInput for an unknown name, and for a value that does not fit it.
pub(crate) fn options(settings: Option<&Bound<'_, PyDict>>) -> PyResult<Options> {
    let mut options = Options::default();
    for (name, value) in settings.into_iter().flatten() {
        let name = name.cast::<PyString>()?.to_string();
        options = set(options, &name, &value).map_err(|_| {
            invalid(format!("`{name}` is not a setting of a store that can be {}", shown(&value)))
        })?;
    }
    Ok(options)
}

fn set(options: Options, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Options> {
    Ok(match name {
        "memory_bytes" => options.memory_bytes(value.extract()?),
        "disk_bytes_max" => options.disk_bytes_max(value.extract()?),
        "disk_reserve_bytes" => options.disk_reserve_bytes(value.extract()?),
        "snapshot_age_max" => options.snapshot_age_max(value.extract()?),
        "deletes_age_max" => options.deletes_age_max(value.extract()?),
        "merge_threads" => options.merge_threads(value.extract()?),
        "durability" => options.durability(durability(&value.extract::<String>()?)?),
        "background" => options.background(match value.extract::<String>()?.as_str() {
            "threads" => BackgroundWork::Threads,
            "manual" => BackgroundWork::Manual,
            _ => return Err(invalid("background is threads or manual")),
        }),
        "folds" => custom_folds(options, value)?,
        "on_event" if value.is_callable() => options.on_event(listener(value.clone().unbind())),
        "shared" => options.shared(value.cast::<SharedOf>()?.get().shared()?),
        tuned => tune(options, tuned, value)?,
    })
}

/// Folds that are written in Python.
fn custom_folds(mut options: Options, folds: &Bound<'_, PyAny>) -> PyResult<Options> {
    for fold in folds.try_iter()? {
        let fold = fold?;
        options = options.custom_fold(fold.cast::<CustomFold>()?.get().as_fold());
    }
    Ok(options)
}

fn tune(options: Options, name: &str, value: &Bound<'_, PyAny>) -> PyResult<Options> {
    macro_rules! tuned {
        ($($name:ident),+) => {
            match name {
                $(stringify!($name) => {
                    let value = value.extract()?;
                    options.tuning(|tuning| tuning.$name(value))
                })+
                _ => return Err(invalid(format!("`{name}` is not a setting of a store"))),
            }
        };
    }
    Ok(tuned!(
        merge_factor,
        background_nice,
        part_bytes,
        open_files_max,
        index_bytes_max,
        lock_in_memory,
        mapped_log,
        segment_bytes,
        value_segment_bytes,
        stream_piece_bytes,
        values_direct,
        value_space_max,
        snapshot_files_after
    ))
}
