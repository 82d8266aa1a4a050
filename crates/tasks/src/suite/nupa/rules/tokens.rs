//! Tokens of rule following by length, and the lengths that fit a context window (our Table 19).
use serde::Serialize;

use super::super::{Cell, NupaError, PairRules, Split, TaskId, Wording, prompt};
use super::catalogue::rule;

/// Tokens of prompt and trace together at one length.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TokenLength {
    /// Digits of the questions.
    pub length: usize,
    /// Questions measured.
    pub questions: usize,
    /// Tokens of the shortest.
    pub smallest: usize,
    /// Tokens on average.
    pub mean: f64,
    /// Tokens of the longest.
    pub largest: usize,
}

/// Measures `questions` questions of each length with a tokenizer's `count`.
///
/// # Errors
/// [`NupaError::NoRule`] or [`NupaError::ImpossibleLength`].
pub fn token_lengths(
    task: TaskId,
    lengths: &[usize],
    questions: usize,
    seed: u64,
    count: &dyn Fn(&str) -> usize,
) -> Result<Vec<TokenLength>, NupaError> {
    let rule = rule(task)?;
    let mut measured = Vec::with_capacity(lengths.len());
    for &length in lengths {
        let cell = Cell::new(task, length, Split::Test, PairRules::default(), seed)?;
        let tokens: Vec<usize> = cell
            .take(questions)
            .filter_map(|question| {
                let text = prompt::question(task, &question.a, question.b.as_deref(), Wording::Corrected);
                let trace = rule.trace(&question).ok()?;
                Some(count(&format!("{}{trace}", rule.prompt(&text))))
            })
            .collect();
        if let (Some(&smallest), Some(&largest)) = (tokens.iter().min(), tokens.iter().max()) {
            let mean = tokens.iter().sum::<usize>() as f64 / tokens.len() as f64;
            measured.push(TokenLength { length, questions: tokens.len(), smallest, mean, largest });
        }
    }
    Ok(measured)
}

/// The greatest length of which every measured question fits `context` tokens, and the greatest of which any does.
pub fn longest_within(measured: &[TokenLength], context: usize) -> (Option<usize>, Option<usize>) {
    let greatest = |fits: &dyn Fn(&TokenLength) -> bool| measured.iter().filter(|m| fits(m)).map(|m| m.length).max();
    (greatest(&|measured| measured.largest <= context), greatest(&|measured| measured.smallest <= context))
}

/// Longest lengths of a rule inside a context window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RuleReach {
    /// The task id.
    pub task: String,
    /// The greatest length of which every measured question fits, with all shorter ones; none if not even length 1 does.
    pub every: Option<usize>,
    /// The greatest length of which any measured question fits. The published table is nearest to this.
    pub some: Option<usize>,
    /// The task's greatest length, where the search ends.
    pub longest: usize,
    /// The measured lengths, ascending.
    pub measured: Vec<TokenLength>,
}

/// Lengths in a row without a fitting question after which no longer one is tried: tokens grow with the length, but not in
/// every draw.
const BEYOND: usize = 2;

/// Measures a task length by length until no question fits `context` tokens any more.
///
/// # Errors
/// As [`token_lengths`].
pub fn rule_reach(
    task: TaskId,
    context: usize,
    questions: usize,
    seed: u64,
    count: &dyn Fn(&str) -> usize,
) -> Result<RuleReach, NupaError> {
    let mut measured: Vec<TokenLength> = Vec::new();
    let mut beyond = 0;
    for length in 1..=task.longest() {
        let at = token_lengths(task, &[length], questions, seed, count)?;
        beyond = if at.iter().any(|at| at.smallest <= context) { 0 } else { beyond + 1 };
        measured.extend(at);
        if beyond == BEYOND {
            break;
        }
    }
    let every = measured.iter().take_while(|at| at.largest <= context).last().map(|at| at.length);
    let some = longest_within(&measured, context).1;
    Ok(RuleReach { task: task.to_string(), every, some, longest: task.longest(), measured })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_grow_with_length() {
        let task = "multiply_hard_Integer".parse().unwrap();
        let measured = token_lengths(task, &[2, 6, 12], 5, 1, &str::len).unwrap();
        assert!(measured.windows(2).all(|pair| pair[0].mean < pair[1].mean));
        let (all, any) = longest_within(&measured, measured[1].largest);
        assert_eq!(all, Some(6));
        assert!(any >= all);
        assert_eq!(longest_within(&measured, 1), (None, None));
        assert!(token_lengths("count_Integer".parse().unwrap(), &[1], 1, 1, &str::len).is_err());
    }

    #[test]
    fn the_reach_ends_where_nothing_fits() {
        let task = "multiply_hard_Integer".parse().unwrap();
        let context = token_lengths(task, &[8], 4, 1, &str::len).unwrap()[0].largest;
        let reach = rule_reach(task, context, 4, 1, &str::len).unwrap();
        let (every, some) = (reach.every.unwrap(), reach.some.unwrap());
        assert!(every <= some && (8..18).contains(&some), "{every} {some}");
        assert_eq!(reach.measured.last().unwrap().length, some + BEYOND);
        let nothing = rule_reach(task, 1, 4, 1, &str::len).unwrap();
        assert_eq!((nothing.every, nothing.some, nothing.measured.len()), (None, None, BEYOND));
        let everything = rule_reach(task, usize::MAX, 1, 1, &str::len).unwrap();
        assert_eq!((everything.every, everything.longest), (Some(20), 20));
    }
}
