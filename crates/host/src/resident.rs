//! Memory that should stay resident: a value that the system may be asked not to swap out.
//!
//! This is best effort: if the system refuses (see `ulimit -l`) or cannot (Windows), the memory can
//! be used anyway, and [`Resident::is_locked`] says whether it is locked. The system locks whole
//! pages, with everything else on them, and unlocks them the same way. An owner of many such
//! neighboring values therefore frees all of them at once.
//!
//! Used by the index of hashed tables (crate `folddb-hash`): a user may want that no look-up waits
//! for a swapped page.

use std::ops::{Deref, DerefMut};

use crate::system::{keep_from_swap, let_swap};

/// See the top of this file.
#[derive(Debug)]
pub struct Resident<T> {
    item: Box<T>,
    is_locked: bool,
}

impl<T> Resident<T> {
    /// Puts a value into locked memory, if that is wanted and allowed.
    pub fn new(item: T, wants_lock: bool) -> Resident<T> {
        let item = Box::new(item);
        let is_locked = wants_lock && keep_from_swap(&*item).is_ok();
        Resident { item, is_locked }
    }

    /// Whether the system has promised not to swap it out.
    pub fn is_locked(&self) -> bool {
        self.is_locked
    }
}

impl<T> Deref for Resident<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.item
    }
}

impl<T> DerefMut for Resident<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.item
    }
}

impl<T> Drop for Resident<T> {
    fn drop(&mut self) {
        if self.is_locked {
            let_swap(&*self.item);
        }
    }
}

#[cfg(test)]
#[path = "resident/tests.rs"]
mod tests;
