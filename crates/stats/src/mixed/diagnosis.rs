//! Reasons for caution about a fit.
use std::fmt::{self, Formatter};

use serde::{Serialize, Serializer};

/// Expected decrease of -2 log L up to which a search that ended early is near enough: no number moves by a tenth of a standard error.
const NEAR_ENOUGH: f64 = 0.01;

/// A coefficient without a finite estimate.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Unbounded {
    pub name: String,
    /// True if the likelihood rises towards plus infinity, false if towards minus infinity.
    pub increasing: bool,
}

/// Distance of Laplace's approximation from a quadrature of the same model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Disagreement {
    /// The coefficient that moves most, in standard errors of the quadrature.
    pub coefficient: String,
    pub standard_errors: f64,
    pub laplace_sd: f64,
    pub quadrature_sd: f64,
    pub points: usize,
}

/// A reason for caution, with a plain sentence as its text.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(remote = "Self", tag = "kind", rename_all = "kebab-case")]
pub enum MixedDiagnosis {
    /// All responses are equal.
    ConstantResponse {
        value: f64,
    },
    /// Fixed effects predict the outcomes of `rows` rows perfectly, all of them if complete.
    Separation {
        columns: Vec<String>,
        complete: bool,
        unbounded: Vec<Unbounded>,
        rows: usize,
        rows_left: usize,
    },
    /// Groups are all right or all wrong but for too few, or those that are mixed are predicted perfectly.
    GroupSeparation {
        group: String,
        constant_groups: usize,
        groups: usize,
    },
    /// Aliased columns were left out.
    Aliased {
        columns: Vec<String>,
    },
    /// Random effects that are 0 in every row were left out.
    EmptyEffects {
        columns: Vec<String>,
    },
    /// A standard deviation is 0.
    ZeroVariance {
        group: String,
        term: String,
    },
    /// Random effects of a term are linearly dependent.
    PerfectCorrelation {
        group: String,
        terms: Vec<String>,
    },
    /// A standard deviation is nearly 0, or a correlation nearly 1.
    NearBorder {
        group: String,
        detail: String,
    },
    /// Random effects far larger than outcomes between 0 and 1 can show; the fit is refused.
    LargeVariance {
        group: String,
        term: String,
        sd: f64,
    },
    /// The mean outcome, averaged over the random effects, is far from the observed share; the fit is refused.
    MissedShare {
        observed: f64,
        mean: f64,
    },
    /// An effect that is to vary between groups has one value within every group.
    ConstantWithin {
        group: String,
        term: String,
    },
    /// Clusters too few for any error of the default model; the fit is refused. `worth` is the number of clusters of one size that tell as much.
    FewClusters {
        group: String,
        clusters: usize,
        worth: f64,
    },
    /// An interval of an odds ratio so wide that it says nothing; the default model is refused.
    VastInterval {
        coefficient: String,
        low: f64,
        high: f64,
    },
    FewGroups {
        group: String,
        groups: usize,
    },
    /// A level that one row has.
    RareLevel {
        column: String,
        level: String,
        rows: usize,
    },
    /// The Hessian has directions without curvature.
    NotIdentified,
    /// The search ended early; the fit is refused where a further step would lower -2 log L by more than a hundredth.
    NotConverged {
        expected_decrease: f64,
    },
    /// lme4's own test of convergence failed: the gradient scaled by the Hessian is too large.
    Lme4NotConverged {
        scaled_gradient: f64,
    },
    /// The search ended at its limit of evaluations; the fit is refused.
    Stopped {
        evaluations: usize,
    },
    /// Laplace's approximation with few answers a group, where quadrature cannot be used; and how far it is from quadrature in the effect that moves
    /// most where these groups alone vary, if that is far.
    PoorLaplace {
        group: String,
        answers: f64,
        alone: Option<Disagreement>,
    },
    /// Laplace's approximation misses an effect by so much that a verdict can turn, as [`MixedDiagnosis::PoorLaplace`] measures it; the fit is refused.
    MissedEffect {
        group: String,
        answers: f64,
        alone: Disagreement,
    },
    /// Quadrature found no maximum, and Laplace's approximation is what is left.
    NoQuadrature,
    /// Laplace's approximation was asked for, and quadrature differs by more than a tenth of a standard error or of the random deviation.
    ApproximationsDisagree(Disagreement),
    /// Quadrature with so few points that more change -2 log L.
    FewPoints {
        points: usize,
        change: f64,
    },
    /// Standard errors below 0.01 or equal across coefficients: finite differences straddle a jump of lme4's objective, and the errors mean
    /// nothing (specification of the GSM-Symbolic study, section 6.1).
    DegenerateErrors {
        standard_error: f64,
        jump: f64,
    },
}

impl Serialize for MixedDiagnosis {
    /// With `diagnosis`, the [`MixedDiagnosis::word`], beside the `kind`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Worded<'a> {
            diagnosis: &'static str,
            #[serde(flatten, serialize_with = "plain")]
            found: &'a MixedDiagnosis,
        }
        fn plain<S: Serializer>(found: &&MixedDiagnosis, serializer: S) -> Result<S::Ok, S::Error> {
            MixedDiagnosis::serialize(found, serializer)
        }
        Worded { diagnosis: self.word(), found: self }.serialize(serializer)
    }
}

impl MixedDiagnosis {
    /// A stable word for tables and JSON.
    pub fn word(&self) -> &'static str {
        match self {
            MixedDiagnosis::ConstantResponse { .. } => "constant-response",
            MixedDiagnosis::Separation { .. } => "separation",
            MixedDiagnosis::GroupSeparation { .. } => "group-separation",
            MixedDiagnosis::Aliased { .. } => "aliased",
            MixedDiagnosis::EmptyEffects { .. } => "empty-effects",
            MixedDiagnosis::ZeroVariance { .. } | MixedDiagnosis::PerfectCorrelation { .. } => "singular",
            MixedDiagnosis::NearBorder { .. } => "near-border",
            MixedDiagnosis::LargeVariance { .. } => "large-variance",
            MixedDiagnosis::MissedShare { .. } => "missed-share",
            MixedDiagnosis::ConstantWithin { .. } => "constant-within",
            MixedDiagnosis::FewClusters { .. } => "few-clusters",
            MixedDiagnosis::VastInterval { .. } => "vast-interval",
            MixedDiagnosis::FewGroups { .. } => "few-groups",
            MixedDiagnosis::RareLevel { .. } => "rare-level",
            MixedDiagnosis::NotIdentified => "indefinite-hessian",
            MixedDiagnosis::NotConverged { .. }
            | MixedDiagnosis::Lme4NotConverged { .. }
            | MixedDiagnosis::Stopped { .. } => "not-converged",
            MixedDiagnosis::PoorLaplace { .. } => "poor-laplace",
            MixedDiagnosis::MissedEffect { .. } => "missed-effect",
            MixedDiagnosis::NoQuadrature => "no-quadrature",
            MixedDiagnosis::ApproximationsDisagree(_) => "approximations-disagree",
            MixedDiagnosis::FewPoints { .. } => "few-points",
            MixedDiagnosis::DegenerateErrors { .. } => "degenerate-errors",
        }
    }

    /// True if there are no estimates.
    pub fn is_fatal(&self) -> bool {
        match self {
            MixedDiagnosis::ConstantResponse { .. }
            | MixedDiagnosis::Separation { .. }
            | MixedDiagnosis::GroupSeparation { .. }
            | MixedDiagnosis::LargeVariance { .. }
            | MixedDiagnosis::MissedShare { .. }
            | MixedDiagnosis::MissedEffect { .. }
            | MixedDiagnosis::FewClusters { .. }
            | MixedDiagnosis::VastInterval { .. }
            | MixedDiagnosis::Stopped { .. } => true,
            MixedDiagnosis::NotConverged { expected_decrease } => {
                expected_decrease.is_nan() || *expected_decrease > NEAR_ENOUGH
            }
            _ => false,
        }
    }

    /// True if the random effects are on the border of what they can be.
    pub fn is_singular(&self) -> bool {
        matches!(self, MixedDiagnosis::ZeroVariance { .. } | MixedDiagnosis::PerfectCorrelation { .. })
    }
}

impl fmt::Display for MixedDiagnosis {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            MixedDiagnosis::ConstantResponse { value } => {
                write!(f, "constant response: every outcome is {value}, so there is nothing to explain; answers of both kinds are needed")
            }
            MixedDiagnosis::Separation { columns, complete, .. } => separation(f, columns, *complete),
            MixedDiagnosis::GroupSeparation { group, constant_groups, groups } => write!(
                f,
                "groups are all or nothing: {constant_groups} of {groups} groups of {group} are all 0 or all 1, and what varies in the others is too \
                 little or predicted perfectly, so the variance between them has no usable estimate; test the paired difference"
            ),
            MixedDiagnosis::Aliased { columns } => aliased(f, columns),
            MixedDiagnosis::EmptyEffects { columns } => empty_effects(f, columns),
            MixedDiagnosis::ZeroVariance { group, term } => write!(
                f,
                "singular: the SD of {term} between {group} is estimated as 0; the data show no variation there, and a model \
                 without it says the same"
            ),
            MixedDiagnosis::PerfectCorrelation { group, terms } => write!(
                f,
                "singular: effects of {} between {group} are perfectly correlated; the data do not support separate \
                 effects, `||` or fewer of them would do",
                terms.join(", ")
            ),
            MixedDiagnosis::NearBorder { group, detail } => {
                write!(
                    f,
                    "near the border: {detail} between {group}; small changes of the data may make the fit singular"
                )
            }
            MixedDiagnosis::LargeVariance { group, term, sd } => write!(
                f,
                "very large variance: the SD of {term} between {group} is {sd:.1} log odds; nearly every group is all right or \
                 all wrong, so the fit has no usable estimate; fit these groups alone, by quadrature, or test the paired difference"
            ),
            MixedDiagnosis::MissedShare { observed, mean } => write!(
                f,
                "the fit misses the data: averaged over the random effects, {} of the outcomes are 1 by the model and {} in the \
                 data, so none of its numbers can be used; leave out a random effect if there are others, or test the paired difference",
                percent(*mean),
                percent(*observed)
            ),
            MixedDiagnosis::ConstantWithin { group, term } => write!(
                f,
                "not identified: {term} has one value within every {group}, so it cannot vary between them; write (1 | {group})"
            ),
            MixedDiagnosis::FewClusters { group, clusters, worth } => few_clusters(f, group, *clusters, *worth),
            MixedDiagnosis::VastInterval { coefficient, low, high } => write!(
                f,
                "the interval of the odds ratio of {coefficient}, {} to {}, is so wide that it says nothing; test the paired difference",
                short(*low),
                short(*high)
            ),
            MixedDiagnosis::FewGroups { group, groups } => {
                write!(f, "few groups: {groups} of {group}; their variance and Wald intervals are rough below 10")
            }
            MixedDiagnosis::RareLevel { column, level, rows } => write!(
                f,
                "rare level: {column} is {level} in {rows} row{}; merge or leave out the level",
                if *rows == 1 { "" } else { "s" }
            ),
            MixedDiagnosis::NotIdentified => f.write_str(
                "not identified: the likelihood is flat in some direction, so some standard errors are not defined",
            ),
            MixedDiagnosis::NotConverged { expected_decrease } => write!(
                f,
                "not converged: a further step would lower -2 log L by {expected_decrease:.1e}; {}",
                if self.is_fatal() { "leave out random effects, or use another unit" } else { "the numbers hold to fewer digits" }
            ),
            MixedDiagnosis::Lme4NotConverged { scaled_gradient } => {
                write!(f, "not converged by lme4's own test: its scaled gradient is {scaled_gradient:.1e}")
            }
            MixedDiagnosis::Stopped { evaluations } => write!(
                f,
                "not converged: the search ended at its limit of {evaluations} evaluations of the likelihood; leave out random effects"
            ),
            MixedDiagnosis::PoorLaplace { group, answers, alone } => poor_laplace(f, group, *answers, alone.as_ref()),
            MixedDiagnosis::MissedEffect { group, answers, alone } => write!(
                f,
                "Laplace's approximation misses {}: with {answers:.1} answers for each {group}, and (1 | {group}) alone, quadrature moves it by {:.1} standard \
                 errors, so none of its numbers can be used; fit (1 | {group}) alone, test the paired difference, or ask for Laplace's approximation by name",
                alone.coefficient, alone.standard_errors
            ),
            MixedDiagnosis::NoQuadrature => f.write_str(
                "by Laplace's approximation, because quadrature found no maximum; with few answers a group effects come out too small",
            ),
            MixedDiagnosis::ApproximationsDisagree(found) => write!(f, "{found}"),
            MixedDiagnosis::FewPoints { points, change } => write!(
                f,
                "too few points: the variance is so large that more than {points} points change -2 log L by {change:.2}; leave the number of \
                 points out, which takes as many as are needed"
            ),
            MixedDiagnosis::DegenerateErrors { standard_error, jump } => write!(
                f,
                "degenerate standard errors ({standard_error:.2e}): the objective jumps by about {jump:.3} at the reported optimum, an \
                 artefact of the unconverged inner loop; use the converged fit"
            ),
        }
    }
}

fn separation(f: &mut Formatter<'_>, columns: &[String], complete: bool) -> fmt::Result {
    write!(
        f,
        "separated: {} predict{} {} outcomes perfectly, so estimates are infinite; test the paired difference, leave out the \
         effect, or fit with a penalty",
        columns.join(", "),
        if columns.len() == 1 { "s" } else { "" },
        if complete { "all" } else { "some" }
    )
}

fn aliased(f: &mut Formatter<'_>, columns: &[String]) -> fmt::Result {
    write!(
        f,
        "aliased: {} left out, because other columns determine {} (an empty cell of an interaction, or a \
         repeated column)",
        columns.join(", "),
        if columns.len() == 1 { "it" } else { "them" }
    )
}

fn empty_effects(f: &mut Formatter<'_>, columns: &[String]) -> fmt::Result {
    let are = if columns.len() == 1 { "is" } else { "are" };
    let columns = columns.join(", ");
    write!(f, "{columns} {are} 0 in every row (an empty cell of an interaction) and {are} left out")
}

fn few_clusters(f: &mut Formatter<'_>, group: &str, clusters: usize, worth: f64) -> fmt::Result {
    let (ending, are) = if clusters == 1 { ("", "is") } else { ("s", "are") };
    write!(f, "{clusters} {group}{ending}")?;
    if worth.round() < clusters as f64 {
        write!(f, " of unequal size, which tell as much as {worth:.0} equal ones,")?;
    }
    write!(f, " {are} too few (a mixed model needs ten)")?;
    f.write_str(match clusters {
        1 => "; `compare` has McNemar's test, which takes questions as independent",
        _ => "; test the paired difference",
    })
}

fn poor_laplace(f: &mut Formatter<'_>, group: &str, answers: f64, alone: Option<&Disagreement>) -> fmt::Result {
    write!(
        f,
        "by Laplace's approximation, which is poor with {answers:.1} answers for each {group}: effects come out too small; "
    )?;
    match alone {
        None => write!(f, "the formula with (1 | {group}) alone is fitted by quadrature"),
        Some(Disagreement { coefficient, standard_errors, .. }) => write!(
            f,
            "with (1 | {group}) alone quadrature moves {coefficient} by {standard_errors:.1} standard errors, so fit that"
        ),
    }
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Disagreement { coefficient, standard_errors, laplace_sd, quadrature_sd, points } = self;
        write!(
            f,
            "Laplace and {points}-point quadrature disagree: {coefficient} moves by {standard_errors:.2} standard errors, the random SD from \
             {laplace_sd:.3} to {quadrature_sd:.3}; report the quadrature"
        )
    }
}

/// A share in percent with two digits that count.
fn percent(share: f64) -> String {
    let value = 100.0 * share;
    format!("{value:.*} %", if (1.0..=99.0).contains(&value) { 1 } else { 2 })
}

/// A ratio of odds: decimal where that is short.
fn short(ratio: f64) -> String {
    if (1e-2..1e5).contains(&ratio) { format!("{ratio:.2}") } else { format!("{ratio:.1e}") }
}
