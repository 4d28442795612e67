use super::*;

fn text(width: Option<usize>, pages: &[&[Vec<Datum>]]) -> String {
    let mut out = Vec::new();
    let header = ["key", "said", "mean"].map(str::to_owned);
    let mut sheet = Sheet::new(header.to_vec(), Look { width, ..Look::default() });
    pages.iter().for_each(|page| sheet.page(&mut out, page).unwrap());
    String::from_utf8(out).unwrap()
}

fn row(key: &str, said: &str, mean: f64) -> Vec<Datum> {
    vec![Datum::Text(key.to_owned()), Datum::Text(said.to_owned()), Datum::Float(mean)]
}

#[test]
fn a_header_stands_once_and_columns_stay_where_they_are() {
    let (first, second) = ([row("a", "quite long", 1.0)], [row("b", "x", 25.0), row("ccccc", "y", 3.5)]);
    let shown = text(None, &[&first, &second]);
    assert_eq!(
        shown,
        "key  said        mean\n──────────────────────\na    quite long     1\nb      x             25\nccccc  y            3.5\n"
    );
}

#[test]
fn what_fits_is_not_cut_on_later_pages() {
    let (short, long) = ([row("a", "x", 1.0)], [row("a-longer-key-1", "what was said", 2.0)]);
    let shown = text(Some(40), &[&short, &long, &short]);
    assert_eq!(
        shown,
        "key  said  mean\n────────────────\na    x        1\n\
         a-longer-key-1  what was said     2\na               x                 1\n"
    );
    // What is still too long is cut, and no line is wider than the screen.
    let shown = text(Some(30), &[&long, &[row("b", &"at length ".repeat(9), 123456.0)]]);
    assert!(shown.lines().all(|line| measure_text_width(line) <= 30), "{shown}");
    assert!(shown.contains("── 2 ──\nkey   b\nsaid  at length at length at …\n"), "{shown}");
}

#[test]
fn a_last_column_may_have_no_name() {
    let mut rows = [row("a", "b", 1.0)];
    rows[0].push(Datum::Text("a remark".to_owned()));
    assert!(text(None, &[&rows]).ends_with("a    b        1  a remark\n"), "{}", text(None, &[&rows]));
}

#[test]
fn texts_are_cut_and_figures_are_not() {
    let rows = [row("a key of some length", "what was said, at length", 123456.789)];
    let shown = text(Some(50), &[&rows]);
    assert!(shown.lines().all(|line| measure_text_width(line) <= 50), "{shown}");
    assert!(shown.contains('…') && shown.contains("123456.789") && shown.contains("key  "), "{shown}");
}

#[test]
fn where_columns_do_not_fit_rows_are_upright() {
    let rows = [row("a key of some length", "what was said", 123456.789), row("b", "", 1.0)];
    assert_eq!(
        text(Some(28), &[&rows]),
        "── 1 ──\nkey   a key of some length\nsaid  what was said\nmean  123456.789\n── 2 ──\nkey   b\nsaid\nmean  1\n"
    );
    assert!(text(Some(14), &[&rows]).contains("key   a key o…\n"));
}

#[test]
fn times_are_not_cut() {
    let at = |time: &str, host: &str| [time, host, "said"].map(|text| Datum::Text(text.to_owned())).to_vec();
    let rows = [at("2026-11-22T08:30:00Z", "a.example.org"), at("2026-11-22T08:31:00Z", "b")];
    assert!(text(Some(38), &[&rows]).contains("2026-11-22T08:30:00Z  a.exampl…  said"));
    assert!(text(Some(30), &[&rows]).starts_with("── 1 ──\nkey   2026-11-22T08:30:00Z\n"));
    let zoned = [at("2026-11-30T12:00:00.123+01:00", "a.example.org")];
    assert!(text(Some(20), &[&zoned]).contains("2026-11-30T12:00:00.123+01:00\n"));
    for word in ["2026-11-22", "2026-11-22T08.30", "20261122T083000Z-and-more"] {
        assert!(!is_number_or_time(&Datum::Text(word.to_owned())), "{word}");
    }
}

#[test]
fn a_layout_is_the_widest_that_fits() {
    let column = |name, cells, is_whole| Measured { name, cells, is_whole };
    let columns = [column(3, 40, false), column(5, 12, true), column(3, 10, false)];
    assert_eq!(layout(&columns, None), Layout::SideBySide(vec![usize::MAX; 3]));
    assert_eq!(layout(&columns, Some(100)), Layout::SideBySide(vec![40, 12, 10]));
    assert_eq!(layout(&columns, Some(57)), Layout::SideBySide(vec![30, 12, 10]));
    assert_eq!(layout(&columns, Some(33)), Layout::SideBySide(vec![8, 12, 8]));
    assert_eq!(layout(&columns, Some(32)), Layout::Upright);
    assert_eq!(layout(&columns[..1], Some(5)), Layout::SideBySide(vec![8]));
}

#[test]
fn cells_are_one_short_line() {
    let (line, long) = (Datum::Text("a\nb".to_owned()), Datum::Text("é".repeat(200)));
    assert_eq!(cell(&line, false), "a\\nb");
    assert_eq!(cell(&long, false).chars().count(), CELL_CHARS_MAX + 1);
    assert_eq!(cell(&line, true), "a\\nb");
    assert_eq!(cell(&long, true).chars().count(), 200);
}

#[test]
fn a_long_name_is_cut_before_a_value_is() {
    let mut out = Vec::new();
    let header = ["a name that is longer than a line", "n"].map(str::to_owned);
    let mut sheet =
        Sheet::new(header.to_vec(), Look { width: Some(24), is_upright: true, ..Look::default() });
    sheet.page(&mut out, &[vec![Datum::Int(1234567), Datum::Int(2)]]).unwrap();
    let shown = String::from_utf8(out).unwrap();
    assert_eq!(shown, "── 1 ──\na name that is…  1234567\nn                2\n");
}
