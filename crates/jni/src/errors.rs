//! How a call fails: an exception of Java with kind, message and advice.

use std::any::Any;

use folddb::{Error, ErrorKind};
use jni::errors::ErrorPolicy;
use jni::objects::{JObject, JThrowable, JValue};
use jni::{Env, EnvUnowned, jni_sig, jni_str};

/// What ends a call early.
pub(crate) enum Failure {
    /// An error of the library.
    Store(Error),
    /// The JVM has refused something; most often an exception waits already.
    Java(jni::errors::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Store(error)
    }
}

impl From<jni::errors::Error> for Failure {
    fn from(error: jni::errors::Error) -> Failure {
        Failure::Java(error)
    }
}

/// The result of a call.
pub(crate) type Outcome<T> = Result<T, Failure>;

/// Runs a call of Java, and makes an exception of its error or its panic.
pub(crate) fn guard<'local, T: Default>(
    mut unowned: EnvUnowned<'local>,
    call: impl FnOnce(&mut Env<'local>) -> Outcome<T>,
) -> T {
    unowned.with_env(call).resolve::<Thrown>()
}

/// The policy under which errors and panics become exceptions.
struct Thrown;

impl<T: Default> ErrorPolicy<T, Failure> for Thrown {
    type Captures<'local: 'method, 'method> = ();

    fn on_error<'local: 'method, 'method>(
        env: &mut Env<'local>,
        (): &mut Self::Captures<'local, 'method>,
        failure: Failure,
    ) -> jni::errors::Result<T> {
        match failure {
            _ if env.exception_check() => {}
            Failure::Store(error) => {
                throw(env, &format!("{:?}", error.kind()), error.message(), error.advice())?;
            }
            Failure::Java(error) => throw(env, "InvalidInput", &error.to_string(), "")?,
        }
        Ok(T::default())
    }

    fn on_panic<'local: 'method, 'method>(
        env: &mut Env<'local>,
        (): &mut Self::Captures<'local, 'method>,
        payload: Box<dyn Any + Send>,
    ) -> jni::errors::Result<T> {
        if !env.exception_check() {
            throw(env, "Panic", said(&*payload), "this is a bug in FoldDB: close the store and report it")?;
        }
        std::mem::forget(payload); // dropping it may panic
        Ok(T::default())
    }
}

fn said(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no words")
}

fn throw(env: &mut Env<'_>, kind: &str, message: &str, advice: &str) -> jni::errors::Result<()> {
    let class = env.find_class(jni_str!("org/folddb/FoldDbException"))?;
    let texts = [env.new_string(kind)?, env.new_string(message)?, env.new_string(advice)?];
    let texts = texts.map(JObject::from);
    let [kind, message, advice] = &texts;
    let thrown = env.new_object(
        class,
        jni_sig!("(Ljava/lang/String;Ljava/lang/String;Ljava/lang/String;)V"),
        &[JValue::Object(kind), JValue::Object(message), JValue::Object(advice)],
    )?;
    let thrown = env.cast_local::<JThrowable<'_>>(thrown)?;
    // It answers with the exception that waits from now on.
    let _ = env.throw(thrown);
    Ok(())
}

/// The error of a call with an argument that it cannot take.
pub(crate) fn invalid(message: impl Into<String>) -> Failure {
    Failure::Store(Error::new(ErrorKind::InvalidInput, message))
}
