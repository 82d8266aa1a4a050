//! Messages between a program and its workers: length (8 bytes, little-endian), then the bytes.
use std::io::{self, Read, Write};

use super::CpuTime;

/// Largest message accepted, in bytes: more than the largest file and the largest conversation.
const MAX_MESSAGE: u64 = 1 << 30;

pub(super) fn send(to: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    send_number(to, bytes.len() as u64)?;
    to.write_all(bytes)?;
    to.flush()
}

/// Receives bytes.
pub(super) fn receive(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let length = receive_number(from)?;
    if length > MAX_MESSAGE {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "the message is larger than 1 GiB"));
    }
    let mut bytes = Vec::new();
    // Grows with what arrives, not with what is announced.
    from.take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Sends a number: the memory of a worker, or a length.
pub(super) fn send_number(to: &mut impl Write, number: u64) -> io::Result<()> {
    to.write_all(&number.to_le_bytes())
}

/// Receives a number.
pub(super) fn receive_number(from: &mut impl Read) -> io::Result<u64> {
    let mut number = [0; 8];
    from.read_exact(&mut number)?;
    Ok(u64::from_le_bytes(number))
}

/// Sends the time that the next answer may take.
pub(super) fn send_time(to: &mut impl Write, time: CpuTime) -> io::Result<()> {
    send_number(to, u64::from(matches!(time, CpuTime::InAll(_))))?;
    send_number(to, time.seconds())
}

/// Receives the time that the next answer may take.
pub(super) fn receive_time(from: &mut impl Read) -> io::Result<CpuTime> {
    let in_all = receive_number(from)? != 0;
    let seconds = receive_number(from)?;
    Ok(if in_all { CpuTime::InAll(seconds) } else { CpuTime::Each(seconds) })
}
