//! The list of deliberate faults fits the code: the text that each looks for occurs exactly once,
//! and its test exists. That the tests notice them is shown by the program: `cargo run -p
//! folddb-sim --example mutations`.

#[path = "../examples/mutations/list.rs"]
mod list;

use std::path::Path;

/// The root of the workspace.
fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the crate stands in a workspace")
}

#[test]
fn every_mutation_fits_the_code_and_names_a_test_that_exists() {
    let all = list::read(root()).expect("the list is read");
    let faults: Vec<String> =
        all.iter().filter_map(|one| Some(format!("{}: {}", one.name, one.fault(root())?))).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(all.len() >= 25, "{} mutations are few", all.len());
}

#[test]
fn a_mutation_that_no_longer_fits_is_found() {
    let all = list::read(root()).expect("the list is read");
    let one = all.first().expect("there is one");
    let gone = list::Mutation { find: "text that stands nowhere".to_owned(), ..one.clone() };
    assert!(gone.fault(root()).is_some_and(|why| why.contains("0 times")), "{:?}", gone.fault(root()));
    let often = list::Mutation { find: "fn ".to_owned(), ..one.clone() };
    assert!(often.fault(root()).is_some_and(|why| why.contains("times, not once")));
    let test = list::Test { name: "tests::no_such_test".to_owned(), ..one.test.clone() };
    let untested = list::Mutation { test, ..one.clone() };
    assert!(untested.fault(root()).is_some_and(|why| why.contains("no test")));
    let test = list::Test { name: format!("elsewhere::{}", one.test.name), ..one.test.clone() };
    let misnamed = list::Mutation { test, ..one.clone() };
    assert!(misnamed.fault(root()).is_some_and(|why| why.contains("no test")), "its modules are compared");
    assert_eq!(one.fault(root()), None);
}
