//! The pass over all rows before a run: every row becomes an item once, so that what is wrong is said before a model is loaded.
use crate::counted;
use std::collections::{HashMap, HashSet};

use rayon::prelude::*;

use super::columns::Problem;
use super::compiled::{Made, Task};
use super::reader::{self, LimitReached, Wanted};
use super::{hash, order};
use crate::suite::Item;
use crate::suite::registry::{HostError, OptionError, Row, Rows};

/// Rows that are made into items at a time.
const BATCH: usize = 4_096;

/// Rows after which a file is given up if none of them can be asked: it is another file, or its columns are others.
pub(super) const GIVEN_UP: usize = 100_000;

/// Problems that are shown.
const SHOWN: usize = 5;

/// Order and faults of the rows, without their texts.
#[derive(Debug, Clone, Default)]
pub(super) struct Passed {
    /// Rows in the order of the items.
    pub order: Vec<u32>,
    /// Hashes of digest ids that several rows have.
    pub repeated: HashSet<u64>,
    /// Rows that were left out, and messages about the first of them.
    pub left_out: usize,
    /// True if a row has a label of its cluster.
    pub labelled: bool,
    /// Rows whose expected answers are compared as texts, among numbers.
    pub texts: usize,
    pub problems: Vec<String>,
}

/// Reason for a row not being asked.
#[derive(Debug, Clone, thiserror::Error)]
pub(super) enum NotAsked {
    /// The row cannot be read, as the error says with its place.
    #[error(transparent)]
    Unread(#[from] HostError),
    #[error("{place}: {problem}")]
    Problem { place: String, problem: Problem },
    #[error(transparent)]
    Limit(#[from] LimitReached),
}

impl NotAsked {
    /// A problem of a row.
    pub(super) fn at(row: &Row, problem: Problem) -> Self {
        NotAsked::Problem { place: row.place.clone(), problem }
    }
}

/// Facts of one row.
struct Facts {
    id: u64,
    digest: bool,
    text: bool,
    cluster: Option<u64>,
    task: Option<u64>,
}

impl Facts {
    fn of(made: &Made, name: &str) -> Self {
        let Item { id, cluster, task, .. } = &made.item;
        Facts {
            id: hash::of(id),
            digest: made.digest,
            text: made.text,
            cluster: made.labelled.then(|| hash::of(cluster)),
            task: (task != name).then(|| hash::of(task)),
        }
    }
}

impl Passed {
    /// Makes all rows into items once. Rows that cannot become items are left out and counted.
    ///
    /// # Errors
    /// A limit that the templates reach.
    pub(super) fn over(task: &Task, rows: &dyn Rows) -> Result<Self, LimitReached> {
        let mut passed = Passed::default();
        let count = rows.len();
        // By row. Clusters and tasks are kept from the first row on that has one of its own.
        let (mut ids, mut digests) = (vec![0; count], vec![false; count]);
        let (mut clusters, mut tasks): (Option<Vec<u64>>, Option<Vec<u64>>) = (None, None);
        let facts = |numbers: &[usize]| -> Result<Vec<Result<Facts, NotAsked>>, LimitReached> {
            let mut all = Vec::with_capacity(numbers.len());
            task.reader.each(rows, numbers.iter().copied(), Wanted::Item, |_, found| {
                all.push(found.map_err(NotAsked::from).and_then(|(row, taken)| {
                    let made = taken.and_then(|taken| task.item(row, taken));
                    Ok(Facts::of(&made.map_err(|problem| NotAsked::at(row, problem))?, &task.name))
                }));
            })?;
            Ok(all)
        };
        for start in (0..count).step_by(BATCH) {
            let end = count.min(start + BATCH);
            let numbers: Vec<usize> = (start..end).collect();
            let batch = numbers.par_chunks(reader::BATCH).map(facts).collect::<Result<Vec<_>, _>>()?;
            let batch: Vec<Result<Facts, NotAsked>> = batch.into_iter().flatten().collect();
            for (number, found) in (start..end).zip(batch) {
                let found = match found {
                    Ok(found) => found,
                    Err(reason) => {
                        passed.leave_out(reason.to_string());
                        continue;
                    }
                };
                passed.order.push(number as u32);
                passed.texts += usize::from(found.text);
                ids[number] = found.id;
                digests[number] = found.digest;
                if found.cluster.is_some() && clusters.is_none() {
                    clusters = Some(ids.clone());
                }
                if let Some(clusters) = &mut clusters {
                    clusters[number] = found.cluster.unwrap_or(found.id);
                }
                if found.task.is_some() && tasks.is_none() {
                    tasks = Some(vec![0; count]);
                }
                if let (Some(tasks), Some(task)) = (&mut tasks, found.task) {
                    tasks[number] = task;
                }
            }
            if passed.order.is_empty() && passed.left_out >= GIVEN_UP {
                passed.problems.push(not_looked_at(count - end));
                break;
            }
        }
        passed.labelled = clusters.is_some();
        passed.settle_repeated(task, rows, &ids, &digests);
        for (groups, rotate) in [(clusters, true), (tasks, false)] {
            let Some(groups) = groups else { continue };
            order::round_robin(&mut passed.order, rotate, |row| groups[row as usize]);
        }
        Ok(passed)
    }

    /// Leaves rows out that repeat an id of the file, and notes the questions that several rows have.
    fn settle_repeated(&mut self, task: &Task, rows: &dyn Rows, ids: &[u64], digests: &[bool]) {
        let mut sorted: Vec<u64> = self.order.iter().map(|&row| ids[row as usize]).collect();
        sorted.sort_unstable();
        let repeated: HashSet<u64> = sorted.windows(2).filter(|two| two[0] == two[1]).map(|two| two[0]).collect();
        if repeated.is_empty() {
            return;
        }
        let mut first: HashMap<u64, u32> = HashMap::new();
        let mut again: Vec<(u32, u32)> = Vec::new();
        for &row in &self.order {
            let id = ids[row as usize];
            if !repeated.contains(&id) {
                continue;
            }
            if digests[row as usize] {
                self.repeated.insert(id);
            } else if let Some(earlier) = first.get(&id) {
                again.push((row, *earlier));
            } else {
                first.insert(id, row);
            }
        }
        let dropped: HashSet<u32> = again.iter().map(|(row, _)| *row).collect();
        self.order.retain(|row| !dropped.contains(row));
        for (row, earlier) in again {
            let message =
                if self.problems.len() < SHOWN { repetition(task, rows, row, earlier) } else { String::new() };
            self.leave_out(message);
        }
    }

    fn leave_out(&mut self, problem: String) {
        self.left_out += 1;
        if self.problems.len() < SHOWN {
            self.problems.push(problem);
        }
    }

    /// Refuses rows that were left out, unless that is what the user wants.
    ///
    /// # Errors
    /// One that counts them and shows the first ones.
    pub(super) fn check(&self, rows: &dyn Rows, skip: bool) -> Result<(), OptionError> {
        if self.order.is_empty() && self.left_out == 0 {
            let files: Vec<String> = rows.files().iter().map(|file| file.path.display().to_string()).collect();
            return Err(OptionError::usage(format!("{} has no questions", files.join(", "))));
        }
        if self.left_out == 0 || (skip && !self.order.is_empty()) {
            return Ok(());
        }
        let mut message = format!("{} of {} cannot be asked:", self.left_out, counted(rows.len(), "question"));
        for problem in &self.problems {
            message += "\n  ";
            message += problem;
        }
        if self.left_out > self.problems.len() {
            message += "\n  ...";
        }
        let help = match self.order.is_empty() {
            true => {
                "`earnest tasks check FILE` says what is read from which column; a task file (`earnest tasks new NAME`) names the columns"
            }
            false => "the setting `skip_bad_rows` leaves them out; `earnest tasks check FILE` checks the whole file",
        };
        Err(OptionError::usage(message).help(help))
    }
}

/// Note on the rows that were not looked at because none of the first ones can be asked.
pub(super) fn not_looked_at(left: usize) -> String {
    format!("none of the first rows can be asked, so {} were not looked at", counted(left, "row"))
}

fn repetition(task: &Task, rows: &dyn Rows, row: u32, earlier: u32) -> String {
    let (Ok(row), Ok(earlier)) = (rows.row(row as usize), rows.row(earlier as usize)) else {
        return "an id occurs twice".to_owned();
    };
    let taken = task.reader.take(std::iter::once(&row), Wanted::Item).ok().and_then(|mut taken| taken.pop());
    let made = taken.and_then(|taken| task.item(&row, taken.ok()?).ok());
    let id = made.map(|made| made.item.id).unwrap_or_default();
    NotAsked::at(&row, Problem::new("id", format!("{id} is also the id of {}", earlier.place))).to_string()
}
