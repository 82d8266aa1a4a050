//! Asks the system for AMX: the CPU's flags, the kernel's permission, and a product tried in a child process.

use std::arch::x86_64::{__cpuid_count, _xgetbv};
use std::io;

use super::super::lanes::Isa;
use super::matrix::TileMatrix;
use super::numbers::{BLOCK, COLUMNS, Line, TILE_ROWS};
use super::tiles::Trial;
use super::{Scratch, TileUnit, matmul, round_lines};
use crate::cpu::kernels::target::Target;
use crate::cpu::team::Team;
use earnest_models::checkpoint::{Tensor, Values};

/// `arch_prctl` code that asks for a feature of the processor's state, and the number of the tiles' data.
const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
const TILE_DATA: libc::c_long = 18;

/// Reason why the machine has no AMX with bf16.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAmx {
    #[error("EARNEST_AMX is off")]
    Off,
    #[error("this CPU has none")]
    Cpu,
    #[error("its tiles have another size here")]
    TileSize,
    #[error("the system does not enable it")]
    NotEnabled,
    #[error("the kernel refuses it: {0}")]
    Refused(io::Error),
    #[error(transparent)]
    Trial(#[from] TrialError),
}

/// Asks for AMX with bf16.
///
/// # Errors
/// Reason why the machine has no such kernel.
pub(super) fn ask() -> Result<(), NoAmx> {
    if std::env::var_os("EARNEST_AMX").is_some_and(|value| value == "off") {
        return Err(NoAmx::Off);
    }
    flags()?;
    // SAFETY: a system call with numbers; it gives permission to this process and its children.
    if unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, TILE_DATA) } != 0 {
        return Err(NoAmx::Refused(io::Error::last_os_error()));
    }
    Ok(try_in_child(&trial()?)?)
}

/// Checks the CPU's flags, the size of its tiles, and that the kernel saves them.
fn flags() -> Result<(), NoAmx> {
    let leaf = |leaf, sub| __cpuid_count(leaf, sub);
    let (highest, seven) = (leaf(0, 0).eax, leaf(7, 0).edx);
    if highest < 0x1D || seven >> 22 & 1 == 0 || seven >> 24 & 1 == 0 {
        return Err(NoAmx::Cpu);
    }
    // Palette 1: eight tiles of sixteen rows of 64 bytes.
    let palette = leaf(0x1D, 1);
    if leaf(0x1D, 0).eax < 1
        || palette.eax != (1024 << 16 | 8192)
        || palette.ebx != (8 << 16 | 64)
        || palette.ecx & 0xFFFF != 16
    {
        return Err(NoAmx::TileSize);
    }
    // The states of configuration and data of tiles.
    const STATES: u64 = 1 << 17 | 1 << 18;
    let has_states = leaf(1, 0).ecx >> 27 & 1 == 1;
    // SAFETY: the flag says that the kernel enabled the instruction.
    if !has_states || unsafe { enabled_states() } & STATES != STATES {
        return Err(NoAmx::NotEnabled);
    }
    Ok(())
}

/// The states that the kernel saves.
#[target_feature(enable = "xsave")]
unsafe fn enabled_states() -> u64 {
    // SAFETY: the caller has the instruction.
    unsafe { _xgetbv(0) }
}

/// Operands of widely different sizes whose sums also cancel and become subnormal, and the bits that vectors compute.
pub(super) fn trial() -> Result<Trial, TrialError> {
    let (m, n, k) = (2 * TILE_ROWS, COLUMNS, 2 * BLOCK);
    let (x, w) = operands(m, n, k);
    let matrix = TileMatrix::stack(&[Tensor { shape: vec![n, k], values: Values::F32(w) }], k, TileUnit::VECTORS);
    let team = Team::start(1, Isa::Portable).map_err(TrialError::Start)?;
    let mut expected = [0f32; 2 * TILE_ROWS * COLUMNS];
    let mut scratch = Scratch::default();
    matmul(&team, &mut scratch, &x, &matrix, (n, k), None, Target::Overwrite, &mut expected);
    round_lines(&team, &x, k, &mut scratch);
    let mut rows = [Line([0; BLOCK]); 2 * 2 * TILE_ROWS];
    rows.copy_from_slice(&scratch.lines);
    let mut panel = rows;
    // SAFETY: a panel of two blocks has as many lines as two tiles of rows in two blocks.
    panel.copy_from_slice(unsafe { std::slice::from_raw_parts(matrix.panel(0).cast::<Line>(), 2 * 2 * TILE_ROWS) });
    Ok(Trial { rows, panel, expected })
}

/// Rows and weights: ordinary ones, then rows so small that products with some columns are at the border of subnormal numbers.
fn operands(m: usize, n: usize, k: usize) -> (Vec<f32>, Vec<f32>) {
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    let mut rows = |count: usize, scale: fn(usize) -> i32| -> Vec<f32> {
        (0..count * k).map(|i| noise() * 2f32.powi(scale(i / k))).collect()
    };
    (rows(m, |r| -4 * (r as i32)), rows(n, |c| if c % 2 == 0 { 0 } else { -(c as i32) }))
}

/// Reason why a trial in a child process did not pass.
#[derive(Debug, thiserror::Error)]
pub(super) enum TrialError {
    #[error("the trial could not start: {0}")]
    Start(io::Error),
    #[error("the end of the trial was not seen: {0}")]
    Wait(io::Error),
    #[error("the trial ended with an illegal instruction")]
    Illegal,
    #[error("the trial ended with signal {0}")]
    Signal(libc::c_int),
    #[error("the trial ended with code {0}")]
    Code(libc::c_int),
    #[error("the trial gave other values")]
    Values,
}

/// Runs the trial in a child process, which an illegal instruction may end.
pub(super) fn try_in_child(trial: &Trial) -> Result<(), TrialError> {
    // SAFETY: the flags ask for a copy of this process with one thread and no signal at its end. The child calls nothing that
    // could wait for another thread: it sets signals by system calls, computes, and ends.
    let child = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) };
    match child {
        0 => {
            // SAFETY: system calls with numbers and a struct of the kernel's layout; after them only instructions.
            unsafe {
                // Handlers are the process's own, and no core file is written.
                let default = [0u64; 4];
                for signal in [libc::SIGILL, libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE] {
                    libc::syscall(libc::SYS_rt_sigaction, signal, default.as_ptr(), 0, size_of::<u64>());
                }
                libc::syscall(libc::SYS_prctl, libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
                let code = if trial.passes() { PASSED } else { FAILED };
                libc::syscall(libc::SYS_exit_group, code);
                unreachable_child()
            }
        }
        -1 => Err(TrialError::Start(io::Error::last_os_error())),
        child => judge(wait(child as libc::pid_t)?),
    }
}

/// Exit codes of the child.
const PASSED: libc::c_int = 17;
const FAILED: libc::c_int = 18;

/// Waits for the end that the system call has already made certain.
fn unreachable_child() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

/// The status of a child after its end.
fn wait(child: libc::pid_t) -> Result<libc::c_int, TrialError> {
    let mut status = 0;
    loop {
        // SAFETY: a system call that writes a number.
        if unsafe { libc::waitpid(child, &raw mut status, libc::__WALL) } == child {
            return Ok(status);
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(TrialError::Wait(error));
        }
    }
}

fn judge(status: libc::c_int) -> Result<(), TrialError> {
    if libc::WIFSIGNALED(status) {
        return Err(match libc::WTERMSIG(status) {
            libc::SIGILL => TrialError::Illegal,
            signal => TrialError::Signal(signal),
        });
    }
    match libc::WEXITSTATUS(status) {
        PASSED => Ok(()),
        FAILED => Err(TrialError::Values),
        code => Err(TrialError::Code(code)),
    }
}
