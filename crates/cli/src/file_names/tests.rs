use super::*;

#[test]
fn a_name_says_what_is_in_its_file() {
    let said = |name: &str| (form(name), packing(name), check_written(name).is_ok());
    let of = |form: &str, packed, written| (Some(form.to_owned()), packed, written);
    assert_eq!(said("a.csv"), of("csv", None, true));
    assert_eq!(said("dir.zip/A.CSV.GZ"), of("csv", Some(Packing::Gzip), true));
    assert_eq!(said("a.Parquet"), of("parquet", None, false));
    assert_eq!(said("a.csv.ZST"), of("csv", Some(Packing::Zstd), true));
    assert_eq!(said("a.tar.gz"), of("tar", Some(Packing::Gzip), false));
    assert_eq!(said("a.dump"), of("dump", None, true));
    for nothing in ["a", ".gz", ".csv", "-", "a.", "\u{e4}.gz", ".zst", "\u{e4}.zst", "\u{1f600}"] {
        check_written(nothing).unwrap();
        let _ = form(nothing);
    }
    assert!(FOREIGN.is_sorted());
}
