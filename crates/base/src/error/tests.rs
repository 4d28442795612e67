use super::*;

#[test]
fn what_is_mounted_for_reading_is_not_a_matter_of_the_mode_of_a_file() {
    let of = |kind: io::ErrorKind| Error::io("lock", Path::new("s/LOCK"), kind.into());
    let read_only = of(io::ErrorKind::ReadOnlyFilesystem);
    assert_eq!(read_only.kind(), ErrorKind::Permission);
    assert!(read_only.advice().contains("mount"), "{read_only}");
    assert_eq!(read_only.context("opening").advice(), of(io::ErrorKind::ReadOnlyFilesystem).advice());
    assert_eq!(of(io::ErrorKind::PermissionDenied).advice(), ErrorKind::Permission.advice());
    assert_eq!(Error::from(io::Error::from(io::ErrorKind::ReadOnlyFilesystem)).advice(), read_only_advice());
}

fn read_only_advice() -> &'static str {
    advice_of(&io::ErrorKind::ReadOnlyFilesystem.into()).unwrap_or_default()
}
