//! Tables 2 to 15.
use super::analysis::Analysis;
use super::effect::{Effect, ModelFit};
use super::models::paper_tables;
use super::result_table::{Kind, ResultRow, ResultTable, cells, columns};
use super::study::{find, holm_with_gaps, with_ours};
use crate::gsm_symbolic::published::{
    NumberEffectRow, Printed, deltas, flagged_glmm1, flagged_glmm2, number_effects, odds_ratios, reproductions,
    residual_effects, variant_effects,
};
use earnest_stats::holm;
use earnest_tasks::suite::gsm_symbolic::Prompt;
use earnest_tasks::{agreeing, counted};

const ARTEFACT: &str = "the published fit is an artefact of lme4's inner tolerance: its standard error, z and p are \
                        meaningless";

/// All tables, in the paper's order.
pub(super) fn tables(analyses: &[Analysis]) -> Vec<ResultTable> {
    let mut tables = vec![effects(analyses, Prompt::Gsm), ratios(analyses, Prompt::Gsm)];
    tables.extend([mirzadeh(analyses), opposite_deltas(analyses)]);
    for prompt in &Prompt::ALL[1..] {
        tables.extend([effects(analyses, *prompt), ratios(analyses, *prompt)]);
    }
    tables.push(number_table(analyses, 14));
    tables.push(number_table(analyses, 15));
    tables
}

/// True if the published GLMM 1 (or 2) of a model and prompt is an artefact.
pub(super) fn is_artefact(glmm: u8, model: &str, prompt: Prompt) -> bool {
    let flagged = if glmm == 1 { flagged_glmm1() } else { flagged_glmm2() };
    flagged.iter().any(|fit| fit.model == model && fit.prompt == prompt)
}

/// The paper's selected models without artefacts.
pub(super) fn published_drops_without_artefacts() -> Vec<String> {
    let drops = number_effects().iter().map(|row| row.model.as_str());
    drops.filter(|model| !is_artefact(1, model, Prompt::Gsm)).map(str::to_owned).collect()
}

/// Models of a prompt: the paper's, then further ones of ours.
pub(super) fn models_of(analyses: &[Analysis], prompt: Prompt) -> Vec<String> {
    let printed = variant_effects(prompt).iter().map(|row| row.model.as_str());
    let ours = analyses.iter().filter(|analysis| analysis.prompt == prompt).map(|analysis| analysis.model.as_str());
    with_ours(printed, ours)
}

/// Remarks on a row about a fit.
pub(super) fn remarks(glmm: u8, model: &str, prompt: Prompt, ours: Option<&Analysis>) -> Vec<String> {
    let mut remarks = Vec::new();
    if is_artefact(glmm, model, prompt) {
        remarks.push(ARTEFACT.to_owned());
    }
    let Some(analysis) = ours else { return remarks };
    let fit = if glmm == 1 { &analysis.glmm1 } else { &analysis.glmm2 };
    if let Some(problem) = fit.problem() {
        remarks.push(format!("ours has no estimate: {problem}"));
    }
    remarks.extend(fit.explanations.iter().map(|why| format!("ours: {why}")));
    if fit.degenerate {
        remarks.push("our converged fit has standard errors below 0.01 or all equal: do not use them".to_owned());
    }
    if let Some(lme4) = fit.lme4.as_ref().filter(|lme4| lme4.degenerate) {
        let error = lme4.variant.map_or_else(|| "none".to_owned(), |effect| format!("{:.5}", effect.standard_error));
        remarks.push(format!(
            "lme4's default settings give a degenerate fit of our rows (standard error {error}); the numbers shown are those \
             of the converged fit"
        ));
    }
    if analysis.unanswered > 0 {
        remarks.push(format!(
            "{} {} no answer of ours",
            counted(analysis.unanswered, "question"),
            agreeing(analysis.unanswered, "has", "have")
        ));
    }
    remarks
}

/// Tables 2, 6, 8, 10 and 12.
fn effects(analyses: &[Analysis], prompt: Prompt) -> ResultTable {
    let columns =
        columns(&[("base accuracy", 1), ("variants accuracy", 1), ("difference", 2), ("p", 3), ("p Holm", 3)]);
    let family: Vec<&Analysis> = analyses.iter().filter(|analysis| analysis.prompt == prompt).collect();
    let raw: Vec<Option<f64>> = family.iter().map(|analysis| analysis.glmm1.variant.map(|effect| effect.p)).collect();
    let adjusted = holm_with_gaps(&raw);
    let row = |model: String| {
        let published = variant_effects(prompt).iter().find(|row| row.model == model);
        let index = family.iter().position(|analysis| analysis.model == model);
        let ours = index.map(|index| family[index]);
        let accuracy = |of: fn(&Analysis) -> Option<f64>| ours.and_then(of);
        let pairs = [
            (published.map(|row| row.base_acc.into()), accuracy(|ours| ours.accuracies.base)),
            (published.map(|row| row.var_acc.into()), accuracy(|ours| ours.accuracies.variants)),
            (published.map(|row| row.delta.into()), accuracy(|ours| ours.accuracies.difference)),
            (published.map(|row| row.p), index.and_then(|index| raw[index])),
            (published.map(|row| row.p_holm), index.and_then(|index| adjusted[index])),
        ];
        ResultRow {
            cells: cells(&columns, &pairs),
            series: None,
            class: ours.and_then(|ours| class(ours.glmm1.variant.as_ref())),
            remarks: remarks(1, &model, prompt, ours),
            name: model,
        }
    };
    ResultTable {
        kind: Kind::Table,
        number: paper_tables(prompt).0,
        title: format!(
            "variant effect, {prompt} prompt (GLMM 1); accuracies in per cent, variants minus base in points"
        ),
        prompt: Some(prompt),
        rows: models_of(analyses, prompt).into_iter().map(row).collect(),
        columns,
        notes: vec![format!(
            "p Holm: over the models of the table, of the paper {} and of ours {}; a model without an estimate counts as \
             p = 1.",
            variant_effects(prompt).len(),
            family.len()
        )],
    }
}

/// Tables 3, 7, 9, 11 and 13.
fn ratios(analyses: &[Analysis], prompt: Prompt) -> ResultTable {
    let columns = columns(&[("odds ratio", 2), ("95 % from", 2), ("to", 2), ("z", 2), ("std. error", 2)]);
    let row = |model: String| {
        let published = odds_ratios(prompt).iter().find(|row| row.model == model);
        let ours = find(analyses, &model, prompt);
        let effect = ours.and_then(|ours| ours.glmm1.variant);
        let of = |value: fn(Effect) -> f64| effect.map(value);
        let pairs = [
            (published.map(|row| row.odds_ratio.into()), of(|effect| effect.estimate.exp())),
            (published.map(|row| row.ci_low.into()), of(|effect| effect.low.exp())),
            (published.map(|row| row.ci_high.into()), of(|effect| effect.high.exp())),
            (published.map(|row| row.z.into()), of(|effect| effect.z)),
            (published.map(|row| row.std_err), of(|effect| effect.standard_error)),
        ];
        ResultRow {
            cells: cells(&columns, &pairs),
            series: None,
            class: class(effect.as_ref()),
            remarks: remarks(1, &model, prompt, ours),
            name: model,
        }
    };
    ResultTable {
        kind: Kind::Table,
        number: paper_tables(prompt).1,
        title: format!("odds ratios of the variant effect, {prompt} prompt (GLMM 1)"),
        prompt: Some(prompt),
        rows: models_of(analyses, prompt).into_iter().map(row).collect(),
        columns,
        notes: vec![
            "Ours are fully converged fits, by quadrature where Laplace's approximation differs; expect 0.01 in odds ratios and 0.02 in standard errors between \
                     them and lme4's on equal rows."
                .to_owned(),
        ],
    }
}

/// Table 4: the re-evaluation and Mirzadeh et al., each compared with ours.
fn mirzadeh(analyses: &[Analysis]) -> ResultTable {
    let columns = columns(&[
        ("base accuracy", 1),
        ("variants accuracy", 1),
        ("variants SD", 2),
        ("base accuracy, Mirzadeh", 1),
        ("variants accuracy, Mirzadeh", 1),
        ("variants SD, Mirzadeh", 2),
    ]);
    let row = |model: String| {
        let published = reproductions().iter().find(|row| row.model == model);
        let ours = find(analyses, &model, Prompt::Gsm).map(|ours| ours.accuracies);
        let of = |value: fn(&super::Accuracies) -> Option<f64>| ours.as_ref().and_then(value);
        let (base, variants, sd) = (of(|a| a.base), of(|a| a.variants), of(|a| a.instance_sd));
        let printed = |value: fn(&crate::gsm_symbolic::published::Reproduction) -> f64| {
            published.map(|row| Printed::from(value(row)))
        };
        let pairs = [
            (printed(|row| row.ours_base), base),
            (printed(|row| row.ours_var_mean), variants),
            (printed(|row| row.ours_var_std), sd),
            (printed(|row| row.mirzadeh_base), base),
            (printed(|row| row.mirzadeh_var_mean), variants),
            (printed(|row| row.mirzadeh_var_std), sd),
        ];
        ResultRow { cells: cells(&columns, &pairs), name: model, series: None, class: None, remarks: Vec::new() }
    };
    ResultTable {
        kind: Kind::Table,
        number: 4,
        title: "the re-evaluation and Mirzadeh et al. compared with ours, GSM prompt, per cent".to_owned(),
        prompt: Some(Prompt::Gsm),
        rows: models_of(analyses, Prompt::Gsm).into_iter().map(row).collect(),
        columns,
        notes: vec![
            "SD: of the accuracies by instance (n - 1). Mirzadeh et al. give one number for a Gemma model and its \
             instruction-tuned sibling."
                .to_owned(),
        ],
    }
}

/// Table 5, whose sign is opposite to all other tables.
fn opposite_deltas(analyses: &[Analysis]) -> ResultTable {
    let columns = columns(&[("base minus variants", 1), ("base minus variants, Mirzadeh", 1)]);
    let row = |model: String| {
        let published = deltas().iter().find(|row| row.model == model);
        let ours = find(analyses, &model, Prompt::Gsm).and_then(|ours| ours.accuracies.difference);
        let ours = ours.map(|difference| -difference);
        let pairs = [
            (published.map(|row| row.delta_var_ours.into()), ours),
            (published.map(|row| row.delta_var_mirzadeh.into()), ours),
        ];
        ResultRow { cells: cells(&columns, &pairs), name: model, series: None, class: None, remarks: Vec::new() }
    };
    ResultTable {
        kind: Kind::Table,
        number: 5,
        title: "drop in accuracy: the re-evaluation and Mirzadeh et al. compared with ours, points".to_owned(),
        prompt: Some(Prompt::Gsm),
        rows: models_of(analyses, Prompt::Gsm).into_iter().map(row).collect(),
        columns,
        notes: vec!["The sign of this table is base minus variants; all others show variants minus base.".to_owned()],
    }
}

/// Effect of GLMM 2 in Table 14 or 15.
pub(super) fn number_effect(table: u8, fit: &ModelFit) -> Option<Effect> {
    if table == 14 { fit.gamma } else { fit.variant }
}

/// Models of Tables 14 and 15: the paper's ten, and ours that were selected or evaluated on prompts other than GSM's.
pub(super) fn number_models(analyses: &[Analysis]) -> Vec<String> {
    let ours = analyses.iter().filter(|ours| ours.prompt != Prompt::Gsm || ours.is_significant_drop());
    with_ours(number_effects().iter().map(|row| row.model.as_str()), ours.map(|ours| ours.model.as_str()))
}

/// Table 14 or 15, one row per model and prompt.
fn number_table(analyses: &[Analysis], number: u8) -> ResultTable {
    let columns = columns(&[("odds ratio", 2), ("p", 3), ("Holm over prompts", 3), ("Holm over models", 3)]);
    let published = if number == 14 { number_effects() } else { residual_effects() };
    let models = number_models(analyses);
    let raw = |model: &str, prompt| {
        find(analyses, model, prompt).map(|ours| number_effect(number, &ours.glmm2).map(|effect| effect.p))
    };
    // Holm over those members of a family that were run.
    let family = |members: Vec<(String, Prompt)>| {
        let run: Vec<((String, Prompt), Option<f64>)> =
            members.into_iter().filter_map(|member| Some((member.clone(), raw(&member.0, member.1)?))).collect();
        let adjusted = holm_with_gaps(&run.iter().map(|(_, p)| *p).collect::<Vec<_>>());
        run.into_iter().map(|(member, _)| member).zip(adjusted).collect::<Vec<_>>()
    };
    let over_prompts: Vec<_> =
        models.iter().flat_map(|model| family(Prompt::ALL.map(|prompt| (model.clone(), prompt)).to_vec())).collect();
    let over_models: Vec<_> = Prompt::ALL
        .into_iter()
        .flat_map(|prompt| family(models.iter().map(|model| (model.clone(), prompt)).collect()))
        .collect();
    let adjusted = |list: &[((String, Prompt), Option<f64>)], model: &str, prompt| {
        list.iter().find(|((name, at), _)| name == model && *at == prompt).and_then(|(_, p)| *p)
    };
    let mut rows = Vec::new();
    for model in &models {
        let row = published.iter().position(|row| &row.model == model);
        for prompt in Prompt::ALL {
            let cell = row.map(|row| published[row].cell(prompt));
            let ours = find(analyses, model, prompt);
            if cell.is_none() && ours.is_none() {
                continue;
            }
            let effect = ours.and_then(|ours| number_effect(number, &ours.glmm2));
            let pairs = [
                (cell.map(|cell| cell.odds_ratio.into()), effect.map(|effect| effect.estimate.exp())),
                (cell.map(|cell| cell.p), effect.map(|effect| effect.p)),
                (cell.map(|cell| cell.p_holm), adjusted(&over_prompts, model, prompt)),
                (row.map(|row| over_published_models(published, prompt)[row]), adjusted(&over_models, model, prompt)),
            ];
            rows.push(ResultRow {
                name: model.clone(),
                series: Some(prompt.to_string()),
                cells: cells(&columns, &pairs),
                class: class(effect.as_ref()),
                remarks: remarks(2, model, prompt, ours),
            });
        }
    }
    let what =
        if number == 14 { "large-number effect" } else { "variant effect corrected for the large-number effect" };
    ResultTable {
        kind: Kind::Table,
        number,
        title: format!("{what}, all prompts (GLMM 2)"),
        prompt: None,
        rows,
        columns,
        notes: vec![
            "The caption describes Holm's correction as column-wise (over models); the printed values are row-wise (over the \
             prompts of a model), as is `Holm over prompts`."
                .to_owned(),
            "`Holm over models` is the correction that the paper's text describes but does not print: the published values here are \
             computed from the printed raw p values, and are upper bounds where only a bound is printed."
                .to_owned(),
        ],
    }
}

/// Holm's adjustment over the models of a published column, from the printed raw values (a bound counts as its value).
fn over_published_models(table: &[NumberEffectRow], prompt: Prompt) -> Vec<Printed> {
    let raw: Vec<Printed> = table.iter().map(|row| row.cell(prompt).p).collect();
    let upper: Vec<f64> = raw
        .iter()
        .map(|p| match p {
            Printed::Rounded(value) => *value,
            Printed::Below { bound } => *bound,
        })
        .collect();
    let adjusted = holm(&upper).expect("printed p values are from 0 to 1");
    raw.iter()
        .zip(adjusted)
        .map(|(raw, adjusted)| match raw {
            Printed::Rounded(_) => Printed::Rounded(adjusted),
            Printed::Below { .. } => Printed::Below { bound: adjusted },
        })
        .collect()
}

/// Significance class of an effect, which selects its colour in figures.
pub(super) fn class(effect: Option<&Effect>) -> Option<&'static str> {
    let effect = effect?;
    Some(match (effect.p, effect.estimate < 0.0) {
        (p, true) if p < 0.01 => "drop p<.01",
        (p, true) if p < 0.05 => "drop p<.05",
        (p, false) if p < 0.01 => "rise p<.01",
        (p, false) if p < 0.05 => "rise p<.05",
        _ => "n.s.",
    })
}
