//! Predictions of a fitted model.
use serde::Serialize;

use super::MixedError;
use super::data::{Family, MixedData};
use super::frame::Column;
use super::laplace::logistic;
use super::result::MixedFit;
use super::rule::of_normal;
use super::theta::Theta;

/// Predictions for a different row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// Values of the formula's columns, in the order of [`super::Formula::variables`].
    pub values: Vec<String>,
    /// Rows that are so.
    pub rows: usize,
    /// Mean of their responses.
    pub observed: f64,
    /// The mean response in these groups, at the modes of their random effects.
    pub conditional: f64,
    /// The mean response in new groups, averaged over the random effects.
    pub population: f64,
}

/// Predictions for all different rows.
pub fn predictions(data: &MixedData, fit: &MixedFit) -> Result<Vec<Prediction>, MixedError> {
    let Some(beta) = fit.estimates() else {
        return Err(MixedError::NotEstimated { reason: "the model has no finite estimates, so no predictions".into() });
    };
    let theta = Theta::new(data);
    let lambda = theta.factors(&fit.at[..theta.len()]);
    let beta = data.fixed.from_caller.times(&beta);
    let variables = data.formula.variables();
    let columns = variables.iter().map(|name| data.frame.column(name)).collect::<Result<Vec<_>, _>>()?;
    let of_cell = |cell: usize| {
        let fixed: f64 = data.fixed.cell(cell).iter().zip(&beta).map(|(x, beta)| x * beta).sum();
        let (mut shift, mut variance) = (0.0, 0.0);
        let mut modes = fit.modes.iter();
        for (grouping, lambda) in data.groupings.iter().zip(&lambda) {
            let z = grouping.cell(cell);
            let group = grouping.of_cell[cell] as usize;
            for block in &grouping.blocks {
                let Some(own) = modes.next() else { continue };
                for (index, mode) in own.modes[group].iter().enumerate() {
                    let position = block.start + index;
                    shift += z[position] * grouping.scale[position] * mode;
                    let carried: f64 =
                        (position..grouping.width).map(|row| lambda[row * grouping.width + position] * z[row]).sum();
                    variance += carried * carried;
                }
            }
        }
        let (conditional, population) = match data.family {
            Family::Gaussian => (fixed + shift, fixed),
            Family::Binomial => {
                let mean = |(node, weight): (f64, f64)| weight * logistic(fixed + variance.sqrt() * node).1;
                (logistic(fixed + shift).1, of_normal(variance.sqrt()).into_iter().map(mean).sum())
            }
        };
        let value = |column: &&Column| match column {
            Column::Number(values) => values[cell].to_string(),
            Column::Labels(labels) => labels.levels[labels.codes[cell] as usize].clone(),
        };
        Prediction {
            values: columns.iter().map(value).collect(),
            rows: data.weight[cell] as usize,
            observed: data.total[cell] / data.weight[cell],
            conditional,
            population,
        }
    };
    Ok((0..data.cells()).map(of_cell).collect())
}
