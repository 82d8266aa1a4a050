//! How many tokens rule following takes, and up to which length it fits a context window (our Table 19).
use super::super::{Cell, NupaError, PairRules, Split, TaskId, Wording, prompt};
use super::catalogue::rule;

/// Tokens of prompt and trace together at one length.
#[derive(Debug, Clone, Copy, PartialEq)]
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
}
