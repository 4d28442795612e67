use crate::floor::Floor;

pub fn two() -> u32 {
    2
}

macro_rules! one {
    ($of:ident) => {
        ($of, $crate::above::helpers::ONE)
    };
}

#[cfg(test)]
mod tests;
