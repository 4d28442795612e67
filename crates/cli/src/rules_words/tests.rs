use folddb::codec::ValueCodec;
use folddb::folds::{self, SPECS};

use super::{check_value_type, types_of};

const TYPES: [&str; 17] = [
    "bytes", "utf8", "u8", "u16", "u32", "u64", "u128", "i8", "i16", "i32", "i64", "i128", "f32", "f64",
    "bool", "time", "json",
];

#[test]
fn every_fold_has_types_of_values_or_takes_them_all() {
    for spec in SPECS {
        let spec = spec.parse::<folds::FoldSpec>().unwrap().to_string();
        let agrees = |name: &&str| {
            let codec = name.parse::<ValueCodec>().unwrap();
            check_value_type("--value", codec, "the table folds by", &spec).is_ok()
        };
        let agreed: Vec<&str> = TYPES.into_iter().filter(agrees).collect();
        let types = types_of(&spec).unwrap_or(TYPES.to_vec());
        assert!(types.iter().all(|name| agreed.contains(name)), "each is the name of a type: {spec}");
        assert_eq!(agreed.len(), types.len(), "{spec}");
    }
}
