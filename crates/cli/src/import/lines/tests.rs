use std::io::Cursor;

use super::*;

/// The fields of each line, or what is wrong with it.
fn read(pattern: Pattern, text: &str) -> Vec<String> {
    let mut lines = Lines::new(Box::new(Cursor::new(text.to_owned())), pattern, 1 << 20);
    let (mut line, mut found) = (0, Vec::new());
    while let Some(taken) = lines.advance(&mut line).unwrap() {
        let fields = || {
            let field =
                |(index, name): (usize, &String)| lines.field(index).map(|text| format!("{name}={text}"));
            lines.columns.iter().enumerate().filter_map(field).collect::<Vec<_>>().join(" ")
        };
        found.push(taken.map_or_else(|wrong| format!("line {line}: {wrong}"), |()| fields()));
    }
    found
}

#[test]
fn access_logs_are_taken_apart() {
    let text = "10.0.0.1 - ann [10/Oct/2000:13:55:36 -0700] \"GET /a?b=1 HTTP/1.0\" 200 2326 \"-\" \"Mozilla \\\"5\\\"\"\n\n\
                ::1 - - [10/Oct/2000:13:55:37 +0000] \"\\x16\\x03\" 400 - \"-\" \"-\"\nnonsense\n";
    let found = read(Pattern::combined(), text);
    assert_eq!(
        found[0],
        "host=10.0.0.1 user=ann time=10/Oct/2000:13:55:36 -0700 method=GET path=/a?b=1 protocol=HTTP/1.0 status=200 \
         bytes=2326 agent=Mozilla \\\"5\\\""
    );
    assert_eq!(found[1], "host=::1 time=10/Oct/2000:13:55:37 +0000 request=\\x16\\x03 status=400");
    assert_eq!(found[2], "line 4: it is not a line of an access log (combined)");
    assert_eq!(read(Pattern::common(), text).len(), 3);
}

#[test]
fn lines_of_syslog_are_taken_apart_in_both_forms() {
    let text = "<34>Oct 11 22:14:15 mymachine su[230]: 'su root' failed\n\
                <165>1 2003-10-11T22:14:15.003Z host evntslog - ID47 [a b=\"c\"] An event\n\
                Oct  1 02:14:15 pi kernel: usb 1-1: new\n";
    let found = read(Pattern::syslog(), text);
    assert_eq!(
        found[0],
        "priority=34 time=Oct 11 22:14:15 host=mymachine program=su pid=230 message='su root' failed"
    );
    assert_eq!(
        found[1],
        "priority=165 time=2003-10-11T22:14:15.003Z host=host program=evntslog id=ID47 data=[a b=\"c\"] message=An event"
    );
    assert_eq!(found[2], "time=Oct  1 02:14:15 host=pi program=kernel message=usb 1-1: new");
}

#[test]
fn what_syslogd_says_itself_has_no_program() {
    let text = "Oct 11 22:14:15 pi last message repeated 2 times\nOct 11 22:34:15 pi -- MARK --\n\
                Oct 11 22:34:15 pi nothing more\n";
    let found = read(Pattern::syslog(), text);
    assert_eq!(found[0], "time=Oct 11 22:14:15 host=pi message=last message repeated 2 times");
    assert_eq!(found[1], "time=Oct 11 22:34:15 host=pi message=-- MARK --");
    assert_eq!(found[2], "line 3: it is not a line of syslog");
}

#[test]
fn lines_of_several_hosts_have_a_form_of_their_own() {
    let of_host =
        "shop.example:443 10.0.0.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 5 \"-\" \"x\"";
    let short = "[::1]:80 10.0.0.1 - John Smith [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 5";
    let plain = "10.0.0.1 - John Smith [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.0\" 200 5 \"-\" \"x\"";
    for (line, [combined, common, vhost]) in
        [(of_host, [false, false, true]), (short, [false, false, true]), (plain, [true, true, false])]
    {
        assert_eq!(Pattern::combined().fits(line), combined, "{line}");
        assert_eq!(Pattern::common().fits(line), common, "{line}");
        assert_eq!(Pattern::vhost().fits(line), vhost, "{line}");
    }
    let found = read(Pattern::vhost(), &format!("{of_host}\n{short}\n"));
    assert!(found[0].starts_with("vhost=shop.example port=443 host=10.0.0.1 time="), "{found:?}");
    assert!(found[1].starts_with("vhost=[::1] port=80 host=10.0.0.1 user=John Smith time="), "{found:?}");
}

#[test]
fn words_are_taken_apart_and_the_last_is_the_rest() {
    let names = ["mode", "size", "name"].map(str::to_owned).to_vec();
    let found =
        read(Pattern::words(Words { names, passes_totals: false }), "-rw  12   a b  c \n  x 1 y\nx 1\n");
    assert_eq!(
        found,
        ["mode=-rw size=12 name=a b  c", "mode=x size=1 name=y", "line 3: expected 3 words, found 2"]
    );
}

#[test]
fn lines_of_pairs_are_known() {
    for line in ["a=1 b=2", "level=info msg=\"a b=\\\" c\" ms=12", "a= b="] {
        assert!(Pattern::logfmt().fits(line), "{line}");
    }
    for line in ["a=1", "k,n", "a=1,b=2", "x a=1 b=2", "a=1 b", "{\"a\":\"b=1 c=2\"}"] {
        assert!(!Pattern::logfmt().fits(line), "{line}");
    }
}

#[test]
fn a_pattern_may_be_given() {
    let pattern = Pattern::given(r"^(?<level>\w+): (?<text>.*)$").unwrap();
    assert_eq!(read(pattern, "WARN: a\nx\n")[0], "level=WARN text=a");
    assert!(Pattern::given("^x$").unwrap_err().to_string().contains("no named group"));
    assert!(Pattern::given("(").is_err());
}
