//! Rows as they come, collapsed to counts while they come.
use super::data::GlmmData;
use super::error::GlmmError;

/// Rows that are gathered before equal ones are merged for the first time.
const FIRST_LIMIT: usize = 1 << 16;

/// A fixed effect as the caller has it.
#[derive(Debug, Clone, PartialEq)]
pub enum Term {
    /// A number: one column of the design, under this name.
    Number(String),
    /// A label: a column for every level but the reference. See [`Term::factor`].
    Factor(Factor),
}

/// A column of labels in treatment coding: every level but the reference has a column of 0 and 1 named `name[level]`, whose
/// coefficient is the difference from the reference level, in log odds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Factor {
    name: String,
    /// By code.
    levels: Vec<String>,
    /// Codes in the order of the levels; the reference is left out.
    compared: Vec<usize>,
    reference: usize,
}

impl Term {
    /// A column of labels, given as indices into `levels`. Levels are compared in order (numbers by size, then texts by
    /// their letters) with the reference, which is the first of that order unless it is named.
    pub fn factor(name: &str, levels: Vec<String>, reference: Option<&str>) -> Result<Self, GlmmError> {
        let mut order: Vec<usize> = (0..levels.len()).collect();
        order.sort_by(|&left, &right| {
            let (left, right) = (&levels[left], &levels[right]);
            match (left.parse::<f64>(), right.parse::<f64>()) {
                (Ok(one), Ok(other)) => one.total_cmp(&other).then_with(|| left.cmp(right)),
                (Ok(_), Err(_)) => std::cmp::Ordering::Less,
                (Err(_), Ok(_)) => std::cmp::Ordering::Greater,
                (Err(_), Err(_)) => left.cmp(right),
            }
        });
        let found = match reference {
            Some(wanted) => order.iter().copied().find(|&code| levels[code] == wanted),
            None => order.first().copied(),
        };
        let Some(found) = found else {
            let present = order.iter().map(|&code| levels[code].as_str()).collect::<Vec<_>>().join(", ");
            let level = reference.unwrap_or_default().to_owned();
            return Err(GlmmError::NoLevel { column: name.to_owned(), level, present });
        };
        if levels.len() == 1 {
            return Err(GlmmError::OneLevel { column: name.to_owned(), level: levels[found].clone() });
        }
        order.retain(|&code| code != found);
        Ok(Term::Factor(Factor { name: name.to_owned(), levels, compared: order, reference: found }))
    }

    /// The column's name.
    pub fn name(&self) -> &str {
        match self {
            Term::Number(name) => name,
            Term::Factor(factor) => &factor.name,
        }
    }

    /// Names of the columns of the design.
    fn columns(&self) -> Vec<String> {
        match self {
            Term::Number(name) => vec![name.clone()],
            Term::Factor(Factor { name, levels, compared, .. }) => {
                compared.iter().map(|&code| format!("{name}[{}]", levels[code])).collect()
            }
        }
    }

    /// Appends the columns' values.
    fn code(&self, value: f64, design: &mut Vec<f64>) {
        match self {
            Term::Number(_) => design.push(value),
            Term::Factor(factor) => {
                design.extend(factor.compared.iter().map(|&code| f64::from(u8::from(value == code as f64))));
            }
        }
    }
}

impl Factor {
    /// The column's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The level that the others are compared with.
    pub fn reference(&self) -> &str {
        &self.levels[self.reference]
    }

    /// The other levels, in the order of their columns.
    pub fn compared(&self) -> impl Iterator<Item = &str> {
        self.compared.iter().map(|&code| self.levels[code].as_str())
    }
}

/// Binomial rows in any order. Rows of a group with equal fixed effects are merged into one count (the likelihood is the
/// same), now and then while they are pushed, so memory grows with the different rows and not with the rows: ten million
/// answers to a hundred templates under two conditions are two hundred counts.
#[derive(Debug, Clone)]
pub struct GlmmRows {
    width: usize,
    group: Vec<u32>,
    /// Row-major.
    fixed: Vec<f64>,
    successes: Vec<f64>,
    trials: Vec<f64>,
    merged: Vec<u32>,
    /// Length at which equal rows are merged next.
    limit: usize,
}

impl GlmmRows {
    /// No rows of so many fixed effects (terms, beside the intercept).
    pub fn new(width: usize) -> Self {
        GlmmRows {
            width,
            group: Vec::new(),
            fixed: Vec::new(),
            successes: Vec::new(),
            trials: Vec::new(),
            merged: Vec::new(),
            limit: FIRST_LIMIT,
        }
    }

    /// Adds a row: successes of trials, the terms' values in their order, a group. Rows without trials say nothing and are
    /// left out.
    ///
    /// # Panics
    /// If `fixed` has another length than [`GlmmRows::new`] was told.
    pub fn push(&mut self, successes: f64, trials: f64, fixed: &[f64], group: u32) {
        assert_eq!(fixed.len(), self.width, "a value for every term");
        if trials == 0.0 {
            return;
        }
        if self.group.len() >= self.limit {
            self.merge();
            // Mostly different rows: merging must not cost more than gathering.
            self.limit = self.limit.max(2 * self.group.len());
        }
        self.group.push(group);
        self.fixed.extend_from_slice(fixed);
        self.successes.push(successes);
        self.trials.push(trials);
        self.merged.push(1);
    }

    /// Sorts by group and fixed effects, and merges equal rows.
    fn merge(&mut self) {
        let values = |row: usize| &self.fixed[row * self.width..(row + 1) * self.width];
        let mut order: Vec<u32> = (0..self.group.len() as u32).collect();
        order.sort_unstable_by(|&left, &right| {
            let (left, right) = (left as usize, right as usize);
            self.group[left].cmp(&self.group[right]).then_with(|| {
                let pairs = values(left).iter().zip(values(right));
                pairs
                    .map(|(left, right)| left.total_cmp(right))
                    .find(|order| order.is_ne())
                    .unwrap_or(std::cmp::Ordering::Equal)
            })
        });
        let mut sorted = GlmmRows::new(self.width);
        sorted.limit = self.limit;
        let mut previous: Option<usize> = None;
        for row in order.into_iter().map(|row| row as usize) {
            // By `==`, so that 0 and -0, which are neighbours, are one.
            let equal = previous
                .is_some_and(|previous| self.group[previous] == self.group[row] && values(previous) == values(row));
            if let (true, Some(last)) = (equal, sorted.group.len().checked_sub(1)) {
                sorted.successes[last] += self.successes[row];
                sorted.trials[last] += self.trials[row];
                sorted.merged[last] += self.merged[row];
            } else {
                sorted.group.push(self.group[row]);
                sorted.fixed.extend_from_slice(values(row));
                sorted.successes.push(self.successes[row]);
                sorted.trials.push(self.trials[row]);
                sorted.merged.push(self.merged[row]);
            }
            previous = Some(row);
        }
        *self = sorted;
    }

    /// The data of a model with these terms, one for every value of a row. Groups are in the order of their numbers.
    pub fn finish(mut self, terms: &[Term]) -> Result<GlmmData, GlmmError> {
        for (index, term) in terms.iter().enumerate() {
            if terms[..index].iter().any(|other| other.name() == term.name()) {
                return Err(GlmmError::Duplicate { column: term.name().to_owned() });
            }
        }
        self.merge();
        let names = terms.iter().flat_map(Term::columns).collect();
        let mut design = Vec::new();
        for row in 0..self.group.len() {
            for (term, value) in terms.iter().zip(&self.fixed[row * self.width..]) {
                term.code(*value, &mut design);
            }
        }
        drop(self.fixed);
        GlmmData::from_sorted(names, &self.group, &design, self.successes, self.trials, self.merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(names: &[&str]) -> Vec<Term> {
        names.iter().map(|name| Term::Number((*name).to_owned())).collect()
    }

    #[test]
    fn many_rows_need_the_memory_of_the_different_ones() {
        let mut rows = GlmmRows::new(1);
        for row in 0..1_000_000_u32 {
            rows.push(f64::from(row % 3 % 2), 1.0, &[f64::from(row / 7 % 2)], row % 50);
            assert!(rows.group.len() <= FIRST_LIMIT && rows.group.capacity() <= 2 * FIRST_LIMIT);
        }
        let data = rows.finish(&numbers(&["variant"])).unwrap();
        assert_eq!((data.rows(), data.groups(), data.cells()), (1_000_000, 50, 100));
        assert_eq!(data.totals(), (333_333.0, 1_000_000.0));
    }

    #[test]
    fn merging_between_pushes_changes_nothing() {
        // More different rows than the first limit, each twice, far apart.
        let different = 100_000_u32;
        let mut rows = GlmmRows::new(2);
        for row in 0..2 * different {
            let row = row % different;
            rows.push(f64::from(row % 2), 1.0, &[f64::from(row), f64::from(row % 5)], row % 400);
        }
        let data = rows.finish(&numbers(&["x", "y"])).unwrap();
        assert_eq!((data.rows(), data.groups(), data.cells()), (2 * different as usize, 400, different as usize));
        assert!(data.outcomes().all(|(successes, trials)| trials == 2.0 && successes != 1.0));
    }

    #[test]
    fn labels_are_compared_with_their_reference() {
        let model = |reference| {
            let mut rows = GlmmRows::new(1);
            for (row, level) in [0.0, 1.0, 2.0, 1.0, 0.0, 2.0, 2.0].into_iter().enumerate() {
                rows.push(f64::from(row as u32 % 2), 1.0, &[level], row as u32 % 2);
            }
            let levels = ["c", "a", "b"].map(str::to_owned).to_vec();
            let data = rows.finish(&[Term::factor("model", levels, reference)?])?;
            Ok::<_, GlmmError>(data.names().to_vec())
        };
        assert_eq!(model(None).unwrap(), ["(Intercept)", "model[b]", "model[c]"]);
        assert_eq!(model(Some("c")).unwrap(), ["(Intercept)", "model[a]", "model[b]"]);
        let error = model(Some("d")).unwrap_err().to_string();
        assert!(error.contains("no level `d`") && error.contains("a, b, c"), "{error}");
        let numbers = Term::factor("n", ["10", "9", "x"].map(str::to_owned).to_vec(), None).unwrap();
        assert_eq!(numbers.columns(), ["n[10]", "n[x]"]);
        assert!(matches!(Term::factor("n", vec!["a".into()], None), Err(GlmmError::OneLevel { .. })));
    }

    #[test]
    fn rows_without_trials_are_left_out_and_terms_are_named_once() {
        let mut rows = GlmmRows::new(0);
        rows.push(0.0, 0.0, &[], 3);
        assert_eq!(rows.finish(&[]).unwrap_err(), GlmmError::NoRows);
        let rows = GlmmRows::new(2);
        assert!(matches!(rows.finish(&numbers(&["x", "x"])), Err(GlmmError::Duplicate { .. })));
    }
}
