//! Resource limits (`setrlimit`).
use std::io;
use std::time::Duration;

/// Resource limits of a sample's process.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Address space, in bytes.
    pub address_space: u64,
    /// Processor time. A last resort: the supervisor enforces wall-clock time.
    pub cpu: Duration,
    /// Open files.
    pub files: u64,
}

/// A limit that is not in force.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {error}")]
pub struct LimitError {
    name: &'static str,
    error: io::Error,
}

impl Limits {
    /// Applies the limits to the calling process, irrevocably.
    ///
    /// # Errors
    /// Names the first limit that is not in force.
    pub fn apply(&self) -> Result<(), LimitError> {
        self.all()
            .into_iter()
            .try_for_each(|(name, resource, max)| set(resource, max).map_err(|error| LimitError { name, error }))
    }

    /// Applies as many of the limits as the system allows.
    pub fn apply_possible(&self) {
        for (_, resource, max) in self.all() {
            set(resource, max).ok();
        }
    }

    fn all(&self) -> [(&'static str, Resource, u64); 6] {
        [
            ("RLIMIT_AS", libc::RLIMIT_AS, self.address_space),
            ("RLIMIT_CPU", libc::RLIMIT_CPU, self.cpu.as_secs() + 1),
            ("RLIMIT_CORE", libc::RLIMIT_CORE, 0),
            ("RLIMIT_FSIZE", libc::RLIMIT_FSIZE, 0),
            ("RLIMIT_NPROC", libc::RLIMIT_NPROC, 0),
            ("RLIMIT_NOFILE", libc::RLIMIT_NOFILE, self.files),
        ]
    }
}

/// Address space of the calling process in bytes; `None` without `/proc`.
pub fn address_space() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split_whitespace().next()?.parse().ok()?;
    // SAFETY: takes and returns numbers.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(pages * u64::try_from(page).ok()?)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
type Resource = libc::__rlimit_resource_t;
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
type Resource = libc::c_int;

fn set(resource: Resource, max: u64) -> io::Result<()> {
    let max = libc::rlim_t::try_from(max).unwrap_or(libc::RLIM_INFINITY);
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: all calls get a valid struct.
    let (failed, in_force) = unsafe {
        if libc::getrlimit(resource, &mut limit) != 0 {
            return Err(io::Error::last_os_error());
        }
        // An unprivileged process cannot raise its hard limit.
        let max = max.min(limit.rlim_max);
        let failed = libc::setrlimit(resource, &libc::rlimit { rlim_cur: max, rlim_max: max }) != 0
            || libc::getrlimit(resource, &mut limit) != 0;
        (failed, limit.rlim_cur == max && limit.rlim_max == max)
    };
    match (failed, in_force) {
        (true, _) => Err(io::Error::last_os_error()),
        (false, false) => Err(io::Error::other("it is accepted but not in force")),
        (false, true) => Ok(()),
    }
}
