//! Handles: C holds a number with the type of a pointer, which is never followed.
//!
//! ```text
//!   folddb_table *   [generation : 32][index : 32]      of a slot, which has an object and a generation
//!   given            the first free slot                 generation as it is
//!   destroyed        the object goes, generation + 1     the old number leads nowhere from now on
//! ```
//!
//! So null, a handle that was destroyed, and one of another type are found. An object is held for
//! as long as a call uses it, also where another thread destroys its handle meanwhile.
//!
//! Slots are process-wide, since C gives a call nothing else. They are in chunks that double, and
//! are never freed: finding one takes no shared lock but that of the slot itself. A forked child
//! never uses the earlier slots again, since the threads that locked them may not exist.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use folddb::{Error, ErrorKind, Result};

use crate::forks;

/// The object of a handle.
pub(crate) trait Object: Any + Send + Sync {
    /// The name of the type in C.
    const NAME: &'static str;
}

/// Half of the bits of a handle are the index.
const INDEX_BITS: u32 = usize::BITS / 2;

/// The first chunk has this many slots, and each next one twice as many.
const FIRST_CHUNK: usize = 64;

const CHUNKS: usize = INDEX_BITS as usize - FIRST_CHUNK.ilog2() as usize;

struct Slot {
    /// Handles of another generation are over.
    generation: usize,
    object: Option<Held>,
}

#[derive(Clone)]
struct Held {
    object: Arc<dyn Any + Send + Sync>,
    name: &'static str,
}

static SLOTS: [OnceLock<Box<[RwLock<Slot>]>>; CHUNKS] = [const { OnceLock::new() }; CHUNKS];

/// Slots that were used and are free: the longest free first, so that an old number is told from a
/// new one for as long as it can be. One list for each fork that led to this process, since another
/// thread may have had that of the parent; from the last on the same.
static FREE: [Mutex<VecDeque<usize>>; 16] = [const { Mutex::new(VecDeque::new()) }; 16];

/// Slots that were ever used.
static USED: AtomicUsize = AtomicUsize::new(0);

/// The slots below this were used before the fork that this process comes from.
static FORKED_AT: AtomicUsize = AtomicUsize::new(0);

/// How many forks led to this process.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// The place of a slot: its chunk, and its place in the chunk.
fn place(index: usize) -> (usize, usize) {
    let chunk = (index / FIRST_CHUNK + 1).ilog2() as usize;
    (chunk, index - FIRST_CHUNK * ((1 << chunk) - 1))
}

fn slot(index: usize) -> Option<&'static RwLock<Slot>> {
    let (chunk, at) = place(index);
    SLOTS.get(chunk)?.get()?.get(at)
}

fn split<T>(handle: *mut T) -> (usize, usize) {
    let number = handle.addr();
    (number >> INDEX_BITS, number & ((1 << INDEX_BITS) - 1))
}

/// Gives C a handle of this object.
///
/// # Errors
/// There are as many handles as there can be.
pub(crate) fn give<T: Object>(object: T) -> Result<*mut T> {
    let index = free_index()?;
    let (chunk, at) = place(index);
    let make = || {
        let slots = FIRST_CHUNK << chunk;
        (0..slots).map(|_| RwLock::new(Slot { generation: 1, object: None })).collect()
    };
    let mut slot = SLOTS[chunk].get_or_init(make)[at].write().unwrap_or_else(PoisonError::into_inner);
    slot.object = Some(Held { object: Arc::new(object), name: T::NAME });
    Ok(std::ptr::without_provenance_mut(slot.generation << INDEX_BITS | index))
}

fn free_index() -> Result<usize> {
    forks::watch(end_all);
    if let Some(index) = free().pop_front() {
        return Ok(index);
    }
    let one_more = |used| (used < (1 << INDEX_BITS) - FIRST_CHUNK).then_some(used + 1);
    USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more)
        .map_err(|_| Error::invalid("there are too many handles: destroy those that are no longer used"))
}

fn free() -> MutexGuard<'static, VecDeque<usize>> {
    let list = FORKS.load(Ordering::Relaxed).min(FREE.len() - 1);
    FREE[list].lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends all handles without touching their objects: this process was forked just now. It goes on
/// with the next chunk of slots, since the last one may never be whole.
extern "C" fn end_all() {
    let used = USED.load(Ordering::Relaxed);
    let begin = match place(used) {
        (_, 0) => used,
        (chunk, _) => FIRST_CHUNK * ((2 << chunk) - 1),
    };
    USED.store(begin, Ordering::Relaxed);
    FORKED_AT.store(begin, Ordering::Relaxed);
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// The object of the handle.
///
/// # Errors
/// It is null, was destroyed, or is of another type; the process was forked since.
#[inline]
pub(crate) fn get<T: Object>(handle: *mut T) -> Result<Arc<T>> {
    let (generation, index) = split(handle);
    if index < FORKED_AT.load(Ordering::Relaxed) && !handle.is_null() {
        return Err(in_child::<T>());
    }
    let held = slot(index).and_then(|slot| {
        let slot = slot.read().unwrap_or_else(PoisonError::into_inner);
        slot.object.as_ref().filter(|_| slot.generation == generation).cloned()
    });
    match held {
        Some(held) => held.object.downcast().map_err(|_| mistaken::<T>(handle, Some(held.name))),
        None => Err(mistaken::<T>(handle, None)),
    }
}

/// The same, or nothing where the handle is null.
pub(crate) fn get_optional<T: Object>(handle: *mut T) -> Result<Option<Arc<T>>> {
    if handle.is_null() { Ok(None) } else { get(handle).map(Some) }
}

/// Ends the handle, and gives its object.
///
/// # Errors
/// As [`get`]; the object of another type's handle stays.
pub(crate) fn take<T: Object>(handle: *mut T) -> Result<Arc<T>> {
    let object = get(handle)?;
    let (generation, index) = split(handle);
    let slot = slot(index).ok_or_else(|| mistaken::<T>(handle, None))?;
    let ended = {
        let mut slot = slot.write().unwrap_or_else(PoisonError::into_inner);
        if slot.generation != generation {
            return Err(mistaken::<T>(handle, None)); // another thread was faster
        }
        slot.generation += 1;
        slot.object.take()
    };
    drop(ended);
    if generation + 1 < 1 << (usize::BITS - INDEX_BITS) {
        free().push_back(index);
    }
    Ok(object)
}

#[cold]
fn mistaken<T: Object>(handle: *mut T, found: Option<&'static str>) -> Error {
    let name = T::NAME;
    Error::invalid(match found {
        _ if handle.is_null() => format!("the {name} is NULL"),
        Some(found) => format!("a {found} was given where a {name} is expected"),
        None => format!("this {name} was destroyed, or was never created"),
    })
}

#[cold]
fn in_child<T: Object>() -> Error {
    let message = format!(
        "this {} was created before this process was forked, which leaves the threads behind",
        T::NAME
    );
    Error::new(ErrorKind::Closed, message)
        .advise("open the store in the child, once the parent has closed it; options are made there, too")
}

#[cfg(test)]
mod tests;
