//! Data between C and Rust: bytes and texts that come in, buffers that go out.
//!
//! This is the only file that follows a pointer. What comes in has the type [`Bytes`], [`Text`],
//! [`Keys`] and so on, which no Rust code can make. The caller in C has promised what the header
//! asks for: that there are as many bytes as the length next to it says, or that a text ends with a
//! NUL.

use std::ffi::{CStr, c_char, c_void};
use std::mem::MaybeUninit;

use folddb::{Error, Result};

/// The beginning of some bytes, whose length is given next to it.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Bytes(*const c_char);

/// A text that ends with a NUL.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Text(*const c_char);

/// A buffer of C, whose length is given next to it.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Buffer(*mut c_char);

/// The beginnings of some keys, whose number is given next to it.
#[repr(transparent)]
pub struct Keys(*const Bytes);

/// The lengths of some keys.
#[repr(transparent)]
pub struct Lens(*const usize);

/// A buffer of C for some values, whose number is given next to it.
#[repr(transparent)]
pub struct Values(*mut Value);

/// A value that goes out. The data is for folddb_free; NULL where there is none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Value {
    /// The bytes of the value.
    pub data: *mut c_char,
    /// How many there are.
    pub len: usize,
}

/// Memory that a function of this library has returned.
#[repr(transparent)]
pub struct Memory(*mut c_void);

/// Where the text of an error is written to; nowhere, where it is null.
#[repr(transparent)]
pub struct ErrPtr<'a>(Option<&'a mut *mut c_char>);

impl Memory {
    fn free(self) {
        // SAFETY: it comes from `copy_out`, and so from `malloc`, or is null; C has promised to
        // free it once. Tested by `basics`.
        unsafe { libc::free(self.0) };
    }
}

#[cfg(test)]
impl ErrPtr<'_> {
    pub(crate) fn to(slot: &mut *mut c_char) -> ErrPtr<'_> {
        ErrPtr(Some(slot))
    }
}

impl ErrPtr<'_> {
    /// Puts the text where it is asked for, and frees the one that was there.
    pub(crate) fn set(self, text: &str) {
        let Some(slot) = self.0 else { return };
        Memory(slot.cast()).free(); // C has promised that it is NULL, or a text of an earlier error
        *slot = copy_out(text.replace('\0', " ").as_bytes()).unwrap_or(std::ptr::null_mut());
    }
}

impl Bytes {
    /// The bytes, `len` of them. `what` names them in the error.
    pub(crate) fn get<'a>(self, len: usize, what: &str) -> Result<&'a [u8]> {
        if len == 0 {
            return Ok(&[]);
        }
        if self.0.is_null() {
            return Err(Error::invalid(format!("{what} is NULL, but its length is {len}")));
        }
        if isize::try_from(len).is_err() {
            return Err(Error::invalid(format!("{what} has a length of {len}, which no object can have")));
        }
        // SAFETY: C has promised that `len` bytes are there, and stay as they are during the call.
        // Tested by `misuse`, `basics`.
        Ok(unsafe { std::slice::from_raw_parts(self.0.cast(), len) })
    }
}

impl Buffer {
    /// The room, all of it zero.
    pub(crate) fn get<'a>(self, len: usize) -> Result<&'a mut [u8]> {
        if len == 0 {
            return Ok(&mut []);
        }
        if self.0.is_null() || isize::try_from(len).is_err() {
            return Err(Error::invalid(format!("the buffer is NULL, or no object has its length, {len}")));
        }
        // SAFETY: C has promised room for `len` bytes, which nothing else uses during the call;
        // they are written before they are seen. Tested by `streams`.
        unsafe {
            self.0.write_bytes(0, len);
            Ok(std::slice::from_raw_parts_mut(self.0.cast(), len))
        }
    }

    /// Copies as much of `data` into it as there is room for in `len` bytes, and returns how much.
    pub(crate) fn fill(self, len: usize, data: &[u8]) -> Result<usize> {
        let copied = len.min(data.len());
        if self.0.is_null() && len > 0 {
            return Err(Error::invalid(format!("the buffer is NULL, but its length is {len}")));
        }
        if copied > 0 {
            // SAFETY: C has promised room for `len` bytes, which nothing else uses during the call.
            // Tested by `basics`.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), self.0.cast(), copied) };
        }
        Ok(copied)
    }
}

impl Keys {
    /// The keys, `count` of them.
    pub(crate) fn get<'a>(self, lens: Lens, count: usize) -> Result<Vec<&'a [u8]>> {
        check_list(self.0, count, "the list of keys")?;
        check_list(lens.0, count, "the list of their lengths")?;
        let key = |index| {
            // SAFETY: C has promised that `count` pointers, and as many lengths, are there.
            // Tested by `basics`.
            let (key, len) = unsafe { (self.0.add(index).read(), lens.0.add(index).read()) };
            key.get(len, "a key")
        };
        (0..count).map(key).collect()
    }
}

impl Values {
    /// Room for `count` values, none of which is there yet.
    pub(crate) fn get<'a>(self, count: usize) -> Result<&'a mut [Value]> {
        check_list(self.0, count, "the list of values")?;
        let nothing = Value { data: std::ptr::null_mut(), len: 0 };
        // SAFETY: C has promised room for `count` values, which nothing else uses during the call;
        // all are written before they are seen. Tested by `basics`.
        unsafe {
            (0..count).for_each(|index| self.0.add(index).write(nothing));
            Ok(if count == 0 { &mut [] } else { std::slice::from_raw_parts_mut(self.0, count) })
        }
    }
}

/// Puts copies of the values that are there into `values`; all of them, or none where there is no
/// memory.
pub(crate) fn fill(values: &mut [Value], found: &[Option<Vec<u8>>]) -> Result<()> {
    for (index, found) in found.iter().enumerate() {
        let Some(found) = found else { continue };
        match copy_out(found) {
            Ok(data) => values[index] = Value { data, len: found.len() },
            Err(error) => {
                for value in values {
                    Memory(value.data.cast()).free();
                    *value = Value { data: std::ptr::null_mut(), len: 0 };
                }
                return Err(error);
            }
        }
    }
    Ok(())
}

fn check_list<T>(list: *const T, count: usize, what: &str) -> Result<()> {
    if count > 0 && list.is_null() {
        return Err(Error::invalid(format!("{what} is NULL, and the count {count}")));
    }
    if count > isize::MAX as usize / size_of::<Value>() {
        return Err(Error::invalid(format!("a count of {count}, which no list has")));
    }
    Ok(())
}

impl Text {
    /// The text. `what` names it in the error.
    pub(crate) fn get<'a>(self, what: &str) -> Result<&'a str> {
        if self.0.is_null() {
            return Err(Error::invalid(format!("{what} is NULL")));
        }
        // SAFETY: C has promised that a NUL ends it, and that it stays as it is during the call.
        // Tested by `misuse`, `basics`.
        let text = unsafe { CStr::from_ptr(self.0) };
        text.to_str().map_err(|_| Error::invalid(format!("{what} is not UTF-8: {}", text.to_string_lossy())))
    }

    /// The text, or none where it is NULL.
    pub(crate) fn get_optional<'a>(self, what: &str) -> Result<Option<&'a str>> {
        if self.0.is_null() { Ok(None) } else { self.get(what).map(Some) }
    }
}

/// A copy of these bytes in memory of C, with a NUL after them that does not count.
///
/// # Errors
/// There is no memory.
pub(crate) fn copy_out(bytes: &[u8]) -> Result<*mut c_char> {
    // SAFETY: `malloc` may be called with any size; the result is checked. Tested by `basics`.
    let copy: *mut u8 = unsafe { libc::malloc(bytes.len() + 1) }.cast();
    if copy.is_null() {
        return Err(Error::invalid(format!("there is no memory for {} bytes", bytes.len())));
    }
    // SAFETY: `copy` has room for `bytes` and one more, and was made just now, so nothing else is
    // there. Tested by `basics`.
    unsafe {
        std::ptr::copy_nonoverlapping(bytes.as_ptr(), copy, bytes.len());
        copy.add(bytes.len()).write(0);
    }
    Ok(copy.cast())
}

/// The same, and writes the length of the bytes to `len`.
pub(crate) fn copy_out_with_len(bytes: &[u8], len: Option<&mut MaybeUninit<usize>>) -> Result<*mut c_char> {
    let copy = copy_out(bytes)?;
    put(len, bytes.len());
    Ok(copy)
}

/// A list of texts for C: one buffer, with a pointer to each text and NULL after the last.
pub(crate) fn copy_out_texts(
    texts: &[String],
    count: Option<&mut MaybeUninit<usize>>,
) -> Result<*mut *mut c_char> {
    let pointers_len = (texts.len() + 1) * size_of::<*mut c_char>();
    let mut bytes = vec![0; pointers_len];
    let mut begins = Vec::new();
    for text in texts {
        begins.push(bytes.len());
        bytes.extend_from_slice(text.replace('\0', " ").as_bytes());
        bytes.push(0);
    }
    let buffer = copy_out(&bytes)?;
    let list: *mut *mut c_char = buffer.cast(); // `malloc` aligns for any type
    for (index, begin) in begins.into_iter().enumerate() {
        // SAFETY: the buffer begins with room for a pointer to each text and one more, and each
        // text begins inside it. Tested by `basics`.
        unsafe { list.add(index).write(buffer.add(begin)) };
    }
    put(count, texts.len());
    Ok(list)
}

/// A list of plain figures for C, in one buffer.
///
/// # Errors
/// There is no memory.
pub(crate) fn copy_out_list<T: Copy>(items: &[T], count: Option<&mut MaybeUninit<usize>>) -> Result<*mut T> {
    let list: *mut T = copy_out(&vec![0; size_of_val(items)])?.cast(); // `malloc` aligns for any type
    // SAFETY: the buffer has room for `items`, and was made just now, so nothing else is there.
    // Tested by `keeping`.
    unsafe { std::ptr::copy_nonoverlapping(items.as_ptr(), list, items.len()) };
    put(count, items.len());
    Ok(list)
}

/// Writes a number where it is asked for.
pub(crate) fn put<T>(out: Option<&mut MaybeUninit<T>>, value: T) {
    if let Some(out) = out {
        out.write(value);
    }
}

/// Frees a buffer that a function of this header returned: a value, or the text of an error. NULL
/// is ignored.
///
/// Free each buffer once. Any thread may do it. Do not give handles to this function: each type of
/// handle has a function of its own.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_free(memory: Memory) {
    memory.free();
}
