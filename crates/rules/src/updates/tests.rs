#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;
use crate::law::Law;

/// Text that an update appends to, and cuts: order matters, and so does what was there.
#[derive(Clone, Debug, PartialEq)]
enum Edit {
    Append(String),
    Keep(u8),
}

impl AsValue<Edit> for Edit {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Edit::Append(text) => out.extend([&[0], text.as_bytes()].concat()),
            Edit::Keep(bytes) => out.extend([1, *bytes]),
        }
    }
}

impl Value for Edit {
    fn decode(bytes: &[u8]) -> Result<Edit, CodecError> {
        match bytes {
            [0, text @ ..] => String::decode(text).map(Edit::Append),
            [1, bytes] => Ok(Edit::Keep(*bytes)),
            _ => Err(CodecError::new("expected an edit")),
        }
    }
}

impl Update for Edit {
    type Item = String;
    const NAME: &'static str = "edit";

    fn apply(self, item: Option<String>) -> String {
        let mut text = item.unwrap_or_default();
        match self {
            Edit::Append(more) => text.push_str(&more),
            Edit::Keep(bytes) => {
                let len =
                    (0..=usize::from(bytes).min(text.len())).rev().find(|len| text.is_char_boundary(*len));
                text.truncate(len.unwrap_or(0));
            }
        }
        text
    }
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof!["[a-c]{0,3}".prop_map(Edit::Append), (0u8..6).prop_map(Edit::Keep)]
}

fn encoded(value: &Updated<Edit>) -> Vec<u8> {
    let mut out = Vec::new();
    value.encode(&mut out);
    out
}

proptest! {
    /// In any bracketing, updates give the result of applying them one by one.
    #[test]
    fn updates_are_applied_in_order_whenever_they_are_folded(
        item in prop::option::of("[a-c]{0,6}"),
        edits in prop::collection::vec(edit(), 1..12),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 12),
    ) {
        let fold = Updated::<Edit>::as_fold();
        let mut values: Vec<Vec<u8>> = item.iter().map(|item| encoded(&Updated::item(item.clone()))).collect();
        values.extend(edits.iter().map(|edit| encoded(&Updated::by(edit.clone()))));
        for cut in cuts {
            if values.len() < 2 { break }
            let at = cut.index(values.len() - 1);
            let later = values.remove(at + 1);
            let mut out = Vec::new();
            match fold.fold(b"", &values[at], &later, &mut out).unwrap() {
                Outcome::Value => values[at] = out,
                Outcome::KeepLater => values[at] = later,
                other => panic!("{other:?}"),
            }
        }
        prop_assert_eq!(values.len(), 1);
        let expected = edits.into_iter().fold(item, |item, edit| Some(edit.apply(item)));
        prop_assert_eq!(Updated::<Edit>::decode(&values[0]).unwrap().into_item(), expected.unwrap());
        prop_assert!(fold.show(&values[0]).is_ok());
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in any::<Vec<u8>>(), other in any::<Vec<u8>>()) {
        let fold = Updated::<Edit>::as_fold();
        let _ = fold.fold(b"", &bytes, &other, &mut Vec::new());
        prop_assert_eq!(fold.check(&bytes).is_ok(), fold.show(&bytes).is_ok());
    }
}

#[test]
fn the_law_is_checked_on_samples() {
    let edits = ["ab", "", "c"].map(|text| Edit::Append(text.to_owned()));
    let report =
        Updated::check_law(&["x".to_owned(), String::new()], edits.into_iter().chain([Edit::Keep(1)]));
    assert!(report.holds(), "{report}");
    assert_eq!(report.samples, 6);
    assert!(report.law(Law::ShortCircuit).unwrap().tried > 0);
}

/// An update that gives a different item each time.
struct Ticket;

static NEXT: AtomicU64 = AtomicU64::new(0);

impl AsValue<Ticket> for Ticket {
    fn encode(&self, _out: &mut Vec<u8>) {}
}

impl Value for Ticket {
    fn decode(_bytes: &[u8]) -> Result<Ticket, CodecError> {
        Ok(Ticket)
    }
}

impl Update for Ticket {
    type Item = u64;
    const NAME: &'static str = "ticket";

    fn apply(self, _item: Option<u64>) -> u64 {
        NEXT.fetch_add(1, Ordering::SeqCst)
    }
}

#[test]
fn a_function_that_is_not_one_is_found() {
    let report = Updated::check_law(&[7], [Ticket]);
    assert!(!report.holds() && report.law(Law::Deterministic).unwrap().counter_example.is_some(), "{report}");
}
