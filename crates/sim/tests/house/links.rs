//! Links of the pages lead to existing files and headings.

use std::collections::BTreeMap;
use std::path::Path;

use crate::columns::files_ending;

/// A page without its fenced blocks, in which nothing is a link.
pub(crate) fn unfenced(page: &str) -> String {
    let mut is_fenced = false;
    let mut kept = String::new();
    for line in page.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        if !is_fenced && !is_fence {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// The anchors of the headings of a page: lower case, hyphens for blanks, no other signs; a heading
/// that comes again is numbered.
fn anchors(page: &str) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut found = Vec::new();
    for line in page.lines().filter(|line| line.starts_with('#')) {
        let heading = line.trim_start_matches('#').trim().to_lowercase();
        let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
        let anchor: String = heading.chars().filter(is_kept).collect::<String>().replace(' ', "-");
        let times = seen.entry(anchor.clone()).or_default();
        found.push(if *times == 0 { anchor } else { format!("{anchor}-{times}") });
        *times += 1;
    }
    found
}

/// The targets of the links of a page, except other sites.
fn links(page: &str) -> Vec<String> {
    let targets = page.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let inner = targets.map(|(target, _)| target.to_owned());
    inner.filter(|target| !target.contains("://") && !target.contains(char::is_whitespace)).collect()
}

/// The fault of a link on a page, if it has one.
fn fault(page: &Path, link: &str) -> Option<String> {
    let (file, anchor) = link.split_once('#').map_or((link, None), |(file, anchor)| (file, Some(anchor)));
    let target = if file.is_empty() { page.to_owned() } else { page.parent()?.join(file) };
    if !target.exists() {
        return Some(format!("{}: {link} leads to no file", page.display()));
    }
    let anchor = anchor.filter(|_| target.extension().is_some_and(|ending| ending == "md"))?;
    let text = unfenced(&std::fs::read_to_string(&target).ok()?);
    let is_there = anchors(&text).iter().any(|heading| heading == anchor);
    (!is_there).then(|| format!("{}: {link} leads to no heading", page.display()))
}

#[test]
fn links_of_all_pages_lead_to_files_and_headings_that_are_there() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for page in files_ending(".md") {
        let text = unfenced(&std::fs::read_to_string(&page).expect("a page"));
        let links = links(&text);
        count += links.len();
        wrong.extend(links.iter().filter_map(|link| fault(&page, link)));
    }
    assert!(count > 150, "links are seen: {count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_link_to_nothing_is_found() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    assert_eq!(fault(&page, "docs/GUIDE.md#time"), None);
    assert_eq!(fault(&page, "#durability"), None);
    assert!(fault(&page, "docs/GUIDE.md#what-a-range-comes-to").is_some());
    assert!(fault(&page, "docs/CARE.md").is_some());
    assert_eq!(anchors("# A `b`, c\n## Format\n### FORMAT\n"), ["a-b-c", "format", "format-1"]);
    assert_eq!(links("[a](b.md) and [c\nd](e.md#f) but [g](https://h)"), ["b.md", "e.md#f"]);
}
