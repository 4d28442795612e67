use super::*;
use crate::import::row::BYTE_ORDER_MARK;

fn form(format: InputFormat, delimiter: Option<u8>) -> Form {
    Form {
        format,
        delimiter,
        quote: Some(USUAL_QUOTE),
        escape: None,
        header: delimiter.is_some(),
        words: None,
    }
}

/// A file with one row, and what is read of it.
fn file(form: &Form, columns: &[&str], fields: &[&str]) -> (Vec<u8>, String) {
    let columns: Vec<String> = columns.iter().map(|name| (*name).to_owned()).collect();
    let mut text = form.begin(import_of("s", "t", "--key 'k'", None), &columns);
    let fields: Vec<&[u8]> = fields.iter().map(|field| field.as_bytes()).collect();
    form.put(&mut text, "rows line 3", "it\nis bad", &fields);
    let mut read = String::new();
    rows(Box::new(io::Cursor::new(text.clone()))).read_to_string(&mut read).unwrap();
    (text, read)
}

#[test]
fn what_is_read_of_it_are_the_rows_on_their_lines() {
    let (text, read) = file(&form(InputFormat::Csv, Some(b';')), &["k", "n m"], &["a;b", "x,y\n# z"]);
    assert_eq!(read, "\nk;n m\n\n\"a;b\";\"x,y\n# z\"\n");
    assert_eq!(Form::of_head(&text), Some(form(InputFormat::Csv, Some(b';'))));
    let shown = String::from_utf8(text).unwrap();
    assert!(shown.contains("\n# bad row: rows line 3: it is bad\n\"a;b\""), "{shown}");
}

#[test]
fn lines_are_kept_as_they_were() {
    let (text, read) = file(&form(InputFormat::Ndjson, None), &["row"], &["{\"k\": \"a,b\"; x"]);
    assert_eq!(read, "\n\n{\"k\": \"a,b\"; x\n");
    assert_eq!(Form::of_head(&text), Some(form(InputFormat::Ndjson, None)));
}

#[test]
fn quotes_may_be_others_or_none() {
    for (quote, row) in [(Some(b'\''), "\"a;'b;c'\n"), (None, "\"a;b,c\n")] {
        let form = Form { quote, ..form(InputFormat::Csv, Some(b';')) };
        let (text, read) = file(&form, &["k", "n"], &["\"a", if quote.is_some() { "b;c" } else { "b,c" }]);
        assert_eq!(read, format!("\nk;n\n\n{row}"));
        assert_eq!(Form::of_head(&text), Some(form));
    }
}

#[test]
fn a_sign_may_escape_quotes() {
    let form = Form { escape: Some(b'\\'), ..form(InputFormat::Csv, Some(b',')) };
    let (text, read) = file(&form, &["k", "n"], &[r#"a\"b"#, r"c:\"]);
    assert_eq!(read, "\nk,n\n\n\"a\\\\\\\"b\",c:\\\n");
    assert_eq!(Form::of_head(&text), Some(form.clone()));
    assert_eq!(begin_of(&text), Some((form, vec!["k".to_owned(), "n".to_owned()])));
}

#[test]
fn the_first_line_has_the_columns_of_words() {
    let words = Some(["Filesystem", "Mounted on"].map(str::to_owned).to_vec());
    let form = Form { header: true, words, ..form(InputFormat::Spaces, None) };
    let (text, read) = file(&form, &["Filesystem", "Mounted on"], &["/dev/sda1   "]);
    assert_eq!(read, "\n\n/dev/sda1   \n");
    assert_eq!(Form::of_head(&text), Some(form.clone()));
    // An editor may have put a byte order mark before it.
    let marked = [BYTE_ORDER_MARK, &text].concat();
    assert_eq!(Form::of_head(&marked), Some(form));
    let mut again = String::new();
    rows(Box::new(io::Cursor::new(marked))).read_to_string(&mut again).unwrap();
    assert_eq!(again, read);
}

#[test]
fn other_files_are_none() {
    for head in ["", "k,n\n", "# bad rows\n", FIRST, &format!("{FIRST}{{}}\n")] {
        assert_eq!(Form::of_head(head.as_bytes()), None, "{head}");
    }
}

/// Gives an error after each byte.
struct Slow(Vec<u8>, bool);

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.1 = !self.1;
        match (self.1, self.0.is_empty()) {
            (true, _) => Err(io::ErrorKind::WouldBlock.into()),
            (_, true) => Ok(0),
            _ => {
                buffer[0] = self.0.remove(0);
                Ok(1)
            }
        }
    }
}

#[test]
fn lines_that_come_in_parts_are_passed_over_too() {
    let (text, whole) = file(&form(InputFormat::Csv, Some(b',')), &["k"], &["a", "b"]);
    let mut slow = rows(Box::new(BufReader::new(Slow(text, false))));
    let mut read = Vec::new();
    loop {
        let mut byte = [0];
        match slow.read(&mut byte) {
            Ok(0) => break,
            Ok(_) => read.push(byte[0]),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
    assert_eq!(String::from_utf8(read).unwrap(), whole);
}

#[test]
fn a_row_that_looks_like_what_is_about_rows_is_a_row() {
    let regex = Form { header: false, ..form(InputFormat::Csv, None) };
    for (form, field, row) in [
        (regex.clone(), "# bad row: 5", "# bad row: 5\n"),
        (regex.clone(), "# bad row (1 line): x", "# bad row (1 line): x\n"),
        (regex, "# bad rows", "# bad rows\n"),
        (form(InputFormat::Csv, Some(b',')), "a\n# bad row: b", "\"a\n# bad row: b\"\n"),
    ] {
        let (text, read) = file(&form, &["k"], &[field]);
        assert!(read.ends_with(&format!("\n\n{row}")), "{read}");
        assert!(!read.contains("is bad"), "{}", String::from_utf8_lossy(&text));
    }
}

#[test]
fn a_file_that_is_put_behind_another_has_the_same_columns() {
    let of = |columns: &[&str]| file(&form(InputFormat::Csv, Some(b',')), columns, &["a", "1"]).0;
    let read = |text: Vec<u8>| {
        let mut read = String::new();
        rows(Box::new(io::Cursor::new(text))).read_to_string(&mut read).map(|_| read)
    };
    let both = read([of(&["k", "n"]), of(&["k", "n"])].concat()).unwrap();
    assert_eq!(both, "\nk,n\n\na,1\n\n\n\na,1\n");
    let wrong = read([of(&["k", "n"]), of(&["n", "k"])].concat()).unwrap_err();
    assert!(wrong.to_string().contains("other columns follow"), "{wrong}");
}

#[test]
fn the_columns_are_known_by_the_first_lines() {
    let form = form(InputFormat::Csv, Some(b';'));
    let (text, _) = file(&form, &["k", "a;\"b"], &["a", "1"]);
    assert_eq!(begin_of(&text), Some((form, vec!["k".to_owned(), "a;\"b".to_owned()])));
    assert_eq!(begin_of(b"k,n\na,1\n"), None);
}
