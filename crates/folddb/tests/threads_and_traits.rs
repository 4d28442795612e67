//! What a program may do with the types of the library: pass them to other threads, and errors to
//! `std::io`.

use folddb_base::error;
use std::io;

use folddb::*;

const fn is_shared<T: Send + Sync>() {}

/// Writers have one owner at a time.
const fn is_sent<T: Send>() {}

/// Does not compile where a type is not to be shared by threads.
const _: () = {
    is_shared::<Store>();
    is_shared::<Table<String, Vec<u8>>>();
    is_shared::<BytesTable>();
    is_shared::<TableAt<String, u64>>();
    is_shared::<BytesTableAt>();
    is_shared::<Snapshot>();
    is_sent::<Batch>();
    is_sent::<Transaction>();
    is_shared::<Scan<String, u64>>();
    is_shared::<TypedRows<String, u64>>();
    is_shared::<BytesScan>();
    is_shared::<BytesRows>();
    is_shared::<Find<String, u64>>();
    is_shared::<Hits>();
    is_shared::<ValueReader>();
    is_sent::<ValueWriter>();
    is_shared::<Located>();
    is_shared::<Cursor>();
    is_shared::<Rules<String, u64>>();
    is_shared::<Options>();
    is_sent::<Feed>();
    is_sent::<SecondaryFeed>();
    is_sent::<BulkLoad<String, u64>>();
    is_shared::<Error>();
};

#[test]
fn an_error_of_the_store_passes_through_one_of_io_as_it_is() {
    let path = std::path::Path::new("000007.part");
    for (own, kind) in [
        (error::corrupt(path, 7, "a bad checksum"), io::ErrorKind::InvalidData),
        (Error::invalid("a key is too long").advise("shorten it"), io::ErrorKind::InvalidInput),
        (Error::new(ErrorKind::TableNotFound, "no such table"), io::ErrorKind::NotFound),
    ] {
        let passed = io::Error::from(own.clone());
        assert_eq!((passed.kind(), passed.to_string()), (kind, own.to_string()));
        let back = Error::from(passed);
        assert_eq!(
            (back.kind(), back.to_string(), back.damage()),
            (own.kind(), own.to_string(), own.damage())
        );
    }
}

#[test]
fn an_error_of_io_is_one_of_the_store_by_what_can_be_done_about_it() {
    let of = |kind: io::ErrorKind| Error::from(io::Error::from(kind)).kind();
    assert_eq!(of(io::ErrorKind::StorageFull), ErrorKind::NoSpace);
    assert_eq!(of(io::ErrorKind::PermissionDenied), ErrorKind::Permission);
    assert_eq!(of(io::ErrorKind::BrokenPipe), ErrorKind::Io);
    let error = Error::from(io::Error::from_raw_os_error(5));
    assert!(std::error::Error::source(&error).is_some(), "{error}");
}
