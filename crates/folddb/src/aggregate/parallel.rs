//! Folds over many rows on several threads: the range is divided into pieces, and each thread takes
//! the next one.
//!
//! The results of the pieces are joined in their order, so the outcome does not depend on timing.
//! The callers define pieces and their rows: scans (`fold_scan.rs`), and finds (`fold_find.rs`).

use std::ops::ControlFlow;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use folddb_base::{Error, Result};
use folddb_host::sync::{Mutex, thread};

/// Pieces per thread: a thread with expensive keys does not keep the others waiting.
const PIECES_PER_THREAD: usize = 4;

/// The result of a step: continue; or the piece is at its end (none), or all work is over.
pub(crate) type Step = ControlFlow<Option<Over>>;

/// Nothing more is wanted of any piece.
pub(crate) struct Over;

/// The step took a row, and there may be more.
pub(crate) const GO_ON: Step = ControlFlow::Continue(());

/// The piece has no more rows.
pub(crate) const END: Step = ControlFlow::Break(None);

/// The result of a user's step.
pub(crate) fn step_of(flow: ControlFlow<()>) -> Step {
    match flow {
        ControlFlow::Continue(()) => ControlFlow::Continue(()),
        ControlFlow::Break(()) => ControlFlow::Break(Some(Over)),
    }
}

/// The number of pieces for this many threads. Work with a limit of rows is refused, since no piece
/// knows where it ends.
pub(crate) fn pieces_for(threads: usize, what: &str, limit: usize) -> Result<usize> {
    match limit {
        usize::MAX => Ok(threads.max(1) * PIECES_PER_THREAD),
        _ => Err(Error::invalid(format!("a {what} with a limit cannot be folded in pieces"))),
    }
}

/// Folds each piece on one of `threads` threads: opens it, and takes its rows by `step` until that
/// ends the piece, or all work. The results are joined in the order of the pieces.
pub(crate) fn fold_pieces<P: Sync, R, A: Send>(
    pieces: &[P],
    threads: usize,
    start: &(impl Fn() -> A + Sync),
    open: &(impl Fn(&P) -> Result<R> + Sync),
    step: &(impl Fn(&mut R, &mut A) -> Result<Step> + Sync),
    mut join: impl FnMut(A, A) -> A,
) -> Result<A> {
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let gathered: Vec<Mutex<Option<Result<A>>>> = pieces.iter().map(|_| Mutex::new(None)).collect();
    let fold = |piece: &P| {
        let (mut rows, mut sum) = (open(piece)?, start());
        while !is_over.load(Relaxed) {
            if let ControlFlow::Break(over) = step(&mut rows, &mut sum)? {
                is_over.fetch_or(over.is_some(), Relaxed);
                break;
            }
        }
        Ok(sum)
    };
    let work = || {
        while !is_over.load(Relaxed) {
            let number = next.fetch_add(1, Relaxed);
            let Some(piece) = pieces.get(number) else { return };
            let folded = fold(piece);
            is_over.fetch_or(folded.is_err(), Relaxed);
            *gathered[number].lock() = Some(folded);
        }
    };
    thread::scope(|scope| {
        (1..threads.max(1).min(pieces.len())).for_each(|_| {
            scope.spawn(work);
        });
        work();
    });
    let mut all = gathered.iter().filter_map(|piece| piece.lock().take());
    let first = all.next().unwrap_or_else(|| Ok(start()))?;
    all.try_fold(first, |sum, piece| Ok(join(sum, piece?)))
}
