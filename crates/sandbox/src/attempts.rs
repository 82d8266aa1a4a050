//! Escape attempts: resources that a confined process must not reach, tried with system calls, below any interpreter.
use std::ffi::CStr;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Names of the attempts.
pub const ATTEMPTS: [&str; 9] = [
    "reading a file",
    "listing a folder",
    "writing a file",
    "a TCP socket",
    "a UDP socket",
    "a Unix socket",
    "a new process",
    "a signal to the worker",
    "a signal when a descriptor is ready",
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
        signals_by_descriptor(),
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

/// The kernel sends a signal of the owner's choice to the owner of a descriptor, without asking [`signals`]' permission on older systems.
fn signals_by_descriptor() -> bool {
    // SAFETY: takes and returns numbers; the owner is taken back, and nothing is delivered without O_ASYNC.
    unsafe {
        libc::fcntl(libc::STDIN_FILENO, libc::F_SETOWN, libc::getpid()) == 0
            && libc::fcntl(libc::STDIN_FILENO, libc::F_SETOWN, 0) == 0
    }
}

/// Things outside an isolation of the user's that a worker inside must not reach.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Outside {
    /// Files and folders with their device and inode numbers, by which copies are told from them.
    files: Vec<(PathBuf, u64, u64)>,
    /// Port of [`Listening`] on the loopback address.
    port: u16,
    /// Id and start of the calling process; none without `/proc`.
    process: Option<(u32, String)>,
}

/// Listener of the calling process, which a worker tries to reach.
pub struct Listening {
    _listener: TcpListener,
}

impl Outside {
    /// Collects what must be out of reach of a worker; the listener is to live until the worker is ready.
    ///
    /// # Errors
    /// If no port can be listened on.
    pub fn of_this_process() -> std::io::Result<(Self, Listening)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let paths = [Some("/etc/passwd".into()), home, std::env::current_dir().ok(), Some(std::env::temp_dir())];
        let identified = |path: PathBuf| {
            let metadata = std::fs::metadata(&path).ok()?;
            Some((path, metadata.dev(), metadata.ino()))
        };
        let outside = Outside {
            files: paths.into_iter().flatten().filter_map(identified).collect(),
            port: listener.local_addr()?.port(),
            process: started(std::process::id()).map(|start| (std::process::id(), start)),
        };
        Ok((outside, Listening { _listener: listener }))
    }

    /// Returns what the calling process reaches of it.
    pub fn reached(&self) -> Vec<String> {
        let mut reached = Vec::new();
        for (path, device, inode) in &self.files {
            let same = std::fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == (*device, *inode));
            let opens = || if path.is_dir() { path.read_dir().is_ok() } else { std::fs::File::open(path).is_ok() };
            if same && opens() {
                reached.push(format!("{} of this machine", path.display()));
            }
        }
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        if TcpStream::connect_timeout(&loopback, Duration::from_secs(2)).is_ok() {
            reached.push("programs of this machine over the network".to_owned());
        }
        // Connecting a UDP socket sends nothing; it fails without a route. The address is one for documentation.
        let routed = |any: &str, other: &str| UdpSocket::bind(any).is_ok_and(|socket| socket.connect(other).is_ok());
        if routed("0.0.0.0:0", "192.0.2.1:9") || routed("[::]:0", "[2001:db8::1]:9") {
            reached.push("the network".to_owned());
        }
        if self.process.as_ref().is_some_and(|(id, start)| started(*id).as_ref() == Some(start)) {
            reached.push("the processes of this machine".to_owned());
        }
        reached
    }
}

/// Start of a process in clock ticks since the system's; none if it cannot be seen.
fn started(id: u32) -> Option<String> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in brackets may hold anything; the start is the twentieth field after it.
    stat.rsplit_once(") ")?.1.split(' ').nth(19).map(str::to_owned)
}
