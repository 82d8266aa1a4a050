//! Resource limits of a worker (`setrlimit`).
use std::io;

use super::CpuTime;

/// Limits the memory of the calling process to its present address space and so many bytes, for good; forbids core dumps.
pub(super) fn limit_memory(bytes: u64) -> io::Result<()> {
    let space = address_space().unwrap_or(0).saturating_add(bytes);
    set(libc::RLIMIT_AS, space)?;
    set(libc::RLIMIT_CORE, 0)
}

/// Lets the calling process use processor time; beyond it the process is killed.
///
/// The parent kills it by the clock. This is for a worker whose parent was killed itself, and for a busy machine.
pub(super) fn allow_cpu_time(time: CpuTime) -> io::Result<()> {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: `getrusage` writes the struct, and it is read only if it says that it did.
    let used = unsafe {
        if libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let usage = usage.assume_init();
        usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
    };
    let mut limit = get(libc::RLIMIT_CPU)?;
    let wanted = match time {
        CpuTime::Each(seconds) => libc::rlim_t::try_from(used).unwrap_or(0).saturating_add(seconds),
        CpuTime::InAll(seconds) => seconds,
    };
    limit.rlim_cur = wanted.saturating_add(1).min(limit.rlim_max);
    put(libc::RLIMIT_CPU, &limit)
}

/// Address space of the calling process in bytes; `None` without `/proc`.
fn address_space() -> Option<u64> {
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
    let limit = get(resource)?;
    // An unprivileged process cannot raise its hard limit.
    let max = libc::rlim_t::try_from(max).unwrap_or(libc::RLIM_INFINITY).min(limit.rlim_max);
    put(resource, &libc::rlimit { rlim_cur: max, rlim_max: max })
}

fn get(resource: Resource) -> io::Result<libc::rlimit> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a valid struct.
    if unsafe { libc::getrlimit(resource, &mut limit) } == 0 { Ok(limit) } else { Err(io::Error::last_os_error()) }
}

fn put(resource: Resource, limit: &libc::rlimit) -> io::Result<()> {
    // SAFETY: the pointer is to a valid struct.
    if unsafe { libc::setrlimit(resource, limit) } == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
