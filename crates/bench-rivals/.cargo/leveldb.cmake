# What LevelDB's build is told beyond what its crate tells it: gcc has no -Wthread-safety, which its test for it misses, and
# assertions are off, which the crate's release build leaves on.
set(HAVE_CLANG_THREAD_SAFETY OFF CACHE BOOL "not with gcc" FORCE)
add_compile_definitions(NDEBUG)
