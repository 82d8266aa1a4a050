//! Models with one random intercept, which adaptive quadrature can check.
use super::data::{Family, MixedData};
use super::design::Values;
use super::diagnosis::MixedDiagnosis;
use super::result::MixedFit;
use crate::glmm::{self, GlmmData, GlmmOptions, GlmmRows, Term};

/// Number of points of the quadrature that a fit is compared with.
const POINTS: usize = 25;

impl MixedData {
    /// The same data for quadrature, if the only random effect is one intercept and there is an intercept among the fixed effects.
    fn one_intercept(&self) -> Option<GlmmData> {
        let [grouping] = &self.groupings[..] else { return None };
        let [block] = &grouping.blocks[..] else { return None };
        let [only] = &block.columns[..] else { return None };
        let (intercept, effects) = self.columns.split_first()?;
        if self.family != Family::Binomial || !only.pieces.is_empty() || !intercept.pieces.is_empty() {
            return None;
        }
        let values = Values::of(&self.frame, &self.formula.fixed).ok()?;
        let mut rows = GlmmRows::new(effects.len());
        for cell in 0..self.cells() {
            let row: Vec<f64> = effects.iter().map(|column| values.value(column, cell, None)).collect();
            rows.push(self.total[cell], self.weight[cell], &row, grouping.of_cell[cell]);
        }
        // Columns that are all but collinear are too much for the quadrature's scaling; there is no comparison then.
        rows.finish(&effects.iter().map(|column| Term::Number(column.name.clone())).collect::<Vec<_>>()).ok()
    }
}

/// The warning that Laplace's approximation and a quadrature of the same model disagree, for models with one random intercept and up to
/// so many different rows.
pub fn approximations_disagree(data: &MixedData, fit: &MixedFit, most_cells: usize) -> Option<MixedDiagnosis> {
    if !fit.is_usable() || data.cells() > most_cells {
        return None;
    }
    let data = data.one_intercept()?;
    let fitted = |points| glmm::fit(&data, &GlmmOptions::quadrature(points)).ok();
    glmm::disagreement(&fitted(1)?, &fitted(POINTS)?).map(MixedDiagnosis::ApproximationsDisagree)
}

#[cfg(test)]
mod tests {
    use super::super::{Formula, Frame, MixedOptions, fit};
    use super::*;

    /// Groups of five rows under each of two conditions, in few of which anything is right.
    fn data(formula: &str) -> (MixedData, MixedFit) {
        let groups: Vec<String> = (0..600).map(|row| format!("g{}", row / 10)).collect();
        let mut frame = Frame::new();
        frame.texts("group", groups.iter().map(String::as_str)).unwrap();
        frame.texts("kind", (0..600).map(|row| if row % 2 == 0 { "base" } else { "new" })).unwrap();
        let right = |row: usize| (row / 10).is_multiple_of(20) && row % 10 < 7;
        frame.number("correct", (0..600).map(|row| f64::from(u8::from(right(row)))).collect()).unwrap();
        let formula: Formula = formula.parse().unwrap();
        let data = MixedData::new(&formula, &frame, Family::Binomial).unwrap();
        let fitted = fit(&data, &MixedOptions::default()).unwrap();
        (data, fitted)
    }

    #[test]
    fn a_formula_with_one_intercept_is_compared_with_quadrature() {
        let (rows, fitted) = data("correct ~ kind + (1|group)");
        let found = approximations_disagree(&rows, &fitted, 1000).unwrap().to_string();
        assert!(found.contains("Laplace and 25-point quadrature disagree"), "{found}");
        assert_eq!(approximations_disagree(&rows, &fitted, 10), None);
        // Two random effects have no quadrature.
        let (rows, fitted) = data("correct ~ kind + (1+kind|group)");
        assert_eq!(approximations_disagree(&rows, &fitted, 1000), None);
    }
}
