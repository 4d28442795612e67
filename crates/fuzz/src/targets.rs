//! The targets, by what they decode. Each module has its list; here is the one of all.

mod base;
mod block;
mod text;
mod fold;
mod frame;
mod hash;
mod key;
mod manifest;
mod moved;
mod names;
mod part;
mod segment;
mod tokens;
mod tuple;

use crate::target::Target;

/// Every target.
pub fn all() -> Vec<Target> {
    [
        base::TARGETS,
        frame::TARGETS,
        segment::TARGETS,
        manifest::TARGETS,
        moved::TARGETS,
        block::TARGETS,
        part::TARGETS,
        hash::TARGETS,
        names::TARGETS,
        tuple::TARGETS,
        key::TARGETS,
        text::TARGETS,
        fold::TARGETS,
        tokens::TARGETS,
    ]
    .concat()
}

/// The target of this name.
pub fn named(name: &str) -> Option<Target> {
    all().into_iter().find(|target| target.name == name)
}
