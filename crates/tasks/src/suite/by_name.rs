//! Values by name: the scorers and metrics of a score.
use std::collections::{BTreeMap, btree_map};
use std::ops::Index;

use serde::{Deserialize, Serialize};

/// Values by name, in alphabetical order; in files an object.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ByName<T>(BTreeMap<String, T>);

impl<T> Default for ByName<T> {
    fn default() -> Self {
        ByName(BTreeMap::new())
    }
}

impl<T> ByName<T> {
    /// Sets a value; the former one is replaced.
    pub fn insert(&mut self, name: impl Into<String>, value: T) {
        self.0.insert(name.into(), value);
    }

    /// Takes a value out.
    pub fn remove(&mut self, name: &str) -> Option<T> {
        self.0.remove(name)
    }

    /// Keeps the values that satisfy a condition.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &T) -> bool) {
        self.0.retain(|name, value| keep(name, value));
    }

    /// True if there is a value of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Number of values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names, ascending.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

impl<T: Copy> ByName<T> {
    /// The value of this name, where there is one.
    pub fn get(&self, name: &str) -> Option<T> {
        self.0.get(name).copied()
    }

    /// Names and values, ascending by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, T)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

impl<T> IntoIterator for ByName<T> {
    type Item = (String, T);
    type IntoIter = btree_map::IntoIter<String, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<N: Into<String>, T> FromIterator<(N, T)> for ByName<T> {
    fn from_iter<I: IntoIterator<Item = (N, T)>>(values: I) -> Self {
        ByName(values.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }
}

impl<N: Into<String>, T, const COUNT: usize> From<[(N, T); COUNT]> for ByName<T> {
    fn from(values: [(N, T); COUNT]) -> Self {
        values.into_iter().collect()
    }
}

impl<T> Index<&str> for ByName<T> {
    type Output = T;

    /// # Panics
    /// Without a value of this name. For tests; readers of stored scores use [`ByName::get`], [`super::Score::scorer`] and
    /// [`super::Score::metric`].
    fn index(&self, name: &str) -> &T {
        &self.0[name]
    }
}
