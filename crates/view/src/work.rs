//! Threads that make pages: so many at once, none of them for a client that has left.
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use earnest_results::store::{Interrupter, Store};
use tokio::sync::Semaphore;

use crate::failed::Failed;

/// Pages of each kind that are made at once.
const AT_ONCE: usize = 2;

/// All threads.
pub(crate) const THREADS: usize = 2 * AT_ONCE;

/// Longest wait for a thread, after which a page says that all are busy.
const QUICK_WAIT: Duration = Duration::from_secs(2);
const SLOW_WAIT: Duration = Duration::from_secs(20);

/// Time between two interruptions of work that nobody waits for.
const AGAIN: Duration = Duration::from_millis(20);

/// Kinds of pages: those that read whole runs have threads of their own, so that the others come at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Reads summaries and a page of samples.
    Quick,
    /// Reads whole runs, searches texts, or makes prompts again.
    Slow,
}

#[derive(Debug)]
pub(crate) struct Threads {
    quick: Arc<Semaphore>,
    slow: Arc<Semaphore>,
}

impl Default for Threads {
    fn default() -> Threads {
        Threads { quick: Arc::new(Semaphore::new(AT_ONCE)), slow: Arc::new(Semaphore::new(AT_ONCE)) }
    }
}

impl Threads {
    /// Does work on a thread; it ends early if the client leaves meanwhile. None if the work panicked; the thread has printed it.
    ///
    /// # Errors
    /// [`Failed`] with status 503 if all threads are busy for longer than a reader waits.
    pub async fn run<T: Send + 'static>(
        &self,
        kind: Kind,
        work: impl FnOnce(&Asked) -> T + Send + 'static,
    ) -> Result<Option<T>, Failed> {
        let (threads, wait) = match kind {
            Kind::Quick => (&self.quick, QUICK_WAIT),
            Kind::Slow => (&self.slow, SLOW_WAIT),
        };
        let thread = tokio::time::timeout(wait, Arc::clone(threads).acquire_owned()).await;
        let Ok(Ok(thread)) = thread else { return Err(Failed::busy()) };
        let asked = Arc::new(Asked::default());
        let waiting = Waiting(Arc::clone(&asked));
        let done = tokio::task::spawn_blocking(move || {
            // Given back when the work has ended, which is later than when its client left.
            let _thread = thread;
            let _ended = Ended(Arc::clone(&asked));
            work(&asked)
        });
        let done = done.await.ok();
        drop(waiting);
        Ok(done)
    }
}

/// What was asked for, as long as somebody waits for it.
#[derive(Default)]
pub(crate) struct Asked {
    /// True once the client has left.
    left: AtomicBool,
    /// True once the work has ended.
    ended: AtomicBool,
    interrupter: OnceLock<Interrupter>,
}

impl Asked {
    /// Lets the reading from a store end when the client leaves.
    pub fn reads(&self, store: &Store) {
        let _ = self.interrupter.set(store.interrupter());
    }

    /// Fails if nobody waits for the page any more.
    pub fn check(&self) -> Result<(), Failed> {
        if self.left.load(Ordering::Relaxed) { Err(Failed::busy()) } else { Ok(()) }
    }
}

/// The client's wait; dropped early, the client has left.
struct Waiting(Arc<Asked>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.left.store(true, Ordering::Relaxed);
        if self.0.ended.load(Ordering::Relaxed) {
            return;
        }
        let asked = Arc::clone(&self.0);
        // What is read next is interrupted too.
        let interrupt = async move {
            while !asked.ended.load(Ordering::Relaxed) {
                if let Some(interrupter) = asked.interrupter.get() {
                    interrupter.interrupt();
                }
                tokio::time::sleep(AGAIN).await;
            }
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(interrupt);
        }
    }
}

/// The work; dropped when it has ended, also by a panic.
struct Ended(Arc<Asked>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Relaxed);
    }
}
