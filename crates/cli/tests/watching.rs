//! `watch --wait` while other processes write: it holds no lock, prints each batch as it is
//! written, and acknowledges what it has printed when it ends, where it can.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use support::{Place, Shell};

/// Longer than any machine needs for a row.
const PATIENCE: Duration = Duration::from_secs(60);

/// A watch that runs, and the lines that it has printed.
struct Watching {
    child: Child,
    lines: Receiver<String>,
}

impl Watching {
    fn start(place: &Place, words: &[&str]) -> Watching {
        let mut command = place.command(&[&["watch", "s", "f"], words].concat());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let (out, (tell, lines)) = (child.stdout.take().expect("a pipe"), channel());
        std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        Watching { child, lines }
    }

    /// Waits for a line with these words, which is the next one.
    fn shows(&self, words: &str) {
        match self.lines.recv_timeout(PATIENCE) {
            Ok(line) => assert!(line.contains(words), "`{line}` comes where `{words}` should"),
            Err(why) => panic!("`{words}` does not come: {why}"),
        }
    }

    /// Interrupts it; returns its error output.
    fn interrupt(mut self) -> String {
        let sent = Command::new("kill").args(["-INT", &self.child.id().to_string()]).status();
        assert!(sent.expect("kill starts").success());
        let mut said = String::new();
        self.child.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(130), "{said}");
        match self.lines.recv_timeout(PATIENCE) {
            Err(RecvTimeoutError::Disconnected) => said,
            more => panic!("it has printed more: {more:?}"),
        }
    }
}

fn store_with_a_row(place: &Place) {
    place.done(&["create", "s", "t", "--fold", "sum:u64"]);
    place.done(&["fold", "s", "t", "first", "1"]);
}

#[test]
fn each_batch_shows_while_others_write_and_is_acknowledged_at_the_end() {
    let place = Place::new();
    store_with_a_row(&place);
    let watching = Watching::start(&place, &["--wait"]);
    ["begin ", "table ", "row ", "rows end"].iter().for_each(|line| watching.shows(line));
    // Each of these takes the lock: the first as soon as the watch has released it.
    let fold = || place.run(&["fold", "s", "t", "a", "5"]);
    let folded = std::iter::repeat_with(fold).take(600).find(|ran| {
        let is_locked = ran.err.contains("open elsewhere");
        is_locked.then(|| std::thread::sleep(PATIENCE / 600)).is_none()
    });
    assert_eq!(folded.map(|ran| ran.code), Some(0), "a watch that waits holds the lock");
    watching.shows("fold t  a  5");
    place.fed(&["import", "s", "t", "-", "--key", "k", "--fold", "sum:u64 = n"], "k,n\nb,1\nc,2\n");
    watching.shows("fold t  b  1");
    watching.shows("fold t  c  2");
    place.done(&["put", "s", "t", "a", "7"]);
    watching.shows("put t  a  7");
    place.done(&["delete", "s", "t", "b"]);
    watching.shows("delete t  b");
    // And this one keeps it.
    let mut shell = Shell::of(&place, "s");
    shell.does("fold t d 9");
    watching.shows("fold t  d  9");
    assert!(shell.ask("create u --fold sum:u64").starts_with("created "));
    watching.shows("table         u");
    shell.does("fold u e 3");
    watching.shows("fold u  e  3");
    shell.end();
    assert_eq!(watching.interrupt(), "folddb: stopped by Ctrl-C\n");
    assert_eq!(place.done(&["watch", "s", "f"]), "", "what was printed is acknowledged");
}

#[test]
fn what_cannot_be_acknowledged_is_printed_again_and_said_so() {
    let place = Place::new();
    store_with_a_row(&place);
    let mut shell = Shell::of(&place, "s");
    shell.does("fold t first 1");
    // There is no feed yet, and the process that has the store open is not asked to make one.
    let ran = place.run(&["watch", "s", "f", "--wait", "1s"]);
    assert_eq!(ran.code, 2, "{}", ran.err);
    assert!(ran.err.contains("has no feed `f`") && ran.err.contains("in the shell"), "{}", ran.err);
    assert!(shell.ask("watch f").starts_with("begin "));
    (0..3).for_each(|_| drop(shell.ask("")));
    let watching = Watching::start(&place, &["--wait"]);
    shell.does("fold t a 5");
    watching.shows("fold t  a  5");
    let said = watching.interrupt();
    assert!(said.contains("not acknowledged") && said.contains("prints it again"), "{said}");
    // The same again, and then no more for a second.
    let mut again = Watching::start(&place, &["--wait", "1s", "--peek"]);
    again.shows("fold t  a  5");
    assert!(again.child.wait().expect("it ends").success());
    shell.end();
    let watching = Watching::start(&place, &["--wait", "--limit", "2"]);
    watching.shows("fold t  a  5");
    place.done(&["fold", "s", "t", "b", "6"]);
    watching.shows("fold t  b  6");
    let ended = watching.child.wait_with_output().expect("it ends");
    assert!(ended.status.success());
    assert_eq!(place.done(&["watch", "s", "f"]), "");
}

/// A watch that could not print a batch has not delivered it.
#[test]
#[cfg(target_os = "linux")]
fn what_could_not_be_printed_is_not_acknowledged() {
    let place = Place::new();
    store_with_a_row(&place);
    place.done(&["watch", "s", "f"]);
    let mut shell = Shell::of(&place, "s");
    let full = std::fs::File::options().write(true).open("/dev/full").expect("a device that is always full");
    let mut watch = place.command(&["watch", "s", "f", "--wait"]);
    let mut watch = watch.stdout(full).stderr(Stdio::null()).spawn().expect("it starts");
    shell.does("fold t a 5");
    shell.end();
    assert_eq!(watch.wait().expect("it ends").code(), Some(3));
    let printed = place.done(&["watch", "s", "f"]);
    assert!(printed.contains("fold t  a  5"), "{printed}");
}
