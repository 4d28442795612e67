use clap::CommandFactory;

use super::Cli;

/// Ends of ranges had this name once: a range that ends at `out.csv` leaves rows out, and nobody
/// sees it.
#[test]
fn an_option_called_to_names_a_file_whichever_the_verb() {
    let command = Cli::command();
    let verbs =
        command.get_subcommands().flat_map(|verb| std::iter::once(verb).chain(verb.get_subcommands()));
    let mut of_files = Vec::new();
    for verb in verbs {
        for option in verb.get_arguments().filter(|option| option.get_long() == Some("to")) {
            let names: Vec<&str> =
                option.get_value_names().unwrap_or_default().iter().map(|name| name.as_str()).collect();
            assert_eq!(names, ["FILE"], "{} --to", verb.get_name());
            of_files.push(verb.get_name().to_owned());
        }
    }
    assert_eq!(of_files, ["export", "get", "dump", "digest"]);
}
