//! Texts between Java and Rust.

use jni::Env;
use jni::objects::{JObjectArray, JString};

use crate::errors::{Outcome, invalid};

/// A text.
pub(crate) fn text(env: &Env<'_>, text: &JString<'_>, what: &str) -> Outcome<String> {
    if text.is_null() {
        return Err(invalid(format!("{what} is null")));
    }
    Ok(text.try_to_string(env)?)
}

/// A text, or nothing where it is null.
pub(crate) fn text_optional(env: &Env<'_>, text: &JString<'_>) -> Outcome<Option<String>> {
    if text.is_null() { Ok(None) } else { Ok(Some(text.try_to_string(env)?)) }
}

/// Texts of an array; none where it is null.
pub(crate) fn texts(
    env: &mut Env<'_>,
    array: &JObjectArray<'_, JString<'_>>,
    what: &str,
) -> Outcome<Vec<String>> {
    if array.is_null() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for index in 0..array.len(env)? {
        let element = array.get_element(env, index)?;
        found.push(text(env, &element, what)?);
        env.delete_local_ref(element);
    }
    Ok(found)
}

/// An array of Java with these texts.
pub(crate) fn array<'local>(
    env: &mut Env<'local>,
    texts: &[String],
) -> Outcome<JObjectArray<'local, JString<'local>>> {
    let array = JObjectArray::<JString<'_>>::new(env, texts.len(), JString::null())?;
    for (index, text) in texts.iter().enumerate() {
        let text = env.new_string(text)?;
        array.set_element(env, index, &text)?;
        env.delete_local_ref(text);
    }
    Ok(array)
}
