//! Places of a file's lines by document and filter: the file is ordered filter after filter.
use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use serde_json::Value;

use super::super::fault::LogFault;
use super::super::json::{id_text, parse};
use super::super::limits::check_name;
use super::super::log::Each;
use super::super::records::{Place, Records};
use super::line::Key;
use crate::LogError;

/// The index: sixteen bytes for a line.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Names of the filters in the file's order. Lines without one have empty names: one for the first line of each document, another
    /// for the second, and so on.
    pub filters: Vec<String>,
    pub documents: usize,
    /// True if every document has an `id` of its own and no two have the same.
    pub own_ids: bool,
    /// Number of lines that could not be read.
    pub bad: usize,
    /// Places by filter and document; line 0 where there is none.
    places: Vec<Vec<Place>>,
    /// Number of places, those without a line among them.
    cells: usize,
}

/// Most filters of a task. Lines without names count as a filter for each time that a document stands there.
const MOST_FILTERS: usize = 256;

/// Number of places from which on a table of documents and filters may not be `SPARSE` times as large as the number of its lines.
const FEW_CELLS: usize = 4 << 20;
const SPARSE: usize = 8;

/// Largest number up to which every whole number has a form of its own.
const LARGEST_EXACT: f64 = 9_007_199_254_740_992.0;

const NOWHERE: Place = Place { offset: 0, number: 0 };

impl Index {
    /// Reads all lines and hands on the errors of those that are none.
    pub fn read(path: &Path, longest: u64, each: Each<'_>) -> Result<Self, LogError> {
        let mut index = Index { own_ids: true, ..Index::default() };
        let mut records = Records::open(path, longest)?;
        let mut numbers: HashMap<u64, usize> = HashMap::new();
        let mut names: HashMap<String, usize> = HashMap::new();
        let mut ids: HashSet<u64> = HashSet::new();
        let mut lines = 0;
        while let Some((place, read)) = records.next()? {
            let key =
                match read.and_then(|()| parse::<Key>(&records.bytes).map_err(|reason| records.error(place, reason))) {
                    Ok(key) => key,
                    Err(error) => {
                        index.bad += 1;
                        each(Err(error))?;
                        continue;
                    }
                };
            let next = index.documents;
            let document = match &key.doc_id {
                Value::Number(number) if number.is_u64() => {
                    *numbers.entry(number.as_u64().unwrap_or_default()).or_insert(next)
                }
                Value::Null => {
                    index.bad += 1;
                    each(Err(records.error(place, "the line has no doc_id")))?;
                    continue;
                }
                // A number that reading rounded may be that of another document.
                Value::Number(number) if number.as_f64().is_some_and(|number| number.abs() > LARGEST_EXACT) => {
                    index.bad += 1;
                    each(
                        Err(records.error(place, format!("the doc_id {number} is too large to be told from others"))),
                    )?;
                    continue;
                }
                other => *names.entry(other.to_string()).or_insert(next),
            };
            if document == next {
                index.documents += 1;
                match key.doc.0.as_ref().and_then(id_text) {
                    Some(id) if index.own_ids => {
                        let mut hasher = DefaultHasher::new();
                        id.hash(&mut hasher);
                        index.own_ids = ids.insert(hasher.finish());
                    }
                    _ => index.own_ids = false,
                }
            }
            let is_taken = |filter: usize| index.places[filter].get(document).is_some_and(|place| *place != NOWHERE);
            let filter = key.filter.unwrap_or_default();
            let known = index.filters.iter().enumerate().filter(|(_, known)| **known == filter).map(|(at, _)| at);
            let known = match filter.is_empty() {
                true => known.into_iter().find(|at| !is_taken(*at)),
                false => known.into_iter().next(),
            };
            let filter = match known {
                Some(known) => known,
                None => {
                    index.check(&filter, lines).map_err(|reason| records.error(place, reason))?;
                    index.filters.push(filter);
                    index.places.push(Vec::new());
                    index.filters.len() - 1
                }
            };
            let places = &mut index.places[filter];
            if places.len() <= document {
                index.cells += document + 1 - places.len();
                places.resize(document + 1, NOWHERE);
            }
            lines += 1;
            if index.cells > FEW_CELLS && index.cells / SPARSE > lines {
                let (filters, documents) = (index.filters.len(), index.documents);
                let reason = format!(
                    "up to this line it has {lines} lines of {documents} documents and {filters} filters, of which each has a line of \
                     nearly every document in the logs that are read"
                );
                return Err(records.error(place, reason));
            }
            let places = &mut index.places[filter];
            if places[document] != NOWHERE {
                index.bad += 1;
                let message = format!(
                    "the document {} of the filter {} stands in line {} already",
                    key.doc_id, index.filters[filter], places[document].number
                );
                each(Err(records.error(place, message)))?;
                continue;
            }
            places[document] = place;
        }
        Ok(index)
    }

    /// Checks that there may be another filter of this name.
    fn check(&self, name: &str, lines: usize) -> Result<(), LogFault> {
        check_name("the name of its filter", name)?;
        if self.filters.len() < MOST_FILTERS {
            return Ok(());
        }
        Err(match name.is_empty() {
            true => LogFault::Repeated { lines, most: MOST_FILTERS },
            false => LogFault::Filters { lines, most: MOST_FILTERS },
        })
    }

    /// The filter with fewest lines, their number and that of the filter with most, if they differ: every filter has a line for each
    /// document.
    pub fn uneven(&self) -> Option<(&str, usize, usize)> {
        let lines = self.places.iter().map(|places| places.iter().filter(|place| **place != NOWHERE).count());
        let counts: Vec<usize> = lines.collect();
        let most = counts.iter().copied().max()?;
        let (name, fewest) = self.filters.iter().zip(&counts).min_by_key(|(_, count)| **count)?;
        (*fewest < most).then_some((name, *fewest, most))
    }

    /// Smallest and largest number of lines that a document has.
    pub fn lines_per_document(&self) -> [usize; 2] {
        let lines = (0..self.documents).map(|document| self.places(document).count());
        [lines.clone().min().unwrap_or(0), lines.max().unwrap_or(0)]
    }

    /// Filters of a document with the places of their lines.
    pub fn places(&self, document: usize) -> impl Iterator<Item = (usize, Place)> {
        let place = move |(filter, places): (usize, &Vec<Place>)| Some((filter, *places.get(document)?));
        self.places.iter().enumerate().filter_map(place).filter(|(_, place)| *place != NOWHERE)
    }
}
