use super::*;

fn survives<V: Value>(operand: &V, spec: &str) {
    let mut bytes = vec![0xaa];
    operand.encode(&mut bytes);
    let bytes = &bytes[1..];
    folds::parse(spec).unwrap().check(bytes).unwrap();
    let mut again = Vec::new();
    V::decode(bytes).unwrap().encode(&mut again);
    assert_eq!(again, bytes, "{spec}");
    assert_eq!(V::codec(), super::super::ValueCodec::Bytes);
}

#[test]
fn operands_are_values_of_their_folds() {
    survives(&folds::Stats::of(12.5), "stats:f64");
    survives(&folds::ExactSum::of(-0.1), "sum:f64");
    survives(&folds::ByteSet::of("member"), "set");
    survives(&folds::Bitmap::of(7), "bitmap");
    survives(&folds::Counters::of("name", -3), "counters");
    survives(&folds::TopK::of(1.5, "member"), "top:3");
    let patch = folds::parse("patch").unwrap();
    let mut bytes = Vec::new();
    patch.read(&crate::Datum::Text("object".to_owned()), &mut bytes).unwrap();
    survives(&folds::Patch::from_bytes(&bytes).unwrap(), "patch");
}

#[test]
fn other_bytes_are_refused() {
    let bytes = [0xff; 3];
    assert!(folds::Stats::decode(&bytes).is_err() && folds::ExactSum::decode(&bytes).is_err());
    assert!(folds::Bitmap::decode(&bytes).is_err() && folds::Patch::decode(&bytes).is_err());
}
