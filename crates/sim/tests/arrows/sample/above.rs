use crate::engine::Engine;

pub struct Above;

impl Engine {
    pub fn flush_step(&self) {}
}

pub mod helpers {
    pub const ONE: u32 = 1;
}
