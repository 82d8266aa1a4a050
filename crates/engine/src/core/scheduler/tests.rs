//! The scheduler against a cache that knows which token each position holds.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

/// A request: prompt and number of generated tokens.
#[derive(Debug, Clone)]
struct Job {
    prompt: Vec<u32>,
    generate: usize,
    arrives: usize,
    cancelled_at: Option<usize>,
    long: bool,
    shareable: usize,
}

/// Token that a "model" generates: a function of the text so far, as with any model.
fn next_token(tokens: &[u32]) -> u32 {
    tokens.iter().fold(7u32, |h, t| h.wrapping_mul(31).wrapping_add(*t)) % 50
}

/// Runs jobs to the end and checks every step.
fn run(limits: Limits, jobs: &[Job]) -> Counters {
    let mut scheduler = Scheduler::new(limits);
    // What each position of each block holds: (root is long, token). None: cleared.
    let mut memory: Vec<[Option<(bool, u32)>; BLOCK_SIZE]> = vec![[None; BLOCK_SIZE]; limits.blocks];
    let mut finished: HashMap<u64, Vec<u32>> = HashMap::new();
    let mut added = vec![false; jobs.len()];
    let mut cancelled = vec![false; jobs.len()];
    let mut idle = 0;
    for step in 0.. {
        for (i, job) in jobs.iter().enumerate() {
            if job.arrives <= step && !added[i] {
                added[i] = true;
                let factors = if job.long { RopeFactors::Long } else { RopeFactors::Short };
                scheduler.add(i as u64, job.prompt.clone(), factors, job.shareable);
            }
            if job.cancelled_at == Some(step) && added[i] && !finished.contains_key(&(i as u64)) {
                cancelled[i] = true;
                assert_eq!(scheduler.remove(&[i as u64]).len(), 1);
                scheduler.check();
            }
        }
        let plan = scheduler.plan();
        if plan.chunks.is_empty() {
            assert!(scheduler.running().is_empty() && scheduler.waiting() == 0, "stuck with work left");
            if added.iter().all(|a| *a) {
                break;
            }
            idle += 1;
            assert!(idle < 10_000);
            continue;
        }
        for op in &plan.ops {
            match *op {
                BlockOp::Clear(b) => memory[b] = [None; BLOCK_SIZE],
                BlockOp::Copy { from, to, positions } => {
                    let source = memory[from];
                    memory[to][..positions].copy_from_slice(&source[..positions]);
                }
            }
        }
        let tokens: usize = plan.chunks.iter().map(|e| e.count).sum();
        assert!(tokens <= limits.token_budget.max(limits.max_batch), "{tokens} tokens in a step");
        let mut seen = vec![];
        for e in &plan.chunks {
            assert!(!seen.contains(&e.running), "a sequence twice in a step");
            seen.push(e.running);
            let s = &scheduler.running()[e.running];
            let job = &jobs[s.key as usize];
            assert_eq!(e.start, s.computed);
            assert!(s.cached.unwrap_or(0) <= job.shareable, "a position whose logits are wanted came from the cache");
            assert!(e.count > 0 && e.start + e.count <= s.tokens.len());
            for p in e.start..e.start + e.count {
                let cell = &mut memory[s.blocks[p / BLOCK_SIZE]][p % BLOCK_SIZE];
                assert!(
                    cell.is_none() || *cell == Some((job.long, s.tokens[p])),
                    "position {p} overwrites another text"
                );
                *cell = Some((job.long, s.tokens[p]));
            }
        }
        for e in &plan.chunks {
            // Everything that attention reads is there: computed, shared or copied.
            let s = &scheduler.running()[e.running];
            for p in 0..e.start + e.count {
                let cell = memory[s.blocks[p / BLOCK_SIZE]][p % BLOCK_SIZE];
                assert_eq!(cell, Some((jobs[s.key as usize].long, s.tokens[p])), "position {p} of {}", s.key);
            }
        }
        scheduler.commit(&plan);
        scheduler.check();
        let mut done = vec![];
        for e in &plan.chunks {
            if e.samples {
                let token = next_token(&scheduler.running()[e.running].tokens);
                scheduler.push(e.running, token);
                let s = &scheduler.running()[e.running];
                if s.tokens.len() - s.prompt == jobs[s.key as usize].generate {
                    done.push(s.key);
                }
            }
        }
        for s in scheduler.remove(&done) {
            assert!(finished.insert(s.key, s.tokens).is_none(), "{} finished twice", s.key);
        }
        scheduler.check();
    }
    for (i, job) in jobs.iter().enumerate() {
        if cancelled[i] {
            assert!(!finished.contains_key(&(i as u64)));
            continue;
        }
        let mut expected = job.prompt.clone();
        for _ in 0..job.generate {
            expected.push(next_token(&expected));
        }
        assert_eq!(finished.get(&(i as u64)), Some(&expected), "request {i} was lost or changed");
    }
    let (used, cached, _) = scheduler.blocks();
    assert_eq!(used, cached, "a block leaked");
    scheduler.counters()
}

fn job() -> impl Strategy<Value = Job> {
    // Few stems and few symbols, so that beginnings are often shared, in whole blocks and in part.
    let prompt = (0usize..3, 0usize..90, prop::collection::vec(0u32..3, 1..40)).prop_map(|(stem, n, tail)| {
        let mut p: Vec<u32> = (0..n as u32).map(|i| 100 * stem as u32 + i % 7).collect();
        p.extend(tail);
        p
    });
    let shareable = prop_oneof![3 => Just(usize::MAX), 1 => 0usize..100];
    (prompt, 1usize..70, 0usize..30, prop::option::weighted(0.1, 0usize..60), any::<bool>(), shareable).prop_map(
        |(prompt, generate, arrives, cancelled_at, long, shareable)| Job {
            prompt,
            generate,
            arrives,
            cancelled_at,
            long,
            shareable,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_block_and_no_request_is_lost_duplicated_or_leaked(
        jobs in prop::collection::vec(job(), 1..25),
        spare in 0usize..40,
        max_batch in 1usize..12,
        budget in 1usize..100,
        prefix_cache in any::<bool>(),
    ) {
        // At least as many blocks as the largest request needs alone, often hardly more.
        let largest = jobs.iter().map(|j| (j.prompt.len() + j.generate - 1).div_ceil(BLOCK_SIZE)).max().unwrap();
        let limits =
            Limits { token_budget: budget.max(max_batch + 1), max_batch, blocks: largest + spare, prefix_cache };
        run(limits, &jobs);
    }
}

fn plain(prompt: Vec<u32>, generate: usize) -> Job {
    Job { prompt, generate, arrives: 0, cancelled_at: None, long: false, shareable: usize::MAX }
}

#[test]
fn a_shared_beginning_is_computed_once_whatever_its_length() {
    let limits = Limits { token_budget: 512, max_batch: 64, blocks: 1000, prefix_cache: true };
    for shared in [10, 32, 45, 830] {
        let jobs: Vec<Job> = (0..64u32)
            .map(|i| {
                let mut prompt: Vec<u32> = (0..shared).map(|t| t * 3 + 1).collect();
                prompt.extend((0..20).map(|t| 10_000 + i * 100 + t));
                plain(prompt, 5)
            })
            .collect();
        let total: usize = jobs.iter().map(|j| j.prompt.len()).sum();
        let computed = total - run(limits, &jobs).cached_tokens as usize;
        assert_eq!(computed, shared as usize + 64 * 20, "{shared} shared tokens");
    }
}

#[test]
fn sequences_are_preempted_when_blocks_run_out_and_still_finish() {
    let limits = Limits { token_budget: 64, max_batch: 8, blocks: 6, prefix_cache: true };
    let jobs: Vec<Job> = (0..8u32).map(|i| plain(vec![i; 30], 100)).collect();
    assert!(run(limits, &jobs).preemptions > 0);
}

#[test]
fn a_request_as_large_as_the_cache_needs_no_room_for_a_copy() {
    // The second prompt shares one token with the first, whose block is then the only one that could be freed.
    let first = plain((0..20).collect(), 2);
    let mut prompt: Vec<u32> = (100..180).collect();
    prompt[0] = 0;
    let second = Job { arrives: 30, ..plain(prompt, 17) };
    let blocks = (second.prompt.len() + second.generate - 1).div_ceil(BLOCK_SIZE);
    run(Limits { token_budget: 16, max_batch: 1, blocks, prefix_cache: true }, &[first, second]);
}
