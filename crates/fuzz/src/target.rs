//! What a target is.

/// Something that takes bytes from anywhere.
#[derive(Clone, Copy)]
pub struct Target {
    /// Its name, on command lines and as a folder of the corpus.
    pub name: &'static str,
    /// Asserts what must hold whatever the bytes are. It panics where something does not.
    pub run: fn(&[u8]),
    /// Makes the checksums in an input right, as far as its structure can be made out. Mutated
    /// inputs would end at the first checksum otherwise.
    pub seal: fn(&mut [u8]),
    /// Inputs made by the real encoders, to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Words of its language, which the mutator puts in.
    pub words: &'static [&'static str],
    /// How much memory it may take.
    pub heap: HeapBound,
}

/// Memory by the length of the input: what a target may have on the heap at once, its own checks
/// included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeapBound {
    /// Bytes for each byte of input.
    pub per_byte: usize,
    /// Bytes whatever the input.
    pub fixed_bytes: usize,
}

impl HeapBound {
    /// Enough for decoders whose output is about as long as their input, and for the copies that a
    /// check makes.
    pub const PLAIN: HeapBound = HeapBound { per_byte: 64, fixed_bytes: 64 << 10 };

    /// The bound for an input of this length.
    pub fn bytes(&self, input_len_bytes: usize) -> usize {
        self.fixed_bytes + self.per_byte * input_len_bytes
    }
}

impl Target {
    /// A target without checksums, with the plain bound.
    pub const fn new(name: &'static str, run: fn(&[u8]), seeds: fn() -> Vec<Vec<u8>>) -> Target {
        Target { name, run, seeds, seal: |_| {}, words: &[], heap: HeapBound::PLAIN }
    }

    /// With a way to make checksums right.
    pub const fn sealed_by(mut self, seal: fn(&mut [u8])) -> Target {
        self.seal = seal;
        self
    }

    /// With words of its language.
    pub const fn words(mut self, words: &'static [&'static str]) -> Target {
        self.words = words;
        self
    }

    /// With another bound on memory.
    pub const fn heap(mut self, per_byte: usize, fixed_bytes: usize) -> Target {
        self.heap = HeapBound { per_byte, fixed_bytes };
        self
    }
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Target({})", self.name)
    }
}
