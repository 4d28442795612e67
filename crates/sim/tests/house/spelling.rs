//! Words are spelled as in American English, in code, on pages, and in messages: one thing has one
//! name, and `normalise` beside `normalize` would be two.

use crate::columns::{files_ending, project};

/// Beginnings or middles of words that only British English has.
const BRITISH: [&str; 40] = [
    "neighbour",
    "colour",
    "behaviour",
    "honour",
    "favour",
    "labour",
    "centre",
    "metres",
    "licence",
    "defence",
    "offence",
    "artefact",
    "catalogue",
    "judgement",
    "knowledgement",
    "ageing",
    "learnt",
    "spelt",
    "towards",
    "cancelled",
    "labelled",
    "levelled",
    "modelled",
    "signalled",
    "travelled",
    "analyse",
    "normalis",
    "recognis",
    "serialis",
    "minimis",
    "maximis",
    "amortis",
    "summaris",
    "optimise",
    "organise",
    "initialis",
    "generalis",
    "specialis",
    "synchronis",
    "capitalis",
];

/// Names of others: a line of `/proc/self/io`.
const NAMES: [&str; 1] = ["cancelled_write_bytes"];

const ENDINGS: [&str; 9] = [".rs", ".md", ".toml", ".txt", ".py", ".pyi", ".c", ".h", ".go"];

/// The British words of a text, each with the number of its line, from 1 on.
fn british(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let plain = NAMES.iter().fold(line.to_lowercase(), |line, name| line.replace(name, ""));
        found.extend(BRITISH.iter().filter(|word| plain.contains(**word)).map(|word| (index + 1, *word)));
    }
    found
}

#[test]
fn words_are_spelled_as_in_american_english() {
    let mut wrong = Vec::new();
    for path in ENDINGS.iter().flat_map(|ending| files_ending(ending)) {
        if path.ends_with("house/spelling.rs") {
            continue;
        }
        let text = String::from_utf8_lossy(&std::fs::read(&path).expect("a file")).into_owned();
        let name = path.strip_prefix(project()).unwrap_or(&path).display().to_string();
        wrong.extend(british(&text).into_iter().map(|(line, word)| format!("{name}:{line}: {word}")));
    }
    assert!(wrong.is_empty(), "British spelling:\n{}", wrong.join("\n"));
}

#[test]
fn a_british_word_is_found_in_names_and_in_prose() {
    let text = "fn is_normalised() {}\nA neighbor, and a Neighbour.\n\"cancelled_write_bytes: 0\"";
    assert_eq!(british(text), [(1, "normalis"), (2, "neighbour")]);
}
