//! Columns that a formula speaks of.
use std::collections::HashMap;

use super::MixedError;

/// A column of a [`Frame`].
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    Number(Vec<f64>),
    Labels(Labels),
}

/// A column of labels.
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    /// Index into `levels` for every row.
    pub codes: Vec<u32>,
    /// Different labels, the reference level first.
    pub levels: Vec<String>,
}

/// Named columns of equal length without missing values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Frame {
    rows: usize,
    columns: Vec<(String, Column)>,
    /// Times that each row was there; empty for once each.
    counts: Vec<f64>,
}

impl Frame {
    /// A frame without columns.
    pub fn new() -> Self {
        Frame::default()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Says how often each row was there, in a frame whose equal rows were merged.
    ///
    /// # Panics
    /// If there are more or fewer counts than rows.
    pub fn counted(&mut self, counts: Vec<f64>) {
        assert_eq!(counts.len(), self.rows, "a count for every row");
        self.counts = counts;
    }

    /// Times that a row was there.
    pub(super) fn count(&self, row: usize) -> f64 {
        self.counts.get(row).copied().unwrap_or(1.0)
    }

    /// Names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|(name, _)| name.as_str())
    }

    /// Adds a column of finite numbers.
    pub fn number(&mut self, name: &str, values: Vec<f64>) -> Result<(), MixedError> {
        if let Some(row) = values.iter().position(|value| !value.is_finite()) {
            return Err(MixedError::NotFinite { column: name.to_owned(), row: row + 1, value: values[row] });
        }
        self.insert(name, values.len(), Column::Number(values))
    }

    /// Adds a column of labels: codes into `levels`. Levels are sorted, numbers by size, then texts by their letters;
    /// labels that no row has are left out.
    pub fn labels(&mut self, name: &str, codes: Vec<u32>, levels: Vec<String>) -> Result<(), MixedError> {
        let mut used = vec![false; levels.len()];
        for &code in &codes {
            used[code as usize] = true;
        }
        let mut order: Vec<usize> = (0..levels.len()).filter(|&level| used[level]).collect();
        order.sort_by(|&left, &right| by_label(&levels[left], &levels[right]));
        let mut new = vec![0; levels.len()];
        for (index, &level) in order.iter().enumerate() {
            new[level] = index as u32;
        }
        let codes: Vec<u32> = codes.into_iter().map(|code| new[code as usize]).collect();
        let mut levels: Vec<Option<String>> = levels.into_iter().map(Some).collect();
        let levels = order.iter().filter_map(|&level| levels[level].take()).collect();
        self.insert(name, codes.len(), Column::Labels(Labels { codes, levels }))
    }

    /// Adds a column of texts as labels.
    pub fn texts<'t>(&mut self, name: &str, texts: impl IntoIterator<Item = &'t str>) -> Result<(), MixedError> {
        let mut code_of: HashMap<&str, u32> = HashMap::new();
        let mut levels = Vec::new();
        let mut codes = Vec::new();
        for text in texts {
            codes.push(*code_of.entry(text).or_insert_with(|| {
                levels.push(text.to_owned());
                levels.len() as u32 - 1
            }));
        }
        self.labels(name, codes, levels)
    }

    fn insert(&mut self, name: &str, rows: usize, column: Column) -> Result<(), MixedError> {
        if self.columns.iter().any(|(known, _)| known == name) {
            return Err(MixedError::Twice { column: name.to_owned() });
        }
        if !self.columns.is_empty() && rows != self.rows {
            return Err(MixedError::Length { column: name.to_owned(), expected: self.rows, found: rows });
        }
        self.rows = rows;
        self.columns.push((name.to_owned(), column));
        Ok(())
    }

    /// Makes a level the reference that others of the column are compared with.
    pub fn reference(&mut self, name: &str, level: &str) -> Result<(), MixedError> {
        let present = self.present();
        let Some((_, column)) = self.columns.iter_mut().find(|(known, _)| known == name) else {
            return Err(MixedError::NoColumn { column: name.to_owned(), present });
        };
        let Column::Labels(labels) = column else {
            return Err(MixedError::NumberReference { column: name.to_owned() });
        };
        let Some(found) = labels.levels.iter().position(|known| known == level) else {
            let present = labels.levels.join(", ");
            return Err(MixedError::NoLevel { column: name.to_owned(), level: level.to_owned(), present });
        };
        labels.levels[..=found].rotate_right(1);
        for code in &mut labels.codes {
            *code = match *code as usize {
                code if code == found => 0,
                code if code < found => code as u32 + 1,
                code => code as u32,
            };
        }
        Ok(())
    }

    fn present(&self) -> String {
        self.names().collect::<Vec<_>>().join(", ")
    }

    pub fn column(&self, name: &str) -> Result<&Column, MixedError> {
        let found = self.columns.iter().find(|(known, _)| known == name);
        found
            .map(|(_, column)| column)
            .ok_or_else(|| MixedError::NoColumn { column: name.to_owned(), present: self.present() })
    }

    /// The column as labels; numbers become labels of their values.
    pub(crate) fn as_labels(&self, name: &str) -> Result<Labels, MixedError> {
        match self.column(name)? {
            Column::Labels(labels) => Ok(labels.clone()),
            Column::Number(values) => {
                let mut frame = Frame::new();
                let texts: Vec<String> = values.iter().map(f64::to_string).collect();
                frame.texts(name, texts.iter().map(String::as_str))?;
                match frame.column(name)? {
                    Column::Labels(labels) => Ok(labels.clone()),
                    Column::Number(_) => Err(MixedError::NoColumn { column: name.to_owned(), present: self.present() }),
                }
            }
        }
    }

    /// The frame of some rows, in their order. Levels stay, also those that no row has any more.
    pub fn picked(&self, rows: &[usize]) -> Frame {
        let pick = |column: &Column| match column {
            Column::Number(values) => Column::Number(rows.iter().map(|&row| values[row]).collect()),
            Column::Labels(labels) => Column::Labels(Labels {
                codes: rows.iter().map(|&row| labels.codes[row]).collect(),
                levels: labels.levels.clone(),
            }),
        };
        let columns = self.columns.iter().map(|(name, column)| (name.clone(), pick(column))).collect();
        Frame { rows: rows.len(), columns, counts: Vec::new() }
    }
}

impl Frame {
    /// The frame with other labels in a column.
    pub(super) fn relabelled(mut self, name: &str, codes: Vec<u32>, levels: Vec<String>) -> Frame {
        if let Some((_, column)) = self.columns.iter_mut().find(|(known, _)| known == name) {
            *column = Column::Labels(Labels { codes, levels });
        }
        self
    }

    /// The frame without the labels of a column that no row has.
    pub(super) fn compacted(self, name: &str) -> Frame {
        let Ok(Column::Labels(Labels { codes, levels })) = self.column(name) else { return self };
        let mut used = vec![false; levels.len()];
        codes.iter().for_each(|&code| used[code as usize] = true);
        let mut next = 0;
        let new: Vec<u32> = used
            .iter()
            .map(|used| {
                if *used {
                    next += 1;
                    next - 1
                } else {
                    u32::MAX
                }
            })
            .collect();
        let codes = codes.iter().map(|&code| new[code as usize]).collect();
        let levels = levels.iter().zip(&used).filter(|(_, used)| **used).map(|(level, _)| level.clone()).collect();
        self.relabelled(name, codes, levels)
    }
}

/// Order of labels: numbers by size, then texts by their letters.
fn by_label(left: &str, right: &str) -> std::cmp::Ordering {
    match (left.parse::<f64>(), right.parse::<f64>()) {
        (Ok(one), Ok(other)) => one.total_cmp(&other).then_with(|| left.cmp(right)),
        (Ok(_), Err(_)) => std::cmp::Ordering::Less,
        (Err(_), Ok(_)) => std::cmp::Ordering::Greater,
        (Err(_), Err(_)) => left.cmp(right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_sorted_and_the_reference_comes_first() {
        let mut frame = Frame::new();
        frame.texts("model", ["c", "a", "b", "a"]).unwrap();
        let labels = |frame: &Frame| frame.as_labels("model").unwrap();
        assert_eq!(labels(&frame).levels, ["a", "b", "c"]);
        assert_eq!(labels(&frame).codes, [2, 0, 1, 0]);
        frame.reference("model", "b").unwrap();
        assert_eq!(labels(&frame).levels, ["b", "a", "c"]);
        assert_eq!(labels(&frame).codes, [2, 1, 0, 1]);
        assert!(frame.reference("model", "d").unwrap_err().to_string().contains("b, a, c"));
        assert!(frame.reference("size", "d").unwrap_err().to_string().contains("no column `size`"));
        frame.number("x", vec![10.0, 9.0, 1.0, 9.0]).unwrap();
        assert!(matches!(frame.reference("x", "9"), Err(MixedError::NumberReference { .. })));
        assert_eq!(frame.as_labels("x").unwrap().levels, ["1", "9", "10"]);
        assert!(matches!(frame.number("z", vec![1.0]), Err(MixedError::Length { .. })));
        assert!(matches!(frame.number("z", vec![f64::NAN; 4]), Err(MixedError::NotFinite { row: 1, .. })));
    }
}
