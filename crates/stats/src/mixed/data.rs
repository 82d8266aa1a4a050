//! Rows of a mixed model, merged into cells and laid out for the fit.
use std::collections::HashMap;

use super::MixedError;
use super::design::{self, DesignColumn, Values};
use super::formula::{Formula, RandomTerm, Terms};
use super::frame::{Column, Frame, Labels};
use super::orthogonal::{Orthogonal, orthogonalise};

/// Distribution of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Outcomes 0 and 1 with the logit link.
    Binomial,
    /// Normal errors of equal variance with the identity link.
    Gaussian,
}

/// Largest value of a column: squares of larger ones are no numbers.
const LARGEST_VALUE: f64 = 1e100;

/// A model's data. Rows that agree in every column of the formula but the response are one cell, which does not change the
/// likelihood; a design of few conditions then costs the same however many rows it has.
#[derive(Debug, Clone)]
pub struct MixedData {
    pub(super) formula: Formula,
    pub(super) family: Family,
    pub(super) rows: usize,
    /// Columns of the formula, one row a cell.
    pub(super) frame: Frame,
    /// Rows of a cell.
    pub(super) weight: Vec<f64>,
    /// Sum of the responses of a cell.
    pub(super) total: Vec<f64>,
    /// Sum of squares of the responses around their cells' means.
    pub(super) within: f64,
    /// Fixed-effect columns that are kept, and names of the aliased ones.
    pub(super) columns: Vec<DesignColumn>,
    pub(super) dropped: Vec<String>,
    /// Left-out columns of the fixed effects, in the order of `dropped`.
    pub(super) aliased: Vec<DesignColumn>,
    /// Random effects that are 0 in every row, with their groups; left out.
    pub(super) empty: Vec<String>,
    /// Orthonormal columns of the fixed effects, cell-major, and their map to the caller's.
    pub(super) fixed: Orthogonal,
    /// Grouping factors, most groups first.
    pub(super) groupings: Vec<Grouping>,
}

/// A grouping factor with all random effects that vary by it.
#[derive(Debug, Clone)]
pub(super) struct Grouping {
    pub(super) name: String,
    /// Names of the groups.
    pub(super) levels: Vec<String>,
    /// Groups that a group stands for: 1, but in data whose equal groups are merged.
    pub(super) copies: Vec<f64>,
    /// Group of a cell.
    pub(super) of_cell: Vec<u32>,
    /// Number of random effects of a group.
    pub(super) width: usize,
    /// Values of the random effects' columns over their scales, cell-major.
    pub(super) design: Vec<f64>,
    pub(super) scale: Vec<f64>,
    pub(super) blocks: Vec<Block>,
}

/// Random effects of one term of the formula.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// Index into the formula's random terms.
    pub(super) term: usize,
    pub(super) columns: Vec<DesignColumn>,
    /// First of its columns within the grouping factor.
    pub(super) start: usize,
    pub(super) independent: bool,
}

impl Grouping {
    /// Values of the random effects' columns in a cell.
    pub(super) fn cell(&self, cell: usize) -> &[f64] {
        &self.design[cell * self.width..(cell + 1) * self.width]
    }
}

impl MixedData {
    /// Number of variances and correlations of the random effects.
    pub fn covariances(&self) -> usize {
        let of = |columns: usize, independent: bool| if independent { columns } else { columns * (columns + 1) / 2 };
        let blocks = self.groupings.iter().flat_map(|grouping| &grouping.blocks);
        blocks.map(|block| of(block.columns.len(), block.independent)).sum()
    }

    /// The data of a model.
    pub fn new(formula: &Formula, frame: &Frame, family: Family) -> Result<Self, MixedError> {
        if frame.rows() == 0 {
            return Err(MixedError::NoRows);
        }
        let response = response(formula, frame, family)?;
        for name in formula.variables() {
            check_size(name, frame.column(name)?)?;
        }
        if formula.random.is_empty() {
            let labels = |name: &&str| matches!(frame.column(name), Ok(Column::Labels(_)));
            let example = frame.names().filter(|name| *name != formula.response).find(labels).unwrap_or("cluster");
            return Err(MixedError::NoRandom { example: example.to_owned() });
        }
        if !formula.fixed.intercept && formula.fixed.terms.is_empty() {
            return Err(MixedError::NoFixed { response: formula.response.clone() });
        }
        let effects = formula.random.iter().flat_map(|term| &term.effects.variables);
        for name in formula.fixed.variables.iter().chain(effects) {
            design::check_varies(name, frame.column(name)?)?;
            design::check_scale(name, frame.column(name)?)?;
        }
        let (cell_of, first) = cells(formula, frame)?;
        let cells = first.len();
        let (mut weight, mut total) = (vec![0.0; cells], vec![0.0; cells]);
        for (row, (&cell, value)) in cell_of.iter().zip(response).enumerate() {
            weight[cell as usize] += frame.count(row);
            total[cell as usize] += frame.count(row) * value;
        }
        let mean = |cell: u32| total[cell as usize] / weight[cell as usize];
        let squares = |(row, (&cell, value)): (usize, (&u32, &f64))| frame.count(row) * (value - mean(cell)).powi(2);
        let within = cell_of.iter().zip(response).enumerate().map(squares).sum();
        MixedData::of_cells(formula, family, frame.picked(&first), (weight, total, within))
    }

    /// The data of a binomial model of numbers with a random intercept for each group: `response ~ fixed + (1 | group)`.
    pub fn of_columns(response: &[f64], fixed: &[(&str, &[f64])], group: &[u64]) -> Result<Self, MixedError> {
        let mut frame = Frame::new();
        frame.number("response", response.to_vec())?;
        for (name, values) in fixed {
            frame.number(name, values.to_vec())?;
        }
        let group: Vec<String> = group.iter().map(u64::to_string).collect();
        frame.texts("group", group.iter().map(String::as_str))?;
        let formula = Formula {
            response: "response".to_owned(),
            fixed: fixed.iter().fold(Terms::intercept(), |terms, (name, _)| terms.with(name)),
            random: vec![RandomTerm::intercept(&["group"])],
        };
        MixedData::new(&formula, &frame, Family::Binomial)
    }

    /// The data of these cells: columns of the formula, rows and sums of responses by cell, the sum of squares within cells.
    fn of_cells(
        formula: &Formula,
        family: Family,
        frame: Frame,
        (weight, total, within): (Vec<f64>, Vec<f64>, f64),
    ) -> Result<Self, MixedError> {
        let rows = weight.iter().sum::<f64>() as usize;
        let values = Values::of(&frame, &formula.fixed)?;
        let mut columns = design::columns(&formula.fixed, &frame)?;
        if columns.len() > rows {
            return Err(MixedError::FewRows { columns: columns.len(), rows });
        }
        let (fixed, kept) =
            orthogonalise(columns.len(), &weight, |cell, column| values.value(&columns[column], cell, None));
        let aliased: Vec<DesignColumn> =
            columns.iter().zip(&kept).filter(|(_, kept)| !**kept).map(|(column, _)| column.clone()).collect();
        let dropped: Vec<String> = aliased.iter().map(|column| column.name.clone()).collect();
        let mut kept = kept.into_iter();
        columns.retain(|_| kept.next().unwrap_or(false));
        if columns.is_empty() {
            return Err(MixedError::AllAliased);
        }
        let (groupings, empty) = groupings(formula, &frame, &weight, rows)?;
        let formula = formula.clone();
        Ok(MixedData {
            formula,
            family,
            rows,
            frame,
            weight,
            total,
            within,
            columns,
            dropped,
            aliased,
            empty,
            fixed,
            groupings,
        })
    }

    /// The same data with other random effects.
    pub(super) fn with_random(&self, random: Vec<RandomTerm>) -> Result<Self, MixedError> {
        let formula = Formula { random, ..self.formula.clone() };
        let cells = (self.weight.clone(), self.total.clone(), self.within);
        MixedData::of_cells(&formula, self.family, self.frame.clone(), cells)
    }

    /// The data of these cells of a binomial model. Columns that no longer vary are left out as aliased ones.
    pub(super) fn restricted(&self, cells: &[usize]) -> Result<MixedData, MixedError> {
        self.picked(cells, |frame| frame)
    }

    /// The data of these groups of a model with one grouping factor, by their indices; a group that comes twice is two groups.
    pub(crate) fn resampled(&self, groups: &[usize]) -> Result<MixedData, MixedError> {
        let [grouping] = &self.groupings[..] else {
            return Err(MixedError::NotEstimated { reason: "a resample of groups needs one grouping factor".into() });
        };
        let mut cells_of: Vec<Vec<usize>> = vec![Vec::new(); grouping.levels.len()];
        grouping.of_cell.iter().enumerate().for_each(|(cell, group)| cells_of[*group as usize].push(cell));
        let (mut cells, mut copies) = (Vec::new(), Vec::new());
        for (copy, &group) in groups.iter().enumerate() {
            cells.extend(&cells_of[group]);
            copies.resize(cells.len(), copy as u32);
        }
        let names = || (0..groups.len()).map(|copy| copy.to_string()).collect();
        let columns = self.formula.random.iter().flat_map(|term| &term.group);
        self.picked(&cells, |frame| columns.fold(frame, |frame, name| frame.relabelled(name, copies.clone(), names())))
    }

    fn picked(&self, cells: &[usize], relabel: impl FnOnce(Frame) -> Frame) -> Result<MixedData, MixedError> {
        let groups = self.formula.random.iter().flat_map(|term| &term.group);
        let frame = relabel(groups.fold(self.frame.picked(cells), |frame, name| frame.compacted(name)));
        let pick = |values: &[f64]| cells.iter().map(|&cell| values[cell]).collect::<Vec<f64>>();
        // Of outcomes 0 and 1 the squares within a cell follow from its sums.
        let (weight, total) = (pick(&self.weight), pick(&self.total));
        let within = weight.iter().zip(&total).map(|(weight, total)| total * (1.0 - total / weight)).sum();
        MixedData::of_cells(&self.formula, self.family, frame, (weight, total, within))
    }

    /// The same data with the random effects' columns of every block in another order.
    pub(super) fn reordered(&self, orders: &[Vec<usize>]) -> MixedData {
        let mut data = self.clone();
        let mut orders = orders.iter();
        for (grouping, old) in data.groupings.iter_mut().zip(&self.groupings) {
            for (block, before) in grouping.blocks.iter_mut().zip(&old.blocks) {
                let Some(order) = orders.next() else { continue };
                block.columns = order.iter().map(|&column| before.columns[column].clone()).collect();
                for (slot, &column) in order.iter().enumerate() {
                    let (new, from) = (block.start + slot, block.start + column);
                    grouping.scale[new] = old.scale[from];
                    for cell in 0..self.weight.len() {
                        grouping.design[cell * old.width + new] = old.design[cell * old.width + from];
                    }
                }
            }
        }
        data
    }

    /// Answers of the rarer outcome for each group of the grouping factor with the most groups, of a binomial model.
    pub fn rarer_outcomes(&self) -> f64 {
        let right: f64 = self.total.iter().sum();
        right.min(self.rows as f64 - right) / self.first_groups() as f64
    }

    /// Number of groups of the grouping factor with the most groups.
    pub fn first_groups(&self) -> usize {
        self.groupings[0].levels.len()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The group of every cell in a column of labels of the rows that the data were made from; none if a cell has rows of several groups.
    pub(crate) fn groups_of(&self, frame: &Frame, column: &str) -> Option<Vec<u32>> {
        let labels = frame.as_labels(column).ok()?;
        let (cell_of, _) = cells(&self.formula, frame).ok()?;
        let mut found: Vec<Option<u32>> = vec![None; self.cells()];
        for (&cell, &group) in cell_of.iter().zip(&labels.codes) {
            if *found.get_mut(cell as usize)?.get_or_insert(group) != group {
                return None;
            }
        }
        found.into_iter().collect()
    }

    /// The caller's value of a fixed-effect column in a cell, up to rounding.
    pub(super) fn value(&self, column: usize, cell: usize) -> f64 {
        let fixed = &self.fixed;
        (0..=column).map(|inner| fixed.from_caller.get(inner, column) * fixed.cell(cell)[inner]).sum()
    }

    /// The distance of the two values of a fixed-effect column; none if it has more.
    pub(crate) fn distance_of_two(&self, column: usize) -> Option<f64> {
        let values: Vec<f64> = (0..self.cells()).map(|cell| self.value(column, cell)).collect();
        let (low, high) =
            values.iter().fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(*value), high.max(*value)));
        let near = 1e-6 * (high - low);
        values.iter().all(|value| value - low <= near || high - value <= near).then_some(high - low)
    }

    /// Number of different rows.
    pub fn cells(&self) -> usize {
        self.weight.len()
    }

    /// Number of fixed-effect columns that are kept.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// The response's distribution.
    pub fn family(&self) -> Family {
        self.family
    }

    pub fn formula(&self) -> &Formula {
        &self.formula
    }
}

fn response<'f>(formula: &Formula, frame: &'f Frame, family: Family) -> Result<&'f [f64], MixedError> {
    let column = formula.response.clone();
    let values = match frame.column(&column)? {
        Column::Number(values) => values,
        Column::Labels(labels) => {
            return Err(MixedError::LabelResponse {
                column,
                level: labels.levels.first().cloned().unwrap_or_default(),
            });
        }
    };
    check_size(&column, frame.column(&column)?)?;
    if family == Family::Binomial
        && let Some(row) = values.iter().position(|value| *value != 0.0 && *value != 1.0)
    {
        return Err(MixedError::NotBinary { column, row: row + 1, value: values[row] });
    }
    Ok(values)
}

fn check_size(name: &str, column: &Column) -> Result<(), MixedError> {
    let Column::Number(values) = column else { return Ok(()) };
    match values.iter().find(|value| value.abs() > LARGEST_VALUE) {
        Some(&value) => Err(MixedError::TooLarge { column: name.to_owned(), value }),
        None => Ok(()),
    }
}

/// The cell of every row, and the first row of every cell.
fn cells(formula: &Formula, frame: &Frame) -> Result<(Vec<u32>, Vec<usize>), MixedError> {
    let mut cell_of = vec![0_u32; frame.rows()];
    let mut cells = 1_u32;
    for name in formula.variables() {
        let mut index_of: HashMap<(u32, u64), u32> = HashMap::new();
        let column = frame.column(name)?;
        for (row, cell) in cell_of.iter_mut().enumerate() {
            let value = match column {
                // 0 and -0 are one.
                Column::Number(values) => (values[row] + 0.0).to_bits(),
                Column::Labels(labels) => u64::from(labels.codes[row]),
            };
            let next = index_of.len() as u32;
            *cell = *index_of.entry((*cell, value)).or_insert(next);
        }
        cells = index_of.len() as u32;
    }
    let mut first = vec![usize::MAX; cells as usize];
    for (row, &cell) in cell_of.iter().enumerate() {
        first[cell as usize] = first[cell as usize].min(row);
    }
    Ok((cell_of, first))
}

/// Grouping factors with their random effects, most groups first and in order of appearance; and names of those that are 0 in every
/// row (an empty cell of an interaction), which are left out.
fn groupings(
    formula: &Formula,
    frame: &Frame,
    weight: &[f64],
    rows: usize,
) -> Result<(Vec<Grouping>, Vec<String>), MixedError> {
    let mut found: Vec<Grouping> = Vec::new();
    let mut empty = Vec::new();
    for (term, random) in formula.random.iter().enumerate() {
        let name = random.group_name();
        let slot = match found.iter().position(|grouping| grouping.name == name) {
            Some(slot) => slot,
            None => {
                let labels = group(frame, &random.group)?;
                match labels.levels.len() {
                    1 => return Err(MixedError::OneGroup { group: name }),
                    groups if groups == rows => return Err(MixedError::GroupEachRow { group: name, groups, rows }),
                    _ => {}
                }
                let (of_cell, levels) = (labels.codes, labels.levels);
                let copies = vec![1.0; levels.len()];
                let (width, design, scale, blocks) = (0, vec![], vec![], vec![]);
                found.push(Grouping { name, levels, copies, of_cell, width, design, scale, blocks });
                found.len() - 1
            }
        };
        let mut columns = design::columns(&random.effects, frame)?;
        let values = Values::of(frame, &random.effects)?;
        columns.retain(|column| {
            let has_values = (0..frame.rows()).any(|row| values.value(column, row, None) != 0.0);
            if !has_values {
                empty.push(format!("{} by {}", column.name, found[slot].name));
            }
            has_values
        });
        if columns.is_empty() {
            return Err(MixedError::EmptyEffect { group: found[slot].name.clone() });
        }
        let start = found[slot].width;
        found[slot].width += columns.len();
        found[slot].blocks.push(Block { term, columns, start, independent: random.independent });
    }
    found.sort_by_key(|grouping| std::cmp::Reverse(grouping.levels.len()));
    for grouping in &mut found {
        let cells = weight.len();
        grouping.design = vec![0.0; cells * grouping.width];
        grouping.scale = vec![1.0; grouping.width];
        for block in &grouping.blocks {
            let values = Values::of(frame, &formula.random[block.term].effects)?;
            for (index, column) in block.columns.iter().enumerate() {
                let slot = block.start + index;
                let of = |cell: usize| values.value(column, cell, None);
                let squares: f64 = (0..cells).map(|cell| weight[cell] * of(cell).powi(2)).sum();
                // Indicators keep their unit: only numbers have scales of their own.
                let is_number = column.pieces.iter().any(|piece| matches!(piece, design::Piece::Number { .. }));
                let scale = if is_number && squares > 0.0 { (squares / rows as f64).sqrt() } else { 1.0 };
                grouping.scale[slot] = scale;
                (0..cells).for_each(|cell| grouping.design[cell * grouping.width + slot] = of(cell) / scale);
            }
        }
    }
    Ok((found, empty))
}

/// Combinations of columns as labels joined by colons.
fn group(frame: &Frame, names: &[String]) -> Result<Labels, MixedError> {
    let parts = names.iter().map(|name| frame.as_labels(name)).collect::<Result<Vec<_>, _>>()?;
    let Some((first, rest)) = parts.split_first() else { return Err(MixedError::NoRows) };
    let mut joined = first.clone();
    for part in rest {
        let mut code_of: HashMap<(u32, u32), u32> = HashMap::new();
        let mut levels = Vec::new();
        let mut codes = Vec::with_capacity(joined.codes.len());
        for (&left, &right) in joined.codes.iter().zip(&part.codes) {
            codes.push(*code_of.entry((left, right)).or_insert_with(|| {
                levels.push(format!("{}:{}", joined.levels[left as usize], part.levels[right as usize]));
                levels.len() as u32 - 1
            }));
        }
        joined = Labels { codes, levels };
    }
    Ok(joined)
}
