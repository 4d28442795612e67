//! The shared library is called `libfolddb.so.0`, in any file: programs linked with it look for
//! that name. The number changes when programs must be compiled again.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libfolddb.so.0");
    println!("cargo:rerun-if-changed=build.rs");
}
