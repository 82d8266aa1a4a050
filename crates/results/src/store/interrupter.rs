//! Ending of a store's reading from another thread.
use std::fmt;

use rusqlite::InterruptHandle;

use super::Store;

/// Ends what a store is reading; it can be read from again.
pub struct Interrupter(InterruptHandle);

impl Interrupter {
    /// Ends the reading of this moment with an error; nothing is read if the store is idle or gone.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }
}

impl fmt::Debug for Interrupter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interrupter")
    }
}

impl Store {
    /// Returns what ends the reading from another thread.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(self.connection().get_interrupt_handle())
    }
}
