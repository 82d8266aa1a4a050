//! Prompts that look like those of an evaluation: long ones with a shared beginning, and short ones.
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::Serialize;

use earnest_models::checkpoint::{CheckpointError, Tokenizer};

/// Worked examples that precede every question of [`WorkloadKind::FewShot`].
const SHOTS: &str = include_str!("../../../../prompts/bench-few-shot.txt");

/// A kind of prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// Word problems after eight worked examples, as in GSM-Symbolic: 850 to 1,000 tokens by the tokenizer, of which 95 % are shared;
    /// 2,000 where it has few words, as the embedded model's.
    FewShot,
    /// Questions on numbers with a sentence of instructions, as in the NUPA Test: 30 to 90 tokens, about half shared.
    ZeroShot,
}

/// A fixed set of prompts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Workload {
    /// Kind of prompts.
    pub kind: WorkloadKind,
    /// Tokens to generate for each, end-of-sequence ignored, so that every engine does the same work.
    pub new_tokens: usize,
    /// Prompts as text.
    pub texts: Vec<String>,
    /// Prompts as token ids.
    pub ids: Vec<Vec<u32>>,
}

impl Workload {
    /// Makes `count` prompts; the same ones every time.
    pub fn new(
        kind: WorkloadKind,
        count: usize,
        new_tokens: usize,
        tokenizer: &Tokenizer,
    ) -> Result<Workload, CheckpointError> {
        let mut draw = Draw(ChaCha8Rng::seed_from_u64(20_261_121));
        let texts: Vec<String> = (0..count)
            .map(|i| match kind {
                WorkloadKind::FewShot => {
                    format!("{SHOTS}Q: {}\nA: Let's think step by step.", word_problem(&mut draw, i))
                }
                WorkloadKind::ZeroShot => number_question(&mut draw, i),
            })
            .collect();
        let ids = texts.iter().map(|t| tokenizer.encode(t, true)).collect::<Result<_, _>>()?;
        Ok(Workload { kind, new_tokens, texts, ids })
    }
}

struct Draw(ChaCha8Rng);

impl Draw {
    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.next_u64() % (high - low + 1)
    }

    fn digits(&mut self, n: u64) -> String {
        (0..n).map(|i| char::from(b'0' + self.between(u64::from(i == 0), 9) as u8)).collect()
    }
}

fn word_problem(d: &mut Draw, i: usize) -> String {
    let (a, b, c) = (d.between(3, 40), d.between(2, 25), d.between(2, 12));
    match i % 4 {
        0 => format!(
            "A farmer has {a} baskets with {b} apples each. He sells {c} baskets and eats {c} apples. How many apples are left?"
        ),
        1 => format!("Nadia runs {c} laps of {a}0 metres every day for {b} days. How many metres does she run in all?"),
        2 => format!(
            "A cinema sells {a} tickets at {c} dollars and {b} tickets at half that price. How much money does it take?"
        ),
        _ => format!(
            "There are {a} red and {b} blue marbles in each of {c} bags. Half of the red ones are lost. How many marbles remain?"
        ),
    }
}

fn number_question(d: &mut Draw, i: usize) -> String {
    let (m, n) = (d.between(1, 18), d.between(1, 18));
    let integer = "Directly return the answer as an integer without any comma separator, like 123 . ";
    let float = "Directly return the answer as a float without any comma separator, like 10.4 . ";
    match i % 6 {
        0 => format!("{integer}Add two numbers: {} + {} = ", d.digits(m), d.digits(n)),
        1 => format!("{integer}Multiply two numbers: {} * {} = ", d.digits(m), d.digits(n)),
        2 => format!("{float}Add two numbers: {}.{} + {}.{} = ", d.digits(m), d.digits(n), d.digits(n), d.digits(m)),
        3 => format!("{integer}Get the maximal number: {} and {} = ", d.digits(m), d.digits(n)),
        4 => {
            format!("{float}Subtract two numbers: {}.{} - {}.{} = ", d.digits(m), d.digits(n), d.digits(m), d.digits(n))
        }
        _ => format!(
            "{integer}Count the number of the given digit in the given number: {} count the digit {} = ",
            d.digits(m),
            d.digits(1)
        ),
    }
}

/// Tokens that a perfect prefix cache computes: the nodes of the prompts' tree.
pub fn distinct_prefix_tokens(prompts: &[Vec<u32>]) -> usize {
    let mut sorted: Vec<&[u32]> = prompts.iter().map(Vec::as_slice).collect();
    sorted.sort_unstable();
    let mut count = 0;
    let mut before: &[u32] = &[];
    for prompt in sorted {
        let common = before.iter().zip(prompt).take_while(|(a, b)| a == b).count();
        // The last token is computed for its logits in any case.
        count += (prompt.len() - common).max(usize::from(!prompt.is_empty()));
        before = prompt;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_tokens_are_the_nodes_of_the_tree() {
        assert_eq!(distinct_prefix_tokens(&[vec![1, 2, 3], vec![1, 2, 4], vec![5]]), 5);
        assert_eq!(distinct_prefix_tokens(&[vec![1, 2], vec![1, 2], vec![1, 2, 3]]), 4);
        assert_eq!(distinct_prefix_tokens(&[]), 0);
    }

    #[test]
    fn prompts_are_the_same_every_time_and_differ_from_each_other() {
        let all = |seed| -> Vec<String> {
            let mut d = Draw(ChaCha8Rng::seed_from_u64(seed));
            (0..24).map(|i| number_question(&mut d, i)).collect()
        };
        let first = all(1);
        assert_eq!(first, all(1));
        assert_eq!(first.iter().collect::<std::collections::HashSet<_>>().len(), 24);
    }
}
