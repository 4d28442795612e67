//! Memory that is meant to stay: a thing which the system may be asked not to swap out.
//!
//! Asking is a wish: where the system refuses (see `ulimit -l`), the memory is there all the same,
//! and [`Resident::is_locked`] says how it stands. The system locks whole pages, with all else that
//! lies on them; and so it unlocks them. Who holds many such things that lie side by side therefore
//! lets go of all of them at once.
//!
//! Used by the index of hashed tables (crate `folddb-hash`), whose owner may want no look-up to
//! wait for a swapped page.

use std::ops::{Deref, DerefMut};

use crate::mapped::{keep_from_swap, let_swap};

/// See the top of this file.
#[derive(Debug)]
pub struct Resident<T> {
    item: Box<T>,
    is_locked: bool,
}

impl<T> Resident<T> {
    /// Puts a thing into memory that is locked, if that is wanted and allowed.
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
