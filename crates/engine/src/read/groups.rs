//! Keys that are asked for together are read in groups. Once reads turn out to wait for a device,
//! the system is asked for the blocks of a whole group before the first of them is read, so that
//! the device works on all of them at a time.
//!
//! Such a request costs a system call even if the block is in memory. So a call of `get_many`
//! begins without them, with small groups, and looks at the clock after each group.
//!
//! Used by `get.rs` and `get_many.rs`.

use std::ops::Range;
use std::time::Duration;

use folddb_base::Result;

use crate::state::engine::Engine;

/// How many keys are in a group at most: a device is busy with so many requests, and what was asked
/// for stays in memory until it is read.
const GROUP_KEYS: usize = 64;
/// How many times larger the next group is, as long as reads come from memory. The keys of a group
/// wait for memory together, too.
const GROWTH: usize = 8;
/// A read that takes longer has waited for a device. One from memory, the page cache included,
/// takes about a tenth of it, one from a fast disk three times as long.
const WAITED: Duration = Duration::from_micros(25);

/// How large the next group is, and whether it is asked for beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pace {
    keys: usize,
    waits: bool,
}

impl Pace {
    fn first() -> Pace {
        Pace { keys: 1, waits: false }
    }

    /// After a group of so many keys that took so long. Once reads have waited, a quick group says
    /// nothing: its blocks had been asked for.
    fn after(self, keys: usize, took: Duration) -> Pace {
        let waits = self.waits || took > WAITED * u32::try_from(keys).unwrap_or(u32::MAX);
        Pace { keys: if waits { GROUP_KEYS } else { (GROWTH * self.keys).min(GROUP_KEYS) }, waits }
    }
}

/// Reads so many keys, by their places, in order and in groups. `ask` asks the system for the
/// blocks of a group, and waits for nothing that it does not need.
pub(crate) fn read_in_groups(
    engine: &Engine,
    keys: usize,
    ask: &dyn Fn(Range<usize>),
    read: &mut dyn FnMut(Range<usize>) -> Result<()>,
) -> Result<()> {
    let (mut at, mut pace) = (0, Pace::first());
    while at < keys {
        let group = at..(at + pace.keys).min(keys);
        at = group.end;
        if pace.waits {
            ask(group.clone());
            read(group)?;
            continue;
        }
        let (count, began) = (group.len(), engine.host.clock.monotonic());
        read(group)?;
        pace = pace.after(count, engine.host.clock.monotonic().saturating_sub(began));
    }
    Ok(())
}

#[cfg(test)]
#[path = "groups/tests.rs"]
mod tests;
