//! Thread pool whose threads spin through a step instead of sleeping between jobs.
//!
//! A step hands a few hundred jobs of some tens of microseconds to its threads. A pool that sleeps between jobs spends as long on waking
//! as some of them take, so for the length of a step the helpers wait in a loop, and give the core away while they do.
use std::any::Any;
use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Rounds of waiting before the core is offered to others.
const SPINS: u32 = 256;

/// Rounds after which a helper that has no leader sleeps; the leader wakes all, so one that was awake then waits so long twice.
const ROUNDS_TO_SLEEP: u32 = 2 * SPINS;

/// Function that runs one piece of a job, given its index.
type Job = *const (dyn Fn(usize) + Sync);

/// Helper threads, led by one calling thread at a time.
pub(super) struct SpinPool {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

/// A value on a cache line of its own, so that writing one does not slow readers of the next.
#[repr(align(128))]
struct CacheLine<T>(T);

/// The pieces of a part of a job that nobody has claimed: those from the first to before the second. A claim is one exchange. It needs no
/// number of the job: if the exchange succeeds, the piece is one of the present job's, whenever its state was read.
fn state(begin: u32, end: u32) -> u64 {
    u64::from(begin) << 32 | u64::from(end)
}

/// The current job; only the leader writes it, while no piece is claimed.
struct JobSlot {
    /// The current job; read only by threads that have claimed one of its pieces.
    job: UnsafeCell<Job>,
    /// A job is running.
    working: AtomicBool,
}

struct Shared {
    /// As many parts as threads, of neighbouring pieces: neighbours read and write neighbouring memory, which stays in the cache of one
    /// core. Each thread takes its own part from the front and then the others' from the back.
    parts: Box<[CacheLine<AtomicU64>]>,
    /// Changes when a job is posted, so that helpers wait for one word and not for all parts.
    posted: CacheLine<AtomicU32>,
    /// Pieces of the job that have ended.
    ended: CacheLine<AtomicUsize>,
    slot: CacheLine<JobSlot>,
    /// The thread that leads, by [`me`]; 0 if none.
    leader: AtomicUsize,
    /// The pool is being dropped.
    closing: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `job` is written by the leader only while no piece is claimed, and read by those who have claimed one: see `Shared::help`
// and `SpinPool::post`. What it points to is `Sync`. All else is made for sharing.
unsafe impl Sync for Shared {}
// SAFETY: as above; the pointer is not used after its job has ended.
unsafe impl Send for Shared {}

/// A number that no other running thread has.
fn me() -> usize {
    thread_local!(static ADDRESS: u8 = const { 0 });
    ADDRESS.with(|byte| std::ptr::from_ref(byte) as usize)
}

/// Ends leading also where the job panics.
struct Leading<'a>(&'a Shared);

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        self.0.leader.store(0, Ordering::Release);
    }
}

impl SpinPool {
    /// Starts so many threads beside the one that will lead.
    ///
    /// # Errors
    /// The system's error when it refuses a thread.
    pub(super) fn start(helpers: usize) -> std::io::Result<SpinPool> {
        fn nothing(_: usize) {}
        let shared = Arc::new(Shared {
            parts: (0..=helpers).map(|_| CacheLine(AtomicU64::new(0))).collect(),
            posted: CacheLine(AtomicU32::new(0)),
            ended: CacheLine(AtomicUsize::new(0)),
            slot: CacheLine(JobSlot { job: UnsafeCell::new(&nothing), working: AtomicBool::new(false) }),
            leader: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
            panic: Mutex::new(None),
        });
        let mut pool = SpinPool { shared, helpers: Vec::with_capacity(helpers) };
        for number in 1..=helpers {
            let shared = Arc::clone(&pool.shared);
            let helper =
                thread::Builder::new().name(format!("earnest-{number}")).spawn(move || shared.serve(number))?;
            pool.helpers.push(helper);
        }
        Ok(pool)
    }

    /// Runs `job` with the helpers awake; alone, if another thread leads them now.
    pub(super) fn enter<T>(&self, job: impl FnOnce() -> T) -> T {
        let leader = &self.shared.leader;
        if leader.compare_exchange(0, me(), Ordering::AcqRel, Ordering::Acquire).is_err() {
            return job();
        }
        let _leading = Leading(&self.shared);
        self.helpers.iter().for_each(|helper| helper.thread().unpark());
        job()
    }

    /// Runs `piece(0)` to `piece(count - 1)`, each on one of the threads, and returns after the last has ended. Alone, one after the
    /// other, where another thread leads or this is called in a piece. A panic of a piece is passed on when all have ended.
    pub(super) fn run(&self, count: usize, piece: &(dyn Fn(usize) + Sync)) {
        match self.shared.leader.load(Ordering::Acquire) {
            // Relaxed: only the leader, which is this thread, writes it.
            leader if leader == me() && !self.shared.slot.0.working.load(Ordering::Relaxed) => self.post(count, piece),
            0 => self.enter(|| {
                if self.shared.leader.load(Ordering::Acquire) == me() {
                    self.post(count, piece);
                } else {
                    (0..count).for_each(piece);
                }
            }),
            _ => (0..count).for_each(piece),
        }
    }

    /// [`run`](Self::run) on the leader, while there is no job.
    fn post(&self, count: usize, piece: &(dyn Fn(usize) + Sync)) {
        let shared = &*self.shared;
        let parts = shared.parts.len();
        assert!(count <= u32::MAX as usize, "{count} pieces of one job");
        shared.slot.0.working.store(true, Ordering::Relaxed);
        // SAFETY: the lifetime is cut off; nobody calls the piece after this function, which waits for all claimed ones, has ended.
        let piece = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Job>(piece) };
        // SAFETY: all pieces of the last job were claimed and have ended, so nobody reads it.
        unsafe { *shared.slot.0.job.get() = piece };
        shared.ended.0.store(0, Ordering::Relaxed);
        // Rounded up, so that of few pieces the first is the leader's, who is awake.
        let bound = |number: usize| (number as u128 * count as u128).div_ceil(parts as u128) as u32;
        for (number, part) in shared.parts.iter().enumerate() {
            part.0.store(state(bound(number), bound(number + 1)), Ordering::Release);
        }
        // A helper that misses this is not waited for: the leader claims what nobody has.
        shared.posted.0.fetch_add(1, Ordering::Release);
        shared.help(0);
        let mut rounds = 0;
        while shared.ended.0.load(Ordering::Acquire) < count {
            wait(&mut rounds);
        }
        shared.slot.0.working.store(false, Ordering::Relaxed);
        let panic = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl Drop for SpinPool {
    fn drop(&mut self) {
        self.shared.closing.store(true, Ordering::Release);
        for helper in self.helpers.drain(..) {
            helper.thread().unpark();
            // A helper does not panic: pieces that do are caught.
            let _ = helper.join();
        }
    }
}

impl Shared {
    /// Loop of a helper thread, until the pool is dropped.
    fn serve(&self, number: usize) {
        let (mut rounds, mut known) = (0, 0);
        while !self.closing.load(Ordering::Acquire) {
            let posted = self.posted.0.load(Ordering::Acquire);
            if posted != known {
                (rounds, known) = (0, posted);
                self.help(number);
            } else if rounds > ROUNDS_TO_SLEEP && self.leader.load(Ordering::Acquire) == 0 {
                // Whoever leads next wakes the thread; if that happened just now, this returns at once.
                thread::park();
                rounds = 0;
            } else {
                wait(&mut rounds);
            }
        }
    }

    /// Claims and runs pieces until none is left.
    fn help(&self, number: usize) {
        let parts = self.parts.len();
        for (turn, part) in self.parts.iter().cycle().skip(number).take(parts).enumerate() {
            while let Some(index) = claim(&part.0, turn == 0) {
                // SAFETY: a piece of this job is claimed and has not ended, so the leader waits: the job stays as it is and what it points
                // to is alive. It was written before the state that the claim read.
                let piece = unsafe { &**self.slot.0.job.get() };
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| piece(index))) {
                    let mut first = self.panic.lock().unwrap_or_else(PoisonError::into_inner);
                    match &*first {
                        None => *first = Some(panic),
                        // Dropping it might panic, and nothing may unwind from here.
                        Some(_) => std::mem::forget(panic),
                    }
                }
                self.ended.0.fetch_add(1, Ordering::Release);
            }
        }
    }
}

/// A piece of a part that is this thread's alone from now on.
fn claim(part: &AtomicU64, own: bool) -> Option<usize> {
    let mut known = part.load(Ordering::Acquire);
    loop {
        let (begin, end) = ((known >> 32) as u32, known as u32);
        if begin == end {
            return None;
        }
        let (left, index) = if own { (state(begin + 1, end), begin) } else { (state(begin, end - 1), end - 1) };
        match part.compare_exchange_weak(known, left, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some(index as usize),
            Err(now) => known = now,
        }
    }
}

/// One round of waiting for something that comes soon.
fn wait(rounds: &mut u32) {
    *rounds = rounds.saturating_add(1);
    if *rounds < SPINS { spin_loop() } else { thread::yield_now() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(pool: &SpinPool, count: usize) -> usize {
        let total = AtomicUsize::new(0);
        pool.run(count, &|index| {
            total.fetch_add(index + 1, Ordering::Relaxed);
        });
        total.into_inner()
    }

    #[test]
    fn every_piece_runs_once() {
        for helpers in [0, 1, 3] {
            let pool = SpinPool::start(helpers).unwrap();
            for count in [0, 1, 2, 7, 1000] {
                let seen: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                pool.run(count, &|index| {
                    seen[index].fetch_add(1, Ordering::Relaxed);
                });
                assert!(
                    seen.iter().all(|times| times.load(Ordering::Relaxed) == 1),
                    "{helpers} helpers, {count} pieces"
                );
            }
        }
    }

    #[test]
    fn many_small_jobs_follow_each_other_also_after_pauses() {
        let pool = SpinPool::start(3).unwrap();
        assert_eq!(sum(&pool, 150_000), 150_000 * 150_001 / 2);
        pool.enter(|| {
            for count in 0..20_000 {
                let count = count % 9;
                assert_eq!(sum(&pool, count), count * (count + 1) / 2);
            }
        });
        for _ in 0..20 {
            // Long enough for the helpers to sleep.
            thread::sleep(std::time::Duration::from_millis(2));
            assert_eq!(sum(&pool, 100), 5050);
        }
    }

    #[test]
    fn pieces_may_have_pieces_and_two_threads_may_lead() {
        let pool = SpinPool::start(2).unwrap();
        let total = AtomicUsize::new(0);
        pool.run(5, &|_| {
            total.fetch_add(sum(&pool, 10), Ordering::Relaxed);
        });
        assert_eq!(total.into_inner(), 5 * 55);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        pool.enter(|| assert_eq!(sum(&pool, 10) + sum(&pool, 3), 61));
                        assert_eq!(sum(&pool, 4), 10);
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_is_passed_on_and_the_pool_goes_on() {
        let pool = SpinPool::start(2).unwrap();
        for bad in [0, 3, 9] {
            let ended = AtomicUsize::new(0);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                pool.run(10, &|index| {
                    assert!(index != bad, "piece {bad}");
                    ended.fetch_add(1, Ordering::Relaxed);
                });
            }));
            let text = outcome.unwrap_err().downcast::<String>().unwrap();
            assert_eq!((text.as_str(), ended.into_inner()), (format!("piece {bad}").as_str(), 9));
            assert_eq!(sum(&pool, 10), 55);
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| pool.enter(|| panic!("a leader"))));
        assert!(outcome.is_err());
        assert_eq!(sum(&pool, 10), 55);
    }
}
