//! A test that could not check something on a machine says so where it is seen: the output of
//! macros is hidden when a test passes.

use crate::columns::files_ending;

/// Whether a line says, by a macro whose output is hidden, that something was not checked.
fn is_hidden(line: &str) -> bool {
    let is_said = line.contains("NOT CHECKED");
    is_said && ["println!(", "print!("].iter().any(|name| line.contains(name)) && !line.contains("writeln!(")
}

#[test]
fn what_was_not_checked_is_said_where_a_test_that_passes_shows_it() {
    let mut hidden = Vec::new();
    for source in files_ending(".rs").into_iter().filter(|path| !path.ends_with("house/seen.rs")) {
        let text = std::fs::read_to_string(&source).expect("a source");
        let lines = text.lines().enumerate().filter(|(_, line)| is_hidden(line));
        hidden.extend(lines.map(|(number, _)| format!("{}:{}", source.display(), number + 1)));
    }
    assert!(hidden.is_empty(), "write these to standard error:\n{}", hidden.join("\n"));
}

#[test]
fn a_line_that_is_hidden_is_found() {
    assert!(is_hidden(r#"Err(_) => println!("NOT CHECKED: there is no nm here"),"#));
    assert!(is_hidden(r#"eprintln!("NOT CHECKED: {why}");"#));
    assert!(!is_hidden(r#"writeln!(std::io::stderr(), "NOT CHECKED: {why}")"#));
    assert!(!is_hidden(r#"println!("checked")"#));
}
