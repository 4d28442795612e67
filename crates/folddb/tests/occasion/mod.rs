//! An order of keys, that of their bytes, which gives a test an occasion: to do something in the
//! middle of the next operation that compares keys.

use std::cmp::Ordering;
use std::sync::Mutex;

use folddb_rules::order::CustomOrder;

/// The order, by this name.
pub(crate) const NAME: &str = "occasion";

/// See the top of this file.
#[derive(Default)]
pub(crate) struct Occasion(Mutex<Option<Box<dyn FnOnce() + Send>>>);

impl Occasion {
    /// This is done as soon as two keys are compared, once.
    pub(crate) fn then(&self, others: impl FnOnce() + Send + 'static) {
        *self.0.lock().expect("nobody panicked") = Some(Box::new(others));
    }

    /// Whether that was done.
    pub(crate) fn is_over(&self) -> bool {
        self.0.lock().expect("nobody panicked").is_none()
    }
}

impl CustomOrder for Occasion {
    fn name(&self) -> &str {
        NAME
    }
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let others = self.0.lock().expect("nobody panicked").take();
        others.into_iter().for_each(|others| others());
        a.cmp(b)
    }
}
