use super::{Fold, FoldFailure, Outcome};

/// A fold of another program: it takes at its word that its output arrives empty.
struct Own;

impl Fold for Own {
    fn spec(&self) -> String {
        "own".to_owned()
    }

    fn fold(
        &self,
        _key: &[u8],
        earlier: &[u8],
        later: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, FoldFailure> {
        if !out.is_empty() {
            return Err(FoldFailure::new(format!("the output has {out:?}")));
        }
        Ok(match (earlier, later) {
            (b"e", _) => {
                out.extend_from_slice(b"ignored");
                Outcome::KeepLater
            }
            (_, b"e") => Outcome::KeepEarlier,
            _ => {
                *out = [earlier, later].concat();
                Outcome::Value
            }
        })
    }
}

/// What is in the output afterwards, which has something before.
fn folded(values: &str, before: &str) -> String {
    let values: Vec<&[u8]> = values.as_bytes().chunks(1).collect();
    let mut out = before.as_bytes().to_vec();
    Own.fold_all(b"key", &values, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn folding_in_pairs_gives_each_fold_an_empty_output() {
    for (values, all) in [
        ("", ""),
        ("a", "a"),
        ("ab", "ab"),
        ("abc", "abc"),
        ("abcd", "abcd"),
        ("abcdefghi", "abcdfghi"),
        ("eeae", "a"),
        ("eb", "b"),
    ] {
        for before in ["", "before "] {
            assert_eq!(folded(values, before), format!("{before}{all}"), "{values}");
        }
    }
}
