//! What is installed: the shared library exports the header and nothing else, and `folddb.pc` says
//! how to link with it.

use std::process::Command;

use crate::compile::{installed, not_checked, succeeded};
use crate::header::functions;

#[test]
fn the_shared_library_exports_the_functions_of_the_header_and_nothing_else() {
    let library = installed().join("lib/libfolddb.so");
    let Ok(output) =
        Command::new("nm").args(["-D", "--defined-only", "--format=just-symbols"]).arg(library).output()
    else {
        not_checked("there is no nm here");
        return;
    };
    succeeded("nm", &output);
    let symbols = String::from_utf8(output.stdout).expect("text");
    let mut exported: Vec<&str> = symbols.lines().collect();
    exported.sort_unstable();
    assert_eq!(exported, functions());
}

#[test]
fn folddb_pc_says_how_to_compile_and_link() {
    let prefix = installed();
    let asked = ["--cflags", "--libs", "folddb"];
    let folder = prefix.join("lib/pkgconfig");
    let Ok(output) = Command::new("pkg-config").args(asked).env("PKG_CONFIG_PATH", folder).output() else {
        not_checked("there is no pkg-config here");
        return;
    };
    succeeded("pkg-config", &output);
    let flags = String::from_utf8(output.stdout).expect("text");
    let at = prefix.display();
    assert_eq!(flags.trim(), format!("-I{at}/include -L{at}/lib -lfolddb"));
}
