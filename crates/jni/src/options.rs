//! The settings of a store, as lines `name=value`, and what several stores share.

use std::time::Duration;

use folddb::{BackgroundWork, Durability, Error, Options, Result, Shared};
use jni::objects::{JClass, JObjectArray, JString};
use jni::{Env, EnvUnowned};

use crate::errors::{Outcome, guard};
use crate::handles::{self, Object};
use crate::text::texts;

/// A memory budget, a cache and threads for several stores.
pub(crate) struct SharedObject(pub(crate) Shared);

impl Object for SharedObject {
    const NAME: &'static str = "shared budget";
}

/// The options of these settings.
pub(crate) fn options(
    env: &mut Env<'_>,
    settings: &JObjectArray<'_, JString<'_>>,
    shared: i64,
) -> Outcome<Options> {
    let mut options = Options::default();
    for setting in texts(env, settings, "a setting")? {
        let (name, value) = setting.split_once('=').unwrap_or((&setting, ""));
        options = set(options, name, value)?;
    }
    if let Some(shared) = handles::get_optional::<SharedObject>(shared)? {
        options = options.shared(&shared.0);
    }
    Ok(options)
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
        "durability" => options.durability(durability(value)?),
        "background" => options.background(match value {
            "threads" => BackgroundWork::Threads,
            "manual" => BackgroundWork::Manual,
            _ => return Err(unlike(name, value, "threads or manual")),
        }),
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
        "segment_bytes" => {
            let n = number()?;
            options.tuning(|tuning| tuning.segment_bytes(n))
        }
        _ => return Err(Error::invalid(format!("`{name}` is not a setting of a store"))),
    })
}

/// A durability by its name.
pub(crate) fn durability(name: &str) -> Result<Durability> {
    match name {
        "buffered" => Ok(Durability::Buffered),
        "process" => Ok(Durability::Process),
        "sync" => Ok(Durability::Sync),
        _ => Err(unlike("durability", name, "buffered, process or sync")),
    }
}

fn parsed<T: std::str::FromStr>(name: &str, value: &str, wanted: &str) -> Result<T> {
    value.parse().map_err(|_| unlike(name, value, wanted))
}

fn unlike(name: &str, value: &str, wanted: &str) -> Error {
    Error::invalid(format!("`{name}` is {wanted}, not `{value}`"))
}

/// A budget of so many bytes.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_shared<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    bytes: i64,
) -> i64 {
    guard(env, |_| {
        let bytes = usize::try_from(bytes)
            .map_err(|_| Error::invalid(format!("{bytes} is not a number of bytes")))?;
        Ok(handles::give(SharedObject(Shared::new(bytes)))?)
    })
}

/// Bytes that the stores of a budget hold now.
#[unsafe(no_mangle)]
pub extern "system" fn Java_org_folddb_Native_sharedUsed<'local>(
    env: EnvUnowned<'local>,
    _class: JClass<'local>,
    shared: i64,
) -> i64 {
    guard(env, |_| {
        let used = handles::get::<SharedObject>(shared)?.0.used_bytes();
        Ok(i64::try_from(used).unwrap_or(i64::MAX))
    })
}
