use super::{Begin, is_total, put_words};

/// What `df`, `free`, `ps`, `ls -l` and `git log` print.
const DF: &str = "Filesystem     1K-blocks    Used Available Use% Mounted on\n\
                  overlay         61255492 9843092  48268384  17% /\n\
                  tmpfs              65536       0     65536   0% /dev/my shm\n";
const DF_NARROW: &str = "Filesystem Inodes IUsed IFree IUse% Mounted on\n/dev/sda1 10 1 9 10% /\n";
const FREE: &str = "               total        used        free\n\
                    Mem:         4018560     1234568     2783992\n\
                    Swap:              0           0           0\n";
const PS: &str =
    "    PID TTY          TIME CMD\n      1 ?        00:00:02 init\n   4711 pts/0    00:00:00 sh -c ls\n";
const PS_AUX: &str = "USER         PID %CPU STAT COMMAND\nroot           1  0.0 Ss   /sbin/init splash\nann         77  0.1 S    sh\n";
const LS: &str = "total 12\n-rw-r--r-- 1 ann staff 1200 Nov  1 06:00 my own file\n\
                  drwxr-xr-x+ 2 ann staff 4096 Nov 29 05:13 dir\n";
const LS_EVEN: &str =
    "-rw-r--r-- 1 ann staff 12 Nov 29 06:00 a, b\n-rw-r--r-- 1 ann staff 99 Nov 29 06:00 c\n";
const LS_CUT: &str = "-rw-r--r-- 1 ann staff 12 Nov 29 06:00 a\n-rw-r--r-- 1 bob\n";
const GIT: &str = "4df5b6b2 ann 2026-11-28 cli: a file of bad rows is not cut\n\
                   9a0a68c1 bob 2026-11-27 docs: figures\n0f5ee87e ann 2026-11-27 memory: the rest\n";

fn begin(text: &str) -> Begin {
    Begin::of(text.as_bytes())
}

#[test]
fn what_programs_print_is_known() {
    for text in [DF, DF_NARROW, FREE, PS, PS_AUX, LS, LS_EVEN] {
        assert!(begin(text).is_spaced(), "{text}");
        assert!(begin(&format!("\u{feff}\n{text}")).is_spaced(), "{text}");
    }
    for text in
        ["", "a b\nc d\n", "a  b\n", "a  b,c\nd  e,f\n", "total 12\nk,n\n", "a  b\nc d\n", GIT, "-rw 1 a\n"]
    {
        assert!(!begin(text).is_spaced(), "{text}");
    }
}

#[test]
fn the_first_line_names_the_columns_or_is_a_row() {
    for text in [DF, DF_NARROW, FREE, PS, PS_AUX] {
        assert!(!begin(text).is_row(|_| false), "{text}");
    }
    for text in [LS, LS_EVEN, &LS[9..]] {
        assert!(begin(text).is_row(|_| false), "{text}");
    }
    assert!(begin("x 12 a b\ny 7 c\n").is_row(|_| false));
    assert!(!begin("x 12 a b\ny 7 c\n").is_row(|name| name == "12"), "it is asked for");
    assert!(!begin("x 12\n").is_row(|_| false), "there is one line");
}

#[test]
fn names_of_columns_may_have_a_space_or_be_missing() {
    for (text, names) in [
        (DF, "Filesystem|1K-blocks|Used|Available|Use%|Mounted on"),
        (DF_NARROW, "Filesystem|Inodes|IUsed|IFree|IUse%|Mounted on"),
        (FREE, "c1|total|used|free"),
        (PS, "PID|TTY|TIME|CMD"),
        (PS_AUX, "USER|PID|%CPU|STAT|COMMAND"),
        ("Mounted on\n/ x\n", "Mounted on"),
    ] {
        let first = text.lines().next().unwrap();
        assert_eq!(begin(text).names(first).join("|"), names);
    }
}

#[test]
fn without_names_there_are_as_many_columns_as_the_shortest_line_has_words() {
    for (text, columns) in
        [(LS, 9), (LS_EVEN, 9), (LS_CUT, 9), (GIT, 5), ("a b", 2), ("", 0), ("a b c\nd", 3)]
    {
        assert_eq!(begin(text).columns(), columns, "{text}");
    }
}

#[test]
fn totals_are_those_of_a_listing() {
    for line in ["total 12", "total 4.0K", " total 0 "] {
        assert!(is_total(line.as_bytes()), "{line}");
    }
    for line in ["total", "total x", "total 1 2", "totals 1", ""] {
        assert!(!is_total(line.as_bytes()), "{line}");
    }
    assert!(begin(LS).is_listing && !begin("total 12\na 3\n").is_listing);
    assert_eq!(begin("total 12\na 3\n").lines.len(), 2, "of others it is a line as any");
}

#[test]
fn the_last_word_is_the_rest_of_the_line() {
    let mut fields = vec![None; 3];
    put_words(" a  b   c  d", &mut fields).unwrap();
    assert_eq!(fields, [Some(1..2), Some(4..5), Some(8..12)]);
    assert_eq!(put_words("a b ", &mut fields).unwrap_err(), "expected 3 words, found 2");
}
