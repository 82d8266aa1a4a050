//! Ctrl-C, the termination signal, and the signal of the limit on file sizes.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::Exit;
use super::error::CliError;

/// The process's stop flag, shared by all runs: a signal also stops later ones.
pub fn stop_flag() -> Arc<AtomicBool> {
    static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    Arc::clone(STOP.get_or_init(Arc::default))
}

/// Makes a write beyond the limit on file sizes (`ulimit -f`) an error, which is handled as a full disk is, instead of the end of the
/// process.
pub fn fail_writes_beyond_limit() {
    #[cfg(unix)]
    // SAFETY: no handler is installed; the signal is ignored.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

/// Asks another process of this program to stop as Ctrl-C does: it stores what it has. Where there are no signals it ends at once, and the
/// samples since its last write are generated again.
pub fn ask_to_stop(child: &mut std::process::Child) {
    #[cfg(unix)]
    // SAFETY: a signal to a child that was not waited for, so the number is still its own.
    unsafe {
        libc::kill(child.id() as libc::pid_t, libc::SIGTERM);
    }
    #[cfg(not(unix))]
    let _ = child.kill();
}

/// Installs a handler whose first signal sets the stop flag and whose second ends the process; returns the flag.
pub fn stop_on_signal() -> Result<Arc<AtomicBool>, CliError> {
    static INSTALLED: OnceLock<()> = OnceLock::new();
    let stop = stop_flag();
    if INSTALLED.get().is_none() {
        let flag = Arc::clone(&stop);
        ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(Exit::Interrupted.code().into());
            }
        })
        .map_err(|error| CliError::new(Exit::Engine, format!("cannot install the Ctrl-C handler: {error}")))?;
        let _ = INSTALLED.set(());
    }
    Ok(stop)
}
