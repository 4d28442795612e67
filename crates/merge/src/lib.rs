//! Floor 2 of FoldDB: merging as pure logic. It knows streams, but no files.
//! Internal, no promises: `folddb` is the public API.
//!
//! [`plan`] decides what to merge next, from what earlier merges have freed ([`freed`]);
//! [`slices`], how several threads share a large merge. [`pace`] decides how much writers are
//! slowed meanwhile. The work itself merges many streams into one ([`kway`]) and folds it key by
//! key in bounded steps ([`fold_step`]). Nothing here does I/O or reads a clock. The modules are in
//! bottom-up order.

#![forbid(unsafe_code)]

pub mod sketch;
pub mod pace;
pub mod freed;
pub mod plan;
pub mod slices;
pub mod reclaim;
pub mod kway;
pub mod visible;
pub mod range_sweep;
pub mod range_cover;
pub mod fold_step;

pub use fold_step::{BottomRule, Budget, Counts, FoldStep, StepResult, StepRules, Times};
pub use kway::KWay;
pub use pace::{Debt, PaceOptions};
pub use plan::hidden::hidden_value_bytes;
pub use plan::{MergeOptions, Moment, Plan, RunSummary, tier_of};
pub use range_cover::is_covered;
pub use range_sweep::RangeDelete;
pub use reclaim::{ReclaimOptions, ReclaimPlan, ReclaimReason, SMALL_FILES, ValueFile, plan_reclaim};
pub use sketch::Sketch;
pub use slices::{Borders, Mark, Turns, cut};
pub use visible::Visible;
