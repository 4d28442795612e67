//! The events that a store reported to its listener, compared with the statistics when the store is
//! closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use folddb::{Event, StoreStats};

use crate::compare::Outcome;

/// How many events of each kind came, since the store was opened.
#[derive(Debug, Default)]
pub(super) struct Heard {
    flushes: AtomicU64,
    merges: AtomicU64,
    reclaims: AtomicU64,
    stalls: AtomicU64,
    missed: AtomicU64,
}

impl Heard {
    /// A listener that counts into this.
    pub(super) fn listener(self: &Arc<Heard>) -> impl Fn(&Event) + Send + Sync + 'static {
        let heard = Arc::clone(self);
        move |event| heard.note(event)
    }

    fn note(&self, event: &Event) {
        let (kind, count) = match event {
            Event::Flush(_) => (&self.flushes, 1),
            Event::Merge(_) => (&self.merges, 1),
            Event::Reclaim(_) => (&self.reclaims, 1),
            Event::Stall(_) => (&self.stalls, 1),
            Event::Missed(missed) => (&self.missed, missed.events),
            _ => return,
        };
        kind.fetch_add(count, Ordering::SeqCst);
    }

    /// Whether there was an event for all that the statistics had counted before the store was
    /// closed. Closing may do more.
    pub(super) fn has_all_of(&self, stats: &StoreStats) -> Outcome {
        let kinds = [
            ("flushes", &self.flushes, stats.background.flushes),
            ("merges", &self.merges, stats.background.merges),
            ("reclaims", &self.reclaims, stats.background.reclaims),
            ("stalls", &self.stalls, stats.writes.stalls),
        ];
        let missed = self.missed.load(Ordering::SeqCst);
        for (kind, heard, counted) in kinds {
            let heard = heard.load(Ordering::SeqCst);
            if heard + missed < counted {
                return Err(format!(
                    "{counted} {kind} were counted, {heard} reported and {missed} events missed"
                ));
            }
        }
        Ok(())
    }
}
