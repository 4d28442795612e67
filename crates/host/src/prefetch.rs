//! Memory on its way to the processor before it is needed.

/// Asks the processor for the cache line in which a value begins. Waits for nothing, and changes
/// nothing but the time of a later read. Does nothing where the processor has no such instruction.
#[inline]
pub fn prefetch<T>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    x86_64::prefetch(std::ptr::from_ref(value).cast());
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = value;
}

/// Asks the processor for all cache lines of a value or a slice, as [`prefetch`] does for one.
#[inline]
pub fn prefetch_all<T: ?Sized>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        let start = std::ptr::from_ref(value).cast::<i8>();
        let bytes = size_of_val(value);
        // The last byte may be in a line of its own.
        let steps = (0..bytes).step_by(LINE_BYTES).chain(bytes.checked_sub(1));
        steps.for_each(|at| x86_64::prefetch(start.wrapping_add(at)));
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = value;
}

/// Bytes of a cache line of every processor that has the instruction.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE_BYTES: usize = 64;

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unsafe_code)]
mod x86_64 {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    #[inline]
    pub(super) fn prefetch(address: *const i8) {
        // SAFETY: every processor of this kind has the instruction, which is a hint: it reads no
        // value and raises no fault. Tested by `what_was_asked_for_is_as_it_was`.
        unsafe { _mm_prefetch::<{ _MM_HINT_T0 }>(address) }
    }
}

#[cfg(test)]
#[path = "prefetch/tests.rs"]
mod tests;
