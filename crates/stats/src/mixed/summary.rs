//! Numbers of a fit in the caller's units.
use super::data::MixedData;
use super::diagnosis::MixedDiagnosis;
use super::layout::Layout;
use super::result::{Errors, GroupModes, Method, MixedCoefficient, MixedFit, RandomEffect};
use super::search::Minimum;
use super::theta::Theta;
use crate::distribution::normal_two_sided;
use crate::matrix::Matrix;

/// Diagonals of theta, over the scale of their columns, below which a model is singular: lme4's tolerance.
pub(super) const SINGULAR: f64 = 1e-4;

/// Diagonals, also over the whole deviation, below which a model is near the border.
const NEAR: f64 = 0.05;

/// Standard deviations beyond which outcomes say little, in log odds.
const LARGE: f64 = 8.0;

/// The same for quadrature, which still has the likelihood of groups that nearly always agree.
const LARGE_BY_QUADRATURE: f64 = 20.0;

/// Groups below which variances are rough.
const FEW: usize = 10;

/// Levels in fewer rows are rare.
const RARE: f64 = 2.0;

/// Estimates of a fit and what they were made from.
pub(super) struct Summary<'a> {
    pub(super) data: &'a MixedData,
    pub(super) layout: &'a Layout,
    pub(super) theta: &'a Theta,
    pub(super) minimum: &'a Minimum,
    /// Over the orthonormal columns, theta held fixed.
    pub(super) information: &'a Matrix,
    pub(super) modes: &'a [f64],
}

/// A fit without numbers: its likelihood has no maximum, or the design carries none.
pub(crate) fn without_estimates(data: &MixedData, method: Method, diagnosis: MixedDiagnosis) -> MixedFit {
    let coefficient = |name: &String| MixedCoefficient {
        name: name.clone(),
        estimate: None,
        standard_error: None,
        standard_error_model: None,
        standard_error_fixed_theta: None,
        z: None,
        p: None,
    };
    let mut diagnoses = vec![diagnosis];
    diagnoses.extend(of_data(data));
    MixedFit {
        formula: data.formula.to_string(),
        family: data.family,
        method,
        points: 1,
        prior: None,
        rows: data.rows,
        cells: data.cells(),
        coefficients: data.columns.iter().map(|column| coefficient(&column.name)).collect(),
        dropped: data.dropped.clone(),
        errors: Errors::Model,
        robust: None,
        covariance: Vec::new(),
        covariance_model: None,
        covariance_fixed_theta: Vec::new(),
        random: Vec::new(),
        residual_sd: None,
        minus_two_log_likelihood: None,
        conditional_deviance: None,
        aic: None,
        bic: None,
        parameters: Theta::new(data).len() + data.columns(),
        singular: false,
        converged: false,
        expected_decrease: None,
        gradient: None,
        evaluations: 0,
        diagnoses,
        at: Vec::new(),
        joint: Vec::new(),
        robust_joints: Vec::new(),
        units: Vec::new(),
        modes: Vec::new(),
    }
}

/// A fit whose numbers are refused, with the reasons before all other diagnoses.
pub(crate) fn refused(data: &MixedData, fit: &MixedFit, mut reasons: Vec<MixedDiagnosis>) -> MixedFit {
    let first = reasons.remove(0);
    let empty = without_estimates(data, fit.method, first);
    // How good an approximation is says nothing of a fit without numbers.
    let is_other = |one: &&MixedDiagnosis| {
        !one.is_fatal() && !matches!(one, MixedDiagnosis::PoorLaplace { .. }) && !empty.diagnoses.contains(one)
    };
    let others = fit.diagnoses.iter().filter(is_other).cloned();
    reasons.extend(others);
    let (prior, points, evaluations) = (fit.prior.clone(), fit.points, fit.evaluations);
    let mut refused = MixedFit { prior, points, evaluations, ..empty };
    refused.diagnoses.splice(1..1, reasons);
    refused
}

impl Summary<'_> {
    pub(super) fn binomial(&self, method: Method, units: Vec<f64>, conditional_deviance: f64) -> MixedFit {
        let columns = self.data.columns();
        let count = self.theta.len();
        // (theta, the caller's coefficients) from (theta, coefficients of the orthonormal columns).
        let mut map = Matrix::zeros(count + columns);
        (0..count).for_each(|index| map.set(index, index, 1.0));
        for row in 0..columns {
            for column in 0..columns {
                map.set(count + row, count + column, self.data.fixed.to_caller.get(row, column));
            }
        }
        let mut joint = map.product(&self.minimum.inverse).product(&map.transpose());
        joint.symmetrise();
        // The criterion is -2 log L.
        let joint: Vec<Vec<f64>> =
            joint.to_rows().into_iter().map(|row| row.into_iter().map(|value| 2.0 * value).collect()).collect();
        let covariance: Vec<Vec<f64>> = joint[count..].iter().map(|row| row[count..].to_vec()).collect();
        let fixed_theta = self.fixed_theta(1.0);
        let beta = self.data.fixed.to_caller.times(&self.minimum.at[count..]);
        let mut fit = self.common(method, &beta, covariance, fixed_theta, 1.0, count + columns);
        let with_prior = self.data.columns.iter().zip(&units).filter(|(_, unit)| **unit > 0.0);
        let names: Vec<&str> = with_prior.map(|(column, _)| column.name.as_str()).collect();
        fit.prior = (!names.is_empty()).then(|| format!("log-F(1,1) on {}", names.join(", ")));
        fit.units = units;
        fit.joint = joint;
        fit.conditional_deviance = Some(conditional_deviance);
        fit
    }

    pub(super) fn gaussian(&self, method: Method, variance: f64, beta: &[f64]) -> MixedFit {
        let beta = self.data.fixed.to_caller.times(beta);
        let covariance = self.fixed_theta(variance);
        let parameters = self.theta.len() + beta.len() + 1;
        let mut fit = self.common(method, &beta, covariance.clone(), covariance, variance.sqrt(), parameters);
        fit.residual_sd = Some(variance.sqrt());
        fit
    }

    /// Covariance of the caller's coefficients with theta held fixed.
    fn fixed_theta(&self, variance: f64) -> Vec<Vec<f64>> {
        let map = &self.data.fixed.to_caller;
        let inverse = self.information.cholesky().map(|factor| factor.inverse());
        let inverse = inverse.unwrap_or_else(|| Matrix::zeros(self.data.columns()));
        let covariance = map.product(&inverse).product(&map.transpose());
        covariance.to_rows().into_iter().map(|row| row.into_iter().map(|value| variance * value).collect()).collect()
    }

    fn common(
        &self,
        method: Method,
        beta: &[f64],
        covariance: Vec<Vec<f64>>,
        fixed_theta: Vec<Vec<f64>>,
        deviation: f64,
        parameters: usize,
    ) -> MixedFit {
        let data = self.data;
        let value = self.minimum.value;
        let coefficients = data.columns.iter().enumerate().map(|(index, column)| {
            let error = Some(covariance[index][index].sqrt()).filter(|error| error.is_finite() && *error > 0.0);
            let z = error.map(|error| beta[index] / error);
            MixedCoefficient {
                name: column.name.clone(),
                estimate: Some(beta[index]),
                standard_error: error,
                standard_error_model: None,
                standard_error_fixed_theta: Some(fixed_theta[index][index].sqrt()),
                z,
                p: z.map(normal_two_sided),
            }
        });
        let slope = self.minimum.inverse.times(&self.minimum.gradient);
        let decrease: f64 =
            0.5 * slope.iter().zip(&self.minimum.gradient).map(|(step, slope)| step * slope).sum::<f64>();
        let mut diagnoses = of_data(data);
        let random = self.random(method, deviation, &mut diagnoses);
        let singular = diagnoses.iter().any(MixedDiagnosis::is_singular);
        let coefficients: Vec<MixedCoefficient> = coefficients.collect();
        if coefficients.iter().any(|one| one.standard_error.is_none()) {
            diagnoses.push(MixedDiagnosis::NotIdentified);
        }
        if let Some(evaluations) = self.minimum.stopped_after {
            diagnoses.push(MixedDiagnosis::Stopped { evaluations });
        } else if !self.minimum.converged {
            diagnoses.push(MixedDiagnosis::NotConverged { expected_decrease: decrease });
        }
        MixedFit {
            formula: data.formula.to_string(),
            family: data.family,
            method,
            points: 1,
            prior: None,
            rows: data.rows,
            cells: data.cells(),
            coefficients,
            dropped: data.dropped.clone(),
            errors: Errors::Model,
            robust: None,
            covariance,
            covariance_model: None,
            covariance_fixed_theta: fixed_theta,
            random,
            residual_sd: None,
            minus_two_log_likelihood: Some(value),
            conditional_deviance: None,
            aic: Some(value + 2.0 * parameters as f64),
            bic: Some(value + (data.rows as f64).ln() * parameters as f64),
            parameters,
            singular,
            converged: self.minimum.converged,
            expected_decrease: Some(decrease),
            gradient: Some(self.minimum.gradient.iter().fold(0.0, |largest: f64, slope| largest.max(slope.abs()))),
            evaluations: self.minimum.evaluations,
            diagnoses,
            at: self.minimum.at.clone(),
            joint: Vec::new(),
            robust_joints: Vec::new(),
            units: Vec::new(),
            modes: self.group_modes(),
        }
    }

    /// Covariances of the random effects; what is on the border is said.
    fn random(&self, method: Method, deviation: f64, diagnoses: &mut Vec<MixedDiagnosis>) -> Vec<RandomEffect> {
        let lambda = self.theta.factors(&self.minimum.at[..self.theta.len()]);
        let mut found = Vec::new();
        let largest = if method == Method::Quadrature { LARGE_BY_QUADRATURE } else { LARGE };
        for (grouping, lambda) in self.data.groupings.iter().zip(&lambda) {
            for block in &grouping.blocks {
                let size = block.columns.len();
                let at = |row: usize, inner: usize| lambda[(block.start + row) * grouping.width + block.start + inner];
                let scale = |row: usize| deviation / grouping.scale[block.start + row];
                let covariance: Vec<Vec<f64>> = (0..size)
                    .map(|row| {
                        let with = |column: usize| {
                            let sum: f64 = (0..size).map(|inner| at(row, inner) * at(column, inner)).sum();
                            scale(row) * scale(column) * sum
                        };
                        (0..size).map(with).collect()
                    })
                    .collect();
                let sd: Vec<f64> = (0..size).map(|row| covariance[row][row].sqrt()).collect();
                let entry = |row: usize, column: usize| {
                    let whole = sd[row] * sd[column];
                    (whole > 0.0)
                        .then(|| if row == column { 1.0 } else { (covariance[row][column] / whole).clamp(-1.0, 1.0) })
                };
                let terms: Vec<String> = block.columns.iter().map(|column| column.name.clone()).collect();
                self.border(grouping, block, &at, &sd, &terms, diagnoses);
                if self.data.family == super::data::Family::Binomial {
                    let whole = |row: usize| (0..=row).map(|inner| at(row, inner).powi(2)).sum::<f64>().sqrt();
                    let large = (0..size).filter(|&row| whole(row) > largest);
                    diagnoses.extend(large.map(|row| MixedDiagnosis::LargeVariance {
                        group: grouping.name.clone(),
                        term: terms[row].clone(),
                        sd: sd[row],
                    }));
                }
                let correlation = (size > 1 && !block.independent)
                    .then(|| (0..size).map(|row| (0..size).map(|column| entry(row, column)).collect()).collect());
                let (group, groups) = (grouping.name.clone(), grouping.levels.len());
                found.push(RandomEffect { group, groups, terms, sd, correlation, covariance });
            }
        }
        found
    }

    fn border(
        &self,
        grouping: &super::data::Grouping,
        block: &super::data::Block,
        at: &impl Fn(usize, usize) -> f64,
        sd: &[f64],
        terms: &[String],
        diagnoses: &mut Vec<MixedDiagnosis>,
    ) {
        let group = grouping.name.clone();
        let mut dependent = false;
        for (row, term) in terms.iter().enumerate() {
            let whole: f64 = (0..=row).map(|inner| at(row, inner).powi(2)).sum::<f64>().sqrt();
            let pivot = at(row, row).abs();
            if whole < SINGULAR {
                diagnoses.push(MixedDiagnosis::ZeroVariance { group: group.clone(), term: term.clone() });
            } else if pivot < SINGULAR {
                dependent = true;
            } else if whole < NEAR {
                let detail = format!("the SD of {term} is {:.3}", sd[row]);
                diagnoses.push(MixedDiagnosis::NearBorder { group: group.clone(), detail });
            } else if pivot < NEAR * whole {
                let detail = format!("{term} is nearly determined by the effects before it");
                diagnoses.push(MixedDiagnosis::NearBorder { group: group.clone(), detail });
            }
        }
        if dependent && !block.independent {
            diagnoses.push(MixedDiagnosis::PerfectCorrelation { group, terms: terms.to_vec() });
        }
    }

    fn group_modes(&self) -> Vec<GroupModes> {
        let lambda = self.theta.factors(&self.minimum.at[..self.theta.len()]);
        let mut found = Vec::new();
        let mut node_of: Vec<Vec<usize>> = self.data.groupings.iter().map(|one| vec![0; one.levels.len()]).collect();
        for node in 0..self.layout.nodes() {
            node_of[self.layout.factor[node] as usize][self.layout.group[node] as usize] = node;
        }
        for ((grouping, lambda), nodes) in self.data.groupings.iter().zip(&lambda).zip(&node_of) {
            for block in &grouping.blocks {
                let of_group = |&node: &usize| -> Vec<f64> {
                    let start = self.layout.start[node];
                    let of_row = |row: usize| {
                        let row = block.start + row;
                        let sum: f64 = (0..=row)
                            .map(|inner| lambda[row * grouping.width + inner] * self.modes[start + inner])
                            .sum();
                        sum / grouping.scale[row]
                    };
                    (0..block.columns.len()).map(of_row).collect()
                };
                found.push(GroupModes {
                    group: grouping.name.clone(),
                    terms: block.columns.iter().map(|column| column.name.clone()).collect(),
                    levels: grouping.levels.clone(),
                    modes: nodes.iter().map(of_group).collect(),
                });
            }
        }
        found
    }
}

/// Diagnoses that need no fit.
fn of_data(data: &MixedData) -> Vec<MixedDiagnosis> {
    let mut found = Vec::new();
    if !data.dropped.is_empty() {
        found.push(MixedDiagnosis::Aliased { columns: data.dropped.clone() });
    }
    if !data.empty.is_empty() {
        found.push(MixedDiagnosis::EmptyEffects { columns: data.empty.clone() });
    }
    for grouping in &data.groupings {
        let groups = grouping.levels.len();
        if groups < FEW {
            found.push(MixedDiagnosis::FewGroups { group: grouping.name.clone(), groups });
        }
        for block in &grouping.blocks {
            for (index, column) in block.columns.iter().enumerate().filter(|(_, column)| !column.pieces.is_empty()) {
                let mut first: Vec<Option<f64>> = vec![None; groups];
                let varies = (0..data.cells()).any(|cell| {
                    let value = grouping.cell(cell)[block.start + index];
                    *first[grouping.of_cell[cell] as usize].get_or_insert(value) != value
                });
                let alone = data.formula.random[block.term].effects.intercept;
                if !varies && alone {
                    found.push(MixedDiagnosis::ConstantWithin {
                        group: grouping.name.clone(),
                        term: column.name.clone(),
                    });
                }
            }
        }
    }
    for name in &data.formula.fixed.variables {
        if let Ok(super::frame::Column::Labels(labels)) = data.frame.column(name) {
            let mut rows = vec![0.0; labels.levels.len()];
            labels.codes.iter().zip(&data.weight).for_each(|(&code, weight)| rows[code as usize] += weight);
            for (level, rows) in labels.levels.iter().zip(rows).filter(|(_, rows)| *rows > 0.0 && *rows < RARE) {
                let (column, level) = (name.clone(), level.clone());
                found.push(MixedDiagnosis::RareLevel { column, level, rows: rows as usize });
            }
        }
    }
    found
}
