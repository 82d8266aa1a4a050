//! What a confined process can still reach, found out by trying it at the system calls, below every interpreter.
use std::ffi::CStr;

/// Everything that is tried, by name.
pub const ATTEMPTS: [&str; 8] = [
    "reading a file",
    "listing a folder",
    "writing a file",
    "a TCP socket",
    "a UDP socket",
    "a Unix socket",
    "a new process",
    "a signal to the worker",
];

/// Those of [`ATTEMPTS`] that succeed in the calling process. Each is undone.
pub fn reached() -> Vec<&'static str> {
    let succeeded = [
        opens(c"/etc/passwd", libc::O_RDONLY),
        opens(c"/", libc::O_RDONLY | libc::O_DIRECTORY),
        opens(c"/dev/null", libc::O_WRONLY),
        socket(libc::AF_INET, libc::SOCK_STREAM),
        socket(libc::AF_INET, libc::SOCK_DGRAM),
        socket(libc::AF_UNIX, libc::SOCK_STREAM),
        forks(),
        signals(),
    ];
    ATTEMPTS.into_iter().zip(succeeded).filter(|(_, succeeded)| *succeeded).map(|(name, _)| name).collect()
}

fn opens(path: &CStr, how: i32) -> bool {
    // SAFETY: the path is NUL-terminated; no file is created.
    closed(unsafe { libc::open(path.as_ptr(), how) })
}

fn socket(domain: i32, kind: i32) -> bool {
    // SAFETY: takes and returns numbers.
    closed(unsafe { libc::socket(domain, kind, 0) })
}

/// Closes a descriptor; false if it is none.
fn closed(descriptor: i32) -> bool {
    // SAFETY: the descriptor was just made, and nobody else knows it.
    descriptor >= 0 && unsafe { libc::close(descriptor) } == 0
}

fn forks() -> bool {
    // SAFETY: the child does nothing but end.
    unsafe {
        match libc::fork() {
            -1 => false,
            0 => libc::_exit(0),
            child => libc::waitpid(child, std::ptr::null_mut(), 0) == child,
        }
    }
}

/// Signal 0 only asks whether one may.
fn signals() -> bool {
    // SAFETY: takes and returns numbers; nobody is harmed.
    unsafe { libc::kill(libc::getppid(), 0) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_is_possible_outside() {
        // So that what is refused inside is refused by the sandbox.
        assert_eq!(reached(), ATTEMPTS);
    }
}
