use super::*;

const SOURCE: &str = include_str!("../options.rs");

/// The settings that the comment in the header lists.
fn listed() -> Vec<&'static str> {
    let lists = SOURCE.lines().filter_map(|line| line.strip_prefix("///     "));
    let names = lists.flat_map(|line| line.split(':').next().unwrap_or_default().split(','));
    names.map(str::trim).filter(|name| !name.is_empty()).collect()
}

#[test]
fn the_header_lists_every_setting_and_no_other() {
    let listed = listed();
    assert!(listed.len() > 15, "{listed:?}");
    for name in &listed {
        let is_set = |value: &&str| set(Options::default(), name, value).is_ok();
        assert!(["1", "true", "sync", "manual"].iter().any(is_set), "`{name}` is no setting");
    }
    let known = SOURCE.lines().filter_map(|line| line.trim().strip_prefix('"')?.split_once("\" => "));
    for (name, _) in known.filter(|(_, does)| does.contains("options") || does.starts_with('{')) {
        assert!(listed.contains(&name), "the header does not list `{name}`");
    }
}

#[test]
fn a_wrong_value_is_named_with_what_is_expected() {
    let said =
        |name, value| set(Options::default(), name, value).err().map(|error| error.message().to_owned());
    assert_eq!(said("memory", "1").as_deref(), Some("`memory` is not a setting of a store"));
    let wrong = [
        ("memory_bytes", "-1", "a whole number"),
        ("lock_in_memory", "yes", "true or false"),
        ("durability", "often", "buffered, process or sync"),
        ("background", "none", "threads or manual"),
        ("value_space_max", "much", "a number"),
    ];
    for (name, value, expected) in wrong {
        assert_eq!(said(name, value), Some(format!("`{name}` is {expected}, not `{value}`")));
    }
}
