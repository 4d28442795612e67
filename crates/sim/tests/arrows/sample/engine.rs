pub struct Engine;

impl Engine {
    pub fn open(&self) {
        self.flush_step();
    }
}
