#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

type Document = (String, Option<u64>, Vec<(f32, bool)>, BTreeMap<String, i64>);

fn encoded<T: Serialize>(value: &Json<T>) -> Vec<u8> {
    let mut out = vec![7];
    value.encode(&mut out);
    out.split_off(1)
}

proptest! {
    #[test]
    fn what_is_written_is_json_and_comes_back(
        text in any::<String>(),
        number in any::<Option<u64>>(),
        pairs in prop::collection::vec((-1e30f32..1e30, any::<bool>()), 0..3),
        map in any::<BTreeMap<String, i64>>(),
    ) {
        let document: Json<Document> = Json((text, number, pairs, map));
        let bytes = encoded(&document);
        prop_assert_eq!(ValueCodec::Json.check(&bytes), Ok(()));
        prop_assert_eq!(Json::<Document>::decode(&bytes).unwrap(), document);
    }
}

#[test]
fn what_json_cannot_say_does_not_decode() {
    let by_pairs: BTreeMap<(u8, u8), u8> = [((1, 2), 3)].into();
    assert!(Json::<BTreeMap<(u8, u8), u8>>::decode(&encoded(&Json(by_pairs))).is_err());
    assert!(Json::<f64>::decode(&encoded(&Json(f64::NAN))).is_err());
}
