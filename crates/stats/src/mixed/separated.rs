//! Separation of a mixed model's outcomes by its fixed effects.
use std::collections::HashMap;

use super::data::MixedData;
use super::design::{DesignColumn, INTERCEPT};
use super::diagnosis::MixedDiagnosis;
use crate::glmm::GlmmData;
use crate::glmm::separation::by_fixed_effects;

/// Part of a direction's largest coefficient from which a column belongs to it.
const PART: f64 = 1e-6;

/// The columns along which fixed effects predict outcomes perfectly; none if outcomes overlap everywhere.
pub(super) fn separation(data: &MixedData) -> Option<MixedDiagnosis> {
    // Random effects do not matter, so cells of equal fixed effects are merged.
    let columns = data.columns();
    let mut index_of: HashMap<Vec<u64>, usize> = HashMap::new();
    let (mut design, mut successes, mut trials) = (Vec::new(), Vec::new(), Vec::new());
    for cell in 0..data.cells() {
        let x = data.fixed.cell(cell);
        let next = successes.len();
        let place = *index_of.entry(x.iter().map(|x| x.to_bits()).collect()).or_insert(next);
        if place == next {
            design.extend_from_slice(x);
            successes.push(0.0);
            trials.push(0.0);
        }
        successes[place] += data.total[cell];
        trials[place] += data.weight[cell];
    }
    let found = by_fixed_effects(&GlmmData::of_design(columns, design, successes, trials))?;
    let mut separated = vec![false; columns];
    for direction in &found.directions {
        let direction = data.fixed.to_caller.times(direction);
        let largest = direction.iter().fold(0.0_f64, |largest, part| largest.max(part.abs()));
        separated.iter_mut().zip(&direction).for_each(|(separated, part)| *separated |= part.abs() > PART * largest);
    }
    let names = data.columns.iter().zip(&separated).filter(|(_, separated)| **separated);
    Some(MixedDiagnosis::Separation {
        columns: names.map(|(column, _)| column.name.clone()).collect(),
        complete: found.overlapping.iter().all(|overlapping| !overlapping),
    })
}

/// By coefficient, the unit of its log-F prior: 1 for separated columns of 0 and 1, the standard deviation of other separated columns, 0 for
/// all that is not separated and for the intercept, whose prior would pull the share of right answers to a half.
pub(super) fn separated_units(data: &MixedData, separation: &MixedDiagnosis) -> Vec<f64> {
    let MixedDiagnosis::Separation { columns, .. } = separation else { return vec![0.0; data.columns()] };
    let of = |(index, column): (usize, &DesignColumn)| {
        if column.name == INTERCEPT || !columns.contains(&column.name) {
            return 0.0;
        }
        let fixed = &data.fixed;
        let value = |cell: usize| -> f64 {
            (0..=index).map(|inner| fixed.from_caller.get(inner, index) * fixed.cell(cell)[inner]).sum()
        };
        let near = |value: f64, whole: f64| (value - whole).abs() < 1e-6;
        if (0..data.cells()).all(|cell| near(value(cell), 0.0) || near(value(cell), 1.0)) {
            return 1.0;
        }
        let rows = data.rows as f64;
        let mean = (0..data.cells()).map(|cell| data.weight[cell] * value(cell)).sum::<f64>() / rows;
        let squares = (0..data.cells()).map(|cell| data.weight[cell] * (value(cell) - mean).powi(2)).sum::<f64>();
        (squares / rows).sqrt()
    };
    data.columns.iter().enumerate().map(of).collect()
}
