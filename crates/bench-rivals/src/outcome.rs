//! How the runs of a contest end.

use serde_json::Value;

/// How a run ended.
#[derive(Clone, Debug)]
pub(crate) enum Outcome {
    /// With figures, and a state that was right.
    Done(Value),
    /// It failed; a sentence for its row says why.
    Failed(String),
}

/// The runs of a rival.
#[derive(Clone, Debug)]
pub(crate) struct Runs {
    pub(crate) rival: String,
    pub(crate) outcomes: Vec<Outcome>,
}
