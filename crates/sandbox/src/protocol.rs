//! Messages between a pool and its workers: length (4 bytes, little-endian), then JSON.
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::attempts::Outside;
use super::{Confinement, Missing};

/// Largest message accepted, in bytes.
const MAX_MESSAGE: usize = 64 << 20;

/// First message to a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Setup {
    /// Version of the caller, which must be the worker's.
    pub version: String,
    pub interpreter: Interpreter,
    pub wall: Duration,
    /// Address space beyond the interpreter's own, in bytes.
    pub memory: u64,
    /// True if programs may run although parts of the confinement are missing.
    pub unconfined: bool,
    /// The user's command around the worker, with what its isolation must hide.
    pub command: Option<(String, Outside)>,
}

/// Interpreter that runs samples.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Interpreter {
    Embedded,
    Cpython(Cpython),
    /// A CPython that the worker finds and probes where it runs.
    Unprobed(PathBuf),
}

/// A CPython executable, as probed by the pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpython {
    pub executable: PathBuf,
    pub version: String,
    /// Files and folders that it reads to start and to import the modules that programs may use.
    pub readable: Vec<PathBuf>,
}

/// First message of a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Hello {
    Ready(Ready),
    /// Parts of the confinement that are missing: nothing is run.
    Unconfined(Vec<Missing>),
    /// The worker was built without the embedded interpreter.
    NoInterpreter,
    /// The reason for the interpreter not being usable.
    Python(String),
    /// The worker's version, which is not the caller's.
    OtherVersion(String),
}

/// A worker that is ready.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ready {
    /// Name and version of the interpreter.
    pub interpreter: String,
    pub confinement: Confinement,
    /// Escape attempts that succeed in a sample's process.
    pub reached: Vec<String>,
}

/// Program to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    pub source: String,
    /// Function to call, without arguments.
    pub function: String,
}

pub fn send<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    let json = serde_json::to_vec(message).map_err(io::Error::other)?;
    let length = u32::try_from(json.len()).ok().filter(|&length| length as usize <= MAX_MESSAGE);
    let length =
        length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the message is larger than 64 MiB"))?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&json)?;
    to.flush()
}

/// Receives a message.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_MESSAGE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is larger than 64 MiB"));
    }
    let mut json = vec![0; length];
    from.read_exact(&mut json)?;
    serde_json::from_slice(&json).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
