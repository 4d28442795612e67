//! Functions are short: a function that is longer has several duties, each of which has a name.

use crate::columns::files_ending;

/// The most lines of code of a function, without blank lines and comments.
const LINES_MAX: usize = 70;

/// The functions of a source in the form that `rustfmt` gives it: where each begins, its first line
/// and its lines of code.
fn functions(text: &str) -> Vec<(usize, &str, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| begins_function(line)) {
        let indent = &line[..line.len() - line.trim_start().len()];
        let is_end = |line: &&str| {
            let rest = line.strip_prefix(indent).filter(|rest| !rest.starts_with(' '));
            rest.is_some_and(|rest| rest.ends_with(['}', ';']))
        };
        let len = lines[index..].iter().position(is_end).unwrap_or(lines.len() - 1 - index);
        let whole = &lines[index..=index + len];
        let is_code = |line: &&&str| !line.trim().is_empty() && !line.trim_start().starts_with("//");
        found.push((index + 1, line.trim(), whole.iter().filter(is_code).count()));
    }
    found
}

fn begins_function(line: &str) -> bool {
    let mut words = line.split_whitespace().skip_while(|word| {
        let is_qualifier = ["const", "unsafe", "extern", "\"C\"", "async"].contains(word);
        is_qualifier || word.starts_with("pub")
    });
    words.next() == Some("fn")
}

#[test]
fn no_function_is_long() {
    let is_test = |path: &str| path.ends_with("tests.rs") || path.contains("/tests/");
    let mut long = Vec::new();
    for path in files_ending(".rs") {
        let name = path.display().to_string();
        if !name.contains("/src/") || is_test(&name) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source");
        let too_long = functions(&text).into_iter().filter(|(_, _, lines)| *lines > LINES_MAX);
        long.extend(too_long.map(|(at, first, lines)| format!("{name}:{at}: {lines} lines: {first}")));
    }
    assert!(long.is_empty(), "name its duties, more than {LINES_MAX} lines:\n{}", long.join("\n"));
}

#[test]
fn the_lines_of_a_function_are_counted() {
    let text = "/// Says so.\npub(crate) fn first(\n    a: u64,\n) -> u64 {\n    // why\n\n    a\n}\n\n\
                trait T {\n    fn short(&self) {}\n    fn asked(\n        &self,\n    );\n    unsafe fn second() {\n        \
                if true {\n        }\n    }\n}\n";
    let found: Vec<(usize, usize)> = functions(text).into_iter().map(|(at, _, lines)| (at, lines)).collect();
    assert_eq!(found, [(2, 5), (11, 1), (12, 3), (15, 4)]);
}
