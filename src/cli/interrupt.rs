//! Ctrl-C and the termination signal.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use super::Exit;
use super::error::CliError;

/// The stop flag of the process: one for all runs, since a signal is meant for the runs after this one too.
pub fn stop_flag() -> Arc<AtomicBool> {
    static STOP: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    Arc::clone(STOP.get_or_init(Arc::default))
}

/// Makes the first signal set the stop flag and the second end the process at once; returns the flag.
pub fn stop_on_signal() -> Result<Arc<AtomicBool>, CliError> {
    static LISTENS: OnceLock<()> = OnceLock::new();
    let stop = stop_flag();
    if LISTENS.get().is_none() {
        let flag = Arc::clone(&stop);
        ctrlc::set_handler(move || {
            if flag.swap(true, Ordering::Relaxed) {
                std::process::exit(Exit::Interrupted.code().into());
            }
        })
        .map_err(|error| CliError::new(Exit::Engine, format!("cannot listen for Ctrl-C: {error}")))?;
        let _ = LISTENS.set(());
    }
    Ok(stop)
}
