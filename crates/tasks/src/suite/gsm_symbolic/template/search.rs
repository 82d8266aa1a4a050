//! Finds values that satisfy a template's conditions, each solution as likely as any other.
use std::cell::OnceCell;

use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use super::document::{Condition, Draw, Template};
use super::evaluate::{Precision, Scope};
use super::value::{EvalError, Value};

/// Draws that may fail before all solutions are looked for.
const TRIES: usize = 20_000;

/// Steps of the exhaustive search before it is given up.
const STEPS: usize = 20_000_000;

/// Solutions that are kept; of more, a uniform selection.
const KEPT: usize = 20_000;

/// Draws after the exhaustive search was given up.
const LAST_TRIES: usize = 3_000_000;

/// The values of a template's variables, by index.
pub(super) type Values = Vec<Option<Value>>;

/// Error of the search for values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum SearchError {
    #[error("no values satisfy the conditions {conditions}: all {combinations} combinations were tried")]
    Unsatisfiable { conditions: String, combinations: String },
    #[error("no values that satisfy the conditions {0} were found in {LAST_TRIES} draws")]
    NotFound(String),
    #[error("the condition `{condition}` has no value: {error}")]
    Condition { condition: String, error: EvalError },
}

/// The search of one template. Draws that no condition connects are independent and are searched by themselves.
pub(super) struct Search<'t> {
    parts: Vec<Part<'t>>,
    variables: usize,
}

/// Draws that conditions connect.
struct Part<'t> {
    /// In the order in which the conditions can be checked earliest.
    draws: Vec<&'t Draw>,
    /// The conditions that can be checked once so many draws are made.
    checks: Vec<Vec<&'t Condition>>,
    /// All solutions (or a uniform selection), where draws rarely succeed.
    solutions: OnceCell<Option<Vec<Vec<Value>>>>,
}

impl<'t> Search<'t> {
    /// `fixed` are values that are known: their variables are not drawn.
    pub fn new(template: &'t Template) -> Self {
        let draws = &template.draws;
        let mut owner = vec![0; template.names.len()];
        for (draw, Draw { targets, .. }) in draws.iter().enumerate() {
            targets.iter().for_each(|&target| owner[target] = draw);
        }
        let needs: Vec<Vec<usize>> = template
            .conditions
            .iter()
            .map(|condition| {
                let mut needs: Vec<usize> = condition.reads.iter().map(|&index| owner[index]).collect();
                needs.sort_unstable();
                needs.dedup();
                needs
            })
            .collect();
        let mut part_of: Vec<usize> = (0..draws.len()).collect();
        for needs in &needs {
            for pair in needs.windows(2) {
                let (keep, join) = (part_of[pair[0]], part_of[pair[1]]);
                part_of.iter_mut().filter(|part| **part == join).for_each(|part| *part = keep);
            }
        }
        let mut parts = Vec::new();
        for part in 0..draws.len() {
            let members: Vec<usize> = (0..draws.len()).filter(|&draw| part_of[draw] == part).collect();
            if members.is_empty() {
                continue;
            }
            let conditions: Vec<(&Condition, &[usize])> = template
                .conditions
                .iter()
                .zip(&needs)
                .filter(|(_, needs)| needs.iter().any(|need| members.contains(need)))
                .map(|(condition, needs)| (condition, needs.as_slice()))
                .collect();
            parts.push(Part::new(draws, members, &conditions));
        }
        // Conditions that read nothing hold or fail for good; they are checked with the first draw.
        if let Some(first) = parts.first_mut() {
            let constant = template.conditions.iter().filter(|condition| condition.reads.is_empty());
            first.checks[0].extend(constant);
        }
        Search { parts, variables: template.names.len() }
    }

    /// Values for all variables.
    pub fn draw(&self, random: &mut ChaCha8Rng) -> Result<Values, SearchError> {
        let mut values: Values = vec![None; self.variables];
        for part in &self.parts {
            part.draw(&mut values, random)?;
        }
        Ok(values)
    }
}

impl<'t> Part<'t> {
    fn new(draws: &'t [Draw], mut members: Vec<usize>, conditions: &[(&'t Condition, &[usize])]) -> Self {
        let mut order: Vec<usize> = Vec::new();
        let mut open: Vec<&(&Condition, &[usize])> = conditions.iter().collect();
        // Next is what completes the cheapest condition: few combinations are tried in vain.
        while !open.is_empty() {
            let cost = |needs: &[usize]| -> f64 {
                let missing = needs.iter().filter(|need| !order.contains(need));
                missing.map(|&need| (draws[need].pool.len() as f64).ln()).sum()
            };
            let cheapest = open.iter().map(|(_, needs)| cost(needs)).fold(f64::INFINITY, f64::min);
            let Some(index) = open.iter().position(|(_, needs)| cost(needs) <= cheapest) else { break };
            let (_, needs) = open.remove(index);
            for &need in *needs {
                if !order.contains(&need) {
                    order.push(need);
                }
            }
        }
        members.retain(|member| !order.contains(member));
        order.extend(members);
        let mut checks = vec![Vec::new(); order.len()];
        for (condition, needs) in conditions {
            if let Some(last) = needs.iter().filter_map(|need| order.iter().position(|draw| draw == need)).max() {
                checks[last].push(*condition);
            }
        }
        Part { draws: order.into_iter().map(|draw| &draws[draw]).collect(), checks, solutions: OnceCell::new() }
    }

    fn draw(&self, values: &mut Values, random: &mut ChaCha8Rng) -> Result<(), SearchError> {
        if self.solutions.get().is_none() {
            for _ in 0..TRIES {
                if self.attempt(values, random)? {
                    return Ok(());
                }
            }
        }
        let solutions = match self.solutions.get() {
            Some(solutions) => solutions,
            None => {
                let found = self.solve(values, random)?;
                self.solutions.get_or_init(|| found)
            }
        };
        match solutions.as_deref() {
            Some([]) => Err(SearchError::Unsatisfiable {
                conditions: self.conditions(),
                combinations: format!("{:.0}", self.draws.iter().map(|draw| draw.combinations()).product::<f64>()),
            }),
            Some(solutions) => {
                let chosen = &solutions[random.random_range(0..solutions.len())];
                let targets = self.draws.iter().flat_map(|draw| &draw.targets);
                targets.zip(chosen).for_each(|(&target, value)| values[target] = Some(value.clone()));
                Ok(())
            }
            None => {
                for _ in 0..LAST_TRIES {
                    if self.attempt(values, random)? {
                        return Ok(());
                    }
                }
                Err(SearchError::NotFound(self.conditions()))
            }
        }
    }

    fn conditions(&self) -> String {
        let texts: Vec<String> =
            self.checks.iter().flatten().map(|condition| format!("`{}`", condition.text)).collect();
        texts.join(", ")
    }

    /// One draw of everything, given up at the first condition that fails.
    fn attempt(&self, values: &mut Values, random: &mut ChaCha8Rng) -> Result<bool, SearchError> {
        for (draw, checks) in self.draws.iter().zip(&self.checks) {
            draw.any(values, random);
            if !holds(checks, values)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// All solutions; none if there are too many combinations to try.
    fn solve(&self, values: &mut Values, random: &mut ChaCha8Rng) -> Result<Option<Vec<Vec<Value>>>, SearchError> {
        let mut found = Found { solutions: Vec::new(), seen: 0, steps: 0, random };
        let whole = self.descend(0, values, &mut found)?;
        Ok(whole.then_some(found.solutions))
    }

    /// False once the steps are spent.
    fn descend(&self, depth: usize, values: &mut Values, found: &mut Found<'_>) -> Result<bool, SearchError> {
        let Some(draw) = self.draws.get(depth) else {
            let targets = self.draws.iter().flat_map(|draw| &draw.targets);
            found.keep(targets.filter_map(|&target| values[target].clone()).collect());
            return Ok(true);
        };
        let mut choice = draw.first_choice();
        loop {
            found.steps += 1;
            if found.steps > STEPS {
                return Ok(false);
            }
            if draw.set(&choice, values)
                && holds(&self.checks[depth], values)?
                && !self.descend(depth + 1, values, found)?
            {
                return Ok(false);
            }
            if !draw.next_choice(&mut choice) {
                return Ok(true);
            }
        }
    }
}

/// Solutions as they are found.
struct Found<'r> {
    solutions: Vec<Vec<Value>>,
    seen: usize,
    steps: usize,
    random: &'r mut ChaCha8Rng,
}

impl Found<'_> {
    /// Keeps the first ones, then replaces them with falling probability, so that every solution is as likely to stay.
    fn keep(&mut self, solution: Vec<Value>) {
        self.seen += 1;
        if self.solutions.len() < KEPT {
            self.solutions.push(solution);
        } else if let Some(slot) = self.solutions.get_mut(self.random.random_range(0..self.seen)) {
            *slot = solution;
        }
    }
}

/// A division by zero refuses the values; any other mistake is the template's.
fn holds(conditions: &[&Condition], values: &Values) -> Result<bool, SearchError> {
    let scope = Scope { variables: values, precision: Precision::Python };
    for condition in conditions {
        match scope.truth(&condition.expression) {
            Ok(true) => {}
            Ok(false) | Err(EvalError::DivisionByZero) => return Ok(false),
            Err(error) => return Err(SearchError::Condition { condition: condition.text.clone(), error }),
        }
    }
    Ok(true)
}

impl Draw {
    fn combinations(&self) -> f64 {
        let size = self.pool.len();
        if self.sequential {
            return size as f64;
        }
        (0..self.targets.len()).map(|taken| size.saturating_sub(taken) as f64).product()
    }

    fn any(&self, values: &mut Values, random: &mut ChaCha8Rng) {
        let size = self.pool.len();
        if self.sequential {
            let start = random.random_range(0..size);
            self.set(&[start], values);
            return;
        }
        let mut chosen: Vec<usize> = Vec::with_capacity(self.targets.len());
        while chosen.len() < self.targets.len() {
            let next = random.random_range(0..size);
            if !chosen.contains(&next) {
                chosen.push(next);
            }
        }
        self.set(&chosen, values);
    }

    fn first_choice(&self) -> Vec<usize> {
        vec![0; if self.sequential { 1 } else { self.targets.len() }]
    }

    /// Counts up; false after the last.
    fn next_choice(&self, choice: &mut [usize]) -> bool {
        for index in choice.iter_mut().rev() {
            *index += 1;
            if *index < self.pool.len() {
                return true;
            }
            *index = 0;
        }
        false
    }

    /// False if a member is chosen twice.
    fn set(&self, choice: &[usize], values: &mut Values) -> bool {
        let size = self.pool.len();
        if !self.sequential && (1..choice.len()).any(|index| choice[..index].contains(&choice[index])) {
            return false;
        }
        for (index, &target) in self.targets.iter().enumerate() {
            let member = if self.sequential { (choice[0] + index) % size } else { choice[index] };
            values[target] = Some(self.pool[member].clone());
        }
        true
    }
}
