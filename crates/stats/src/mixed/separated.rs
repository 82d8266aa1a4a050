//! Separation of a mixed model's outcomes by its fixed effects.
use std::collections::HashMap;

use super::data::MixedData;
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
