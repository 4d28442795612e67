//! Background work, step by step.

use std::ops::ControlFlow;

use folddb::{BackgroundJob, BackgroundWork, ErrorKind};

use crate::compare::{Outcome, narrow, same};
use crate::play::player::{Player, said};
use crate::program::ScanShape;
use crate::tables::Order;

impl Player {
    pub(super) fn steps(&mut self, steps: u8) -> Outcome {
        // Threads that do the background work are left alone.
        if self.settings.background == BackgroundWork::Threads {
            return Ok(());
        }
        for _ in 0..steps {
            match self.store()?.background_step() {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => return self.refused("take a step of background work", error),
            }
        }
        Ok(())
    }

    pub(super) fn step_of(&mut self, work: BackgroundJob) -> Outcome {
        if self.settings.background == BackgroundWork::Threads {
            return Ok(());
        }
        match self.store()?.background_step_of(work) {
            Ok(_) => {
                if work == BackgroundJob::Log && self.store()?.stats().poisoned_by.is_none() {
                    self.known.survives_death();
                }
                Ok(())
            }
            Err(error) => self.refused("take a step of background work", error),
        }
    }

    pub(super) fn compact(&mut self, slot: u8, stop_after: Option<u8>) -> Outcome {
        let Some((table, _)) = self.table(slot)? else { return Ok(()) };
        let (mut looks, mut broke_off) = (0, false);
        let mut progress = |_| {
            looks += 1;
            match stop_after {
                Some(stop) if looks > u32::from(stop) => {
                    broke_off = true;
                    ControlFlow::Break(())
                }
                _ => ControlFlow::Continue(()),
            }
        };
        if let Err(error) = table.compact_with(&mut progress) {
            return self.refused("compact", error);
        }
        if broke_off {
            return Ok(());
        }
        let stats = table.stats().map_err(said("look at the runs"))?;
        same("what compact leaves of altered rules", &stats.outdated_parts, &0)?;
        let runs = stats.runs.len();
        if runs > 1 { Err(format!("{runs} runs are left by compact")) } else { Ok(()) }
    }
    /// Merges a range. Hashed tables have none.
    pub(super) fn compact_range(&mut self, slot: u8, scan: &ScanShape, stop_after: Option<u8>) -> Outcome {
        let Some((table, shape)) = self.table(slot)? else { return Ok(()) };
        let range = narrow(table.scan(), &shape, scan);
        let mut looks = 0;
        let progress = |_| {
            looks += 1;
            let stops = stop_after.is_some_and(|stop| looks > u32::from(stop));
            if stops { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let merged = table.compact_range_with(&range, progress);
        if shape.order == Order::Hashed {
            let kind = merged.map_err(|error| error.kind());
            return same("merging a range of a hashed table", &kind, &Err(ErrorKind::InvalidInput));
        }
        if let Err(error) = merged {
            return self.refused("merge a range", error);
        }
        let estimate = || {
            let about = range.estimate().map_err(said("estimate a range"))?;
            let is_between = (about.disk_bytes_min..=about.disk_bytes_max).contains(&about.disk_bytes);
            same("whether an estimate is between its bounds", &is_between, &true)
        };
        self.disk.as_ref().map_or_else(estimate, |disk| disk.aside(estimate))
    }

    /// A handle asks for a sync, and is waited for; or the log takes a step. What a handle calls
    /// durable survives the power.
    pub(super) fn sync_later(&mut self, waits: bool) -> Outcome {
        let handle = match self.store()?.sync_later() {
            Ok(handle) => handle,
            Err(error) => return self.refused("ask for a sync", error),
        };
        if waits {
            return self.makes_durable("wait for a sync", handle.wait());
        }
        self.step_of(BackgroundJob::Log)?;
        if handle.is_synced() {
            self.known.survives_power();
        }
        Ok(())
    }
}
