//! Handles: Java holds a number, which leads to an object or to none.
//!
//! ```text
//!   long       [generation : 31][index : 32]        of a slot, which has an object and a generation
//!   given      the first free slot                  generation as it is
//!   released   the object goes, generation + 1      the old number leads nowhere from now on
//! ```
//!
//! An object is held for as long as a call uses it, also where another thread releases its handle
//! meanwhile. Slots are in chunks that double and are never freed: finding one takes no lock but
//! that of the slot itself.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use folddb::{Error, ErrorKind, Result};

/// The object of a handle.
pub(crate) trait Object: Any + Send + Sync {
    /// What messages call it.
    const NAME: &'static str;
}

/// The first chunk has this many slots, and each next one twice as many.
const FIRST_CHUNK: usize = 64;

const CHUNKS: usize = 24;

/// A slot whose generation has reached this is not used again.
const GENERATIONS: u64 = 1 << 31;

struct Slot {
    /// Handles of another generation are over.
    generation: u64,
    object: Option<Held>,
}

#[derive(Clone)]
struct Held {
    object: Arc<dyn Any + Send + Sync>,
    name: &'static str,
}

static SLOTS: [OnceLock<Box<[RwLock<Slot>]>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];

/// Slots that were used and are free: the longest free first, so that an old number is told from a
/// new one for as long as it can be.
static FREE: Mutex<VecDeque<usize>> = Mutex::new(VecDeque::new());

/// Slots that were ever used.
static USED: AtomicUsize = AtomicUsize::new(0);

/// The place of a slot: its chunk, and its place in the chunk.
fn place(index: usize) -> (usize, usize) {
    let chunk = (index / FIRST_CHUNK + 1).ilog2() as usize;
    (chunk, index - FIRST_CHUNK * ((1 << chunk) - 1))
}

fn slot(index: usize) -> Option<&'static RwLock<Slot>> {
    let (chunk, at) = place(index);
    SLOTS.get(chunk)?.get()?.get(at)
}

fn split(handle: i64) -> (u64, usize) {
    let number = handle as u64;
    (number >> 32, (number & u64::from(u32::MAX)) as usize)
}

/// Gives Java a handle of this object.
///
/// # Errors
/// There are as many handles as there can be.
pub(crate) fn give<T: Object>(object: T) -> Result<i64> {
    let index = free_index()?;
    let (chunk, at) = place(index);
    let make = || {
        let slots = FIRST_CHUNK << chunk;
        (0..slots).map(|_| RwLock::new(Slot { generation: 1, object: None })).collect()
    };
    let mut slot = SLOTS[chunk].get_or_init(make)[at].write().unwrap_or_else(PoisonError::into_inner);
    slot.object = Some(Held { object: Arc::new(object), name: T::NAME });
    Ok((slot.generation << 32 | index as u64) as i64)
}

fn free_index() -> Result<usize> {
    if let Some(index) = FREE.lock().unwrap_or_else(PoisonError::into_inner).pop_front() {
        return Ok(index);
    }
    let max = FIRST_CHUNK * ((1 << CHUNKS) - 1);
    let one_more = |used| (used < max).then_some(used + 1);
    USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
        .map_err(|_| Error::invalid("there are too many handles: close those that are no longer used"))
}

/// The object of the handle.
///
/// # Errors
/// It is zero, was closed, or is of another type.
#[inline]
pub(crate) fn get<T: Object>(handle: i64) -> Result<Arc<T>> {
    match held(handle) {
        Some(held) => held.object.downcast().map_err(|_| {
            Error::invalid(format!("a {} was given where a {} is expected", held.name, T::NAME))
        }),
        None => Err(over::<T>()),
    }
}

/// The same, or nothing where the handle is zero.
pub(crate) fn get_optional<T: Object>(handle: i64) -> Result<Option<Arc<T>>> {
    if handle == 0 { Ok(None) } else { get(handle).map(Some) }
}

fn held(handle: i64) -> Option<Held> {
    let (generation, index) = split(handle);
    let slot = slot(index)?.read().unwrap_or_else(PoisonError::into_inner);
    slot.object.as_ref().filter(|_| slot.generation == generation).cloned()
}

/// Ends the handle, and gives its object where it has one.
pub(crate) fn end(handle: i64) -> Option<Arc<dyn Any + Send + Sync>> {
    let (generation, index) = split(handle);
    let ended = {
        let mut slot = slot(index)?.write().unwrap_or_else(PoisonError::into_inner);
        if slot.generation != generation || slot.object.is_none() {
            return None;
        }
        slot.generation += 1;
        slot.object.take()
    };
    if generation + 1 < GENERATIONS {
        FREE.lock().unwrap_or_else(PoisonError::into_inner).push_back(index);
    }
    ended.map(|held| held.object)
}

#[cold]
fn over<T: Object>() -> Error {
    Error::new(ErrorKind::Closed, format!("this {} is closed", T::NAME))
}

#[cfg(test)]
mod tests;
