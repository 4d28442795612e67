//! How values and reports look: as a table for people, as CSV, as JSON.

pub(crate) mod json;
pub(crate) mod columns;
pub(crate) mod table;
pub(crate) mod value;
pub(crate) mod tiers;
pub(crate) mod rows;
pub(crate) mod head;
pub(crate) mod sorted;
pub(crate) mod print_rows;
pub(crate) mod findings;
