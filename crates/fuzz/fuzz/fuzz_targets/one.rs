//! One target of folddb-fuzz, named by FOLDDB_FUZZ_TARGET, led by coverage. See the README of
//! folddb-fuzz.
//!
//! Inputs are changed by libFuzzer, and then their checksums made right as in the search on stable
//! Rust.

#![no_main]

use std::sync::OnceLock;

use folddb_fuzz::{Target, run, targets};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fn target() -> &'static Target {
    static TARGET: OnceLock<Target> = OnceLock::new();
    TARGET.get_or_init(|| {
        let name = std::env::var("FOLDDB_FUZZ_TARGET").unwrap_or_default();
        targets::named(&name).unwrap_or_else(|| panic!("FOLDDB_FUZZ_TARGET names no target: {name:?}"))
    })
}

fuzz_target!(|input: &[u8]| {
    if let Err(what) = run::try_input(target(), input) {
        panic!("{}: {what}", target().name);
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    let size = fuzzer_mutate(data, size, max_size);
    if !seed.is_multiple_of(16) {
        (target().seal)(&mut data[..size]);
    }
    size
});
