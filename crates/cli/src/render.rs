//! How values and reports look: as a table for people, as CSV, as JSON.

pub(crate) mod json;
pub(crate) mod quantiles;
pub(crate) mod columns;
pub(crate) mod look;
pub(crate) mod figures;
pub(crate) mod sheet;
pub(crate) mod table;
pub(crate) mod value;
pub(crate) mod tiers;
pub(crate) mod plot;
pub(crate) mod steps;
pub(crate) mod sorted;
pub(crate) mod picture;
pub(crate) mod spread;
pub(crate) mod sql;
pub(crate) mod markdown;
pub(crate) mod rows;
pub(crate) mod head;
pub(crate) mod print_rows;
pub(crate) mod findings;
