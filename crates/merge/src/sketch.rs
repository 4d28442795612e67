//! Estimates how many distinct keys runs hold, alone and together, from small samples of their key
//! hashes.
//!
//! A part keeps the 256 smallest hashes of its distinct keys (a KMV sketch: Bar-Yossef et al.,
//! Counting Distinct Elements in a Data Stream, RANDOM 2002). So all hashes up to some threshold
//! are known, and in every run a key is equally likely to have such a hash. Two runs are compared
//! hash by hash up to the lower of their thresholds: runs that share no key show no repetition at
//! all, even if the estimate of their sizes is rough. The planner uses this to estimate how much a
//! merge would free.

/// Hashes that a part keeps.
pub const PART_HASHES_MAX: usize = 256;

/// The most hashes of a sketch of a whole run: 8 KiB, with an error of about 3 %.
pub const RUN_HASHES_MAX: usize = 1024;

/// The smallest key hashes of a set of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sketch {
    /// Ascending and distinct.
    hashes: Vec<u64>,
    /// Every hash of the set that is at most this is in `hashes`.
    threshold: u64,
}

/// The sketch of no keys.
impl Default for Sketch {
    fn default() -> Sketch {
        Sketch { hashes: Vec::new(), threshold: u64::MAX }
    }
}

impl Sketch {
    /// The sketch of a part, from the hashes that it keeps, in any order. A part with fewer than
    /// [`PART_HASHES_MAX`] keys has all its hashes.
    pub fn of_part(hashes: &[u64]) -> Sketch {
        let mut hashes = hashes.to_vec();
        hashes.sort_unstable();
        hashes.dedup();
        let saturated = hashes.len() >= PART_HASHES_MAX;
        let threshold = if saturated { *hashes.last().unwrap_or(&u64::MAX) } else { u64::MAX };
        Sketch { hashes, threshold }
    }

    /// The sketch of a run, from those of its parts.
    pub fn of_run<'a>(parts: impl IntoIterator<Item = &'a [u64]>) -> Sketch {
        let parts: Vec<Sketch> = parts.into_iter().map(Sketch::of_part).collect();
        Sketch::union(parts.iter())
    }

    /// The sketch of all keys of several sketches, of [`RUN_HASHES_MAX`] hashes at most.
    pub fn union<'a>(sketches: impl IntoIterator<Item = &'a Sketch>) -> Sketch {
        let mut union = Sketch::default();
        for sketch in sketches {
            union.threshold = union.threshold.min(sketch.threshold);
            union.hashes.extend_from_slice(&sketch.hashes);
        }
        union.hashes.sort_unstable();
        union.hashes.dedup();
        union.hashes.truncate(union.hashes.partition_point(|&hash| hash <= union.threshold));
        if union.hashes.len() > RUN_HASHES_MAX {
            union.hashes.truncate(RUN_HASHES_MAX);
            union.threshold = union.hashes[RUN_HASHES_MAX - 1];
        }
        union
    }

    /// The estimated number of distinct keys; exact below [`PART_HASHES_MAX`].
    pub fn distinct(&self) -> f64 {
        match self.hashes.len() {
            0 => 0.0,
            len if self.threshold == u64::MAX => len as f64,
            len => (len - 1) as f64 / self.sampled(),
        }
    }

    /// Every hash up to this one is known.
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    /// The share of all possible hashes that are up to the threshold: 1 if the sketch holds all
    /// hashes of the set.
    fn sampled(&self) -> f64 {
        (self.threshold as f64 + 1.0) / 2f64.powi(64)
    }

    /// The hashes up to `threshold`.
    pub fn below(&self, threshold: u64) -> &[u64] {
        &self.hashes[..self.hashes.partition_point(|&hash| hash <= threshold)]
    }
}

/// What would be left of several sets if only the newest occurrence of each key were kept.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Overlap {
    /// Weight of the newest occurrence of each key, in the sample.
    pub live: f64,
    /// Weight of all older occurrences, in the sample.
    pub obsolete: f64,
}

impl Overlap {
    /// Compares sets of keys, newest first, each with the weight of one of its keys (for example,
    /// its bytes).
    pub fn between<'a>(sets: impl IntoIterator<Item = (&'a Sketch, f64)>) -> Overlap {
        let sets: Vec<(&Sketch, f64)> = sets.into_iter().collect();
        let threshold = sets.iter().map(|set| set.0.threshold).min().unwrap_or(u64::MAX);
        let mut sample: Vec<(u64, usize)> = Vec::new();
        for (rank, (sketch, _)) in sets.iter().enumerate() {
            sample.extend(sketch.below(threshold).iter().map(|&hash| (hash, rank)));
        }
        sample.sort_unstable();
        let mut overlap = Overlap::default();
        let mut before = None;
        for (hash, rank) in sample {
            let share = if before == Some(hash) { &mut overlap.obsolete } else { &mut overlap.live };
            *share += sets[rank].1;
            before = Some(hash);
        }
        overlap
    }

    /// The same if merging frees only this share of what is obsolete, and the rest stays.
    pub fn freeing(&self, share: f64) -> Overlap {
        let stays = self.obsolete * (1.0 - share);
        Overlap { live: self.live + stays, obsolete: self.obsolete - stays }
    }

    /// Obsolete per live weight: 0 if nothing repeats.
    pub fn ratio(&self) -> f64 {
        if self.live > 0.0 { self.obsolete / self.live } else { 0.0 }
    }

    /// The obsolete share of the whole, from 0 to below 1.
    pub fn share(&self) -> f64 {
        let whole = self.live + self.obsolete;
        if whole > 0.0 { self.obsolete / whole } else { 0.0 }
    }
}

#[cfg(test)]
#[path = "sketch/tests.rs"]
mod tests;
