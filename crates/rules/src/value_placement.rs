//! Where the separated values of a table are.

use std::fmt;
use std::str::FromStr;

use crate::parse_error::ParseError;

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
}

impl fmt::Display for ValuePlacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for ValuePlacement {
    type Err = ParseError;

    fn from_str(name: &str) -> Result<ValuePlacement, ParseError> {
        match name {
            "segments" => Ok(ValuePlacement::Segments),
            "files" => Ok(ValuePlacement::Files),
            _ => Err(ParseError::of(
                name,
                format!("there is no placement `{name}`; the choices are segments, files"),
            )
            .suggest_word::<ValuePlacement>(&["segments", "files"])),
        }
    }
}
