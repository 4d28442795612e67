use super::*;
use crate::folds;

/// A fold on numbers made of a function, to plant mistakes.
struct Planted {
    function: fn(f64, f64) -> f64,
    approximate: bool,
}

fn number(value: &[u8]) -> f64 {
    value.try_into().map_or(f64::NAN, f64::from_le_bytes)
}

impl Fold for Planted {
    fn spec(&self) -> String {
        "planted".to_owned()
    }
    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        out.extend_from_slice(&(self.function)(number(a), number(b)).to_le_bytes());
        Ok(Outcome::Value)
    }
    fn is_approximate(&self) -> bool {
        self.approximate
    }
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        Ok(Datum::Float(number(value)))
    }
}

fn samples() -> Vec<Vec<u8>> {
    [0.1, 0.2, 0.3, 1e16, -1e16, 7.0].iter().map(|x: &f64| x.to_le_bytes().to_vec()).collect()
}

#[test]
fn rounded_sums_and_averages_are_found_out() {
    for function in [|a, b| a + b, |a, b| (a + b) / 2.0, |a: f64, b: f64| a - b] as [fn(f64, f64) -> f64; 3] {
        let report = check(&Planted { function, approximate: false }, b"", &samples());
        let law = report.law(Law::Associative).unwrap();
        assert_eq!(law.counter_example.as_ref().unwrap().operands.len(), 3);
        assert!(!report.holds());
        assert!(report.to_string().contains("BROKEN: (a·b)·c = "), "{report}");
    }
}

#[test]
fn rounding_is_forgiven_where_declared_but_averaging_is_not() {
    let positive: Vec<Vec<u8>> = [0.1, 0.2, 0.3].iter().map(|x: &f64| x.to_le_bytes().to_vec()).collect();
    let sum = |a, b| a + b;
    assert!(!check(&Planted { function: sum, approximate: false }, b"", &positive).holds());
    assert!(check(&Planted { function: sum, approximate: true }, b"", &positive).holds());
    assert!(!check(&Planted { function: |a, b| (a + b) / 2.0, approximate: true }, b"", &positive).holds());
}

/// Breaks one law after the other.
struct Broken(Law);

impl Fold for Broken {
    fn spec(&self) -> String {
        format!("broken {}", self.0)
    }
    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        match self.0 {
            Law::WellFormed if b == b"3" => panic!("planted"),
            Law::Deterministic => {
                use std::sync::atomic::{AtomicU8, Ordering};
                static CALLS: AtomicU8 = AtomicU8::new(0);
                out.push(CALLS.fetch_add(1, Ordering::Relaxed));
            }
            _ => out.extend_from_slice(a.max(b)),
        }
        Ok(Outcome::Value)
    }
    fn short_circuit(&self, _key: &[u8], value: &[u8]) -> bool {
        self.0 == Law::ShortCircuit && value == b"2"
    }
    fn has_delete(&self) -> bool {
        self.0 == Law::Delete
    }
    fn is_deleted(&self, _key: &[u8], value: &[u8]) -> bool {
        self.0 == Law::Delete && value == b"2"
    }
}

#[test]
fn each_law_can_be_found_broken() {
    let samples = [b"1".to_vec(), b"2".to_vec(), b"3".to_vec()];
    for law in [Law::WellFormed, Law::Deterministic, Law::ShortCircuit, Law::Delete] {
        let report = check(&Broken(law), b"", &samples);
        assert!(report.law(law).unwrap().counter_example.is_some(), "{report}");
    }
    assert!(check(&Broken(Law::Associative), b"", &samples).holds());
}

#[test]
fn samples_that_are_no_values_are_counted_and_left_out() {
    let report = check(&**folds::sum::<u64>().as_fold(), b"", &[vec![1; 8], vec![1; 7], vec![2; 8]]);
    assert_eq!((report.samples, report.samples_malformed), (2, 1));
    assert_eq!(report.first_malformed.as_deref(), Some("expected 8 bytes, found 7"));
    assert!(report.holds());
    assert!(report.law(Law::Associative).unwrap().tried > 0);
}

#[test]
fn nothing_to_try_is_no_finding() {
    let report = check(&**folds::stats().as_fold(), b"", &[]);
    assert!(report.holds());
    assert!(report.to_string().contains("no case among the samples"));
}
