//! Terms of one side of a formula.
use std::collections::HashSet;

use super::lexer::quoted;

/// Most terms of one side of a formula: each makes a column at least, and there are at most 500 of those.
pub(super) const MOST_TERMS: usize = 500;

/// An intercept and products of columns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Terms {
    pub intercept: bool,
    /// Columns in order of appearance.
    pub variables: Vec<String>,
    /// Products: ascending indices of `variables`. Main effects first, then interactions by order.
    pub terms: Vec<Vec<usize>>,
}

impl Terms {
    /// An intercept alone.
    pub fn intercept() -> Self {
        Terms { intercept: true, variables: Vec::new(), terms: Vec::new() }
    }

    /// One column, without an intercept.
    pub(super) fn of(name: String) -> Self {
        Terms { intercept: false, variables: vec![name], terms: vec![vec![0]] }
    }

    /// Adds a main effect.
    pub fn with(mut self, name: &str) -> Self {
        self.add(&Terms::of(name.to_owned()));
        self.sorted()
    }

    /// Adds a product of columns.
    pub fn with_product(mut self, names: &[&str]) -> Self {
        let mut product = Terms { intercept: false, variables: Vec::new(), terms: vec![Vec::new()] };
        for name in names {
            product = product.crossed(&Terms::of((*name).to_owned()));
        }
        self.add(&product);
        self.sorted()
    }

    pub(super) fn without_intercept(mut self) -> Self {
        self.intercept = false;
        self
    }

    /// Index of a column, which is added if it is new.
    fn index(&mut self, name: &str) -> usize {
        if let Some(found) = self.variables.iter().position(|known| known == name) {
            return found;
        }
        self.variables.push(name.to_owned());
        self.variables.len() - 1
    }

    /// The other's terms by this one's indices.
    fn translated(&mut self, other: &Terms) -> Vec<Vec<usize>> {
        let indices: Vec<usize> = other.variables.iter().map(|name| self.index(name)).collect();
        let translate = |term: &Vec<usize>| {
            let mut term: Vec<usize> = term.iter().map(|index| indices[*index]).collect();
            term.sort_unstable();
            term
        };
        other.terms.iter().map(translate).collect()
    }

    /// Adds the other's products; its intercept is left out.
    pub(super) fn add(&mut self, other: &Terms) {
        let mut known: HashSet<Vec<usize>> = self.terms.iter().cloned().collect();
        for term in self.translated(other) {
            if known.insert(term.clone()) {
                self.terms.push(term);
            }
        }
    }

    /// Takes away the other's products. Columns stay known, as in R, where they keep their place in the order.
    pub(super) fn remove(&mut self, other: &Terms) {
        let gone = self.translated(other);
        self.terms.retain(|term| !gone.contains(term));
    }

    /// Products of every term with every term of the other; of more than [`MOST_TERMS`] only so many that they are too many.
    pub(super) fn crossed(&self, other: &Terms) -> Terms {
        let mut result = Terms { intercept: false, variables: self.variables.clone(), terms: Vec::new() };
        let right = result.translated(other);
        let mut known = HashSet::new();
        for left in &self.terms {
            for right in &right {
                if result.terms.len() > MOST_TERMS {
                    return result;
                }
                let mut term: Vec<usize> = left.iter().chain(right).copied().collect();
                term.sort_unstable();
                term.dedup();
                if known.insert(term.clone()) {
                    result.terms.push(term);
                }
            }
        }
        result
    }

    /// One product of all columns.
    pub(super) fn merged(&self) -> Terms {
        let mut term: Vec<usize> = self.terms.iter().flatten().copied().collect();
        term.sort_unstable();
        term.dedup();
        Terms { intercept: false, variables: self.variables.clone(), terms: vec![term] }
    }

    /// Products by order, and only the columns that are left, in order of appearance.
    pub(super) fn sorted(mut self) -> Self {
        self.terms.sort_by_key(Vec::len);
        let used: Vec<usize> =
            (0..self.variables.len()).filter(|index| self.terms.iter().any(|term| term.contains(index))).collect();
        for term in &mut self.terms {
            for index in term.iter_mut() {
                *index = used.iter().position(|used| used == index).unwrap_or_default();
            }
        }
        self.variables = used.iter().map(|&index| std::mem::take(&mut self.variables[index])).collect();
        self
    }

    /// True if both have an intercept or a product in common.
    pub(super) fn overlaps(&self, other: &Terms) -> bool {
        let names = |terms: &Terms| -> Vec<Vec<String>> {
            let name = |term: &Vec<usize>| {
                let mut names: Vec<String> = term.iter().map(|&index| terms.variables[index].clone()).collect();
                names.sort();
                names
            };
            terms.terms.iter().map(name).collect()
        };
        let own = names(self);
        (self.intercept && other.intercept) || names(other).iter().any(|term| own.contains(term))
    }

    /// A product as a formula writes it.
    pub fn name(&self, term: &[usize]) -> String {
        term.iter().map(|&index| quoted(&self.variables[index])).collect::<Vec<_>>().join(":")
    }

    /// The terms without one of them; none if there is no such product. Columns may come in any order.
    pub fn dropped(&self, name: &str) -> Option<Terms> {
        let mut wanted: Vec<&str> = name.split(':').map(|part| part.trim().trim_matches('`')).collect();
        wanted.sort_unstable();
        let found = self.terms.iter().position(|term| {
            let mut names: Vec<&str> = term.iter().map(|&index| self.variables[index].as_str()).collect();
            names.sort_unstable();
            names == wanted
        })?;
        let mut rest = self.clone();
        rest.terms.remove(found);
        Some(rest.sorted())
    }
}

impl std::fmt::Display for Terms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut parts: Vec<String> = self.terms.iter().map(|term| self.name(term)).collect();
        if !self.intercept {
            parts.insert(0, "0".to_owned());
        }
        if parts.is_empty() {
            parts.push("1".to_owned());
        }
        f.write_str(&parts.join(" + "))
    }
}
