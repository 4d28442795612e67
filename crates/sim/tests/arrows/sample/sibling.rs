use crate::floor::Floor;

pub fn two() -> u32 {
    2
}

#[cfg(test)]
mod tests;
