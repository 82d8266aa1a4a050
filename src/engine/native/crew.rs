//! Threads that stay awake through a step.
//!
//! A step hands a few hundred jobs of some tens of microseconds to its threads. A pool that sleeps between jobs spends as long on waking
//! as some of them take, so for the length of a step the helpers wait in a loop, and give the core away while they do.
use std::any::Any;
use std::cell::UnsafeCell;
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

/// Rounds of waiting before the core is offered to others.
const SPINS: u32 = 256;

/// Rounds after which a helper that has no leader sleeps.
const ROUNDS_TO_SLEEP: u32 = 2 * SPINS;

/// Most pieces of a part: what 16 bits of its state hold.
const MOST_PIECES: usize = u16::MAX as usize;

/// What each piece of a job does, given its place.
type Job = *const (dyn Fn(usize) + Sync);

/// Helpers, and the thread that leads them for a while.
pub(super) struct Crew {
    shared: Arc<Shared>,
    helpers: Vec<JoinHandle<()>>,
}

/// A value on a cache line of its own, so that writing one does not slow readers of the next.
#[repr(align(128))]
struct Apart<T>(T);

/// The pieces of a job that nobody has claimed in one part of it, and the job's number. A claim is one exchange, which fails if another
/// thread was first or the job is another one by then.
#[derive(Clone, Copy)]
struct Part {
    /// Modulo 2^32: a thread would have to halt between two instructions for so many jobs, of some microseconds at least.
    job: u32,
    begin: u16,
    end: u16,
}

impl Part {
    fn of(state: u64) -> Part {
        Part { job: (state >> 32) as u32, begin: (state >> 16) as u16, end: state as u16 }
    }

    fn state(self) -> u64 {
        u64::from(self.job) << 32 | u64::from(self.begin) << 16 | u64::from(self.end)
    }
}

struct Shared {
    /// As many parts as threads, of neighbouring pieces: neighbours read and write neighbouring memory, which stays in the cache of one
    /// core. Each thread takes its own part from the front and then the others' from the back.
    parts: Box<[Apart<AtomicU64>]>,
    /// Pieces of the job that have ended.
    ended: Apart<AtomicUsize>,
    /// The job at hand; read only by threads that have claimed one of its pieces.
    job: UnsafeCell<Job>,
    /// The thread that leads, by [`me`]; 0 if none.
    leader: AtomicUsize,
    /// A job is at hand.
    working: AtomicBool,
    /// The crew is given up.
    closing: AtomicBool,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: `job` is written by the leader only while no piece is claimed, and read by those who have claimed one: see `Shared::help`
// and `Crew::post`. What it points to is `Sync`. All else is made for sharing.
unsafe impl Sync for Shared {}
// SAFETY: as above; the pointer is not used after its job has ended.
unsafe impl Send for Shared {}

/// A number that no other running thread has.
fn me() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| std::ptr::from_ref(place) as usize)
}

/// Ends leading also where the job panics.
struct Leading<'a>(&'a Shared);

impl Drop for Leading<'_> {
    fn drop(&mut self) {
        self.0.leader.store(0, Ordering::Release);
    }
}

impl Crew {
    /// Starts so many threads beside the one that will lead.
    ///
    /// # Errors
    /// What the system says when it refuses a thread.
    pub(super) fn start(helpers: usize) -> std::io::Result<Crew> {
        fn nothing(_: usize) {}
        let shared = Arc::new(Shared {
            parts: (0..=helpers).map(|_| Apart(AtomicU64::new(0))).collect(),
            ended: Apart(AtomicUsize::new(0)),
            job: UnsafeCell::new(&nothing),
            leader: AtomicUsize::new(0),
            working: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            panic: Mutex::new(None),
        });
        let mut crew = Crew { shared, helpers: Vec::with_capacity(helpers) };
        for number in 1..=helpers {
            let shared = Arc::clone(&crew.shared);
            let helper =
                thread::Builder::new().name(format!("earnest-{number}")).spawn(move || shared.serve(number))?;
            crew.helpers.push(helper);
        }
        Ok(crew)
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
            leader if leader == me() && !self.shared.working.load(Ordering::Relaxed) => self.post(count, piece),
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

    /// The same, of the leader while no job is at hand.
    fn post(&self, count: usize, piece: &(dyn Fn(usize) + Sync)) {
        let shared = &*self.shared;
        // More than can be counted is done in parts.
        let parts = shared.parts.len();
        let most = MOST_PIECES;
        if count > most {
            self.post(most, piece);
            return self.post(count - most, &|place| piece(most + place));
        }
        shared.working.store(true, Ordering::Relaxed);
        // SAFETY: the lifetime is cut off; nobody calls the piece after this function, which waits for all claimed ones, has ended.
        let piece = unsafe { std::mem::transmute::<*const (dyn Fn(usize) + Sync + '_), Job>(piece) };
        // SAFETY: all pieces of the last job were claimed and have ended, so nobody reads it.
        unsafe { *shared.job.get() = piece };
        shared.ended.0.store(0, Ordering::Relaxed);
        let job = Part::of(shared.parts[0].0.load(Ordering::Relaxed)).job.wrapping_add(1);
        for (number, part) in shared.parts.iter().enumerate() {
            let (begin, end) = ((number * count / parts) as u16, ((number + 1) * count / parts) as u16);
            part.0.store(Part { job, begin, end }.state(), Ordering::Release);
        }
        shared.help(0);
        let mut rounds = 0;
        while shared.ended.0.load(Ordering::Acquire) < count {
            wait(&mut rounds);
        }
        shared.working.store(false, Ordering::Relaxed);
        let panic = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl Drop for Crew {
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
    /// What a helper does until the crew is given up.
    fn serve(&self, number: usize) {
        let mut rounds = 0;
        while !self.closing.load(Ordering::Acquire) {
            if self.help(number) {
                rounds = 0;
            } else if rounds > ROUNDS_TO_SLEEP && self.leader.load(Ordering::Acquire) == 0 {
                // Whoever leads next wakes the thread; if that happened just now, this returns at once.
                thread::park();
                rounds = 0;
            } else {
                wait(&mut rounds);
            }
        }
    }

    /// Claims and runs pieces until none is left. False if there was none.
    fn help(&self, number: usize) -> bool {
        let mut helped = false;
        let parts = self.parts.len();
        for (turn, part) in self.parts.iter().cycle().skip(number).take(parts).enumerate() {
            while let Some(place) = claim(&part.0, turn == 0) {
                // SAFETY: a piece of this job is claimed and has not ended, so the leader waits: the job stays as it is and what it points
                // to is alive. It was written before the state that the claim read.
                let piece = unsafe { &**self.job.get() };
                if let Err(panic) = catch_unwind(AssertUnwindSafe(|| piece(place))) {
                    self.panic.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(panic);
                }
                self.ended.0.fetch_add(1, Ordering::Release);
                helped = true;
            }
        }
        helped
    }
}

/// A piece of a part that is this thread's alone from now on.
fn claim(part: &AtomicU64, own: bool) -> Option<usize> {
    let mut state = part.load(Ordering::Acquire);
    loop {
        let mut left = Part::of(state);
        if left.begin == left.end {
            return None;
        }
        let place = if own {
            left.begin += 1;
            left.begin - 1
        } else {
            left.end -= 1;
            left.end
        };
        match part.compare_exchange_weak(state, left.state(), Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => return Some(usize::from(place)),
            Err(now) => state = now,
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

    fn sum(crew: &Crew, count: usize) -> usize {
        let total = AtomicUsize::new(0);
        crew.run(count, &|place| {
            total.fetch_add(place + 1, Ordering::Relaxed);
        });
        total.into_inner()
    }

    #[test]
    fn every_piece_runs_once() {
        for helpers in [0, 1, 3] {
            let crew = Crew::start(helpers).unwrap();
            for count in [0, 1, 2, 7, 1000] {
                let seen: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
                crew.run(count, &|place| {
                    seen[place].fetch_add(1, Ordering::Relaxed);
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
        let crew = Crew::start(3).unwrap();
        // More than the parts hold at once.
        assert_eq!(sum(&crew, 150_000), 150_000 * 150_001 / 2);
        crew.enter(|| {
            for count in 0..20_000 {
                let count = count % 9;
                assert_eq!(sum(&crew, count), count * (count + 1) / 2);
            }
        });
        for _ in 0..20 {
            // Long enough for the helpers to sleep.
            thread::sleep(std::time::Duration::from_millis(2));
            assert_eq!(sum(&crew, 100), 5050);
        }
    }

    #[test]
    fn pieces_may_have_pieces_and_two_threads_may_lead() {
        let crew = Crew::start(2).unwrap();
        let total = AtomicUsize::new(0);
        crew.run(5, &|_| {
            total.fetch_add(sum(&crew, 10), Ordering::Relaxed);
        });
        assert_eq!(total.into_inner(), 5 * 55);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        crew.enter(|| assert_eq!(sum(&crew, 10) + sum(&crew, 3), 61));
                        assert_eq!(sum(&crew, 4), 10);
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_is_passed_on_and_the_crew_goes_on() {
        let crew = Crew::start(2).unwrap();
        for bad in [0, 3, 9] {
            let ended = AtomicUsize::new(0);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                crew.run(10, &|place| {
                    assert!(place != bad, "piece {bad}");
                    ended.fetch_add(1, Ordering::Relaxed);
                });
            }));
            let text = outcome.unwrap_err().downcast::<String>().unwrap();
            assert_eq!((text.as_str(), ended.into_inner()), (format!("piece {bad}").as_str(), 9));
            assert_eq!(sum(&crew, 10), 55);
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| crew.enter(|| panic!("a leader"))));
        assert!(outcome.is_err());
        assert_eq!(sum(&crew, 10), 55);
    }
}
