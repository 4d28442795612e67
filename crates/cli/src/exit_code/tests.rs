use super::ExitCode::{self, Absent, Done, Refused, Usage};

#[test]
fn an_absent_key_hides_no_failure() {
    let of = |codes: &[ExitCode]| codes.iter().fold(Done, |first, next| first.and_then(*next));
    assert_eq!(of(&[]), Done);
    assert_eq!(of(&[Done, Absent, Done]), Absent);
    assert_eq!(of(&[Absent, Usage, Refused]), Usage);
    assert_eq!(of(&[Usage, Absent, Refused]), Usage);
    assert_eq!(of(&[Absent, Done, Refused, Done]), Refused);
}
