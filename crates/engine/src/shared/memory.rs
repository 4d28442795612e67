//! The memtables of all stores that share a budget, in bytes.
//!
//! Each store counts its own; every change is also applied to the total. If all active memtables
//! together take too much, the store that notices asks the one with the most to seal its largest.
//! If the sealed ones do, the writers of all stores wait. A closed store releases all of its share.

use std::sync::{Arc, Weak};

use folddb_host::sync::Mutex;
use folddb_host::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::shared::memory_plan::MemoryPlan;

/// Active memtables are counted when they have grown by a memtable over this.
const GRAINS: usize = 64;

/// The bytes of the memtables of all stores that share a budget.
pub struct SharedMemory {
    plan: MemoryPlan,
    active_bytes: AtomicUsize,
    sealed_bytes: AtomicUsize,
    flushed_bytes: AtomicUsize,
    tenants: Mutex<Vec<Weak<Tenant>>>,
}

/// The bytes of those of one store.
pub struct Tenant {
    memory: Arc<SharedMemory>,
    active_bytes: AtomicUsize,
    sealed_bytes: AtomicUsize,
    flushed_bytes: AtomicUsize,
    is_asked: AtomicBool,
    has_left: AtomicBool,
    /// Threads flush for it, so waiting for its memory makes sense.
    has_threads: bool,
}

/// The bytes of memtables, of one store or of all that share a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemtableBytes {
    /// Those that are written to.
    pub active: usize,
    /// Those that wait for their flush.
    pub sealed: usize,
    /// How much of these running flushes have written.
    pub flushed: usize,
}

/// What is counted. Nobody waits for the sealed memtables of a store without threads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Active,
    Sealed,
    Flushed,
}

/// Which store must seal a memtable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seals {
    /// None: there is memory.
    Nobody,
    /// The store that asked.
    Asker,
    /// Another one, which has been asked.
    Another,
}

impl SharedMemory {
    pub fn new(plan: MemoryPlan) -> SharedMemory {
        let zero = || AtomicUsize::new(0);
        SharedMemory {
            plan,
            active_bytes: zero(),
            sealed_bytes: zero(),
            flushed_bytes: zero(),
            tenants: Mutex::default(),
        }
    }

    /// How the budget is divided.
    pub fn plan(&self) -> MemoryPlan {
        self.plan
    }

    /// The bytes of all stores.
    pub fn bytes(&self) -> MemtableBytes {
        let get = |bytes: &AtomicUsize| bytes.load(Ordering::Acquire);
        let (active, sealed) = (get(&self.active_bytes), get(&self.sealed_bytes));
        MemtableBytes { active, sealed, flushed: get(&self.flushed_bytes).min(sealed) }
    }

    /// How many stores share it now.
    pub fn tenants(&self) -> usize {
        self.tenants.lock().iter().filter(|tenant| tenant.strong_count() > 0).count()
    }
}

impl Tenant {
    /// One more store.
    pub fn enter(memory: &Arc<SharedMemory>, has_threads: bool) -> Arc<Tenant> {
        let zero = || AtomicUsize::new(0);
        let tenant = Arc::new(Tenant {
            memory: Arc::clone(memory),
            active_bytes: zero(),
            sealed_bytes: zero(),
            flushed_bytes: zero(),
            is_asked: AtomicBool::new(false),
            has_left: AtomicBool::new(false),
            has_threads,
        });
        let mut tenants = memory.tenants.lock();
        tenants.retain(|tenant| tenant.strong_count() > 0);
        tenants.push(Arc::downgrade(&tenant));
        drop(tenants);
        tenant
    }

    /// The memory of all.
    #[inline]
    pub fn shared(&self) -> &SharedMemory {
        &self.memory
    }

    /// The bytes of this store.
    pub fn bytes(&self) -> MemtableBytes {
        let get = |bytes: &AtomicUsize| bytes.load(Ordering::Acquire);
        let (active, sealed) = (get(&self.active_bytes), get(&self.sealed_bytes));
        MemtableBytes { active, sealed, flushed: get(&self.flushed_bytes).min(sealed) }
    }

    /// Notes the present bytes of this store's active memtables. The holder of its commit lock
    /// calls it.
    #[inline]
    pub fn note_active(&self, bytes: usize) -> Seals {
        let noted = self.active_bytes.load(Ordering::Relaxed);
        if noted.abs_diff(bytes) <= self.memory.plan.memtable_bytes() / GRAINS {
            return Seals::Nobody;
        }
        self.count_active(bytes)
    }

    #[cold]
    fn count_active(&self, bytes: usize) -> Seals {
        self.change(Kind::Active, |_| bytes);
        if self.memory.bytes().active <= self.memory.plan.active_bytes_max() {
            return Seals::Nobody;
        }
        self.ask_largest()
    }

    /// Asks the store whose active memtables take most, unless the stores that were asked already
    /// will free enough.
    fn ask_largest(&self) -> Seals {
        let mut tenants: Vec<Arc<Tenant>> =
            self.memory.tenants.lock().iter().filter_map(Weak::upgrade).collect();
        tenants.retain(|tenant| !tenant.is_asked.load(Ordering::Acquire));
        let held = |tenant: &Arc<Tenant>| tenant.active_bytes.load(Ordering::Relaxed);
        if tenants.iter().map(held).sum::<usize>() <= self.memory.plan.active_bytes_max() {
            return Seals::Another;
        }
        match tenants.iter().max_by_key(|tenant| held(tenant)) {
            Some(largest) if !std::ptr::eq(&**largest, self) => {
                largest.is_asked.store(true, Ordering::Release);
                Seals::Another
            }
            _ => Seals::Asker,
        }
    }

    /// Whether another store has asked this one to seal its largest memtable; the caller then must.
    #[inline]
    pub fn take_asked(&self) -> bool {
        self.is_asked.load(Ordering::Acquire) && self.is_asked.swap(false, Ordering::AcqRel)
    }

    /// A memtable of this many bytes is sealed.
    pub fn note_sealed(&self, bytes: usize) {
        self.change(Kind::Sealed, |sealed| sealed + bytes);
    }

    /// A sealed memtable is flushed, or gone.
    pub fn settle_sealed(&self, bytes: usize) {
        self.change(Kind::Sealed, |sealed| sealed.saturating_sub(bytes));
        self.note_flushed(0);
    }

    /// The running flush has written this much.
    pub fn note_flushed(&self, bytes: usize) {
        self.change(Kind::Flushed, |_| bytes);
    }

    /// Releases all of its share: the store is closed. Nothing is counted from now on.
    pub fn leave(&self) {
        for kind in [Kind::Active, Kind::Sealed, Kind::Flushed] {
            self.change(kind, |_| 0);
        }
        self.has_left.store(true, Ordering::Release);
        let mut tenants = self.memory.tenants.lock();
        tenants.retain(|tenant| !std::ptr::eq(tenant.as_ptr(), self));
    }

    /// Changes a count of this store, and the total by as much.
    fn change(&self, kind: Kind, next: impl Fn(usize) -> usize) {
        if self.has_left.load(Ordering::Acquire) {
            return;
        }
        let (own, all) = match kind {
            Kind::Active => (&self.active_bytes, &self.memory.active_bytes),
            Kind::Sealed => (&self.sealed_bytes, &self.memory.sealed_bytes),
            Kind::Flushed => (&self.flushed_bytes, &self.memory.flushed_bytes),
        };
        let before = own.fetch_update(Ordering::AcqRel, Ordering::Acquire, |bytes| Some(next(bytes)));
        let before = before.unwrap_or_else(|bytes| bytes);
        if kind == Kind::Active || self.has_threads {
            all.fetch_add(next(before).wrapping_sub(before), Ordering::AcqRel); // wraps, and so subtracts
        }
    }
}

/// A store that was never closed releases its share when it is dropped.
impl Drop for Tenant {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests;
