mod child;

pub struct Floor(child::Child);
