//! Bytes between Java and Rust. This is the only file with unsafe code.

use folddb::{Error, Result};
use jni::Env;
use jni::objects::{JByteArray, JByteBuffer};

use crate::errors::{Outcome, invalid};

/// Bytes of an array up to this length are copied to the stack.
const STACK: usize = 256;

/// Calls with a part of an array, which is copied: to the stack where it is short.
#[inline]
pub(crate) fn with_part<'local, T>(
    env: &mut Env<'local>,
    array: &JByteArray<'_>,
    offset: i32,
    len: i32,
    call: impl FnOnce(&mut Env<'local>, &[u8]) -> Outcome<T>,
) -> Outcome<T> {
    let len = usize::try_from(len).map_err(|_| invalid(format!("{len} is not a length")))?;
    if array.is_null() {
        return match len {
            0 => call(env, &[]),
            _ => Err(invalid("the array is null")),
        };
    }
    if len <= STACK {
        let mut bytes = [0i8; STACK];
        array.get_region(env, offset, &mut bytes[..len])?;
        return call(env, unsigned(&bytes[..len]));
    }
    if len > array.len(env)? {
        return Err(invalid(format!("{len} bytes were asked for of an array of {}", array.len(env)?)));
    }
    let mut bytes = vec![0i8; len];
    array.get_region(env, offset, &mut bytes)?;
    call(env, unsigned(&bytes))
}

/// A copy of all of an array.
pub(crate) fn whole(env: &Env<'_>, array: &JByteArray<'_>, what: &str) -> Outcome<Vec<u8>> {
    if array.is_null() {
        return Err(invalid(format!("{what} is null")));
    }
    Ok(env.convert_byte_array(array)?)
}

/// A copy of all of an array, or nothing where it is null.
pub(crate) fn whole_optional(env: &Env<'_>, array: &JByteArray<'_>) -> Outcome<Option<Vec<u8>>> {
    if array.is_null() { Ok(None) } else { Ok(Some(env.convert_byte_array(array)?)) }
}

/// An array of Java with these bytes.
pub(crate) fn array<'local>(env: &mut Env<'local>, bytes: &[u8]) -> Outcome<JByteArray<'local>> {
    if i32::try_from(bytes.len()).is_err() {
        return Err(
            Error::invalid(format!("{} bytes are more than an array of Java holds", bytes.len())).into()
        );
    }
    Ok(env.byte_array_from_slice(bytes)?)
}

fn unsigned(bytes: &[i8]) -> &[u8] {
    // SAFETY: both are one byte of any value, and the slice keeps its place, length and lifetime.
    // Tested by `TableTest`.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

/// The memory of a direct buffer.
///
/// # Errors
/// It is null, or not direct.
pub(crate) fn direct<'a>(env: &Env<'_>, buffer: &'a mut JByteBuffer<'_>) -> Outcome<&'a mut [u8]> {
    if buffer.is_null() {
        return Err(invalid("the buffer is null"));
    }
    let begin = env.get_direct_buffer_address(&*buffer)?;
    let len = env.get_direct_buffer_capacity(&*buffer)?;
    // SAFETY: the JVM says that so many bytes are there, and keeps them while the call holds the
    // reference. The Java half makes these buffers, gives them to nobody else, and lets one call
    // use one at a time. Tested by `BatchTest`.
    Ok(unsafe { std::slice::from_raw_parts_mut(begin, len) })
}

/// The first `len` bytes of these.
pub(crate) fn first(bytes: &[u8], len: i32) -> Result<&[u8]> {
    usize::try_from(len)
        .ok()
        .and_then(|len| bytes.get(..len))
        .ok_or_else(|| Error::invalid(format!("{len} bytes of a buffer of {}", bytes.len())))
}
