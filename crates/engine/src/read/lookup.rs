//! The terms of a key: the lookup that decides whether an entry of an index still holds.
//!
//! A separated value is read only if neither the key nor the head has the terms. Called by `find`,
//! and by merges that clean indexes.

use folddb_base::Result;
use folddb_base::limits::VALUE_BYTES_MAX;
use folddb_rules::{Extractor, State, Terms};

use crate::read::buffer::with_record;
use crate::read::terms::{Taken, take_terms};
use crate::read::{get, head};
use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::state::snapshots::At;
use crate::values::head::Head;
use crate::values::load;

/// What is wanted of a key in addition to its terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    Key,
    Head,
    Value,
}

/// The state of a key.
#[derive(Default)]
pub struct Lookup {
    pub terms: Terms,
    pub value: Vec<u8>,
    pub head: Option<Head>,
}

/// The terms of a key for a reader at `at`, and what else is wanted of it; none if it is absent. A
/// separated value that is not needed for the terms is read only if `holds` accepts these.
pub fn look(
    engine: &Engine,
    (table, extractor): (&TableCore, &Extractor),
    key: &[u8],
    at: At,
    want: Want,
    holds: &dyn Fn(&Terms) -> bool,
) -> Result<Option<Lookup>> {
    let mut lookup = get::with_state(engine, table, key, Some(at), |state, of| {
        let Some(state) = state else { return Ok(None) };
        let mut lookup = Lookup::default();
        if want == Want::Head {
            lookup.head = Some(Head::of(table, key, state)?);
        }
        let rope = match state {
            State::Value(value) => {
                lookup.take((table, extractor), key, value, want);
                return Ok(Some(lookup));
            }
            State::Separated(rope) => rope,
        };
        let Head { size_bytes, bytes: head, .. } = Head::of(table, key, state)?;
        let by_head = extractor.is_of_key() || extractor.is_of_head() || size_bytes > VALUE_BYTES_MAX as u64;
        if by_head {
            take_terms(extractor, table, key, Taken::Head(&head), &mut lookup.terms);
        }
        if by_head && (want != Want::Value || !holds(&lookup.terms)) {
            return Ok(Some(lookup));
        }
        with_record(|record| {
            let value = load::load_value(engine, of.map(|of| &**of), table, key, rope, record)?;
            match by_head {
                true => lookup.value.extend_from_slice(value),
                false => lookup.take((table, extractor), key, value, want),
            }
            Ok(Some(lookup))
        })
    })?;
    if let Some(Lookup { head: Some(head), .. }) = &mut lookup
        && table.has_stamps
        && let Some(dated) = head::head(engine, table, key, Some(at))?
    {
        *head = dated;
    }
    Ok(lookup)
}

impl Lookup {
    fn take(&mut self, (table, extractor): (&TableCore, &Extractor), key: &[u8], value: &[u8], want: Want) {
        take_terms(extractor, table, key, Taken::Value(value), &mut self.terms);
        if want == Want::Value {
            self.value.extend_from_slice(value);
        }
    }
}
