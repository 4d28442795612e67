use super::*;
use crate::tables::{Kind, Order};

fn model(kind: Kind, order: Order, ops: &[ModelOp]) -> Model {
    let mut model = Model::new();
    model.create_table("t", Shape::small(kind, order));
    ops.iter().for_each(|op| model.apply("t", op.clone()));
    model
}

fn text_rows(model: &Model, seq: Seq) -> Vec<(String, String)> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let show = |present| match present {
        Present::Value(value) => text(value),
        Present::Failed => "failed".to_owned(),
    };
    model.rows_at("t", seq).into_iter().map(|(key, present)| (text(key), show(present))).collect()
}

fn op(text: &str) -> ModelOp {
    let words: Vec<&str> = text.split(' ').collect();
    let bytes = |index: usize| words[index].as_bytes().to_vec();
    match words[0] {
        "set" => ModelOp::Set(bytes(1), bytes(2)),
        "insert" => ModelOp::Insert(bytes(1), bytes(2)),
        "fold" => ModelOp::Fold(bytes(1), bytes(2)),
        "delete" => ModelOp::Delete(bytes(1)),
        _ => ModelOp::DeleteRange(bytes(1), bytes(2)),
    }
}

fn ops(text: &[&str]) -> Vec<ModelOp> {
    text.iter().map(|text| op(text)).collect()
}

#[test]
fn each_op_does_what_its_table_says() {
    let model = model(
        Kind::Append,
        Order::Bytewise,
        &ops(&["fold k a", "insert k b", "fold k c", "delete k", "insert k d", "set k e"]),
    );
    let values: Vec<String> =
        (1..=6).map(|seq| text_rows(&model, seq).pop().map_or("-".to_owned(), |row| row.1)).collect();
    assert_eq!(values, ["a", "a", "a,c", "-", "d", "e"]);
    assert!(text_rows(&model, 0).is_empty());
}

#[test]
fn range_deletes_go_by_the_order_of_the_table() {
    let sets = ["set a 1", "set b 2", "set c 3"];
    let forward = ops(&[&sets[..], &["delete_range a c"]].concat());
    assert_eq!(
        text_rows(&model(Kind::Replace, Order::Bytewise, &forward), 4),
        [("c".to_owned(), "3".to_owned())]
    );
    let backward = ops(&[&sets[..], &["delete_range c a"]].concat());
    assert_eq!(
        text_rows(&model(Kind::Replace, Order::Reversed, &backward), 4),
        [("a".to_owned(), "1".to_owned())]
    );
}

#[test]
fn a_failed_key_stays_failed_until_it_is_set_or_deleted() {
    let model = model(
        Kind::Brittle,
        Order::Bytewise,
        &ops(&["fold k a", "fold k !", "fold k b", "insert k c", "set k d"]),
    );
    let values: Vec<String> =
        (1..=5).map(|seq| text_rows(&model, seq).pop().map_or("-".to_owned(), |row| row.1)).collect();
    assert_eq!(values, ["a", "failed", "failed", "failed", "d"]);
}

#[test]
fn a_balance_of_nothing_is_absent() {
    let add = |by: i64| ModelOp::Fold(b"k".to_vec(), by.to_le_bytes().to_vec());
    let model = model(Kind::Balance, Order::Bytewise, &[add(2), add(-2), add(1)]);
    let present: Vec<usize> = (1..=3).map(|seq| model.rows_at("t", seq).len()).collect();
    assert_eq!(present, [1, 0, 1]);
}
