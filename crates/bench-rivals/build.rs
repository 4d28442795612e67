//! Compiles the C wrapper of Berkeley DB: only the header of the library knows its interface.

fn main() {
    println!("cargo:rerun-if-changed=src/rivals/berkeleydb.c");
    #[cfg(feature = "berkeleydb")]
    cc::Build::new().file("src/rivals/berkeleydb.c").compile("folddb_bench_rivals_berkeleydb");
}
