//! Programs in C, compiled against the library as it is installed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Where the header and the libraries are installed for the tests.
pub(crate) fn installed() -> &'static Path {
    static PREFIX: OnceLock<PathBuf> = OnceLock::new();
    PREFIX.get_or_init(|| {
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("install");
        let installed = Command::new(script).arg(&prefix).arg("--built").arg(built()).output();
        succeeded("install", &installed.expect("the script runs"));
        prefix
    })
}

/// Where cargo has built the libraries that this test was built with.
fn built() -> PathBuf {
    let test = std::env::current_exe().expect("the test is a file");
    test.parent().expect("it is in a folder").to_owned()
}

/// Says what this machine lacks. Not by a macro, whose lines a test that passes does not show.
pub(crate) fn not_checked(why: &str) {
    writeln!(std::io::stderr(), "NOT CHECKED: {why}").expect("there is a standard error");
}

pub(crate) fn succeeded(what: &str, output: &Output) {
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{what}: {}\n{}{}",
        output.status,
        said(&output.stdout),
        said(&output.stderr)
    );
}

/// How a program is linked and run.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum How {
    Shared,
    Static,
    Valgrind,
    Sanitized,
    StaticSanitized,
}

impl How {
    fn is_static(self) -> bool {
        matches!(self, How::Static | How::StaticSanitized)
    }

    fn is_sanitized(self) -> bool {
        matches!(self, How::Sanitized | How::StaticSanitized)
    }
}

/// Compiles a program.
pub(crate) fn compiled(name: &str, how: How) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    compiled_from(&folder.join(format!("{name}.c")), name, how)
}

/// Compiles a program that stands elsewhere.
pub(crate) fn compiled_from(source: &Path, name: &str, how: How) -> PathBuf {
    let prefix = installed();
    let library = if how.is_static() { "static" } else { "shared" };
    let checks = if how.is_sanitized() { "-sanitized" } else { "" };
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{library}{checks}"));
    let lib = prefix.join("lib");
    let mut cc = Command::new("cc");
    cc.args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-g", "-O1", "-pthread"]);
    cc.arg(source).arg("-I").arg(prefix.join("include")).arg("-o").arg(&program);
    match how.is_static() {
        true => cc.arg(lib.join("libfolddb.a")).args(["-lgcc_s", "-lutil", "-lrt", "-lm", "-ldl"]),
        false => cc.arg("-L").arg(&lib).arg("-lfolddb").arg(format!("-Wl,-rpath,{}", lib.display())),
    };
    if how.is_sanitized() {
        cc.args(["-fsanitize=address", "-fno-omit-frame-pointer"]);
    }
    succeeded(&format!("cc {name}"), &cc.output().expect("a C compiler is needed: cc"));
    program
}
