//! Prose is at most 100 columns wide, on all pages and in all comments.
//!
//! Tables, fenced blocks, pictures and generated text (between `<!-- begin` and `<!-- end`) are not
//! prose, and one long word, such as a link, may be alone on its line.

use std::path::{Path, PathBuf};

const COLUMNS_MAX: usize = 100;

pub(crate) fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of the project with this ending, without build results and git's own files.
pub(crate) fn files_ending(ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![project()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if path.is_dir() && !name.starts_with('.') && name != "target" && name != "results" {
                folders.push(path);
            } else if name.ends_with(ending) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// The numbers of the lines of a page that are too long, from 1 on.
fn long_lines(page: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let (mut is_fenced, mut is_written) = (false, false);
    for (index, line) in page.lines().enumerate() {
        let text = line.trim_start();
        let is_fence = text.starts_with("```");
        is_fenced ^= is_fence;
        is_written = text.starts_with("<!-- begin") || (is_written && !text.starts_with("<!-- end"));
        let is_block = is_fenced || is_fence || is_written;
        let is_prose = !is_block && !text.starts_with('|') && !text.starts_with("![");
        let has_blank = text.trim_start_matches(['-', '*', ' ']).trim_end().contains(' ');
        if is_prose && has_blank && line.chars().count() > COLUMNS_MAX {
            found.push(index + 1);
        }
    }
    found
}

#[test]
fn prose_of_all_pages_is_within_100_columns() {
    let pages = files_ending(".md");
    assert!(pages.len() > 40, "all pages are seen");
    let mut wrong = Vec::new();
    for page in pages {
        let text = std::fs::read_to_string(&page).expect("a page");
        let lines = long_lines(&text);
        wrong.extend(lines.iter().map(|number| format!("{}:{number}", page.display())));
    }
    assert!(wrong.is_empty(), "prose beyond {COLUMNS_MAX} columns:\n{}", wrong.join("\n"));
}

#[test]
fn a_long_line_of_prose_is_found_and_tables_blocks_and_links_are_not() {
    let words = "word ".repeat(21);
    let link = format!("[here](https://example.com/{})", "a".repeat(100));
    let page = [
        &words,
        &format!("| {words}|"),
        "```",
        &words,
        "```",
        &format!("- {link}"),
        &format!("  ![{words}](picture.svg)"),
        &format!("- {words}"),
        "<!-- begin: a program -->",
        &words,
        "<!-- end -->",
        &words,
    ];
    assert_eq!(long_lines(&page.join("\n")), [1, 8, 12]);
}

/// The numbers of the lines that are too long comments, from 1 on. Tables, fenced blocks, and
/// pictures, which have three blanks in a row, are no prose.
fn long_comments(source: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut is_fenced = false;
    for (index, line) in source.lines().enumerate() {
        let Some(text) = line.trim_start().strip_prefix("//") else {
            is_fenced = false;
            continue;
        };
        let text = text.trim_start_matches(['/', '!']).trim_start();
        is_fenced ^= text.starts_with("```");
        let is_prose = !is_fenced && !text.starts_with('|') && !text.contains("   ");
        if is_prose && text.contains(' ') && line.chars().count() > COLUMNS_MAX {
            found.push(index + 1);
        }
    }
    found
}

#[test]
fn comments_of_all_sources_are_within_100_columns() {
    let mut wrong = Vec::new();
    for source in files_ending(".rs") {
        let text = std::fs::read_to_string(&source).expect("a source");
        let lines = long_comments(&text);
        wrong.extend(lines.iter().map(|number| format!("{}:{number}", source.display())));
    }
    assert!(wrong.is_empty(), "comments beyond {COLUMNS_MAX} columns:\n{}", wrong.join("\n"));
}

#[test]
fn a_long_comment_is_found_and_pictures_and_code_are_not() {
    let words = "word ".repeat(21);
    let source = [
        format!("/// {words}"),
        format!("    // {words}"),
        format!("//! | {words}|"),
        format!("//!   name   {words}"),
        "/// ```".to_owned(),
        format!("/// {words}"),
        "/// ```".to_owned(),
        format!("let text = \"{words}\";"),
    ];
    assert_eq!(long_comments(&source.join("\n")), [1, 2]);
}
