//! Messages between a pool and its workers: a length (4 bytes, little-endian) and JSON.
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::Confinement;

/// Messages above this size are refused: a program of this size is none.
const LARGEST: usize = 64 << 20;

/// The first message, to a worker.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Setup {
    pub interpreter: Interpreter,
    pub wall: Duration,
    /// Bytes beyond what the interpreter has.
    pub memory: u64,
}

/// Which interpreter runs samples.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Interpreter {
    Embedded,
    Cpython(Cpython),
}

/// A CPython executable, as the pool found it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cpython {
    pub executable: PathBuf,
    pub version: String,
    /// Files and folders it reads while it starts and imports the modules that programs may use.
    pub readable: Vec<PathBuf>,
}

/// A worker's first message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ready {
    /// Name and version of the interpreter.
    pub interpreter: String,
    pub confinement: Confinement,
    /// What a program could still reach.
    pub reached: Vec<String>,
}

/// A program to run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Request {
    pub source: String,
    /// The function to call, without arguments.
    pub function: String,
}

/// Sends a message.
pub fn send<T: Serialize>(to: &mut impl Write, message: &T) -> io::Result<()> {
    let json = serde_json::to_vec(message).map_err(io::Error::other)?;
    let length = u32::try_from(json.len()).ok().filter(|&length| length as usize <= LARGEST);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the message is too large"))?;
    to.write_all(&length.to_le_bytes())?;
    to.write_all(&json)?;
    to.flush()
}

/// Receives a message.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > LARGEST {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is too large"));
    }
    let mut json = vec![0; length];
    from.read_exact(&mut json)?;
    serde_json::from_slice(&json).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}
