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
    survives(&folds::TopK::<3>::of(1.5, "member"), "top:3");
    survives(&folds::TopK::<3, i64>::of(-1, "member"), "top:3:i64");
    survives(&folds::Hll::<12>::of("member"), "hll:12");
    survives(&<folds::Quantiles>::of(-2.5), "quantiles");
    survives(&folds::Matrix::of([[1.0, 2.0], [3.0, 4.0]]), "matmul:2:f64");
    survives(&folds::Timed { time: -1, value: vec![1u8, 2] }, "lww:ts");
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

/// What can be used as an operand encodes as the operand does.
#[test]
fn a_number_and_a_member_stand_for_an_operand_of_one() {
    fn same<V: Value>(stand_in: &(impl AsValue<V> + ?Sized), operand: &V) {
        let (mut short, mut long) = (Vec::new(), Vec::new());
        stand_in.encode(&mut short);
        operand.encode(&mut long);
        assert_eq!(short, long);
    }
    same("member", &folds::ByteSet::of("member"));
    same(b"member", &folds::ByteSet::of("member"));
    same(&12.5, &folds::Stats::of(12.5));
    same(&12.5, &folds::ExactSum::of(12.5));
    same(&7u32, &folds::Bitmap::of(7));
    same("member", &folds::Hll::<9>::of("member"));
    same(&12.5, &folds::Quantiles::<50>::of(12.5));
    same(&12u64, &folds::Sum(12u64));
}
