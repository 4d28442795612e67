//! No verb is left out of the help, and none is in it twice.

use std::collections::BTreeSet;

use super::{GROUPS, command};

#[test]
fn each_verb_is_in_one_group() {
    let listed: Vec<&str> = GROUPS.iter().flat_map(|(_, verbs)| verbs.iter().copied()).collect();
    let mut command = command();
    command.build();
    let there: BTreeSet<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    assert_eq!(listed.iter().copied().collect::<BTreeSet<_>>(), there);
    assert_eq!(listed.len(), there.len());
}

#[test]
fn lines_fit_a_screen() {
    let help = command().render_help().to_string();
    for line in help.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}
