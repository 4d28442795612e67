//! The functions that a user provides, by their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::algebra::Predicate;
use crate::fold::Fold;
use crate::head::HeadFunction;
use crate::order::CustomOrder;
use crate::terms::TermFunction;

/// The functions that a user provides, by their names.
#[derive(Clone, Default)]
pub struct Custom {
    pub(super) folds: BTreeMap<String, Arc<dyn Fold>>,
    pub(super) orders: BTreeMap<String, Arc<dyn CustomOrder>>,
    pub(super) predicates: BTreeMap<String, Predicate>,
    pub(super) heads: BTreeMap<String, HeadFunction>,
    pub(super) terms: BTreeMap<String, (u32, TermFunction)>,
}

impl Custom {
    /// Registers a function that takes terms under this name and version; a later one replaces it.
    pub fn add_terms(&mut self, name: &str, version: u32, take: TermFunction) {
        self.terms.insert(name.to_owned(), (version, take));
    }

    /// The function that takes terms of this name and version.
    ///
    /// # Errors
    /// Says what is not available, in words.
    pub fn terms(&self, name: &str, version: u32) -> Result<TermFunction, String> {
        match self.terms.get(name) {
            Some((known, take)) if *known == version => Ok(Arc::clone(take)),
            Some((known, _)) => Err(format!(
                "its terms are those of the custom `{name}` version {version}; this program has version {known}"
            )),
            None => Err(format!(
                "its terms are those of the custom `{name}` version {version}, which this program does not have"
            )),
        }
    }

    /// Registers a fold under its name; a later one of the same name replaces it.
    pub fn add_fold(&mut self, fold: Arc<dyn Fold>) {
        self.folds.insert(fold.spec(), fold);
    }

    /// Registers an order under its name; a later one of the same name replaces it.
    pub fn add_order(&mut self, order: Arc<dyn CustomOrder>) {
        self.orders.insert(order.name().to_owned(), order);
    }

    /// Registers a predicate under this name; a later one of the same name replaces it.
    pub fn add_predicate(&mut self, name: &str, predicate: Predicate) {
        self.predicates.insert(name.to_owned(), predicate);
    }

    /// Registers a function that takes heads under this name; a later one of the same name replaces
    /// it.
    pub fn add_head(&mut self, name: &str, take: HeadFunction) {
        self.heads.insert(name.to_owned(), take);
    }
}

impl std::fmt::Debug for Custom {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut known = f.debug_struct("Custom");
        known.field("folds", &self.folds.keys()).field("orders", &self.orders.keys());
        known.field("predicates", &self.predicates.keys()).field("heads", &self.heads.keys());
        known.field("terms", &self.terms.keys()).finish()
    }
}
