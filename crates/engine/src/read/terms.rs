//! The terms that a record adds to an index, from its key, its head or its value.

use folddb_rules::{Extractor, Terms};

use crate::state::catalog::TableCore;

/// What terms are taken from.
#[derive(Clone, Copy)]
pub enum Taken<'a> {
    /// A value.
    Value(&'a [u8]),
    /// The head of a value that is too long to be examined as a whole. It has only the terms of its
    /// head and its key.
    Head(&'a [u8]),
}

/// Adds the terms of a record, or of a state, each once.
pub fn take_terms(extractor: &Extractor, table: &TableCore, key: &[u8], taken: Taken<'_>, terms: &mut Terms) {
    match taken {
        Taken::Value(value) => extractor.take(&table.rules, key, value, terms),
        Taken::Head(head) if extractor.is_of_head() => extractor.take_head(head, terms),
        Taken::Head(_) if extractor.is_of_key() => extractor.take(&table.rules, key, &[], terms),
        Taken::Head(_) => {}
    }
    terms.settle();
}
