//! What the kernel takes away from a process, where it can: the file system and the network (landlock) and every system
//! call that computing does not need (seccomp).
use serde::{Deserialize, Serialize};

/// What is in force besides the limits, which every Unix system has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confinement {
    /// The landlock ABI in force: 1 and up for files, 4 and up for TCP, 6 and up for signals.
    pub landlock: Option<u32>,
    /// System calls are filtered.
    pub seccomp: bool,
}

pub use system::{Filter, close_from, die_with_parent, restrict_files};

#[cfg(target_os = "linux")]
mod system {
    use std::path::PathBuf;

    use landlock::{
        ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, LandlockStatus, Ruleset, RulesetAttr,
        RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, path_beneath_rules,
    };
    use seccompiler::{
        BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    };

    /// The newest ABI that was tried; older kernels give what they have.
    const NEWEST: ABI = ABI::V6;

    /// Takes all files but these, and the network, from the calling thread and what it forks; the ABI in force.
    pub fn restrict_files(readable: &[PathBuf]) -> Option<u32> {
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
        let status = restrict().ok()?;
        match (status.ruleset, status.landlock) {
            (RulesetStatus::NotEnforced, _) => None,
            (_, LandlockStatus::Available { effective_abi, .. }) => Some(effective_abi as u32),
            _ => None,
        }
    }

    /// A compiled filter of system calls.
    pub struct Filter(BpfProgram);

    impl Filter {
        /// For an interpreter that has all it needs: memory, time, random numbers, and writing to the one pipe it has.
        pub fn computing() -> Option<Self> {
            let mut calls = always();
            calls.push((libc::SYS_write, on_output()));
            Filter::compile(calls)
        }

        /// For an interpreter that is yet to be started: it also opens files for reading, and replaces the program.
        pub fn starting() -> Option<Self> {
            let mut calls = always();
            calls.push((libc::SYS_write, on_output()));
            let writing = (libc::O_ACCMODE | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND) as u64;
            calls.push((libc::SYS_openat, only(2, SeccompCmpOp::MaskedEq(writing), 0)));
            // TCGETS, FIONCLEX, FIOCLEX: the same on all three architectures, of another type with each C library.
            let terminal = [0x5401, 0x5450, 0x5451];
            calls.push((libc::SYS_ioctl, terminal.iter().flat_map(|&call| only(1, SeccompCmpOp::Eq, call)).collect()));
            // Limits can be asked for, not set.
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
                libc::SYS_fcntl,
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

        /// Calls that are not named fail with `EPERM`, which Python turns into an exception.
        fn compile(calls: Vec<(i64, Vec<SeccompRule>)>) -> Option<Self> {
            let refused = SeccompAction::Errno(libc::EPERM as u32);
            let architecture = std::env::consts::ARCH.try_into().ok()?;
            let filter =
                SeccompFilter::new(calls.into_iter().collect(), refused, SeccompAction::Allow, architecture).ok()?;
            filter.try_into().ok().map(Filter)
        }

        /// Filters the calling thread's system calls, for good.
        pub fn apply(&self) -> bool {
            seccompiler::apply_filter(&self.0).is_ok()
        }
    }

    /// Calls without which nothing computes, and which reach nothing outside the process.
    fn always() -> Vec<(i64, Vec<SeccompRule>)> {
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

    /// Standard output and standard error, which are the sample's pipe.
    fn on_output() -> Vec<SeccompRule> {
        [libc::STDOUT_FILENO, libc::STDERR_FILENO]
            .iter()
            .flat_map(|&descriptor| {
                // An `int`: what stands in the upper half of its register means nothing.
                rule(SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, descriptor as u64))
            })
            .collect()
    }

    /// The rule that an argument compares so. Pointers and counts are compared whole, which is right for all that we ask.
    fn only(argument: u8, comparison: SeccompCmpOp, value: u64) -> Vec<SeccompRule> {
        rule(SeccompCondition::new(argument, SeccompCmpArgLen::Qword, comparison, value))
    }

    fn rule(condition: Result<SeccompCondition, seccompiler::BackendError>) -> Vec<SeccompRule> {
        condition.and_then(|condition| SeccompRule::new(vec![condition])).into_iter().collect()
    }

    /// The calling process is killed when the thread that forked it ends. False if `parent` is gone already.
    pub fn die_with_parent(parent: i32) -> bool {
        // SAFETY: both calls take and return numbers.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0 && libc::getppid() == parent }
    }

    /// Closes all descriptors from this one on.
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
    use std::path::PathBuf;

    /// There is nothing like landlock here.
    pub fn restrict_files(_: &[PathBuf]) -> Option<u32> {
        None
    }

    /// There is nothing like seccomp here.
    pub enum Filter {}

    impl Filter {
        /// None.
        pub fn computing() -> Option<Self> {
            None
        }

        /// None.
        pub fn starting() -> Option<Self> {
            None
        }

        /// Never called.
        pub fn apply(&self) -> bool {
            match *self {}
        }
    }

    /// A process can only look whether its parent is still there.
    pub fn die_with_parent(parent: i32) -> bool {
        // SAFETY: returns a number.
        unsafe { libc::getppid() == parent }
    }

    /// Closes all descriptors from this one on.
    pub fn close_from(first: i32) {
        super::close_each_from(first);
    }
}

/// For kernels without `close_range`.
fn close_each_from(first: i32) {
    // SAFETY: asks for a number; closes descriptors that nothing in this process uses any more.
    unsafe {
        let end = libc::sysconf(libc::_SC_OPEN_MAX).clamp(64, 65_536) as i32;
        for descriptor in first..end {
            libc::close(descriptor);
        }
    }
}
