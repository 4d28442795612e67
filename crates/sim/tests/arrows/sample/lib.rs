mod ground;
mod engine;
mod floor;
mod sibling;
mod above;

pub use engine::Engine;
