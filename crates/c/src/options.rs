//! The settings that a store is opened with, and the functions of C that its tables name.

use std::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use folddb::{BackgroundWork, Durability, Error, Options, Result};

use crate::callbacks::{Context, Destroy};
use crate::errors::{guard, guard_silently};
use crate::events::{EventFunction, notify};
use crate::exclusive::Exclusive;
use crate::fold::{CustomFold, FoldFunction};
use crate::handles::{self, Object};
use crate::memory::{ErrPtr, Text};
use crate::order::{NamedOrder, OrderFunction};
use crate::shared::SharedObject;

/// The settings of a store. They are not stored: each opening chooses them.
pub struct OptionsObject(Exclusive<Options>);

impl Object for OptionsObject {
    const NAME: &'static str = "folddb_options";
}

/// The settings of these options, or the defaults where there are none.
pub(crate) fn settings(options: *mut OptionsObject) -> Result<Options> {
    match handles::get_optional(options)? {
        Some(options) => Ok(options.0.lock::<OptionsObject>()?.clone()),
        None => Ok(Options::default()),
    }
}

fn change(options: *mut OptionsObject, change: impl FnOnce(Options) -> Result<Options>) -> Result<bool> {
    let options = handles::get(options)?;
    let mut options = options.0.lock::<OptionsObject>()?;
    *options = change(options.clone())?;
    Ok(true)
}

/// Options with every default. NULL where it fails.
///
/// One thread sets them at a time; any number open stores with them. Destroy them when done; the
/// stores that were opened with them stay as they are.
///
/// Errors: InvalidInput where there are too many handles.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_options_create(errptr: ErrPtr<'_>) -> *mut OptionsObject {
    guard(errptr, std::ptr::null_mut(), || handles::give(OptionsObject(Exclusive::new(Options::default()))))
}

/// Destroys the handle. NULL is ignored. Functions that were added are released once the last store
/// that was opened with them is closed, too.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_options_destroy(options: *mut OptionsObject) {
    guard_silently(|| handles::take(options).map(drop));
}

/// Sets one setting, by its name in Rust, to a value as text. Returns whether it did.
///
/// Sizes are in bytes, times in milliseconds, both whole numbers. `none` is no bound.
///
///     memory_bytes, disk_bytes_max, disk_reserve_bytes, snapshot_age_max_ms, deletes_age_max_ms
///     durability: buffered, process or sync
///     background: threads or manual
///     merge_threads, merge_factor, background_nice, part_bytes, open_files_max, index_bytes_max,
///     lock_in_memory, mapped_log, segment_bytes, value_segment_bytes, stream_piece_bytes,
///     values_direct, value_space_max, snapshot_files_after_ms
///
/// Errors: InvalidInput for an unknown name, and for a value that the setting cannot have.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_options_set(
    options: *mut OptionsObject,
    name: Text,
    value: Text,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let (name, value) = (name.get("the name")?, value.get("the value")?);
        change(options, |options| set(options, name, value))
    })
}

fn set(options: Options, name: &str, value: &str) -> Result<Options> {
    let number = || parsed::<u64>(name, value, "a whole number");
    let size = || parsed::<usize>(name, value, "a whole number");
    let bound = || if value == "none" { Ok(None) } else { number().map(Some) };
    let age = || Ok::<_, Error>(bound()?.map(Duration::from_millis));
    Ok(match name {
        "memory_bytes" => options.memory_bytes(size()?),
        "disk_bytes_max" => options.disk_bytes_max(bound()?),
        "disk_reserve_bytes" => options.disk_reserve_bytes(number()?),
        "snapshot_age_max_ms" => options.snapshot_age_max(age()?),
        "deletes_age_max_ms" => options.deletes_age_max(age()?),
        "merge_threads" => options.merge_threads(size()?),
        "durability" => options.durability(match value {
            "buffered" => Durability::Buffered,
            "process" => Durability::Process,
            "sync" => Durability::Sync,
            _ => return Err(unlike(name, value, "buffered, process or sync")),
        }),
        "background" => options.background(match value {
            "threads" => BackgroundWork::Threads,
            "manual" => BackgroundWork::Manual,
            _ => return Err(unlike(name, value, "threads or manual")),
        }),
        _ => return tune(options, name, value),
    })
}

/// A setting to change only after measuring.
fn tune(options: Options, name: &str, value: &str) -> Result<Options> {
    let number = || parsed::<u64>(name, value, "a whole number");
    let size = || parsed::<usize>(name, value, "a whole number");
    let is = || parsed::<bool>(name, value, "true or false");
    Ok(match name {
        "merge_factor" => {
            let n = size()?;
            options.tuning(|tuning| tuning.merge_factor(n))
        }
        "background_nice" => {
            let steps = parsed::<u8>(name, value, "a whole number of at most 255")?;
            options.tuning(|tuning| tuning.background_nice(steps))
        }
        "part_bytes" => {
            let n = number()?;
            options.tuning(|tuning| tuning.part_bytes(n))
        }
        "open_files_max" => {
            let n = size()?;
            options.tuning(|tuning| tuning.open_files_max(n))
        }
        "index_bytes_max" => {
            let n = if value == "none" { None } else { Some(number()?) };
            options.tuning(|tuning| tuning.index_bytes_max(n))
        }
        "lock_in_memory" => {
            let is = is()?;
            options.tuning(|tuning| tuning.lock_in_memory(is))
        }
        "mapped_log" => {
            let is = is()?;
            options.tuning(|tuning| tuning.mapped_log(is))
        }
        "segment_bytes" => {
            let n = number()?;
            options.tuning(|tuning| tuning.segment_bytes(n))
        }
        "value_segment_bytes" => {
            let n = number()?;
            options.tuning(|tuning| tuning.value_segment_bytes(n))
        }
        "stream_piece_bytes" => {
            let n = size()?;
            options.tuning(|tuning| tuning.stream_piece_bytes(n))
        }
        "values_direct" => {
            let is = is()?;
            options.tuning(|tuning| tuning.values_direct(is))
        }
        "value_space_max" => {
            let times = parsed(name, value, "a number")?;
            options.tuning(|tuning| tuning.value_space_max(times))
        }
        "snapshot_files_after_ms" => {
            let age = Duration::from_millis(number()?);
            options.tuning(|tuning| tuning.snapshot_files_after(age))
        }
        _ => return Err(Error::invalid(format!("`{name}` is not a setting of a store"))),
    })
}

/// A value from its text.
///
/// # Errors
/// It is not what `wanted` says.
pub(crate) fn parsed<T: std::str::FromStr>(name: &str, value: &str, wanted: &str) -> Result<T> {
    value.parse().map_err(|_| unlike(name, value, wanted))
}

fn unlike(name: &str, value: &str, wanted: &str) -> Error {
    Error::invalid(format!("`{name}` is {wanted}, not `{value}`"))
}

/// Lets stores that are opened with these options share what `shared` has with all others that do.
/// Returns whether it was set. The options keep it: its handle may be destroyed.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_options_set_shared(
    options: *mut OptionsObject,
    shared: *mut SharedObject,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let shared = handles::get(shared)?;
        change(options, |options| Ok(options.shared(&shared.0)))
    })
}

/// Registers a fold of C by name and version, so that tables whose rules name it
/// (`custom_fold=NAME` and `fold_version=VERSION`) can be opened. Returns whether it did.
///
/// The options own `context` from now on, also where this fails: `destroy`, unless it is NULL, is
/// called with it once, when the options are destroyed and the last store that was opened with them
/// is closed.
///
/// Errors: InvalidInput where `fold` or the name is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_options_add_fold(
    options: *mut OptionsObject,
    name: Text,
    version: u32,
    fold: FoldFunction,
    context: *mut c_void,
    destroy: Destroy,
    errptr: ErrPtr<'_>,
) -> bool {
    let context = Context::new(context, destroy);
    guard(errptr, false, || {
        let name = name.get("the name")?.to_owned();
        let function = fold.ok_or_else(|| Error::invalid("the fold is NULL"))?;
        let fold = CustomFold { name, version, function, context };
        change(options, |options| Ok(options.custom_fold(Arc::new(fold))))
    })
}

/// Registers a key order of C by name, so that tables whose rules name it (`order=NAME`) can be
/// opened. Returns whether it did. For `context` and `destroy` see folddb_options_add_fold.
///
/// Errors: InvalidInput where `order` or the name is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_options_add_order(
    options: *mut OptionsObject,
    name: Text,
    order: OrderFunction,
    context: *mut c_void,
    destroy: Destroy,
    errptr: ErrPtr<'_>,
) -> bool {
    let context = Context::new(context, destroy);
    guard(errptr, false, || {
        let name = name.get("the name")?.to_owned();
        let function = order.ok_or_else(|| Error::invalid("the order is NULL"))?;
        let order = NamedOrder { name, function, context };
        change(options, |options| Ok(options.custom_order(Arc::new(order))))
    })
}

/// Calls `listener` with the events of the store. Returns whether it will.
///
/// A later listener replaces an earlier one. For `context` and `destroy` see
/// folddb_options_add_fold.
///
/// Errors: InvalidInput where `listener` is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_options_on_event(
    options: *mut OptionsObject,
    listener: EventFunction,
    context: *mut c_void,
    destroy: Destroy,
    errptr: ErrPtr<'_>,
) -> bool {
    let context = Context::new(context, destroy);
    guard(errptr, false, || {
        let listener = listener.ok_or_else(|| Error::invalid("the listener is NULL"))?;
        change(options, |options| Ok(options.on_event(move |event| notify(listener, &context, event))))
    })
}

#[cfg(test)]
mod tests;
