//! Memory on its way to the processor before it is needed.

/// Asks the processor for the cache line in which a value begins. Waits for nothing, and changes
/// nothing but the time of a later read. Does nothing where the processor has no such instruction.
#[inline]
pub fn prefetch<T>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    x86_64::prefetch(value);
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = value;
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[allow(unsafe_code)]
mod x86_64 {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

    #[inline]
    pub(super) fn prefetch<T>(value: &T) {
        // SAFETY: every processor of this kind has the instruction, which is a hint: it reads no
        // value and raises no fault. Tested by `what_was_asked_for_is_as_it_was`.
        unsafe { _mm_prefetch::<{ _MM_HINT_T0 }>(std::ptr::from_ref(value).cast()) }
    }
}

#[cfg(test)]
#[path = "prefetch/tests.rs"]
mod tests;
