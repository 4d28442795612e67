//! `folddb completions SHELL` and `folddb man`: generated from the definition of the arguments.
//!
//! Names in a store are no part of that: the scripts for bash, fish and zsh ask the program for
//! them, which knows them by the same rules as the prompt of `folddb shell`.

use std::io::Write;
use std::path::Path;

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, CommandFactory, ValueHint};
use clap_complete::Shell;

use crate::args::{Cli, CompletionsArgs, ManArgs};
use crate::commands::shell::line::Typing;
use crate::commands::shell::words::{self, Wanted};
use crate::failure::Failure;
use crate::session::Session;
use crate::store_word;

/// The completions for a shell.
pub(crate) fn completions(args: &CompletionsArgs, session: &mut Session) -> Result<(), Failure> {
    if let Some(line) = args.words.first() {
        let separators = args.words.get(1).map_or("", String::as_str);
        return names(args.shell, Typing::of(line, separators), session);
    }
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut hinted(Cli::command()), "folddb", &mut text);
    let more = match args.shell {
        Shell::Bash => NAMES_IN_BASH,
        Shell::Fish => NAMES_IN_FISH,
        Shell::Zsh => NAMES_IN_ZSH,
        _ => "",
    };
    text.extend_from_slice(more.as_bytes());
    if args.shell == Shell::Fish {
        for option in words::OF_COLUMNS.iter().chain(&words::OF_KEYS).chain(&["--table"]) {
            writeln!(text, "complete -c folddb -l {} -x -a '(__folddb_names)'", &option[2..])?;
        }
    }
    Ok(session.out.write_all(&text)?)
}

/// What is generated completes verbs, options and files. At a place for something else it offers
/// all options, so that files are never offered: options are left to words that begin as one.
const NAMES_IN_BASH: &str = r#"
_folddb_names() {
    _folddb "$@"
    local typed="${COMP_WORDS[COMP_CWORD]}" word words=() names=()
    [[ $typed == -* ]] && return 0
    for word in "${COMPREPLY[@]}"; do
        [[ $word == [-\<\[=]* ]] || words+=("$word")
    done
    COMPREPLY=("${words[@]}")
    while IFS= read -r word; do
        names+=("$word")
    done < <("${COMP_WORDS[0]/#\~\//$HOME/}" completions bash -- "${COMP_LINE:0:COMP_POINT}" "$COMP_WORDBREAKS" 2>/dev/null)
    [[ ${#names[@]} -eq 0 ]] || COMPREPLY=("${names[@]}")
    return 0
}

complete -F _folddb_names -o bashdefault -o default folddb
"#;

/// Where there are names, nothing else is offered.
const NAMES_IN_FISH: &str = r#"
function __folddb_names
    set -l line (commandline --cut-at-cursor --current-process | string collect)
    set -l program (commandline --tokenize --current-process)[1]
    $program completions fish -- "$line" 2>/dev/null
end

complete -c folddb -n '__folddb_names | string length --quiet' -f -k -a '(__folddb_names)'
"#;

const NAMES_IN_ZSH: &str = r#"
_folddb_names() {
    local -a names
    names=(${(f)"$(${~words[1]} completions zsh -- "${(j: :)words[1,CURRENT-1]} $QIPREFIX$PREFIX" 2>/dev/null)"})
    if (( $#names )); then
        compadd -a names
    else
        _folddb "$@"
    fi
}

compdef _folddb_names folddb
"#;

/// Prints what completes the last word of a line, if that names something in a store that is there.
fn names(shell: Shell, typing: Typing, session: &mut Session) -> Result<(), Failure> {
    let words: Vec<String> = typing.before.iter().skip(1).map(|word| at_home(word)).collect();
    let Some((path, line)) = store_word::taken_from(&words) else { return Ok(()) };
    let (line, value_at) = words::behind_equals(&line, &typing.word);
    let command = Cli::command();
    let Some(verb) = line.first().and_then(|verb| command.find_subcommand(verb)) else { return Ok(()) };
    let is_of_table =
        |verb: &Command| verb.get_arguments().any(|arg| ["table", "tables"].contains(&arg.get_id().as_str()));
    let (option, typed) = typing.word.split_at(value_at);
    let known = match words::values(&command, &line) {
        Some(values) if value_at > 0 => values, // what is generated knows them behind a space only
        Some(_) => return Ok(()),
        None if !is_of_table(verb) && !verb.get_subcommands().any(is_of_table) => return Ok(()),
        None => {
            let store = session.read(Path::new(&path))?;
            let wanted = match line.last().map(String::as_str) {
                Some("--table") => Wanted::Table,
                _ => words::wanted_in(&store, &line, typed),
            };
            words::names(&store, wanted, typed)
        }
    };
    for name in known.iter().filter(|name| words::is_shown(name, typed)) {
        let as_typed = match shell {
            Shell::Bash => in_bash(&format!("{option}{name}"), &typing),
            Shell::Fish => Some(name.clone()), // which takes the value alone
            _ => Some(format!("{option}{name}")),
        };
        if let Some(name) = as_typed {
            writeln!(session.out, "{name}")?;
        }
    }
    Ok(())
}

/// A path that begins in the home directory, as a shell would give it.
fn at_home(word: &str) -> String {
    let home = word.strip_prefix("~/").zip(std::env::var("HOME").ok());
    home.map_or_else(|| word.to_owned(), |(rest, home)| format!("{home}/{rest}"))
}

/// A word as bash takes it behind the last of the characters that separate words in what is typed:
/// within the quote that is open, or with what means something there escaped. None if it cannot be
/// there.
fn in_bash(word: &str, typing: &Typing) -> Option<String> {
    let (begin, special) = match typing.quote {
        Some(('\'', _)) if word.contains('\'') => return None,
        Some(('\'', begin)) => (begin, ""),
        Some((_, begin)) => (begin, "\"\\$`"),
        None => (typing.separated, " \"'\\$`&|;<>()[]{}*?!#~"),
    };
    let mut typed = String::new();
    for letter in word[begin..].chars() {
        typed.extend(special.contains(letter).then_some('\\'));
        typed.push(letter);
    }
    Some(typed)
}

/// Values of options that are words, for completion. What else they take is checked by what reads
/// them.
const WORDS: [(&str, &[&str]); 6] = [
    ("kind", &["sorted", "hashed"]),
    ("compression", COMPRESSIONS),
    ("bottom_compression", COMPRESSIONS),
    ("value_placement", &["segments", "files"]),
    ("keep", &["latest", "versions:2", "window:1d", "forever"]),
    ("expire", &["never", "by-write", "30d"]),
];

/// What this build can write.
const COMPRESSIONS: &[&str] =
    if cfg!(feature = "zstd") { &["none", "lz4", "zstd"] } else { &["none", "lz4"] };

/// The same command; files are offered only where one is meant.
fn hinted(command: Command) -> Command {
    let hint = |arg: Arg| {
        let words = WORDS.iter().find(|(id, _)| arg.get_id() == id);
        match (words, arg.get_value_hint()) {
            (Some((_, words)), _) => arg.value_parser(PossibleValuesParser::new(*words)),
            (None, ValueHint::Unknown) if takes_a_word(&arg) => arg.value_hint(ValueHint::Other),
            _ => arg,
        }
    };
    command.mut_args(hint).mut_subcommands(hinted)
}

/// Whether an argument has a value that is no file, which may also be that of stdin.
fn takes_a_word(arg: &Arg) -> bool {
    let is_file = |name: &str| ["file", "files", "dir"].contains(&name.to_lowercase().as_str());
    let named = arg.get_value_names().unwrap_or_default();
    let names_a_file = is_file(arg.get_id().as_str()) || named.iter().any(|name| is_file(name));
    arg.get_action().takes_values() && !names_a_file
}

/// The man pages: of the program, then of every verb; printed, or each in its own file.
pub(crate) fn man(args: &ManArgs, session: &mut Session) -> Result<(), Failure> {
    if let Some(dir) = &args.dir {
        let failed = |error| Failure::file("write", &dir.to_string_lossy(), &error);
        std::fs::create_dir_all(dir).map_err(failed)?;
        return clap_mangen::generate_to(Cli::command(), dir).map_err(failed);
    }
    let mut command = Cli::command();
    command.build();
    clap_mangen::Man::new(command.clone()).render(&mut session.out)?;
    for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
        let man = clap_mangen::Man::new(verb.clone());
        man.render_name_section(&mut session.out)?;
        man.render_synopsis_section(&mut session.out)?;
        man.render_options_section(&mut session.out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
