//! A host with files in memory, of what a target makes of its input: for decoders that read whole
//! files, and for seeds, which the real encoders write.

use std::path::Path;

use folddb_host::Host;

/// The directory in which all files are.
pub fn dir() -> &'static Path {
    Path::new("/store")
}

/// A host with these files, by name, in the directory [`dir`].
///
/// # Panics
/// If two of them have one name.
pub fn host_with(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Host {
    let host = Host::in_memory();
    host.files.create_dir(dir()).expect("nothing is there yet");
    for (name, bytes) in files {
        let mut file = host.files.create(&dir().join(name)).expect("the name is free");
        file.append(&bytes).expect("memory takes it");
    }
    host
}
