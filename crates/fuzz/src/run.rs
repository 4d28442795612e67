//! Runs targets: one input, the kept inputs, or a search that changes them; and makes an input that
//! fails smaller.
//!
//! A search follows from its seed. What it finds is returned as a [`Failure`] with the smallest
//! input that still fails. An input that ends the process (a stack that overflows, an allocation
//! that aborts) cannot be caught: it is in the file [`Witness::path`] until the run is over.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, Instant};

use folddb_base::checksum::hash64;

use crate::chance::Chance;
use crate::heap;
use crate::mutate::mutate;
use crate::target::Target;

/// Stack of the thread that runs targets: that of any thread of a program.
pub const STACK_BYTES: usize = 2 << 20;

/// Inputs that a search made and continues from.
const OWN_INPUTS_MAX: usize = 256;

/// Runs spent on making a failing input smaller.
const SHRINKING_RUNS_MAX: usize = 5_000;

/// An input on which a target does not hold.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The target.
    pub target: Target,
    /// The input.
    pub input: Vec<u8>,
    /// What does not hold, and where.
    pub what: String,
}

/// How long a search goes on: until the first of the two.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Most inputs tried.
    pub runs_max: u64,
    /// When it ends, if ever.
    pub deadline: Option<Instant>,
}

/// What a search did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Searched {
    /// Inputs tried.
    pub runs: u64,
    /// The longest that one took.
    pub slowest: Duration,
    /// Bytes of that one.
    pub slowest_bytes: usize,
}

thread_local! {
    static LISTENING: Cell<bool> = const { Cell::new(false) };
    static HEARD: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Makes panics on a thread that listens a text instead of an output.
fn listen_for_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if LISTENING.get() {
                HEARD.with_borrow_mut(|heard| *heard = Some(panic.to_string()));
            } else {
                usual(panic);
            }
        }));
    });
}

/// Runs a target on an input.
///
/// # Errors
/// What does not hold: the text of a panic, also of one that the code under test caught, or too
/// much memory.
pub fn try_input(target: &Target, input: &[u8]) -> Result<(), String> {
    let allowed_bytes = target.heap.bytes(input.len());
    let mut peak_bytes = 0;
    // The count is that of the process: what another thread took for a moment is not there the next
    // time.
    for _ in 0..3 {
        peak_bytes = run_once(target, input)?;
        if peak_bytes <= allowed_bytes {
            return Ok(());
        }
    }
    let len_bytes = input.len();
    Err(format!("{peak_bytes} bytes on the heap for an input of {len_bytes}; {allowed_bytes} are allowed"))
}

/// Runs a target on an input; the memory that it took, in bytes.
fn run_once(target: &Target, input: &[u8]) -> Result<usize, String> {
    listen_for_panics();
    HEARD.take();
    LISTENING.set(true);
    let (_, peak_bytes) = heap::peak_bytes(|| catch_unwind(AssertUnwindSafe(|| (target.run)(input))));
    LISTENING.set(false);
    HEARD.take().map_or(Ok(peak_bytes), Err)
}

/// Holds the input that is being run, for the case that the process does not survive it.
pub struct Witness {
    path: PathBuf,
    file: File,
}

impl Witness {
    /// A file of its own in the folder for temporary files.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn new(target: &Target) -> io::Result<Witness> {
        let name = format!("folddb-fuzz-{}-{}", target.name, std::process::id());
        let path = std::env::temp_dir().join(name);
        Ok(Witness { file: File::create(&path)?, path })
    }

    /// Where the input is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn write(&mut self, input: &[u8]) -> io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(input)?;
        self.file.set_len(input.len() as u64)
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Runs a target on each of these inputs.
///
/// # Errors
/// The first that fails, as it is.
pub fn replay(target: &Target, inputs: &[Vec<u8>]) -> Result<(), Box<Failure>> {
    for input in inputs {
        try_input(target, input).map_err(|what| failure(target, input.clone(), what))?;
    }
    Ok(())
}

/// Changes the kept inputs, and continues from some of what comes out. The same seed makes the same
/// inputs.
///
/// # Errors
/// The first input that fails, made smaller.
pub fn search(target: &Target, kept: &[Vec<u8>], seed: u64, limit: Limit) -> Result<Searched, Box<Failure>> {
    let mut chance = Chance::new(seed ^ hash64(0, target.name.as_bytes()));
    let mut pool = kept.to_vec();
    pool.push(Vec::new());
    let mut witness = Witness::new(target).ok();
    let mut done = Searched::default();
    while done.runs < limit.runs_max && limit.deadline.is_none_or(|deadline| Instant::now() < deadline) {
        let mut input = pool[chance.below(pool.len())].clone();
        mutate(&mut chance, target, &mut input, &pool);
        if let Some(witness) = &mut witness {
            // Without a witness the search is as good; only a death of the process says less.
            let _ = witness.write(&input);
        }
        let begun = Instant::now();
        if let Err(what) = try_input(target, &input) {
            return Err(shrunk(target, input, what));
        }
        let took = begun.elapsed();
        done.runs += 1;
        if took > done.slowest {
            (done.slowest, done.slowest_bytes) = (took, input.len());
        }
        if chance.one_in(16) {
            keep(&mut chance, &mut pool, kept.len() + 1, input);
        }
    }
    Ok(done)
}

/// Goes on from an input, in the place of another one that the search made if there are many.
fn keep(chance: &mut Chance, pool: &mut Vec<Vec<u8>>, given: usize, input: Vec<u8>) {
    if pool.len() < given + OWN_INPUTS_MAX {
        pool.push(input);
    } else {
        pool[given + chance.below(OWN_INPUTS_MAX)] = input;
    }
}

fn failure(target: &Target, input: Vec<u8>, what: String) -> Box<Failure> {
    Box::new(Failure { target: *target, input, what })
}

/// The smallest input near this one that fails too.
fn shrunk(target: &Target, input: Vec<u8>, what: String) -> Box<Failure> {
    let mut smallest = failure(target, input, what);
    let mut runs = 0;
    let mut better = |candidate: Vec<u8>, smallest: &mut Box<Failure>| {
        runs += 1;
        if runs > SHRINKING_RUNS_MAX {
            return false;
        }
        let mut sealed = candidate.clone();
        (target.seal)(&mut sealed);
        for candidate in [candidate, sealed] {
            if let Err(what) = try_input(target, &candidate) {
                *smallest = failure(target, candidate, what);
                return true;
            }
        }
        false
    };
    let mut len = smallest.input.len().next_power_of_two();
    while len > 0 {
        let mut at = 0;
        while at < smallest.input.len() {
            let end = (at + len).min(smallest.input.len());
            let without = [&smallest.input[..at], &smallest.input[end..]].concat();
            if !better(without, &mut smallest) {
                at += len;
            }
        }
        len /= 2;
    }
    for at in 0..smallest.input.len() {
        if smallest.input.get(at).is_some_and(|&byte| byte != 0) {
            let mut zeroed = smallest.input.clone();
            zeroed[at] = 0;
            better(zeroed, &mut smallest);
        }
    }
    smallest
}

#[cfg(test)]
#[path = "run/tests.rs"]
mod tests;
