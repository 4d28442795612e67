use super::Floor;

pub struct Child;

fn up(floor: Floor) -> u32 {
    crate::sibling::two()
}
