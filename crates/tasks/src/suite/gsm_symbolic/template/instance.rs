//! Questions drawn from a template.
use std::collections::HashSet;

use num_traits::{One, Signed, Zero};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::document::Template;
use super::evaluate::{Precision, Scope};
use super::rational::Rational;
use super::render::render;
use super::search::{Search, SearchError};
use super::value::{EvalError, Value};

/// A question with its worked answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    pub question: String,
    /// The last line is `#### value`.
    pub answer: String,
    /// The drawn values, by the template's indices of variables.
    pub values: Vec<Value>,
}

/// Error of drawing a question.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InstanceError {
    #[error("{0}")]
    Search(String),
    #[error("the answer has no value: {0}")]
    Answer(EvalError),
    #[error("only {found} different questions were found in {tries} draws; {wanted} are asked for")]
    TooFew { found: usize, tries: usize, wanted: usize },
    #[error("in {0} draws no answer was exact: floating point changes the value after ####")]
    NeverExact(usize),
}

/// Draws in a row that bring nothing new before a template counts as exhausted.
const STALE: usize = 2_000;

/// Draws questions that differ from each other, one after the other. The first N are the same however many are drawn.
pub struct Instances<'t> {
    template: &'t Template,
    search: Search<'t>,
    random: ChaCha8Rng,
    seen: HashSet<String>,
}

impl<'t> Instances<'t> {
    /// The random numbers depend on `key` alone.
    pub fn new(template: &'t Template, key: &[u8]) -> Self {
        let random = ChaCha8Rng::from_seed(earnest_digest::sha256(key));
        Instances { template, search: Search::new(template), random, seen: HashSet::new() }
    }

    /// So many questions.
    ///
    /// # Errors
    /// If the conditions cannot be satisfied, or there are not enough different questions.
    pub fn take(&mut self, wanted: usize) -> Result<Vec<Instance>, InstanceError> {
        (0..wanted).map(|_| self.next_of(wanted)).collect()
    }

    fn next_of(&mut self, wanted: usize) -> Result<Instance, InstanceError> {
        let mut inexact = 0;
        for _ in 0..STALE {
            let values = self
                .search
                .draw(&mut self.random)
                .map_err(|error: SearchError| InstanceError::Search(error.to_string()))?;
            // Where binary rounding changes the answer (int(0.29 * 100) is 28), the worked answer would be wrong.
            if !self.template.exact(&values).map_err(InstanceError::Answer)? {
                inexact += 1;
                continue;
            }
            let instance = self.template.instance(values).map_err(InstanceError::Answer)?;
            if self.seen.insert(instance.question.clone()) {
                return Ok(instance);
            }
        }
        Err(if inexact == STALE {
            InstanceError::NeverExact(STALE)
        } else {
            InstanceError::TooFew { found: self.seen.len(), tries: STALE, wanted }
        })
    }
}

impl Template {
    /// The question and the answer with these values, by the indices of the variables.
    ///
    /// # Errors
    /// If an expression of the answer has no value.
    pub fn instance(&self, values: Vec<Option<Value>>) -> Result<Instance, EvalError> {
        let question = render(&self.question, &values)?;
        let answer = render(&self.answer, &values)?;
        Ok(Instance { question, answer, values: values.into_iter().flatten().collect() })
    }

    /// True if `#answer` gives another number than the worked answer ends with; false where there is nothing to compare.
    pub fn disagrees(&self, instance: &Instance) -> bool {
        let values: Vec<Option<Value>> = instance.values.iter().cloned().map(Some).collect();
        let scope = Scope { variables: &values, precision: Precision::Exact };
        let number = |expression| scope.value(expression).ok()?.exact();
        match (&self.check, self.finals.as_slice()) {
            (Some(check), [only]) => number(check).is_some() && number(check) != number(only),
            _ => false,
        }
    }

    /// True if the final answer is the same with and without floating point.
    fn exact(&self, values: &[Option<Value>]) -> Result<bool, EvalError> {
        let close = Rational::new(1.into(), 1_000_000_000.into());
        for expression in &self.finals {
            let value = |precision| Scope { variables: values, precision }.value(expression);
            let (Some(printed), Some(truth)) = (value(Precision::Python)?.exact(), value(Precision::Exact)?.exact())
            else {
                continue;
            };
            let off = (&printed - &truth).abs();
            let allowed = if truth.denom().is_one() { Rational::zero() } else { close.clone() };
            if off > allowed {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
