use super::*;

#[test]
fn nothing_in_a_cell_ends_it() {
    let mut out = Vec::new();
    write_header(&mut out, &["a|b".to_owned(), "n".to_owned()]).unwrap();
    let (said, number, none) = (Datum::Text("x|y\nz".to_owned()), Datum::Float(2.0 / 3.0), Datum::Null);
    write_row(&mut out, &[&said, &number]).unwrap();
    write_row(&mut out, &[&none, &Datum::Text("<b>*&`_[~\\|".to_owned())]).unwrap();
    let shown = String::from_utf8(out).unwrap();
    assert_eq!(
        shown,
        "| a\\|b | n |\n| --- | --- |\n| x\\|y\\\\nz | 0.6666666666666666 |\n|  | \\<b>\\*\\&\\`\\_\\[\\~\\\\\\| |\n"
    );
}
