//! Separation of a mixed model's outcomes by its fixed effects, and what can be estimated beside it.
use super::MixedError;
use super::cells::Cells;
use super::data::MixedData;
use super::design::{DesignColumn, INTERCEPT};
use super::diagnosis::{MixedDiagnosis, Unbounded};
use super::fit::{MixedOptions, fit};
use super::result::MixedFit;
use super::separation::{by_fixed_effects, by_groups};

/// Part of a direction's largest coefficient from which a column belongs to it.
const PART: f64 = 1e-6;

/// Outcomes that fixed effects predict perfectly.
pub(super) struct Separated {
    /// Coefficients that run away.
    pub(super) unbounded: Vec<Unbounded>,
    /// Cells whose outcomes are not predicted.
    pub(super) overlapping: Vec<usize>,
}

/// The columns along which fixed effects predict outcomes perfectly; none if outcomes overlap everywhere.
pub(super) fn separation(data: &MixedData) -> Option<Separated> {
    // Random effects do not matter, so cells of equal fixed effects are merged.
    let (cells, of_cell) = Cells::of_fixed_effects(data);
    let found = by_fixed_effects(&cells)?;
    let mut drift = vec![0.0; data.columns()];
    let mut separated = vec![false; data.columns()];
    for direction in &found.directions {
        let direction = data.fixed.to_caller.times(direction);
        let largest = direction.iter().fold(0.0_f64, |largest, part| largest.max(part.abs()));
        for ((drift, separated), part) in drift.iter_mut().zip(&mut separated).zip(&direction) {
            *drift += part / largest;
            *separated |= part.abs() > PART * largest;
        }
    }
    let columns = data.columns.iter().zip(&drift).zip(&separated).filter(|(_, separated)| **separated);
    let unbounded =
        columns.map(|((column, drift), _)| Unbounded { name: column.name.clone(), increasing: *drift > 0.0 }).collect();
    let overlapping = (0..data.cells()).filter(|&cell| found.overlapping[of_cell[cell]]).collect();
    Some(Separated { unbounded, overlapping })
}

impl Separated {
    pub(super) fn diagnosis(&self, data: &MixedData) -> MixedDiagnosis {
        let rows_left = self.overlapping.iter().map(|&cell| data.weight[cell]).sum::<f64>() as usize;
        MixedDiagnosis::Separation {
            columns: self.unbounded.iter().map(|one| one.name.clone()).collect(),
            complete: self.overlapping.is_empty(),
            unbounded: self.unbounded.clone(),
            rows: data.rows - rows_left,
            rows_left,
        }
    }

    /// By coefficient, the unit of its log-F prior: 1 for separated columns of 0 and 1, the standard deviation of other separated columns, 0
    /// for all that is not separated and for the intercept, whose prior would pull the share of right answers to a half.
    pub(super) fn units(&self, data: &MixedData) -> Vec<f64> {
        let of = |(index, column): (usize, &DesignColumn)| {
            if column.name == INTERCEPT || !self.unbounded.iter().any(|one| one.name == column.name) {
                return 0.0;
            }
            let value = |cell: usize| data.value(index, cell);
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
}

/// The model of the rows that fixed effects do not predict, and its fit.
#[derive(Debug, Clone)]
pub struct Limit {
    pub data: MixedData,
    pub fit: MixedFit,
}

/// The limit of the likelihood of separated outcomes: rows that are predicted perfectly have likelihood one there, so it is the fit of the
/// other rows. None where outcomes are not separated, all are, or the other rows are no model.
pub fn limit(data: &MixedData, options: &MixedOptions) -> Result<Option<Limit>, MixedError> {
    let Some(found) = separation(data).filter(|found| !found.overlapping.is_empty()) else { return Ok(None) };
    let Ok(rest) = data.restricted(&found.overlapping) else { return Ok(None) };
    let fit = fit(&rest, options)?;
    Ok(Some(Limit { data: rest, fit }))
}

impl MixedFit {
    /// The fit of separated outcomes with the numbers of the limit, but for the coefficients that run away.
    pub fn with_limit(mut self, limit: &Limit) -> MixedFit {
        let runs_away = |diagnoses: &[MixedDiagnosis], name: &str| {
            diagnoses.iter().any(|one| matches!(one, MixedDiagnosis::Separation { columns, .. } if columns.iter().any(|column| column == name)))
        };
        for one in &mut self.coefficients {
            if let (false, Some(found)) = (runs_away(&self.diagnoses, &one.name), limit.fit.coefficient(&one.name)) {
                *one = found.clone();
            }
        }
        let MixedFit { method, points, random, minus_two_log_likelihood, evaluations, converged, singular, .. } =
            &limit.fit;
        (self.method, self.points, self.random) = (*method, *points, random.clone());
        (self.minus_two_log_likelihood, self.evaluations) = (*minus_two_log_likelihood, *evaluations);
        (self.converged, self.singular) = (*converged, *singular);
        (self.joint, self.at) = (limit.fit.joint.clone(), limit.fit.at.clone());
        // What other rows lack is no property of these.
        let of_rest =
            |one: &&MixedDiagnosis| matches!(one, MixedDiagnosis::Aliased { .. } | MixedDiagnosis::RareLevel { .. });
        let others = limit.fit.diagnoses.iter().filter(|one| !of_rest(one));
        let new: Vec<MixedDiagnosis> = others.filter(|one| !self.diagnoses.contains(one)).cloned().collect();
        self.diagnoses.extend(new);
        self
    }
}

/// Groups of a random intercept that are all or nothing: with a threshold in each group the fixed effects predict every outcome, or fewer
/// groups are mixed than there are parameters. The likelihood then has no maximum at a usable variance.
pub(super) fn all_or_nothing(data: &MixedData) -> Result<Option<MixedDiagnosis>, MixedError> {
    if !data.has_one_intercept() {
        return Ok(None);
    }
    let (cells, _) = Cells::by_group(data)?;
    let (all_wrong, all_right) = cells.constant_groups();
    let (constant_groups, groups) = (all_wrong + all_right, cells.groups());
    let too_few_mixed = all_wrong > 0 && all_right > 0 && groups - constant_groups < data.columns() + 1;
    let found = || MixedDiagnosis::GroupSeparation { group: data.groupings[0].name.clone(), constant_groups, groups };
    Ok((too_few_mixed || by_groups(&cells)).then(found))
}
