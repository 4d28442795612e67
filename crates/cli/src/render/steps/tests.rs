use super::*;

fn steps(times: &[&str]) -> Option<Vec<Option<f64>>> {
    let texts: Vec<String> = times.iter().map(|text| (*text).to_owned()).collect();
    let values: Vec<Option<f64>> = (1..=times.len()).map(|value| Some(value as f64)).collect();
    of(&texts, &values)
}

#[test]
fn where_no_row_is_there_is_a_gap() {
    let (a, b, c) = (Some(1.0), Some(2.0), Some(3.0));
    for times in [
        ["2026", "2027", "2029"],
        ["2097", "2098", "2100"],
        ["1903", "1902", "1900"],
        ["2026-11", "2026-12", "2027-02"],
        ["2026-11-30", "2026-12-01", "2026-12-03"],
        ["2026-11-30T22", "2026-11-30T23", "2026-12-01T01"],
        ["2026-11-30T23:50", "2026-12-01T00:00", "2026-12-01T00:20"],
        ["2026-11-30T23:59:59Z", "2026-12-01T00:00:00Z", "2026-12-01T00:00:02Z"],
        ["2026-11-30T00:00:00+01:00", "2026-12-01T00:00:00+01:00", "2026-12-03T00:00:00+01:00"],
        ["2026-12-03", "2026-12-02", "2026-11-30"],
    ] {
        assert_eq!(steps(&times), Some(vec![a, b, None, c]), "{times:?}");
    }
}

#[test]
fn days_are_steps_where_the_clocks_change() {
    let days = ["2026-10-24T00:00:00+02:00", "2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00"];
    assert_eq!(steps(&days).map(|steps| steps.len()), Some(3));
}

#[test]
fn other_texts_are_rows() {
    for times in [
        &["a", "b"][..],
        &["1", "2"],
        &["1000", "1001", "1003"], // numbers of four digits that are no years
        &["1899", "1900"],
        &["2099", "2101"],
        &["+199", "+200"],
        &["2026-11-30", "2026-12"],
        &["2026-11-30", "2026-12-02", "2026-12-01"],
        &["2026-11-30"],
        &["2026-13", "2026-14"],
        &["äöü-äöüß", "äöü-äöüß"],
        &[],
    ] {
        assert_eq!(steps(times), None, "{times:?}");
    }
}

#[test]
fn of_very_many_steps_there_are_fewer() {
    let found = steps(&["1990-01-01T00:00:00Z", "1990-01-01T00:00:00.001Z", "2026-01-01T00:00:00Z"]);
    let found = found.unwrap();
    assert!(found.len() <= STEPS_MAX as usize + 1);
    assert_eq!((found[0], found.last().copied().flatten()), (Some(1.5), Some(3.0)));
}
