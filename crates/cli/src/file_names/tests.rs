use super::*;

#[test]
fn a_name_says_what_is_in_its_file() {
    let said = |name: &str| (form(name), is_packed(name), check_written(name).is_ok());
    let of = |form: &str, packed, written| (Some(form.to_owned()), packed, written);
    assert_eq!(said("a.csv"), of("csv", false, true));
    assert_eq!(said("dir.zip/A.CSV.GZ"), of("csv", true, true));
    assert_eq!(said("a.Parquet"), of("parquet", false, false));
    assert_eq!(said("a.csv.zst"), of("zst", false, false));
    assert_eq!(said("a.tar.gz"), of("tar", true, false));
    assert_eq!(said("a.dump"), of("dump", false, true));
    for nothing in ["a", ".gz", ".csv", "-", "a.", "\u{e4}.gz", "\u{1f600}"] {
        check_written(nothing).unwrap();
        let _ = form(nothing);
    }
    assert!(FOREIGN.is_sorted());
}
