//! Columns of a design matrix, by the rules of R's `model.matrix` with treatment contrasts.
use super::MixedError;
use super::formula::Terms;
use super::frame::{Column, Frame};

/// The name of the constant column.
pub const INTERCEPT: &str = "(Intercept)";

/// Most columns of a design.
const MOST_COLUMNS: usize = 500;

/// A column of a design matrix: a product of numbers and of indicators of levels.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DesignColumn {
    pub(super) name: String,
    pub(super) pieces: Vec<Piece>,
    /// Index into the terms' products; none for the intercept.
    pub(super) term: Option<usize>,
}

/// A factor of a product. `variable` is an index into the terms' variables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Piece {
    Number { variable: usize },
    Level { variable: usize, level: u32 },
}

/// Values of the variables of a design.
pub(super) struct Values<'f> {
    pub(super) columns: Vec<&'f Column>,
}

impl<'f> Values<'f> {
    pub(super) fn of(frame: &'f Frame, terms: &Terms) -> Result<Self, MixedError> {
        let columns = terms.variables.iter().map(|name| frame.column(name)).collect::<Result<_, _>>()?;
        Ok(Values { columns })
    }

    /// The value of a design column in a row. `changed` is a variable and the level that it has instead.
    pub(super) fn value(&self, column: &DesignColumn, row: usize, changed: Option<(usize, u32)>) -> f64 {
        let piece = |piece: &Piece| match *piece {
            Piece::Number { variable } => match self.columns[variable] {
                Column::Number(values) => values[row],
                Column::Labels(labels) => f64::from(labels.codes[row]),
            },
            Piece::Level { variable, level } => {
                let found = match (changed, self.columns[variable]) {
                    (Some((other, instead)), _) if other == variable => instead,
                    (_, Column::Labels(labels)) => labels.codes[row],
                    (_, Column::Number(_)) => u32::MAX,
                };
                f64::from(u8::from(found == level))
            }
        };
        column.pieces.iter().map(piece).product()
    }
}

/// Columns of the design of these terms, the intercept first.
///
/// A factor of a product is coded by contrasts (every level but the reference) if the product without it is among the terms
/// before, otherwise by an indicator of every level; without an intercept the first factor has all its levels (R's
/// `TermCode` and `model.matrix`). The first column of a product varies fastest.
pub(super) fn columns(terms: &Terms, frame: &Frame) -> Result<Vec<DesignColumn>, MixedError> {
    let values = Values::of(frame, terms)?;
    let levels = |variable: usize| match values.columns[variable] {
        Column::Number(_) => None,
        Column::Labels(labels) => Some(&labels.levels),
    };
    for (variable, name) in terms.variables.iter().enumerate() {
        if let Some(levels) = levels(variable).filter(|levels| levels.len() > MOST_COLUMNS) {
            return Err(MixedError::ManyLevels { column: name.clone(), levels: levels.len() });
        }
    }
    let mut found = Vec::new();
    if terms.intercept {
        found.push(DesignColumn { name: INTERCEPT.to_owned(), pieces: Vec::new(), term: None });
    }
    // Without an intercept, the first factor of the first product with one stands for it.
    let mut missing = !terms.intercept;
    for (index, term) in terms.terms.iter().enumerate() {
        let mut parts: Vec<(String, Vec<Piece>)> = vec![(String::new(), Vec::new())];
        for &variable in term {
            let name = &terms.variables[variable];
            let options: Vec<(String, Piece)> = match levels(variable) {
                None => vec![(name.clone(), Piece::Number { variable })],
                Some(levels) => {
                    let all = std::mem::take(&mut missing) || needs_all(terms, index, variable);
                    let coded = levels.iter().enumerate().skip(usize::from(!all));
                    let option = |(level, text): (usize, &String)| {
                        (format!("{name}{text}"), Piece::Level { variable, level: level as u32 })
                    };
                    coded.map(option).collect()
                }
            };
            if parts.len() * options.len() > MOST_COLUMNS {
                return Err(MixedError::ManyColumns { term: shortened(&terms.name(term)), most: MOST_COLUMNS });
            }
            let join = |option: &(String, Piece)| {
                let joined = parts.iter().map(|(label, pieces)| {
                    let label = if label.is_empty() { option.0.clone() } else { format!("{label}:{}", option.0) };
                    (label, pieces.iter().copied().chain([option.1]).collect::<Vec<Piece>>())
                });
                joined.collect::<Vec<_>>()
            };
            parts = options.iter().flat_map(join).collect();
        }
        found.extend(parts.into_iter().map(|(name, pieces)| DesignColumn { name, pieces, term: Some(index) }));
    }
    let mut names = std::collections::HashSet::new();
    if let Some(twice) = found.iter().find(|column| !names.insert(&column.name)) {
        return Err(MixedError::Twice { column: twice.name.clone() });
    }
    if found.len() > MOST_COLUMNS {
        return Err(MixedError::ManyColumns { term: shortened(&terms.to_string()), most: MOST_COLUMNS });
    }
    Ok(found)
}

/// The beginning of a text that may be long.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 100;
    let beginning: String = text.chars().take(SHOWN).collect();
    if beginning.len() < text.len() { format!("{beginning}...") } else { beginning }
}

/// True if a factor of a product is coded by all its levels.
fn needs_all(terms: &Terms, index: usize, variable: usize) -> bool {
    let rest: Vec<usize> = terms.terms[index].iter().copied().filter(|other| *other != variable).collect();
    !rest.is_empty() && !terms.terms[..index].iter().any(|earlier| rest.iter().all(|other| earlier.contains(other)))
}

/// Range of a column over that without its most extreme value beyond which the others are one value to the last digit.
const FARTHEST: f64 = 1e7;

/// Refuses a column of numbers of which one is so far from all others that these cannot be told apart.
pub(super) fn check_scale(name: &str, column: &Column) -> Result<(), MixedError> {
    let Column::Number(values) = column else { return Ok(()) };
    let of = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
    };
    let (low, high) = of(&mut values.iter().copied());
    for extreme in [low, high] {
        let (rest_low, rest_high) = of(&mut values.iter().copied().filter(|value| *value != extreme));
        let rest = rest_high - rest_low;
        if rest > 0.0 && high - low > FARTHEST * rest {
            return Err(MixedError::FarValue {
                column: name.to_owned(),
                value: extreme,
                low: rest_low,
                high: rest_high,
            });
        }
    }
    Ok(())
}

/// Refuses a column that has one value.
pub(super) fn check_varies(name: &str, column: &Column) -> Result<(), MixedError> {
    let constant = match column {
        Column::Number(values) => match values.first() {
            Some(first) if values.iter().all(|value| value == first) => Some(first.to_string()),
            _ => None,
        },
        Column::Labels(labels) if labels.levels.len() < 2 => Some(labels.levels.first().cloned().unwrap_or_default()),
        Column::Labels(_) => None,
    };
    match constant {
        Some(value) => Err(MixedError::Constant { column: name.to_owned(), value }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::formula::Formula;
    use super::*;

    fn frame() -> Frame {
        let mut frame = Frame::new();
        frame.texts("a", ["p", "q", "p", "q", "r", "r"]).unwrap();
        frame.texts("b", ["u", "u", "v", "v", "u", "v"]).unwrap();
        frame.number("x", vec![1.0, 2.0, 3.0, 4.0, 5.0, 7.0]).unwrap();
        frame
    }

    fn names(text: &str) -> String {
        let formula: Formula = format!("y ~ {text}").parse().unwrap();
        let columns = columns(&formula.fixed, &frame()).unwrap();
        columns.iter().map(|column| column.name.as_str()).collect::<Vec<_>>().join(" ")
    }

    /// Names as R 4.2's `colnames(model.matrix(~ ...))` has them.
    #[test]
    fn columns_are_those_of_r() {
        assert_eq!(names("a*b"), "(Intercept) aq ar bv aq:bv ar:bv");
        assert_eq!(names("0 + a"), "ap aq ar");
        assert_eq!(names("0 + a + b"), "ap aq ar bv");
        assert_eq!(names("0 + x + a"), "x ap aq ar");
        assert_eq!(names("0 + a:b"), "ap:bu aq:bu ar:bu ap:bv aq:bv ar:bv");
        assert_eq!(names("a:b"), "(Intercept) ap:bu aq:bu ar:bu ap:bv aq:bv ar:bv");
        assert_eq!(names("a + a:b"), "(Intercept) aq ar ap:bv aq:bv ar:bv");
        assert_eq!(names("a:x"), "(Intercept) ap:x aq:x ar:x");
        assert_eq!(names("a*x"), "(Intercept) aq ar x aq:x ar:x");
        assert_eq!(names("0 + a:x"), "ap:x aq:x ar:x");
        assert_eq!(names("0 + a*b"), "ap aq ar bv aq:bv ar:bv");
    }

    #[test]
    fn values_are_products_of_the_pieces() {
        let formula: Formula = "y ~ a*x".parse().unwrap();
        let frame = frame();
        let design = columns(&formula.fixed, &frame).unwrap();
        let values = Values::of(&frame, &formula.fixed).unwrap();
        let row = |row, changed| design.iter().map(|column| values.value(column, row, changed)).collect::<Vec<_>>();
        assert_eq!(row(5, None), [1.0, 0.0, 1.0, 7.0, 0.0, 7.0]);
        assert_eq!(row(5, Some((0, 1))), [1.0, 1.0, 0.0, 7.0, 7.0, 0.0]);
    }
}
