//! Comparisons of two simulated models over the skills of a profile, by shared questions and by the answers of the two profiles alone.
use earnest_stats::psychometric::{Between, DIFFERENCE_LEVEL, Measured, ladder, share_out, spread_over, with_shared};
use earnest_stats::{PairedCounts, Z95, holm};
use rand::seq::index::sample;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

use super::model::Model;
use super::share;

/// Skills of a profile, and those of them that neither model can do: a third.
const SKILLS: usize = 72;
const FLOOR: usize = 24;

/// Numbers of shared questions.
const QUESTIONS: [usize; 3] = [200, 400, 800];

/// Two models in a skill, measured by the adaptive procedure.
pub struct Pair {
    pub models: [Model; 2],
    pub measured: [Measured; 2],
    /// p value of one curve for both, by the answers of the procedure.
    pub p: f64,
}

/// Differences that hold, true and false ones.
#[derive(Default, Clone, Copy)]
struct Held {
    right: usize,
    wrong: usize,
}

/// Counts the differences of a family of p values by skill that hold after Holm's adjustment; the first so many skills differ.
fn held(family: &[(usize, f64)], differing: usize) -> Held {
    let p_values: Vec<f64> = family.iter().map(|(_, p)| *p).collect();
    let adjusted = holm(&p_values).expect("p values");
    let mut held = Held::default();
    for ((skill, _), _) in family.iter().zip(adjusted).filter(|(_, p)| *p < DIFFERENCE_LEVEL) {
        let count = if *skill < differing { &mut held.right } else { &mut held.wrong };
        *count += 1;
    }
    held
}

/// A skill that a comparison can ask.
struct Asked {
    skill: usize,
    lengths: Vec<usize>,
    /// True if the first model has the longer limit.
    is_first: bool,
}

/// Skills of a comparison: without those that neither model can do, or both can do at all lengths.
fn family(pairs: &[&Pair]) -> Vec<Asked> {
    let asked = |(skill, pair): (usize, &&Pair)| {
        let [one, other] = pair.measured.each_ref().map(|measured| measured.limit(0.5).expect("three limits"));
        let falls = pair.measured.iter().all(|measured| measured.falls);
        match Between::of(one, other, &ladder(1, pair.models[0].last)) {
            Between::Lengths(lengths) if falls => {
                Some(Asked { skill, lengths, is_first: one.estimate >= other.estimate })
            }
            _ => None,
        }
    };
    pairs.iter().enumerate().filter_map(asked).collect()
}

/// p values by skill with fresh answers to so many shared questions.
fn shared(pairs: &[&Pair], family: &[Asked], questions: usize, random: &mut ChaCha8Rng) -> Vec<(usize, f64)> {
    let earlier: Vec<f64> = family.iter().map(|asked| pairs[asked.skill].p).collect();
    if questions == 0 {
        // A comparison by the profiles alone combines nothing.
        return family.iter().map(|asked| asked.skill).zip(earlier).collect();
    }
    let counts = share_out(questions, &earlier);
    let test = |((asked, count), earlier): ((&Asked, usize), f64)| {
        let mut answers = Vec::with_capacity(count);
        for (length, count) in spread_over(count, &asked.lengths) {
            for _ in 0..count {
                let [one, other] = pairs[asked.skill].models.map(|model| model.right(length, random));
                answers.push(if asked.is_first { (one, other) } else { (other, one) });
            }
        }
        (asked.skill, with_shared(earlier, &PairedCounts::of(answers)))
    };
    family.iter().zip(counts).zip(earlier.iter().copied()).map(test).collect()
}

/// Prints how often differences hold. Skills are drawn from measured pairs: of one curve, those that neither model can do, and by distance in octaves
/// those that differ.
pub fn main(comparisons: usize, seed: u64, equal: &[Pair], floor: &[Pair], apart: &[(f64, Vec<Pair>)]) {
    println!(
        "\n{comparisons} comparisons over {SKILLS} skills, {FLOOR} of which neither model can do, seed {seed}; per cent of the skills that differ whose difference holds after \
         Holm's adjustment, and of comparisons in which another one holds.\n"
    );
    println!(
        "| octaves apart | skills that differ | compared by | differences that hold | comparisons with a false one |"
    );
    println!("|---:|---:|---|---:|---:|");
    let mut rows: Vec<(f64, usize, &[Pair])> = vec![(0.0, 0, &[])];
    rows.extend(apart.iter().flat_map(|(octaves, pairs)| [6, 24].map(|count| (*octaves, count, &pairs[..]))));
    for (octaves, differing, pairs) in rows {
        let compare = |number: usize| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(number as u64);
            let mut skills: Vec<&Pair> = Vec::with_capacity(SKILLS);
            for (pool, count) in [(pairs, differing), (equal, SKILLS - FLOOR - differing), (floor, FLOOR)] {
                if count > 0 {
                    skills.extend(sample(&mut random, pool.len(), count).into_iter().map(|index| &pool[index]));
                }
            }
            let all: Vec<(usize, f64)> = skills.iter().enumerate().map(|(skill, pair)| (skill, pair.p)).collect();
            let family = family(&skills);
            let mut found = vec![held(&all, differing)];
            for questions in std::iter::once(0).chain(QUESTIONS) {
                found.push(held(&shared(&skills, &family, questions, &mut random), differing));
            }
            found
        };
        let found: Vec<Vec<Held>> = (0..comparisons).into_par_iter().map(compare).collect();
        let alone = ["both profiles, all skills", "both profiles, without the floor"].map(str::to_owned);
        let names = alone.into_iter().chain(QUESTIONS.map(|questions| format!("and {questions} shared questions")));
        for (index, name) in names.enumerate() {
            let right: usize = found.iter().map(|held| held[index].right).sum();
            let wrong = found.iter().filter(|held| held[index].wrong > 0).count();
            let power = share(right, comparisons * differing, Z95);
            println!("| {octaves} | {differing} | {name} | {power} | {} |", share(wrong, comparisons, Z95));
        }
    }
}

/// A model that is below the shortest length.
pub fn below(random: &mut ChaCha8Rng, last: usize) -> Model {
    let kind = random.random_range(0..3);
    let model = Model::draw(random, kind, last);
    let octaves = -0.5 - 2.0 * random.random::<f64>();
    let median = model.truth.median().unwrap_or(1.0);
    Model { truth: model.truth.shifted(octaves - median.log2()), ..model }
}
