use crate::Engine;
use crate::above::{Above as Renamed, helpers};

struct Ground(Renamed, Engine);

fn say() {
    assert_eq!(helpers::ONE, crate::sibling::two());
}
