//! Repeatable random numbers for programs, workloads and failures.

/// splitmix64 (Steele, Lea, Flood 2014): the same seed gives the same numbers.
#[derive(Clone, Debug, Hash)]
pub struct Seeded {
    state: u64,
}

impl Seeded {
    /// Numbers from this seed on.
    pub fn new(seed: u64) -> Seeded {
        Seeded { state: seed }
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next_u64() % limit
    }

    /// True about once in `times`.
    pub fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    /// One of the items, of which there is at least one.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}
