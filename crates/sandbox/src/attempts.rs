//! Escape attempts: resources that a confined process must not reach, tried with system calls, below any interpreter.
use std::ffi::CStr;

/// Names of the attempts.
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

/// Makes all [`ATTEMPTS`] in the calling process and returns those that succeed; each is undone. Outside a sandbox, all do.
pub fn succeeding_attempts() -> Vec<&'static str> {
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

fn opens(path: &CStr, flags: i32) -> bool {
    // SAFETY: the path is NUL-terminated; no file is created.
    closed(unsafe { libc::open(path.as_ptr(), flags) })
}

fn socket(domain: i32, kind: i32) -> bool {
    // SAFETY: takes and returns numbers.
    closed(unsafe { libc::socket(domain, kind, 0) })
}

/// Closes a descriptor; false for a negative one, which is an error.
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

/// Signal 0 checks the permission and delivers nothing.
fn signals() -> bool {
    // SAFETY: takes and returns numbers; nothing is delivered.
    unsafe { libc::kill(libc::getppid(), 0) == 0 }
}
