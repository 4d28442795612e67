//! Writing at full speed: ops from a source, in single writes or batches.

use anyhow::Result;
use folddb_bench::measure::Phase;
use serde_json::Value;

use super::commits::Commits;
use crate::rival::{Op, Writer};

/// Where ops come from.
pub(super) trait Source {
    fn next(&mut self) -> Op<'_>;
}

/// What a load took: the phase, its commits, its commits by the second.
pub(super) struct Loaded {
    pub(super) phase: Value,
    pub(super) commits: Value,
    pub(super) by_second: Value,
}

impl Loaded {
    pub(super) fn new(phase: Phase, commits: Commits) -> Loaded {
        let phase = phase.end();
        let (commits, by_second) = commits.end();
        Loaded { phase, commits, by_second }
    }
}

/// Writes this many rows.
pub(super) fn load(
    writer: &mut dyn Writer,
    source: &mut dyn Source,
    rows: u64,
    batch: u64,
) -> Result<Loaded> {
    let (mut phase, mut commits) = (Phase::start(rows), Commits::start());
    let mut done = 0;
    while done < rows {
        let count = batch.max(1).min(rows - done);
        write(writer, source, batch, count)?;
        done += count;
        let now = commits.note(count);
        phase.reached(done, now);
    }
    Ok(Loaded::new(phase, commits))
}

/// Writes a commit of this many rows.
#[inline]
pub(super) fn write(writer: &mut dyn Writer, source: &mut dyn Source, batch: u64, rows: u64) -> Result<()> {
    if batch <= 1 {
        return writer.apply(source.next());
    }
    for _ in 0..rows {
        writer.collect(source.next())?;
    }
    writer.commit()
}
