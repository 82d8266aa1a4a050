//! Limits of every skill from the scored answers.
use crate::{agreeing, counted};
use std::collections::BTreeMap;

use earnest_stats::psychometric::{Measured, Posterior, Procedure};
use earnest_stats::{Estimate, Z95, wilson};

use super::chooser::Grids;
use super::{Family, FormCount, ProfileOptions, PromptForm, Skill, best_form, form_of_skill};
use crate::suite::{Grid, GridCell, GridGroup, GridRow, Interval, Scored, Series, Summary, SummaryRow, Unit};

/// Columns of the limits in rows of the summary, in the order of [`earnest_stats::psychometric::LEVELS`].
pub const LIMITS: [&str; 3] = ["limit 90 %", "limit 50 %", "limit 10 %"];

/// Name of the curves by length.
const BY_LENGTH: &str = "accuracy by length";

/// Numbers of a row: whether success falls with the length, the p value of that it does, whether it does so as the curves of the measurement, the p value of that, and
/// whether the interval is narrow enough.
const FALLS: &str = "falls";
const P_FALLS: &str = "p of falling";
const FITS: &str = "fits";
const P_FITS: &str = "p of fitting";
const NARROW: &str = "narrow enough";

#[derive(Debug, Clone, PartialEq)]
pub struct SkillResult {
    pub skill: &'static Skill,
    pub measured: Measured,
}

/// Results of the skills that the options select, from (task, length, right) of every answer.
pub fn results<'a>(
    options: &ProfileOptions,
    answers: impl IntoIterator<Item = (&'a str, usize, bool)>,
) -> Vec<SkillResult> {
    let mut counts: BTreeMap<&str, Vec<(usize, bool)>> = BTreeMap::new();
    for (task, length, right) in answers {
        counts.entry(task).or_default().push((length, right));
    }
    let mut grids = Grids::default();
    let result = |skill: &&'static Skill| {
        let mut procedure = Procedure::new(&grids.of(skill), usize::MAX, options.width);
        for &(length, right) in counts.get(skill.task.as_str()).into_iter().flatten() {
            procedure.add(length, Some(right));
        }
        SkillResult { skill, measured: procedure.measured() }
    };
    options.skills.iter().map(result).collect()
}

/// p value of that two models have the same curve of success by length, from the counts of one skill; none if it has none in one of them or does not
/// fall.
pub fn same_curve(one: &SkillResult, other: &SkillResult) -> Option<f64> {
    let known = |result: &SkillResult| result.measured.falls && !result.measured.counts.is_empty();
    if one.skill != other.skill || !known(one) || !known(other) {
        return None;
    }
    let curves = Grids::default().of(one.skill);
    let posterior = |result: &SkillResult| {
        let mut posterior = Posterior::new(&curves);
        for count in &result.measured.counts {
            let index = curves.lengths().iter().position(|&length| length == count.length)?;
            posterior.add(index, count.right, count.asked - count.right);
        }
        Some(posterior)
    };
    posterior(one)?.same_curve(&posterior(other)?)
}

fn interval(estimate: Estimate) -> Interval {
    Interval { estimate: estimate.value, low: estimate.low, high: estimate.high }
}

/// The table: a row a skill with its accuracy and limits, and curves by length.
pub(super) fn summarise(options: &ProfileOptions, samples: &[Scored<'_>]) -> Summary {
    let length = |sample: &Scored<'_>| {
        sample.item.covariates.get("length").and_then(|length| usize::try_from(length.as_u64()?).ok())
    };
    let answers =
        samples.iter().filter_map(|sample| Some((sample.item.task.as_str(), length(sample)?, sample.score.correct)));
    let found = results(options, answers);
    let (mut rows, mut series) = (Vec::new(), Vec::new());
    let (mut right, mut asked) = (0, 0);
    for SkillResult { skill, measured } in &found {
        let of = (
            measured.counts.iter().map(|one| one.right).sum::<usize>(),
            measured.counts.iter().map(|one| one.asked).sum::<usize>(),
        );
        if of.1 == 0 {
            continue;
        }
        (right, asked) = (right + of.0, asked + of.1);
        let accuracy = wilson(of.0 as f64, of.1 as f64, Z95).map_or(Interval::UNKNOWN, interval);
        let mut values = vec![("accuracy".to_owned(), accuracy)];
        values.extend(LIMITS.iter().zip(&measured.limits).map(|(name, limit)| {
            let value = match measured.has_limit(limit) {
                true => Interval { estimate: limit.estimate, low: limit.low, high: limit.high },
                false => Interval::UNKNOWN,
            };
            ((*name).to_owned(), value)
        }));
        let numbers = [
            (FALLS, f64::from(measured.falls)),
            (P_FALLS, measured.monotone.p),
            (FITS, f64::from(measured.fits)),
            (P_FITS, measured.check.p),
            (NARROW, f64::from(measured.narrow)),
        ];
        rows.push(SummaryRow {
            name: skill.task.clone(),
            n: of.1,
            values,
            numbers: numbers.map(|(name, number)| (name.to_owned(), number)).to_vec(),
        });
        let point = |one: &earnest_stats::psychometric::Counted| {
            let share = wilson(one.right as f64, one.asked as f64, Z95).map_or(Interval::UNKNOWN, interval);
            (one.length as f64, one.asked, share)
        };
        let points = measured.counts.iter().map(point).collect();
        series.push(Series { name: BY_LENGTH.to_owned(), task: skill.task.clone(), points });
    }
    let accuracy = wilson(right as f64, asked as f64, Z95).map_or(Interval::UNKNOWN, interval);
    rows.push(SummaryRow {
        name: "all".to_owned(),
        n: asked,
        values: vec![("accuracy".to_owned(), accuracy)],
        numbers: Vec::new(),
    });
    let mut notes = notes(options, &found);
    notes.insert(0, prompt_note(options, samples));
    Summary { notes, rows, series }
}

/// Form of the prompts, with the right answers to the screening by form where there was one.
fn prompt_note(options: &ProfileOptions, samples: &[Scored<'_>]) -> String {
    let forms = &options.forms;
    if let [form] = &forms[..] {
        return format!("Every question was asked {}.", form.title());
    }
    let count = |&form: &PromptForm| {
        let mut count = FormCount::new(form);
        let of_form = samples.iter().filter(|sample| PromptForm::of_task(&sample.item.task) == Some(form));
        of_form.for_each(|sample| count.add(&sample.item.covariates, Some(sample.score.correct)));
        count
    };
    let counts: Vec<FormCount> = forms.iter().map(count).collect();
    let shares: Vec<String> =
        counts.iter().map(|count| format!("{} {}/{}", count.form, count.right(), count.answers.len())).collect();
    let best = best_form(&counts);
    let title = best.map_or_else(String::new, |form| form.title());
    let otherwise = options.skills.iter().filter(|skill| form_of_skill(&counts, &skill.task) != best).count();
    let otherwise = match otherwise {
        0 => String::new(),
        count => format!(", {} in another form that had more of a few questions right", counted(count, "skill")),
    };
    format!(
        "Prompts were screened with short questions in every form that the model takes (right answers: {}); the others are asked {title}{otherwise}.",
        shares.join(", ")
    )
}

fn notes(options: &ProfileOptions, found: &[SkillResult]) -> Vec<String> {
    let mut notes = vec![
        "Limits are lengths in digits at which the probability of success falls through 90, 50 and 10 % of the way from chance to \
         certainty; brackets are 95 % intervals, < is below the shortest length and > beyond the longest (0 and inf in files). Accuracies are over \
         the questions that were asked, most of them near the limits: they do not compare models."
            .to_owned(),
    ];
    if !options.shared.is_empty() {
        notes.push(
            "These are the questions of a comparison with another model (`earnest profile --compare`), at lengths that tell the two apart: \
             limits are those of the numeracy profile."
                .to_owned(),
        );
    }
    let asked = |one: &&SkillResult| !one.measured.counts.is_empty();
    let named = |is: &dyn Fn(&Measured) -> bool| {
        let of = found.iter().filter(asked).filter(|one| is(&one.measured));
        of.map(|one| one.skill.short_name()).collect::<Vec<_>>().join(", ")
    };
    let rising = named(&|measured| !measured.falls);
    if !rising.is_empty() {
        notes.push(format!(
            "Success does not fall with the length in {rising}: a limit is the length from which it stays below for good, and there is none where \
             it never does; the accuracies by length say what there is."
        ));
    }
    let other = named(&|measured| measured.falls && !measured.fits);
    if !other.is_empty() {
        notes.push(format!(
            "Success falls in steps, or otherwise than in one smooth curve, in {other}: no single limit says all of it; `earnest profile` shows the steps."
        ));
    }
    let wide = found.iter().filter(asked).filter(|one| one.measured.falls && !one.measured.narrow).count();
    if wide > 0 {
        notes.push(format!(
            "{wide} of {} {} an interval that is wider than a factor of {}; each gets at most {}.",
            counted(found.iter().filter(asked).count(), "skill"),
            agreeing(wide, "has", "have"),
            options.width,
            counted(options.budget, "question"),
        ));
    }
    let silent: Vec<String> = found.iter().filter(|one| !asked(one)).map(|one| one.skill.short_name()).collect();
    if !silent.is_empty() {
        notes.push(format!("No answers of {}.", silent.join(", ")));
    }
    notes
}

/// Limits by family, then accuracies.
pub(super) fn grids(options: &ProfileOptions, summary: &Summary) -> Vec<Grid> {
    let table = |name: &str, title: &str, unit, columns: &[&str]| {
        let groups = Family::ALL.into_iter().filter_map(|family| {
            let skills = options.skills.iter().filter(|skill| skill.family == family);
            let rows: Vec<GridRow> = skills.filter_map(|skill| row(skill, summary, columns)).collect();
            (!rows.is_empty()).then(|| GridGroup { name: family.title().to_owned(), rows })
        });
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Grid {
            name: name.to_owned(),
            title: title.to_owned(),
            unit,
            groups: groups.collect(),
            columns,
            covariate: None,
        }
    };
    vec![
        table("limits", "Digit limits: 90, 50 and 10 % of the way from chance to certainty", Unit::Digits, &LIMITS),
        table("accuracy", "Accuracy over the questions asked, per cent", Unit::Fraction, &["accuracy"]),
    ]
}

fn row(skill: &Skill, summary: &Summary, columns: &[&str]) -> Option<GridRow> {
    let row = summary.rows.iter().find(|row| row.name == skill.task)?;
    let cell = |column: &&str| {
        let (_, value) = row.values.iter().find(|(name, _)| name == column)?;
        (!value.estimate.is_nan()).then_some(GridCell { value: *value, n: row.n })
    };
    Some(GridRow {
        name: skill.title.clone(),
        task: Some(skill.task.clone()),
        cells: columns.iter().map(cell).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::options::select;
    use super::*;
    use crate::suite::{Item, Score};
    use earnest_stats::psychometric::ladder;

    #[test]
    fn limits_come_from_the_answers_alone() {
        let (skills, notations) = select(&["add_Integer", "copy"]).unwrap();
        let options = ProfileOptions { skills, notations, ..ProfileOptions::default() };
        let item = |task: &str, length: usize| {
            let mut item = Item::plain(format!("{task}/{length}"), task, "?", "1");
            item.covariates.insert("length".into(), length.into());
            item
        };
        let task = options.skills[0].task.as_str();
        let items: Vec<(Item, Score)> = (0..60)
            .map(|index| {
                let length = ladder(1, 20)[index % 15];
                (item(task, length), Score { correct: length <= 6, ..Score::default() })
            })
            .collect();
        let samples: Vec<Scored<'_>> =
            items.iter().map(|(item, score)| Scored { item, score, tokens: 1, truncated: false }).collect();
        let summary = summarise(&options, &samples);
        assert_eq!(summary.rows.iter().map(|row| row.n).collect::<Vec<_>>(), [60, 60]);
        let limit = summary.rows[0].values.iter().find(|(name, _)| name == LIMITS[1]).unwrap().1;
        assert!(limit.low > 4.5 && limit.high < 8.0 && limit.low <= limit.estimate, "{limit:?}");
        assert!(summary.notes.iter().any(|note| note == "No answers of copy."), "{:?}", summary.notes);
        let tables = grids(&options, &summary);
        assert_eq!((tables[0].groups.len(), tables[0].groups[0].rows[0].cells.len()), (1, 3));
        assert_eq!(summary.series[0].points.len(), 15);
    }

    #[test]
    fn what_grows_to_the_end_has_no_limit() {
        let (skills, notations) = select(&["copy"]).unwrap();
        let options = ProfileOptions { skills, notations, ..ProfileOptions::default() };
        let answers = (0..64).map(|index| ("copy", [1, 2, 10, 50][index % 4], index % 4 > 1));
        let found = results(&options, answers);
        assert!(!found[0].measured.falls && !found[0].measured.has_limit(&found[0].measured.limits[1]));
        assert!(
            notes(&options, &found)
                .iter()
                .any(|note| note.starts_with("Success does not fall with the length in copy"))
        );
    }

    #[test]
    fn a_bump_has_the_limit_at_which_it_ends_and_steps_are_noted() {
        let (skills, notations) = select(&["copy", "add"]).unwrap();
        let options = ProfileOptions { skills, notations, ..ProfileOptions::default() };
        let bump = (0..90).map(|index| ("copy", [1, 2, 9, 10, 49, 95][index % 6], matches!(index % 6, 2 | 3)));
        // All of 2 digits, half of 3 to 12, nothing beyond.
        let plateau = (0..120).map(|index| {
            let length = [1, 2, 3, 6, 9, 11, 13, 19][index % 8];
            ("add", length, length < 3 || length < 12 && index / 8 % 2 == 0)
        });
        let found = results(&options, bump.chain(plateau));
        let [plateau, bump] = ["add", "copy"].map(|task| found.iter().find(|one| one.skill.task == task).unwrap());
        let limit = bump.measured.limits[1];
        assert!(bump.measured.has_limit(&limit) && limit.low >= 9.0 && limit.high <= 49.0, "{limit:?}");
        assert!(plateau.measured.falls && !plateau.measured.fits, "{:?}", plateau.measured);
        let notes = notes(&options, &found);
        assert!(notes.iter().any(|note| note.contains("in steps") && note.contains("in add:")), "{notes:?}");
    }
}
