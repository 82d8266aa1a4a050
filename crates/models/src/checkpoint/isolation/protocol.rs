//! Messages between a program and its workers: length (8 bytes, little-endian), then JSON or the bytes of a file.
use std::io::{self, Read, Write};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::super::template_engine::{Conversation, TemplateFailure, TemplateText};

/// Largest message accepted, in bytes: more than the largest file and the largest conversation.
const MAX_MESSAGE: u64 = 1 << 30;

/// First message to a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Setup {
    pub job: Job,
    /// Memory beyond that of the program itself, in bytes.
    pub memory: u64,
    /// Processor time of one answer.
    pub seconds: u64,
}

/// Work of a worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Job {
    /// Try the tokenizer whose file is the next message; answer with a [`Trial`].
    Tokenizer,
    /// Render every conversation that follows; answer each with a [`Rendering`].
    Template(TemplateText),
}

/// Result of a tokenizer's trial; the error says what is wrong with it.
pub(super) type Trial = Result<(), String>;

/// A rendered conversation.
pub(super) type Rendering = Result<String, TemplateFailure>;

/// A conversation to render.
pub(super) type Render = Conversation;

/// Sends a message.
pub(super) fn send(to: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    send_bytes(to, &serde_json::to_vec(message).map_err(io::Error::other)?)
}

/// Sends bytes.
pub(super) fn send_bytes(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    to.write_all(&(bytes.len() as u64).to_le_bytes())?;
    to.write_all(bytes)?;
    to.flush()
}

/// Receives a message.
pub(super) fn receive<T: DeserializeOwned>(from: &mut impl Read) -> io::Result<T> {
    serde_json::from_slice(&receive_bytes(from)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Receives bytes.
pub(super) fn receive_bytes(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 8];
    from.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    if length > MAX_MESSAGE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is larger than 1 GiB"));
    }
    let mut bytes = Vec::new();
    // Grows with what arrives, not with what is announced.
    from.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}
