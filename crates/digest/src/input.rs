//! Files that a user names, or that came from somebody else: opened without waiting, read up to a size.
//!
//! A file on a disk is read, and so is a pipe that the shell has opened for the program (`<(command)`, `/dev/stdin`). Devices
//! have no end, and a pipe with a name keeps the program waiting for its writer, so both are refused.
use std::collections::BTreeSet;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Largest file of settings, in bytes: study, task and experiment files, which people write.
pub const MOST_SETTINGS: u64 = 16 << 20;

/// Largest JSON document that is held in memory as a whole, in bytes.
pub const MOST_DOCUMENT: u64 = 64 << 20;

/// Opens a file, or a pipe that the program was started with.
///
/// # Errors
/// Files that are missing, and what is no regular file: folders, devices, sockets, pipes with a name, and files of `/proc` and `/sys`.
pub fn open(path: &Path) -> io::Result<File> {
    // Asked before it is opened: opening a pipe waits for its writer, and opening a device may change it.
    let found = std::fs::metadata(path)?;
    if is_given_pipe(path, &found) {
        return File::open(path);
    }
    check(&found)?;
    let file = open_at_once(path)?;
    // What the name leads to may have become something else.
    check(&file.metadata()?)?;
    note(path);
    Ok(file)
}

/// Files that this process has read, so that it never writes in their place.
static READ: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn note(path: &Path) {
    // A file that is gone again cannot be overwritten.
    if let Ok(place) = std::fs::canonicalize(path) {
        READ.lock().unwrap_or_else(PoisonError::into_inner).insert(place);
    }
}

/// True if this process has opened the file that a path leads to with [`open`].
pub fn was_read(path: &Path) -> bool {
    let Ok(place) = std::fs::canonicalize(path) else { return false };
    READ.lock().unwrap_or_else(PoisonError::into_inner).contains(&place)
}

/// Reads a file of at most `most` bytes.
///
/// # Errors
/// As [`open`], and a file that is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let size = file.metadata()?.len();
    if size > most {
        return Err(too_large(&format!("it has {size} bytes"), most));
    }
    read_stream(file, most)
}

/// Reads a file of at most `most` bytes, which is UTF-8.
///
/// # Errors
/// As [`read`], and other encodings.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()].iter().filter(|byte| **byte == b'\n').count();
        io::Error::new(io::ErrorKind::InvalidData, format!("line {} is not UTF-8 text", line + 1))
    })
}

/// Reads a stream of at most `most` bytes to its end.
///
/// # Errors
/// A longer one, and those of reading.
pub fn read_stream(stream: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    stream.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(too_large("it has more bytes", most)),
        false => Ok(bytes),
    }
}

fn too_large(has: &str, most: u64) -> io::Error {
    let limit = if most < 1 << 20 { format!("{most} bytes") } else { format!("{} MiB", most >> 20) };
    io::Error::new(io::ErrorKind::FileTooLarge, format!("{has}, and such a file may have up to {limit}"))
}

fn refused(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// Refuses everything but files on a disk.
fn check(found: &Metadata) -> io::Result<()> {
    if found.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder"));
    }
    if !found.is_file() {
        return Err(refused(kind_of(found)));
    }
    match is_of_the_kernel(found) {
        true => Err(refused("it is a file of /proc or /sys, which may have no end")),
        false => Ok(()),
    }
}

#[cfg(unix)]
fn kind_of(found: &Metadata) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match found.file_type() {
        kind if kind.is_fifo() => "it is a pipe with a name, not a file; `<(cat PIPE)` in its place reads the pipe",
        kind if kind.is_socket() => "it is a socket, not a file",
        _ => "it is a device, not a file",
    }
}

#[cfg(not(unix))]
fn kind_of(_: &Metadata) -> &'static str {
    "it is not a file"
}

/// True for a pipe by the name of a descriptor that the program has: its writer is there already.
#[cfg(unix)]
fn is_given_pipe(path: &Path, found: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let given = path == Path::new("/dev/stdin") || path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd");
    given && found.file_type().is_fifo()
}

#[cfg(not(unix))]
fn is_given_pipe(_: &Path, _: &Metadata) -> bool {
    false
}

/// True for a regular file on a disk: no pipe and no device, and none of the kernel's, whose size is no bound of what they give.
pub fn is_regular(found: &Metadata) -> bool {
    found.is_file() && !is_of_the_kernel(found)
}

/// Devices of the systems in which the kernel shows itself.
#[cfg(unix)]
static KERNEL: std::sync::LazyLock<Vec<u64>> = std::sync::LazyLock::new(|| {
    use std::os::unix::fs::MetadataExt;
    let device = |folder: &str| std::fs::metadata(folder).map(|folder| folder.dev()).ok();
    // Such a folder is a part of the root where nothing is mounted on it.
    let root = device("/");
    ["/proc", "/sys"].into_iter().filter_map(device).filter(|device| Some(*device) != root).collect()
});

/// True for a file or folder on the systems `/proc` and `/sys`. Some of their files never end, such as `/proc/kmsg`.
#[cfg(unix)]
pub fn is_of_the_kernel(found: &Metadata) -> bool {
    KERNEL.contains(&std::os::unix::fs::MetadataExt::dev(found))
}

#[cfg(not(unix))]
pub fn is_of_the_kernel(_: &Metadata) -> bool {
    false
}

#[cfg(unix)]
fn open_at_once(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}

#[cfg(not(unix))]
fn open_at_once(path: &Path) -> io::Result<File> {
    File::open(path)
}
