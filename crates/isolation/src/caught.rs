//! Panics of other libraries as errors.
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Stack of [`on_thread`], in bytes: enough for the recursion over everything that the limits on a template's length let through.
/// Only touched pages take memory.
const STACK: usize = 256 << 20;

thread_local! {
    /// True while a panic of this thread is somebody else's and will be caught.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// Calls `work`; a panic becomes its message and prints nothing.
///
/// # Errors
/// The first line of the panic's message.
pub fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let others = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                others(info);
            }
        }));
    });
    let outer = QUIET.replace(true);
    // Nothing that `work` changed is used after a panic: its callers return the error.
    let result = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(outer);
    result.map_err(|panic| message(&*panic))
}

/// Calls `work` on a thread with a large stack; a panic becomes its message.
///
/// # Errors
/// The message of a panic, or why there is no thread.
pub fn on_thread<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || caught(work));
        let thread = thread.map_err(|error| format!("no thread could be started: {error}"))?;
        thread.join().unwrap_or_else(|panic| Err(message(&*panic)))
    })
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".to_owned());
    // Messages of assertions have several lines.
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_its_message() {
        assert_eq!(caught(|| 7), Ok(7));
        let list: Vec<u32> = Vec::new();
        let error = caught(|| list[std::hint::black_box(3)]).unwrap_err();
        assert!(error.contains("index is 3"), "{error}");
        assert_eq!(on_thread(|| panic!("two\n  lines")), Err::<(), _>("two lines".to_owned()));
    }

    #[test]
    fn the_stack_is_large() {
        fn depth(left: usize) -> usize {
            let frame = std::hint::black_box([left; 64]);
            if left == 0 { 0 } else { frame[0] - left + 1 + depth(left - 1) }
        }
        assert_eq!(on_thread(|| depth(100_000)), Ok(100_000));
    }
}
