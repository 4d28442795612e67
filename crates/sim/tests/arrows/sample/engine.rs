pub struct Engine;

impl Engine {
    pub fn open(&self) {
        self.flush_step();
    }
}

#[cfg(feature = "testing")]
fn say() -> u32 {
    crate::sibling::two()
}
