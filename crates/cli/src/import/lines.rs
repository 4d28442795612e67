//! Rows of log files: a line each, taken apart by a pattern with named groups.

use std::io::{self, BufRead};
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::failure::Failure;
use crate::import::line_reader::LineReader;
use crate::import::spaced::{self, Words};
use crate::interrupt;

/// The lines of access logs: of Apache and nginx, in the common and the combined form. A user may
/// have blanks, but is no dash before one: that is a line with another word before it.
const CLIENT: &str = r"(?<host>\S+) (?<ident>\S+) (?<user>-|(?:[^\s-]|-\S).*?|)";
const REQUEST: &str = r#" \[(?<time>[^\]]+)\] "(?:(?<method>[A-Z]+) (?<path>\S+)(?: (?<protocol>[^"\s]+))?|(?<request>(?:[^"\\]|\\.)*))" (?<status>\d{3}|-) (?<bytes>\d+|-)"#;
const REFERER_AND_AGENT: &str = r#" "(?<referer>(?:[^"\\]|\\.)*)" "(?<agent>(?:[^"\\]|\\.)*)""#;

/// The same behind the host that was asked for: `vhost_combined`. Who asks has no ident there,
/// since a user with blanks would look alike.
const VHOST: &str = r"(?<vhost>[^\s:]+|\[[^\]\s]*\])(?::(?<port>\d+))? (?<host>\S+) (?<ident>-) (?<user>-|(?:[^\s-]|-\S).*?|)";

/// The lines of syslog, as of RFC 3164 (and what journald and rsyslog write), and of RFC 5424.
const SYSLOG: [&str; 3] = [
    r"^(?:<(?<priority>\d+)>)?1 (?<time>\S+) (?<host>\S+) (?<program>\S+) (?<pid>\S+) (?<id>\S+) (?<data>-|(?:\[(?:[^\]\\]|\\.)*\])+)(?: (?<message>.*))?$",
    r"^(?:<(?<priority>\d+)>)?(?<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) (?<host>\S+) (?<program>[^:\[\s]+)(?:\[(?<pid>\d+)\])?: ?(?<message>.*)$",
    // What the daemon itself says: of a line that came again, and that it is alive. Some write no
    // host then.
    r"^(?:<(?<priority>\d+)>)?(?<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) (?:(?<host>\S+) )??(?<message>-- MARK --|(?:--- )?last message repeated \d+ times?(?: ---)?)\s*$",
];

/// What a line looks like: the first pattern that fits takes it apart. Those of access logs are
/// tried on each file whose name does not say what it is, so they are made once.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    what: String,
    patterns: Vec<Regex>,
    /// Instead of a pattern: the columns of words between spaces.
    words: Option<Words>,
    /// Whether `-` means that there is nothing.
    dash_is_nothing: bool,
}

impl Pattern {
    /// Access logs in the common form.
    pub(crate) fn common() -> Pattern {
        static MADE: LazyLock<Pattern> = LazyLock::new(|| {
            Pattern::of("a line of an access log (common)", &[format!("^{CLIENT}{REQUEST}")], true)
        });
        MADE.clone()
    }

    /// Access logs in the combined form.
    pub(crate) fn combined() -> Pattern {
        static MADE: LazyLock<Pattern> = LazyLock::new(|| {
            let pattern = format!("^{CLIENT}{REQUEST}{REFERER_AND_AGENT}");
            Pattern::of("a line of an access log (combined)", &[pattern], true)
        });
        MADE.clone()
    }

    /// Access logs of several hosts, each line behind the one that was asked for.
    pub(crate) fn vhost() -> Pattern {
        static MADE: LazyLock<Pattern> = LazyLock::new(|| {
            let pattern = format!("^{VHOST}{REQUEST}(?:{REFERER_AND_AGENT})?");
            Pattern::of("a line of an access log (vhost)", &[pattern], true)
        });
        MADE.clone()
    }

    /// Syslog.
    pub(crate) fn syslog() -> Pattern {
        static MADE: LazyLock<Pattern> =
            LazyLock::new(|| Pattern::of("a line of syslog", &SYSLOG.map(str::to_owned), true));
        MADE.clone()
    }

    fn of(what: &str, patterns: &[String], dash_is_nothing: bool) -> Pattern {
        let patterns = patterns.iter().filter_map(|pattern| Regex::new(pattern).ok()).collect();
        Pattern { what: what.to_owned(), patterns, words: None, dash_is_nothing }
    }

    /// Words between runs of spaces.
    pub(crate) fn words(words: Words) -> Pattern {
        Pattern { what: "words".to_owned(), patterns: Vec::new(), words: Some(words), dash_is_nothing: false }
    }

    /// Lines of name=value, to tell them.
    pub(crate) fn logfmt() -> Pattern {
        static MADE: LazyLock<Pattern> = LazyLock::new(|| {
            let pair = r#"[\w.\-/@]+=(?:"(?:[^"\\]|\\.)*"|[^\s",]*)"#;
            Pattern::of("a line of name=value", &[format!(r"^\s*{pair}(?:\s+{pair})+\s*$")], false)
        });
        MADE.clone()
    }

    /// The columns of lines that are words between runs of spaces.
    pub(crate) fn names_of_words(&self) -> Option<&[String]> {
        self.words.as_ref().map(|words| &words.names[..])
    }

    /// Whether a line is none of the rows, and not counted as a bad one.
    fn passes(&self, line: &[u8]) -> bool {
        self.words.as_ref().is_some_and(|words| words.passes_totals && spaced::is_total(line))
    }

    /// A pattern that is given; it has named groups.
    pub(crate) fn given(text: &str) -> Result<Pattern, Failure> {
        let wrong = |wrong: String| Failure::Usage(format!("in --regex: {wrong}"));
        let pattern = Regex::new(text).map_err(|error| wrong(error.to_string()))?;
        if pattern.capture_names().flatten().next().is_none() {
            return Err(wrong(format!(
                "`{text}` has no named group, such as (?<path>\\S+): the groups are the columns"
            )));
        }
        let (what, patterns) = (format!("a line like `{text}`"), vec![pattern]);
        Ok(Pattern { what, patterns, words: None, dash_is_nothing: false })
    }

    /// Whether it fits a line.
    pub(crate) fn fits(&self, line: &str) -> bool {
        self.patterns.iter().any(|pattern| pattern.is_match(line))
    }

    /// Whether it takes lines apart as another one does.
    pub(crate) fn is(&self, other: &Pattern) -> bool {
        let texts = self.patterns.iter().map(Regex::as_str);
        let is_like = self.dash_is_nothing == other.dash_is_nothing && self.words == other.words;
        is_like && texts.eq(other.patterns.iter().map(Regex::as_str))
    }

    /// The names of the columns.
    pub(crate) fn columns(&self) -> Vec<String> {
        let mut names: Vec<String> = self.names_of_words().unwrap_or_default().to_vec();
        for name in self.patterns.iter().flat_map(|pattern| pattern.capture_names().flatten()) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        names
    }
}

/// The lines of a file, each taken apart.
pub(crate) struct Lines {
    pub(crate) lines: LineReader,
    pub(crate) pattern: Pattern,
    pub(crate) columns: Vec<String>,
    /// Where the fields of the present line are.
    fields: Vec<Option<Range<usize>>>,
}

impl Lines {
    pub(crate) fn new(reader: Box<dyn BufRead>, pattern: Pattern, bytes_max: usize) -> Lines {
        let columns = pattern.columns();
        let fields = vec![None; columns.len()];
        Lines { lines: LineReader::new(reader, bytes_max), pattern, columns, fields }
    }

    /// The same, where lines that begin with a sign are passed over.
    pub(crate) fn without_comments(mut self, comment: Option<u8>) -> Lines {
        self.lines.comment = comment;
        self
    }

    /// The same, at its first line, which is no row; counts the lines.
    pub(crate) fn behind_line(mut self, line: &mut u64) -> io::Result<Lines> {
        loop {
            match self.lines.advance(line) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    interrupt::check().map_err(|_| io::ErrorKind::Interrupted)?;
                }
                read => return read.map(|_| self),
            }
        }
    }

    /// The present line.
    pub(crate) fn text(&self) -> &[u8] {
        &self.lines.text
    }

    /// Names the columns of words.
    pub(crate) fn name(&mut self, names: Vec<String>) {
        self.fields = vec![None; names.len()];
        self.columns.clone_from(&names);
        if let Some(words) = &mut self.pattern.words {
            words.names = names;
        }
    }

    /// Moves to the next line that is a row; none at the end. The error is what is wrong with it.
    pub(crate) fn advance(&mut self, line: &mut u64) -> io::Result<Option<Result<(), String>>> {
        while self.lines.advance(line)? {
            if !self.pattern.passes(&self.lines.text) {
                return Ok(Some(self.take_apart()));
            }
            self.lines.passed_open = self.lines.before_open;
        }
        Ok(None)
    }

    fn take_apart(&mut self) -> Result<(), String> {
        let Ok(text) = std::str::from_utf8(&self.lines.text) else {
            return Err("it is not UTF-8 text".to_owned());
        };
        if self.pattern.words.is_some() {
            return spaced::put_words(text, &mut self.fields);
        }
        for pattern in &self.pattern.patterns {
            let Some(found) = pattern.captures(text) else { continue };
            for (name, field) in self.columns.iter().zip(&mut self.fields) {
                let taken = found.name(name).map(|taken| taken.range());
                *field = taken.filter(|at| !self.pattern.dash_is_nothing || &text[at.clone()] != "-");
            }
            return Ok(());
        }
        Err(format!("it is not {}", self.pattern.what))
    }

    /// A field of the present line.
    pub(crate) fn field(&self, index: usize) -> Option<&str> {
        let at = self.fields.get(index)?.clone()?;
        std::str::from_utf8(self.lines.text.get(at)?).ok()
    }
}

#[cfg(test)]
#[path = "lines/tests.rs"]
mod tests;
