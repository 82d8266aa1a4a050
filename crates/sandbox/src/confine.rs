//! Confinement of model-written programs by the kernel: no file system and no network (landlock), only the system calls that
//! computing needs (seccomp), and no way to privileges. A part that the kernel refuses is an error, never left out in silence.
use std::fmt;

use serde::{Deserialize, Serialize};

/// Confinement in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The landlock ABI in force: 1 and up for files, 4 and up for TCP, 6 and up for signals.
    pub landlock: Option<u32>,
    /// True if system calls are filtered.
    pub seccomp: bool,
    /// True if a program can gain no privileges by starting another one.
    pub no_new_privileges: bool,
    /// True if the resource limits are in force.
    pub limits: bool,
    /// The user's command around the worker, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Required parts that are missing; only [`Settings::unconfined`](super::Settings::unconfined) permits any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
}

/// A part of the confinement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Access to files and the network, by landlock.
    Landlock,
    /// The filter of system calls.
    Seccomp,
    /// `PR_SET_NO_NEW_PRIVS`.
    NoNewPrivileges,
    /// Resource limits.
    Limits,
    /// An environment without variables.
    Environment,
    /// Isolation as a whole: an escape attempt succeeded.
    Isolation,
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Part::Landlock => "landlock",
            Part::Seccomp => "seccomp",
            Part::NoNewPrivileges => "no-new-privileges",
            Part::Limits => "resource limits",
            Part::Environment => "an empty environment",
            Part::Isolation => "isolation",
        })
    }
}

/// A part of the confinement that cannot be put on, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    pub part: Part,
    pub reason: String,
}

impl Missing {
    pub(super) fn new(part: Part, reason: impl fmt::Display) -> Self {
        Missing { part, reason: reason.to_string() }
    }
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.part, self.reason)
    }
}

pub use system::{ConfineError, Filter, close_from, die_with_parent, forbid_new_privileges, restrict_files};

#[cfg(target_os = "linux")]
mod system {
    use std::io;
    use std::path::PathBuf;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, Ruleset, RulesetAttr,
        RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
    };
    use seccompiler::{
        BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
        SeccompRule,
    };

    /// Newest landlock ABI requested; older kernels enforce the part they support.
    const NEWEST: ABI = ABI::V6;

    /// Reason for a part of the confinement not being in force.
    #[derive(Debug, thiserror::Error)]
    pub enum ConfineError {
        #[error("this kernel does not have it")]
        NotImplemented,
        #[error("it is turned off when this kernel starts")]
        NotEnabled,
        #[error("this kernel does not enforce it")]
        NotEnforced,
        #[error("{0}")]
        Landlock(RulesetError),
        #[error("its filter cannot be made for this processor: {0}")]
        Filter(BackendError),
        #[error("{0}")]
        System(io::Error),
        #[error("{0}")]
        Seccomp(seccompiler::Error),
    }

    /// Denies the calling thread and its children all files but these, and the network; returns the ABI in force.
    ///
    /// # Errors
    /// The reason for landlock not being in force.
    pub fn restrict_files(readable: &[PathBuf]) -> Result<u32, ConfineError> {
        let restrict = || -> Result<_, RulesetError> {
            Ruleset::default()
                .set_compatibility(CompatLevel::BestEffort)
                .handle_access(AccessFs::from_all(NEWEST))?
                .handle_access(AccessNet::from_all(NEWEST))?
                .scope(Scope::from_all(NEWEST))?
                .create()?
                .add_rules(path_beneath_rules(readable, AccessFs::from_read(NEWEST)))?
                .restrict_self()
        };
        let status = restrict().map_err(ConfineError::Landlock)?;
        match (status.landlock, status.ruleset) {
            (LandlockStatus::NotImplemented, _) => Err(ConfineError::NotImplemented),
            (LandlockStatus::NotEnabled, _) => Err(ConfineError::NotEnabled),
            (LandlockStatus::Available { .. }, RulesetStatus::NotEnforced) => Err(ConfineError::NotEnforced),
            (LandlockStatus::Available { effective_abi, .. }, _) => Ok(effective_abi as u32),
        }
    }

    /// Forbids the calling thread and its children to gain privileges by `execve`, and checks that it is so.
    pub fn forbid_new_privileges() -> io::Result<()> {
        // SAFETY: both calls take and return numbers.
        let set = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
                && libc::prctl(libc::PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1
        };
        if set { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// A compiled filter of system calls.
    pub struct Filter(BpfProgram);

    impl Filter {
        /// Filter for an interpreter that is loaded: memory, time, random numbers, and writing to its one pipe.
        pub fn computing() -> Result<Self, ConfineError> {
            let mut calls = base_calls();
            calls.push((libc::SYS_write, on_output()));
            Filter::compile(calls)
        }

        /// Filter for an interpreter that is still to be started: it also allows `execve` and opening files for reading.
        pub fn starting() -> Result<Self, ConfineError> {
            let mut calls = base_calls();
            calls.push((libc::SYS_write, on_output()));
            let writing = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND) as u64;
            calls.push((libc::SYS_openat, only(2, SeccompCmpOp::MaskedEq(writing), 0)));
            // TCGETS, FIONCLEX, FIOCLEX: the same numbers on all three architectures; their type differs between C libraries.
            let terminal = [0x5401, 0x5450, 0x5451];
            calls.push((libc::SYS_ioctl, terminal.iter().flat_map(|&call| only(1, SeccompCmpOp::Eq, call)).collect()));
            // Flags and copies of descriptors. F_SETOWN, F_SETSIG and F_SETFL would have the kernel send signals to any process of the user.
            let descriptors = [libc::F_DUPFD, libc::F_DUPFD_CLOEXEC, libc::F_GETFD, libc::F_SETFD, libc::F_GETFL]
                .map(|call| call as u64);
            calls.push((
                libc::SYS_fcntl,
                descriptors.iter().flat_map(|&call| only(1, SeccompCmpOp::Eq, call)).collect(),
            ));
            // Reading limits, not setting them.
            calls.push((libc::SYS_prlimit64, only(2, SeccompCmpOp::Eq, 0)));
            #[cfg(target_arch = "x86_64")]
            for call in [
                libc::SYS_access,
                libc::SYS_readlink,
                libc::SYS_arch_prctl,
                libc::SYS_stat,
                libc::SYS_lstat,
                libc::SYS_poll,
            ] {
                calls.push((call, Vec::new()));
            }
            for call in [
                libc::SYS_execve,
                libc::SYS_newfstatat,
                libc::SYS_statx,
                libc::SYS_faccessat,
                libc::SYS_faccessat2,
                libc::SYS_readlinkat,
                libc::SYS_getdents64,
                libc::SYS_getcwd,
                libc::SYS_uname,
                libc::SYS_sysinfo,
                libc::SYS_set_tid_address,
                libc::SYS_set_robust_list,
                libc::SYS_rseq,
                libc::SYS_dup,
                libc::SYS_getuid,
                libc::SYS_geteuid,
                libc::SYS_getgid,
                libc::SYS_getegid,
                libc::SYS_sched_getaffinity,
                libc::SYS_ppoll,
                libc::SYS_pread64,
            ] {
                calls.push((call, Vec::new()));
            }
            Filter::compile(calls)
        }

        /// Compiles the filter: all other calls fail with `EPERM`, which Python turns into an exception.
        fn compile(calls: Vec<(i64, Vec<SeccompRule>)>) -> Result<Self, ConfineError> {
            let refused = SeccompAction::Errno(libc::EPERM as u32);
            let compile = || -> Result<BpfProgram, BackendError> {
                let architecture = std::env::consts::ARCH.try_into()?;
                SeccompFilter::new(calls.into_iter().collect(), refused, SeccompAction::Allow, architecture)?.try_into()
            };
            compile().map(Filter).map_err(ConfineError::Filter)
        }

        /// Applies the filter to the calling thread, irrevocably.
        ///
        /// # Errors
        /// The kernel's reason.
        pub fn apply(&self) -> Result<(), ConfineError> {
            seccompiler::apply_filter(&self.0).map_err(|error| match error {
                seccompiler::Error::Seccomp(error) | seccompiler::Error::Prctl(error) => ConfineError::System(error),
                other => ConfineError::Seccomp(other),
            })
        }
    }

    /// Calls that every program needs and that reach nothing outside the process.
    fn base_calls() -> Vec<(i64, Vec<SeccompRule>)> {
        [
            libc::SYS_read,
            libc::SYS_close,
            libc::SYS_fstat,
            libc::SYS_lseek,
            libc::SYS_mmap,
            libc::SYS_munmap,
            libc::SYS_mremap,
            libc::SYS_mprotect,
            libc::SYS_madvise,
            libc::SYS_brk,
            libc::SYS_futex,
            libc::SYS_rt_sigaction,
            libc::SYS_rt_sigprocmask,
            libc::SYS_rt_sigreturn,
            libc::SYS_sigaltstack,
            libc::SYS_clock_gettime,
            libc::SYS_clock_getres,
            libc::SYS_gettimeofday,
            libc::SYS_getrandom,
            libc::SYS_getpid,
            libc::SYS_gettid,
            libc::SYS_sched_yield,
            libc::SYS_restart_syscall,
            libc::SYS_exit,
            libc::SYS_exit_group,
        ]
        .map(|call| (call, Vec::new()))
        .into()
    }

    /// Rules for a first argument that is standard output or standard error, which are the sample's pipe.
    fn on_output() -> Vec<SeccompRule> {
        [libc::STDOUT_FILENO, libc::STDERR_FILENO]
            .iter()
            .flat_map(|&descriptor| {
                // An `int`: the upper half of its register is undefined.
                rule(SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, descriptor as u64))
            })
            .collect()
    }

    /// Rule on one argument, compared as 64 bits.
    fn only(argument: u8, comparison: SeccompCmpOp, value: u64) -> Vec<SeccompRule> {
        rule(SeccompCondition::new(argument, SeccompCmpArgLen::Qword, comparison, value))
    }

    fn rule(condition: Result<SeccompCondition, BackendError>) -> Vec<SeccompRule> {
        condition.and_then(|condition| SeccompRule::new(vec![condition])).into_iter().collect()
    }

    /// Has the kernel kill the calling process when the thread that forked it ends; false if `parent` has already ended.
    pub fn die_with_parent(parent: i32) -> bool {
        // SAFETY: both calls take and return numbers.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0 && libc::getppid() == parent }
    }

    /// Closes all descriptors from `first` on.
    pub fn close_from(first: i32) {
        // SAFETY: closes descriptors that nothing in this process uses any more.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, 0) } == 0;
        if !closed {
            super::close_each_from(first);
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::io;
    use std::path::PathBuf;

    /// Reason for everything that is missing here.
    #[derive(Debug, thiserror::Error)]
    #[error("only Linux has it")]
    pub struct ConfineError;

    /// Always an error.
    pub fn restrict_files(_: &[PathBuf]) -> Result<u32, ConfineError> {
        Err(ConfineError)
    }

    /// Always an error.
    pub fn forbid_new_privileges() -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, ConfineError))
    }

    /// No value: seccomp is Linux only.
    pub enum Filter {}

    impl Filter {
        /// Always an error.
        pub fn computing() -> Result<Self, ConfineError> {
            Err(ConfineError)
        }

        /// Always an error.
        pub fn starting() -> Result<Self, ConfineError> {
            Err(ConfineError)
        }

        /// Unreachable: the type has no value.
        pub fn apply(&self) -> Result<(), ConfineError> {
            match *self {}
        }
    }

    /// Checks once that the parent is still `parent`; the kernel offers nothing better here.
    pub fn die_with_parent(parent: i32) -> bool {
        // SAFETY: returns a number.
        unsafe { libc::getppid() == parent }
    }

    /// Closes all descriptors from `first` on.
    pub fn close_from(first: i32) {
        super::close_each_from(first);
    }
}

/// Closes descriptors one by one, for kernels without `close_range`.
fn close_each_from(first: i32) {
    // SAFETY: asks for a number; closes descriptors that nothing in this process uses any more.
    unsafe {
        let end = libc::sysconf(libc::_SC_OPEN_MAX).clamp(64, 65_536) as i32;
        for descriptor in first..end {
            libc::close(descriptor);
        }
    }
}
