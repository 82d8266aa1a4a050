//! A thousand ordinary solutions in less than 5 s on two cores. Alone in its file: it measures the time of all processes that
//! it started.
//!
//! A machine that does other work beside the test takes longer, and says so: two threads that compute and nothing else are
//! timed before and after, and the limit grows by the factor in which they got less than a core each. That does not excuse
//! anything of the sandbox's own: the processor time of all its processes has its limit too, which no load moves.
#![cfg(unix)]

use std::time::{Duration, Instant};

use earnest_sandbox::{Outcome, Pool, Settings};

/// The promise.
const LIMIT: Duration = Duration::from_secs(5);
const CORES: usize = 2;

/// Processor time of this process and of all children that were waited for.
fn processor_time() -> Duration {
    let used = |who| {
        // SAFETY: gets a valid place for the numbers.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            assert_eq!(libc::getrusage(who, &mut usage), 0);
            usage
        };
        let time = |part: libc::timeval| Duration::new(part.tv_sec as u64, part.tv_usec as u32 * 1_000);
        time(usage.ru_utime) + time(usage.ru_stime)
    };
    used(libc::RUSAGE_SELF) + used(libc::RUSAGE_CHILDREN)
}

/// By how much `CORES` threads that only compute are slower than alone on as many cores: 1 on a machine that is free.
fn slowdown() -> f64 {
    let (clock, before) = (Instant::now(), processor_time());
    std::thread::scope(|scope| {
        for _ in 0..CORES {
            scope.spawn(|| {
                let mut state = 1_u64;
                while clock.elapsed() < Duration::from_millis(500) {
                    for _ in 0..100_000 {
                        state = std::hint::black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
                    }
                }
            });
        }
    });
    let used = (processor_time() - before).as_secs_f64();
    (clock.elapsed().as_secs_f64() * CORES as f64 / used).max(1.0)
}

#[test]
fn a_thousand_ordinary_solutions_take_less_than_five_seconds() {
    let before = slowdown();
    let used = processor_time();
    let pool = Pool::new(Settings { workers: CORES, ..Settings::new(env!("CARGO_BIN_EXE_earnest")) }).unwrap();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..CORES {
            let pool = &pool;
            scope.spawn(move || {
                for number in 0..1_000 / CORES {
                    let source = format!(
                        "def solution():\n    trees_initial = {number}\n    trees_after = {number} * 3 + {thread}\n    \
                         trees_added = trees_after - trees_initial\n    result = trees_added / 2\n    return result"
                    );
                    let Outcome::Number(found) = pool.run(&source, "solution") else { panic!("{source}") };
                    assert_eq!(found.to_f64(), (2 * number + thread) as f64 / 2.0);
                }
            });
        }
    });
    let took = start.elapsed();
    // Waits for the workers, so that their time is known.
    drop(pool);
    let used = processor_time() - used;
    let factor = before.max(slowdown());
    println!(
        "1,000 solutions: {took:?}, {used:?} of processor time, on a machine that is {factor:.2} times slower than free"
    );
    assert!(used < LIMIT * CORES as u32, "{used:?} of processor time");
    assert!(took < LIMIT.mul_f64(factor), "{took:?} on a machine that is {factor:.2} times slower than free");
}
