//! Shortens a program that fails.

use super::{Action, FeedShape, Program};

/// The shortest program that still fails, as far as leaving out actions and ops finds it: halves
/// first, then smaller pieces, down to single ones (delta debugging, Zeller and Hildebrandt 2002).
pub fn shrink(program: &Program, fails: &mut dyn FnMut(&Program) -> bool) -> Program {
    let mut best = program.clone();
    let mut piece = best.actions.len().div_ceil(2);
    while piece > 0 {
        let mut at = 0;
        let mut shorter = false;
        while at < best.actions.len() {
            let mut candidate = best.clone();
            candidate.actions.drain(at..(at + piece).min(best.actions.len()));
            if fails(&candidate) {
                (best, shorter) = (candidate, true);
            } else {
                at += piece;
            }
        }
        piece = if piece == 1 && shorter { 1 } else { piece / 2 };
    }
    shrink_batches(&mut best, fails);
    shrink_feed(&mut best, fails);
    best
}

/// The program may fail with another scope of the feed, too.
fn shrink_feed(best: &mut Program, fails: &mut dyn FnMut(&Program) -> bool) {
    let plainer: [fn(FeedShape) -> FeedShape; 3] = [
        |feed| FeedShape { table: None, ..feed },
        |feed| FeedShape { prefix: b"", ..feed },
        |feed| FeedShape { bytes_max: None, ..feed },
    ];
    for make in plainer {
        let mut candidate = best.clone();
        candidate.settings.feed = make(best.settings.feed);
        if candidate != *best && fails(&candidate) {
            *best = candidate;
        }
    }
}

fn shrink_batches(best: &mut Program, fails: &mut dyn FnMut(&Program) -> bool) {
    for at in 0..best.actions.len() {
        let mut index = 0;
        while let Action::Commit(ops, _) = &best.actions[at] {
            if index >= ops.len() {
                break;
            }
            let mut candidate = best.clone();
            if let Action::Commit(ops, _) = &mut candidate.actions[at] {
                ops.remove(index);
            }
            if fails(&candidate) {
                *best = candidate;
            } else {
                index += 1;
            }
        }
    }
}
