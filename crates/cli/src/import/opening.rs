//! Opening a file of an import: what its rows are, by the command line, by its name, and by how it
//! begins.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::args::{ImportArgs, InputFormat};
use crate::failure::Failure;
use crate::import::dialect::{Escape, USUAL_QUOTE};
use crate::import::kept::Form;
use crate::import::ledger::Inode;
use crate::import::mapping::Stated;
use crate::import::rows::{How, Rows};
use crate::import::source::{self, Packed, Said, Source};

/// A file that is open, its header read.
pub(crate) struct OpenFile {
    pub(crate) rows: Rows,
    /// Which file it is; none if it is a pipe.
    pub(crate) inode: Option<Inode>,
    /// How bad rows of it are kept.
    pub(crate) form: Form,
    /// What is to be checked before a row is taken.
    packed: Option<Packed>,
    /// How much of it is read.
    pub(crate) bytes_read: Arc<AtomicU64>,
}

impl OpenFile {
    pub(crate) fn open(args: &ImportArgs, stated: &Stated, name: &str) -> Result<OpenFile, Failure> {
        OpenFile::of(args, stated, name, source::open_rows(name, said(args))?)
    }

    pub(crate) fn of(
        args: &ImportArgs,
        stated: &Stated,
        name: &str,
        source: Source,
    ) -> Result<OpenFile, Failure> {
        OpenFile::with(args, stated, (name, Escape::Find), source)
    }

    /// The same, of which it may be known what escapes quotes, if the command line does not say it.
    pub(crate) fn with(
        args: &ImportArgs,
        stated: &Stated,
        (name, escape): (&str, Escape),
        mut source: Source,
    ) -> Result<OpenFile, Failure> {
        let bytes_read = Arc::clone(&source.bytes_read);
        let kept = source.kept.take();
        source.comment = args.comment;
        let format = match args.format.or(kept.as_ref().map(|kept| kept.format)) {
            Some(format) => format,
            // Lines that a pattern takes apart are of no format.
            None if args.regex.is_some() => InputFormat::Csv,
            // What is said of fields is said of delimited text.
            None if args.delimiter.is_some() || args.quote.is_some() || args.escape.is_some() => {
                source::by_name(name)
            }
            None if args.no_header || args.header => source::by_name(name),
            None => source::by_content(name, &mut source)?,
        };
        let quote = match (&args.quote, &kept) {
            (Some(said), _) => said.0,
            (None, Some(kept)) => kept.quote,
            (None, None) => Some(USUAL_QUOTE),
        };
        let escape = match (args.escape, &kept) {
            (Some(_), _) if quote.is_none() => return Err(nothing_to_escape()),
            (Some(said), _) => Escape::Is(Some(said).filter(|_| Some(said) != quote)),
            (None, Some(kept)) => Escape::Is(kept.escape),
            (None, None) => escape,
        };
        let how = How {
            format,
            pattern: args.regex.as_deref(),
            delimiter: args.delimiter.or(kept.as_ref().and_then(|kept| kept.delimiter)),
            quote,
            escape,
            comment: args.comment,
            is_multiline: args.multiline,
            header: match args.header || args.no_header {
                true => Some(args.header),
                false => kept.as_ref().map(|kept| kept.header),
            },
            words: kept.as_ref().and_then(|kept| kept.words.as_deref()),
            is_asked_for: &|name| stated.is_asked_for(name),
            nulls: &args.null,
        };
        let mut source = source.of_rows();
        source.may_grow &= !args.complete;
        let (inode, packed) = (source.inode, source.packed.take());
        let rows = Rows::open(source, &how)?;
        let words = rows.words().map(<[String]>::to_vec);
        let (delimiter, escape, header) = (rows.delimiter(), rows.escape(), rows.has_header());
        let form = Form { format, delimiter, quote, escape, header, words };
        Ok(OpenFile { rows, inode, form, packed, bytes_read })
    }

    /// The same, of which rows may be taken: it is the file that it is taken for, and whole.
    pub(crate) fn checked(self, name: &str, inode: Option<Inode>) -> Result<OpenFile, Failure> {
        if self.inode != inode {
            return Err(changes(name));
        }
        self.packed.as_ref().map_or(Ok(()), Packed::check)?;
        Ok(self)
    }
}

/// What the command line says of a file.
pub(crate) fn said(args: &ImportArgs) -> Said {
    let format = args.format.is_some() || args.regex.is_some();
    let names_columns = |format| matches!(format, InputFormat::Csv | InputFormat::Tsv | InputFormat::Spaces);
    let is_stated = args.header || args.no_header || args.regex.is_some();
    Said { format, header: is_stated || args.format.is_some_and(|format| !names_columns(format)) }
}

fn nothing_to_escape() -> Failure {
    Failure::Usage("--escape is for what is in quotes, and --quote none says that nothing is".to_owned())
}

/// The error of a file that is another one, or has another content, than when it was looked at.
pub(crate) fn changes(name: &str) -> Failure {
    Failure::Refused(format!("{name} changes while it is read: import it again"))
}
