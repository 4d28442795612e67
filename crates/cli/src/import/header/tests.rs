use super::*;

fn found(text: &str) -> Option<bool> {
    let (first, second) = first_two(text.as_bytes(), Dialect::of(b','))?;
    Some(is_row(&first, &second, |name| name == "country"))
}

#[test]
fn a_first_line_that_is_like_the_second_is_a_row() {
    for text in [
        "a,1\nb,2\n",
        "1\n2\n",
        "2026-11-01T00:00:00Z,x\n2026-11-02,y\n",
        "\u{feff}a,1.5,\nb,-2,x\n",
        "\"a,b\",1\nc,2\n",
        "\na,1\n\nb,2\n",
    ] {
        assert_eq!(found(text), Some(true), "{text}");
    }
}

#[test]
fn others_name_the_columns() {
    for text in [
        "k,n\na,1\n",
        "k,n\na,b\n",           // texts are as good as names
        "k,2026\na,x\n",        // a number above a text
        "k,2026\na,1,2\n",      // another count
        "country,2013\nDE,5\n", // a name that is asked for
        "nan,inf\nnan,inf\n",
        ",\n,\n",
    ] {
        assert_eq!(found(text), Some(false), "{text}");
    }
    assert_eq!(found("a,1\n"), None, "there is one line");
    assert_eq!(found("a,1\nb,2"), None, "the second may not be whole");
}
