//! Where the separated values of a table are.

/// Where separated values are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValuePlacement {
    /// Many in one file, one after the other: the right choice for nearly everybody.
    #[default]
    Segments,
    /// Each in a file of its own. Its space is freed as soon as it is dead, independently of
    /// others; each value costs the creation, the sync and the opening of a file.
    Files,
}

impl ValuePlacement {
    /// The name that the store keeps.
    pub fn name(self) -> &'static str {
        match self {
            ValuePlacement::Segments => "segments",
            ValuePlacement::Files => "files",
        }
    }

    /// The place with this name.
    pub fn parse(name: &str) -> Option<ValuePlacement> {
        [ValuePlacement::Segments, ValuePlacement::Files].into_iter().find(|place| place.name() == name)
    }
}
