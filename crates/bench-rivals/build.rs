//! Compiles the C that stands between Berkeley DB, whose interface only its own header knows, and
//! its rival's file.

fn main() {
    println!("cargo:rerun-if-changed=src/rivals/berkeleydb.c");
    #[cfg(feature = "berkeleydb")]
    cc::Build::new().file("src/rivals/berkeleydb.c").compile("folddb_bench_rivals_berkeleydb");
}
