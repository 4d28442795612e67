//! Rows of log files: a line each, taken apart by a pattern with named groups.

use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::import::tape::Tape;
use crate::interrupt;

/// The lines of access logs: of Apache and nginx, in the common and the combined form.
const COMMON: &str = r#"^(?<host>\S+) (?<ident>\S+) (?<user>.*?) \[(?<time>[^\]]+)\] "(?:(?<method>[A-Z]+) (?<path>\S+)(?: (?<protocol>[^"\s]+))?|(?<request>(?:[^"\\]|\\.)*))" (?<status>\d{3}|-) (?<bytes>\d+|-)"#;
const REST_OF_COMBINED: &str = r#" "(?<referer>(?:[^"\\]|\\.)*)" "(?<agent>(?:[^"\\]|\\.)*)""#;

/// The lines of syslog, as of RFC 3164 (and what journald and rsyslog write), and of RFC 5424.
const SYSLOG: [&str; 2] = [
    r"^(?:<(?<priority>\d+)>)?1 (?<time>\S+) (?<host>\S+) (?<program>\S+) (?<pid>\S+) (?<id>\S+) (?<data>-|(?:\[(?:[^\]\\]|\\.)*\])+)(?: (?<message>.*))?$",
    r"^(?:<(?<priority>\d+)>)?(?<time>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S+) (?<host>\S+) (?<program>[^:\[\s]+)(?:\[(?<pid>\d+)\])?: ?(?<message>.*)$",
];

/// What a line looks like: the first pattern that fits takes it apart. Those of access logs are
/// tried on each file whose name does not say what it is, so they are made once.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    what: String,
    patterns: Vec<Regex>,
    /// Instead of a pattern: the columns of words between spaces.
    words: Vec<String>,
    /// Whether `-` means that there is nothing.
    dash_is_nothing: bool,
}

impl Pattern {
    /// Access logs in the common form.
    pub(crate) fn common() -> Pattern {
        static MADE: LazyLock<Pattern> =
            LazyLock::new(|| Pattern::of("a line of an access log (common)", &[COMMON.to_owned()], true));
        MADE.clone()
    }

    /// Access logs in the combined form.
    pub(crate) fn combined() -> Pattern {
        static MADE: LazyLock<Pattern> = LazyLock::new(|| {
            Pattern::of("a line of an access log (combined)", &[COMMON.to_owned() + REST_OF_COMBINED], true)
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
        Pattern { what: what.to_owned(), patterns, words: Vec::new(), dash_is_nothing }
    }

    /// Words between runs of spaces, with these names; the last takes the rest of the line.
    pub(crate) fn words(names: Vec<String>) -> Pattern {
        Pattern { what: "words".to_owned(), patterns: Vec::new(), words: names, dash_is_nothing: false }
    }

    /// Lines of name=value, to tell them.
    pub(crate) fn logfmt() -> Pattern {
        static MADE: LazyLock<Pattern> = LazyLock::new(|| {
            let pair = r#"[\w.\-/@]+=(?:"(?:[^"\\]|\\.)*"|[^\s",]*)"#;
            Pattern::of("a line of name=value", &[format!(r"^\s*{pair}(?:\s+{pair})+\s*$")], false)
        });
        MADE.clone()
    }

    /// Whether lines are words between runs of spaces.
    pub(crate) fn is_of_words(&self) -> bool {
        !self.words.is_empty()
    }

    /// A pattern that is given; it has named groups.
    pub(crate) fn given(text: &str) -> Result<Pattern, String> {
        let pattern = Regex::new(text).map_err(|error| error.to_string())?;
        if pattern.capture_names().flatten().next().is_none() {
            return Err(format!(
                "`{text}` has no named group, such as (?<path>\\S+): the groups are the columns"
            ));
        }
        let (what, patterns) = (format!("a line like `{text}`"), vec![pattern]);
        Ok(Pattern { what, patterns, words: Vec::new(), dash_is_nothing: false })
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
        let mut names: Vec<String> = self.words.clone();
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
    pub(crate) reader: Box<dyn BufRead>,
    pub(crate) pattern: Pattern,
    bytes_max: usize,
    pub(crate) columns: Vec<String>,
    /// The present line.
    pub(crate) text: Vec<u8>,
    /// Where its fields are.
    fields: Vec<Option<Range<usize>>>,
    pub(crate) tape: Tape,
    /// The text is the beginning of a line; the reader had no more yet.
    is_partial: bool,
}

impl Lines {
    pub(crate) fn new(reader: Box<dyn BufRead>, pattern: Pattern, bytes_max: usize) -> Lines {
        let columns = pattern.columns();
        let (text, fields, tape) = (Vec::new(), vec![None; columns.len()], Tape::new());
        Lines { reader, pattern, bytes_max, columns, text, fields, tape, is_partial: false }
    }

    /// The same, after the first line, whose words `names` makes the columns of; counts the lines.
    pub(crate) fn with_names(
        mut self,
        line: &mut u64,
        names: impl FnOnce(&[u8]) -> Vec<String>,
    ) -> io::Result<Lines> {
        loop {
            match self.advance(line) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    interrupt::check().map_err(|_| io::ErrorKind::Interrupted)?;
                }
                Err(error) => return Err(error),
                Ok(_) => break,
            }
        }
        self.pattern = Pattern::words(names(&self.text));
        (self.columns, self.fields) = (self.pattern.columns(), vec![None; self.pattern.columns().len()]);
        Ok(self)
    }

    /// Moves to the next line that is not empty; none at the end. The error is what is wrong with
    /// it.
    pub(crate) fn advance(&mut self, line: &mut u64) -> io::Result<Option<Result<(), String>>> {
        loop {
            if !std::mem::take(&mut self.is_partial) {
                self.text.clear();
            }
            let left = (self.bytes_max - self.text.len()) as u64;
            let read = self.reader.by_ref().take(left).read_until(b'\n', &mut self.text);
            self.is_partial = read.is_err();
            read?;
            // A line that has arrived in part is not behind the place where reading may go on.
            self.tape.feed(&self.text);
            if self.text.is_empty() {
                return Ok(None);
            }
            *line += 1;
            if self.text.len() == self.bytes_max {
                return Err(io::Error::other(format!("a line is longer than {} bytes", self.bytes_max)));
            }
            self.text.truncate(self.text.trim_ascii_end().len());
            if !self.text.is_empty() {
                return Ok(Some(self.take_apart()));
            }
        }
    }

    fn take_apart(&mut self) -> Result<(), String> {
        let Ok(text) = std::str::from_utf8(&self.text) else { return Err("it is not UTF-8 text".to_owned()) };
        if self.pattern.is_of_words() {
            return put_words(text, &mut self.fields);
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
        std::str::from_utf8(self.text.get(at)?).ok()
    }

    /// Passes what is before a place; false if the text ends before.
    pub(crate) fn pass_to(&mut self, bytes: u64) -> io::Result<bool> {
        pass(&mut self.reader, &mut self.tape, bytes)
    }
}

/// Finds the words of a line, the last of which is its rest.
fn put_words(text: &str, fields: &mut [Option<Range<usize>>]) -> Result<(), String> {
    let (wanted, mut at) = (fields.len(), 0);
    for (index, field) in fields.iter_mut().enumerate() {
        let begin = text.len() - text[at..].trim_start().len();
        let space = text[begin..].find(char::is_whitespace).filter(|_| index + 1 < wanted);
        at = space.map_or(text.len(), |space| begin + space);
        if begin == text.len() {
            return Err(format!("expected {wanted} words, found {index}"));
        }
        *field = Some(begin..at);
    }
    Ok(())
}

/// Reads up to a place, and feeds it to the tape; false if the text ends before.
pub(crate) fn pass(reader: &mut impl BufRead, tape: &mut Tape, bytes: u64) -> io::Result<bool> {
    while tape.bytes() < bytes {
        let read = match reader.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if read.is_empty() {
            return Ok(false);
        }
        let wanted = usize::try_from(bytes - tape.bytes()).unwrap_or(usize::MAX).min(read.len());
        tape.feed(&read[..wanted]);
        reader.consume(wanted);
    }
    Ok(true)
}

#[cfg(test)]
#[path = "lines/tests.rs"]
mod tests;
