use clap::Parser;

use super::super::create::rules;
use super::*;
use crate::args::Verb;

/// What completion offers, this build takes.
#[test]
fn each_word_that_is_offered_makes_rules() {
    for (id, words) in WORDS {
        for word in words {
            let option = format!("--{}", id.replace('_', "-"));
            let mut typed = vec!["folddb", "create", "store", "table", &option, word];
            if id == "value_placement" {
                typed.extend(["--separate", "4096"]); // it is of values that are apart
            }
            let cli = Cli::try_parse_from(&typed).unwrap_or_else(|error| panic!("{typed:?}: {error}"));
            let Verb::Create(args) = cli.verb else { panic!("{typed:?}: another verb") };
            let made = rules(&args);
            assert!(made.is_ok(), "{typed:?}: {:?}", made.err());
        }
    }
}
