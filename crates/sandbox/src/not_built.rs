//! Stand-in for the embedded interpreter in a build without it. Nobody can have one.
use std::convert::Infallible;

use super::SandboxError;

/// Name of no interpreter.
pub const VERSION: &str = "none";

/// An interpreter that does not exist.
pub enum Embedded {}

impl Embedded {
    /// Fails.
    ///
    /// # Errors
    /// [`SandboxError::NoInterpreter`], always.
    pub fn new() -> Result<Self, SandboxError> {
        Err(SandboxError::NoInterpreter)
    }

    /// Is never called.
    ///
    /// # Errors
    /// None.
    pub fn answer(&self, _source: &str, _function: &str) -> Result<Vec<u8>, Infallible> {
        match *self {}
    }
}
