//! The study as one HTML page: results, questions, claims, figures and tables with the paper's values beside ours.
use std::sync::LazyLock;

use super::analysis::Analysis;
use super::drawing::drawn;
use super::formula::FormulaFit;
use super::models::paper_tables;
use super::result_table::{Kind, ResultRow, ResultTable};
use super::study::Study;
use super::text::{HARDER_COLUMNS, artefacts, harder_rows, ours, p_value, printed, ratio, with_ends};
use crate::gsm_symbolic::published::odds_ratios;
use earnest_report::ReportError;
use earnest_report::markup::{Environment, Markup, Value, context, environment, rendered, safe};
use earnest_report::page::{Frame, Sections, framed};
use earnest_results::ends;
use earnest_tasks::suite::Interval;

/// Rules of this page: rows of the runs stand out among the paper's, figures of one number stand together, labels are readable on lines.
const STYLE: &str = "
tbody th { font-weight: 400; } tr.own > * { background: color-mix(in srgb, var(--c0) 12%, var(--ground)); font-weight: 600; }
.of { margin: .1rem 0 .5rem; font-size: .92em; } h3 { margin-top: 1.3rem; } #figures h3, #tables h3 { padding-top: .6rem; border-top: 1px solid var(--grid); }
#figures .figures { display: flex; flex-wrap: wrap; align-items: flex-start; gap: .6rem 1.6rem; } #figures figure { max-width: 100%; }
#figures figcaption { font-weight: 400; } #figures svg { max-width: 100%; } #figures svg .tick { paint-order: stroke; stroke: var(--ground); stroke-width: 3px; }
#formulas td:nth-child(2), #formulas td:last-child, #claims tbody th { white-space: normal; } #formulas td:nth-child(2) { min-width: 16rem; max-width: 28rem; }
#formulas td:last-child { min-width: 13rem; } .says { margin: .2rem 0 0; max-width: 110ch; }
#results th, #results td { padding-left: .4rem; padding-right: .4rem; } #tables th, #tables td { padding-left: .28rem; padding-right: .28rem; } #tables thead th { min-width: 3.1rem; }
@media (max-width: 560px) { #results tbody th, #artefacts tbody th { min-width: 9rem; } #claims tbody th { min-width: 11rem; position: static; } }
@media print { table { font-size: .74em; } .num { white-space: nowrap; } th, td { padding: .15rem .22rem; }
  h3, .of { break-after: avoid; break-inside: avoid; } #figures .figures { display: block; } #figures figure { display: inline-block; width: 48%; vertical-align: top; margin: 0 1% .6rem 0; } }
";

static TEMPLATES: [(&str, &str); 7] = [
    ("claims.html", include_str!("../../templates/gsm_symbolic/claims.html")),
    ("figures.html", include_str!("../../templates/gsm_symbolic/figures.html")),
    ("listing.html", include_str!("../../templates/gsm_symbolic/listing.html")),
    ("rows.html", include_str!("../../templates/gsm_symbolic/rows.html")),
    ("study.html", include_str!("../../templates/gsm_symbolic/study.html")),
    ("tables.html", include_str!("../../templates/gsm_symbolic/tables.html")),
    ("tail.html", include_str!("../../templates/gsm_symbolic/tail.html")),
];

static PAGES: LazyLock<Environment<'static>> = LazyLock::new(|| environment(&TEMPLATES));

/// Renders the page. It opens no connection and needs no script but for sorting.
///
/// # Errors
/// If a template fails.
pub fn page(study: &Study) -> Result<String, ReportError> {
    let mut sections = Sections::default();
    let lead = "Odds ratios are of a mixed model of each model and prompt, right ~ variant + (1 | template), fully converged: below \
                1, variants are answered worse than the questions they were made from. Beside it the same by 25-point quadrature, \
                which few right answers need. Intervals are 95 %; differences are paired by template. Detectable: the least \
                difference that this design finds with power 80 %.";
    sections.section("results", "Our runs", lead, results(study)?);
    let lead = "GSM-P1 and GSM-P2 have one and two more clauses than GSM-Symbolic. Each is compared with the originals of its \
                templates, paired by template; the paper does not ask them.";
    let harder = harder_rows(study);
    let harder = (!harder.is_empty()).then(|| table(&HARDER_COLUMNS, 3, harder));
    let harder = Rows { of: identity(study), table: harder, ..Rows::default() };
    sections.section("harder", "Harder sets", lead, harder.html()?);
    let notes = Rows { notes: study.comparability(), ..Rows::default() };
    sections.section("questions", "Questions and comparability", "", notes.html()?);
    sections.section("claims", "The paper's claims", "", claims(study)?);
    sections.section("artefacts", "lme4's artefact", ARTEFACT, artefact(study)?);
    let lead = "The maximal model that a model's answers to all its prompts support, chosen by the design and stepped down while it is \
                singular: templates differ in difficulty, and prompts where several were asked. This is the default of earnest; the \
                paper's GLMM 1, in the last column, is fitted to each prompt alone.";
    sections.section("formulas", "Mixed models by formula", lead, formulas(study)?);
    let lead = "Where both are known, ours and the paper's stand in one drawing. Hollow, hatched and n.s.: p of .05 or more, each test \
                for itself.";
    sections.section("figures", "Figures 1 to 11", lead, figures(study)?);
    let lead = "The published value, ours, and the difference where it is defined. Rows with numbers of ours are coloured. An asterisk \
                leads to a remark below its table.";
    sections.section("tables", "Tables 2 to 15", lead, tables(study)?);
    sections.part("listing", "Listing 6", "Listing 6: estimates across optimisers", "", listing(study)?);
    let choices = Rows { notes: study.recommendations.clone(), ..Rows::default() };
    sections.part(
        "choices",
        "Discrepancies",
        "Discrepancies between paper and code, and the choice made here",
        "",
        choices.html()?,
    );
    sections.part("runs", "Runs", "Runs", "", runs(study)?);
    framed(&Frame {
        title: "earnest: GSM-Symbolic re-evaluated",
        heading: "GSM-Symbolic re-evaluated",
        sections,
        appendix: true,
        style: STYLE,
        footer: &study.paper,
        tail: html("tail.html", context!())?,
    })
}

fn html(template: &str, context: Value) -> Markup {
    rendered(&PAGES, template, context)
}

/// The identity of the questions behind our numbers: it stands with every table and figure, with a link to what else is not as in the paper.
fn identity(study: &Study) -> Option<Value> {
    Some(context!(questions => study.identity()?, differs => study.differs().is_some()))
}

/// Notes, a table with the identity of its questions or a sentence instead, warnings, and remarks that are folded under a title.
#[derive(Default)]
struct Rows {
    notes: Vec<String>,
    of: Option<Value>,
    table: Option<Value>,
    instead: &'static str,
    warnings: Vec<String>,
    folded: &'static str,
    remarks: Vec<String>,
}

impl Rows {
    fn html(self) -> Markup {
        let Rows { notes, of, table, instead, warnings, folded, remarks } = self;
        html("rows.html", context!(notes, of, table, instead, warnings, folded, remarks))
    }
}

/// A table of texts, for templates; the first `left` columns are names.
fn table(names: &[&str], left: usize, rows: impl IntoIterator<Item = Vec<String>>) -> Value {
    let names: Value = names.iter().copied().collect();
    context!(names, left, rows => rows.into_iter().collect::<Value>())
}

/// Figures 1 to 11, the drawings of a number together, each with the identity of the questions.
fn figures(study: &Study) -> Markup {
    let drawn = drawn(study);
    let figure = |shown: &ResultTable| {
        let beginning = format!("Figure {}: ", shown.number);
        let of_number = drawn.iter().filter(|(number, _)| *number == shown.number);
        let drawn = of_number.map(
            |(_, figure)| context!(title => figure.title.trim_start_matches(&beginning), svg => safe(figure.inline())),
        );
        let own = shown.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.ours.is_some());
        let (number, title, notes) = (shown.number, &shown.title, &shown.notes);
        context!(number, title, own, drawn => drawn.collect::<Value>(), notes)
    };
    let figures: Value = study.figures.iter().map(figure).collect();
    html("figures.html", context!(of => identity(study), figures))
}

/// Description of lme4's artefact.
const ARTEFACT: &str = "The paper fits its models with lme4's default settings, whose inner loop stops by a tolerance at which the \
                        likelihood of some data jumps. The optimiser settles on the edge, and the curvature measured there gives \
                        standard errors of about 0.0004 for every coefficient, so that anything is significant.";

/// The counts with and without the artefact, and our rows fitted both ways.
fn artefact(study: &Study) -> Markup {
    let fits = study.analyses.iter().filter_map(|analysis| {
        let lme4 = analysis.glmm1.lme4.as_ref()?;
        let converged = analysis.glmm1.variant?;
        Some(vec![
            analysis.model.clone(),
            analysis.prompt.to_string(),
            ratio(&converged),
            p_value(converged.p),
            lme4.variant.map_or_else(missing, |effect| ratio(&effect)),
            lme4.variant.map_or_else(missing, |effect| p_value(effect.p)),
            if lme4.degenerate { "artefact" } else { "no artefact" }.to_owned(),
        ])
    });
    let fits: Vec<Vec<String>> = fits.collect();
    let names = ["model", "prompt", "odds ratio, converged", "p", "odds ratio, lme4's defaults", "p", "of our rows"];
    let table = (!fits.is_empty()).then(|| table(&names, 2, fits));
    Rows { notes: vec![artefacts(study)], of: identity(study), table, ..Rows::default() }.html()
}

fn missing() -> String {
    "–".to_owned()
}

fn points(value: Option<Interval>) -> String {
    value.map_or_else(missing, with_ends)
}

fn results(study: &Study) -> Markup {
    let printed = |analysis: &Analysis| odds_ratios(analysis.prompt).iter().find(|row| row.model == analysis.model);
    let has_printed = study.analyses.iter().any(|analysis| printed(analysis).is_some());
    let mut names = vec![
        "model",
        "prompt",
        "base, % right",
        "variants, % right",
        "difference, points",
        "detectable, points",
        "odds ratio",
        "by quadrature",
        "p",
        "p Holm",
    ];
    names.extend(has_printed.then_some("paper's odds ratio"));
    let rows = study.analyses.iter().map(|analysis| {
        let accuracies = &analysis.accuracies;
        let share = |value: Option<f64>, of: usize| value.map_or_else(missing, |value| format!("{value:.1} of {of}"));
        let effect = analysis.glmm1.variant;
        let mut cells = vec![
            analysis.model.clone(),
            analysis.prompt.to_string(),
            share(accuracies.base, accuracies.base_questions),
            share(accuracies.variants, accuracies.variant_questions),
            points(accuracies.interval),
            accuracies.detectable.map_or_else(missing, |value| format!("{value:.1}")),
            effect
                .map_or_else(|| analysis.glmm1.problem().map_or_else(missing, str::to_owned), |effect| ratio(&effect)),
            analysis.glmm1.quadrature.map_or_else(missing, |log| ours(log.exp(), 2)),
            effect.map_or_else(missing, |effect| p_value(effect.p)),
            study.holm(analysis).map_or_else(missing, p_value),
        ];
        let of_paper = || {
            printed(analysis)
                .map_or_else(missing, |row| format!("{:.2} [{:.2}, {:.2}]", row.odds_ratio, row.ci_low, row.ci_high))
        };
        cells.extend(has_printed.then(of_paper));
        cells
    });
    let explained = study.analyses.iter().flat_map(|analysis| {
        let why = analysis.glmm1.explanations.iter();
        why.map(move |why| format!("{}, {} prompt: {why}", analysis.model, analysis.prompt))
    });
    Rows {
        of: identity(study),
        table: (!study.analyses.is_empty()).then(|| table(&names, 2, rows)),
        instead: "No runs: only the published values are shown.",
        folded: "Remarks on the fits",
        remarks: explained.collect(),
        ..Rows::default()
    }
    .html()
}

fn claims(study: &Study) -> Markup {
    let names = ["claim", "published", "without artefacts", "ours", "ours by lme4's defaults"];
    let said = study.said();
    let mut conclusions: Vec<&str> = study.claims.iter().map(|claim| claim.conclusion).collect();
    conclusions.dedup();
    let shown = conclusions.into_iter().map(|conclusion| {
        let rows = study.claims.iter().filter(|claim| claim.conclusion == conclusion).map(|claim| {
            let counted = claim.ours_of > 0;
            vec![
                claim.about.clone(),
                format!("{} of {}", claim.published, claim.of),
                claim.without_artefacts.to_string(),
                if counted { format!("{} of {}", claim.ours, claim.ours_of) } else { missing() },
                if counted { claim.ours_by_lme4.to_string() } else { missing() },
            ]
        });
        let says = said.iter().find(|(known, _)| *known == conclusion).map(|(_, says)| says);
        context!(conclusion, table => table(&names, 1, rows), says)
    });
    let models = |models: &[String]| if models.is_empty() { "none".to_owned() } else { models.join(", ") };
    let selection = &study.selection;
    let mut notes = vec![
        "Effects of numbers are those of GLMM 2, which has the variant and the size of the numbers; p below .05, uncorrected."
            .to_owned(),
        format!("Significant drops on the GSM prompt, published: {}.", models(&selection.published)),
        format!("Without artefacts: {}.", models(&selection.published_without_artefacts)),
    ];
    if !study.analyses.is_empty() {
        notes.push(format!(
            "Ours: {}; by lme4's defaults: {}.",
            models(&selection.ours),
            models(&selection.ours_by_lme4)
        ));
        notes.push("A count of ours is of the models that were run. No significant effect is not evidence of none: see what was detectable.".to_owned());
    }
    let published = study.pooled.published.says();
    html("claims.html", context!(of => identity(study), conclusions => shown.collect::<Value>(), published, notes))
}

fn formulas(study: &Study) -> Markup {
    let names = [
        "model",
        "formula",
        "rows",
        "odds ratio of variants",
        "p",
        "difference, points",
        "the paper's GLMM 1, by prompt",
    ];
    let rows = study.formulas.iter().map(|fit| {
        let own = study.analyses.iter().filter(|analysis| analysis.model == fit.model);
        let by_prompt: Vec<String> = own
            .map(|analysis| {
                let effect = analysis.glmm1.variant.map(|effect| ours(effect.estimate.exp(), 2));
                format!("{} {}", analysis.prompt, effect.unwrap_or_else(missing))
            })
            .collect();
        vec![
            fit.model.clone(),
            fit.formula.clone(),
            fit.rows.to_string(),
            fit.odds_ratio.map_or_else(missing, |at| {
                format!("{:.2} [{}]", at.estimate, ends((at.low, at.high), 1.0, 2, false).join(", "))
            }),
            fit.p.map_or_else(missing, p_value),
            points(fit.points),
            by_prompt.join("; "),
        ]
    });
    let remarks = study.formulas.iter().flat_map(|fit| fit.notes.iter().map(move |note| (fit, note)));
    let said = |(fit, note): (&FormulaFit, &String)| format!("{}: {note}", fit.model);
    Rows {
        of: identity(study),
        table: (!study.formulas.is_empty()).then(|| table(&names, 2, rows)),
        warnings: remarks.clone().filter(|(_, note)| is_warning(note)).map(said).collect(),
        folded: "How each formula was chosen",
        remarks: remarks.map(said).collect(),
        ..Rows::default()
    }
    .html()
}

/// True for a note about the trust in a fit, which must not be folded.
fn is_warning(note: &str) -> bool {
    ["only ", "separated", "no fit"].iter().any(|beginning| note.starts_with(beginning))
}

fn tables(study: &Study) -> Markup {
    let tables: Value = study.tables.iter().map(|shown| result_table(study, shown)).collect();
    html("tables.html", context!(of => identity(study), tables))
}

fn result_table(study: &Study, shown: &ResultTable) -> Value {
    let has_ours = shown.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.ours.is_some());
    let row = |row: &ResultRow| {
        let mut cells = Vec::new();
        for (cell, column) in row.cells.iter().zip(&shown.columns) {
            cells.push(cell.published.map_or_else(missing, |value| printed(value, column.decimals)));
            if has_ours {
                cells.push(cell.ours.map_or_else(missing, |value| ours(value, column.decimals)));
                cells.push(cell.difference.map_or_else(missing, |value| format!("{value:+.*}", column.decimals)));
            }
        }
        let name = format!("{}{}", row.name, if row.remarks.is_empty() { "" } else { "*" });
        let own = row.cells.iter().any(|cell| cell.ours.is_some());
        context!(name, own, series => row.series.as_deref().unwrap_or_default(), cells)
    };
    context!(
        kind => if shown.kind == Kind::Table { "Table" } else { "Figure" },
        number => shown.number,
        title => &shown.title,
        own => has_ours || study.is_in(shown),
        has_ours,
        series => shown.rows.iter().any(|row| row.series.is_some()),
        columns => shown.columns.iter().map(|column| &column.name).collect::<Value>(),
        rows => shown.rows.iter().map(row).collect::<Value>(),
        notes => shown.remarks().into_iter().chain(shown.notes.iter().cloned()).collect::<Vec<_>>(),
    )
}

fn listing(study: &Study) -> Markup {
    let published = study.listing_6.published.iter().map(|row| {
        vec![
            row.prompt.to_string(),
            row.optimiser.clone(),
            format!("{:.6}", row.intercept),
            format!("{:.7}", row.is_variant),
        ]
    });
    let published = table(&["gemma-2-2b, published", "optimiser", "intercept", "variant"], 2, published);
    let ours = study.listing_6.ours.iter().map(|row| {
        let ends = row.ends.iter().map(|end| {
            let number = |index: usize| end.coefficients.get(index).map_or_else(missing, |value| format!("{value:.6}"));
            vec![end.objective.to_owned(), end.optimiser.to_owned(), number(0), number(1), format!("{:.5}", end.value)]
        });
        context!(
            model => &row.model,
            prompt => row.prompt.to_string(),
            lme4 => format!("{:.1e}", row.lme4_spread),
            converged => format!("{:.1e}", row.converged_spread),
            table => table(&["objective", "optimiser", "intercept", "variant", "-2 log L"], 2, ends),
        )
    });
    html("listing.html", context!(note => &study.listing_6.note, published, ours => ours.collect::<Value>()))
}

fn runs(study: &Study) -> Markup {
    let rows = study.runs.iter().map(|run| {
        let prompts: Vec<&str> = run.prompts.iter().map(|prompt| prompt.name()).collect();
        let tables: Vec<String> = run.prompts.iter().map(|prompt| paper_tables(*prompt).0.to_string()).collect();
        vec![run.model.clone(), run.run.clone(), prompts.join(", "), tables.join(", ")]
    });
    let names = ["model", "run", "prompts", "accuracies in table"];
    Rows { table: (!study.runs.is_empty()).then(|| table(&names, 4, rows)), ..Rows::default() }.html()
}

#[cfg(test)]
mod tests {
    use super::super::{Evaluation, Observation, StudyRun};
    use super::*;
    use earnest_tasks::suite::gsm_symbolic::Prompt;

    #[test]
    fn every_template_has_the_syntax_of_one() {
        for (name, _) in &TEMPLATES {
            PAGES.get_template(name).unwrap();
        }
    }

    #[test]
    fn the_paper_alone_has_all_tables_and_no_connection() {
        let html = page(&Study::new(Vec::new(), Vec::new(), None)).unwrap();
        for number in 2..=15 {
            assert!(html.contains(&format!("id=\"table-{number}\"")), "{number}");
        }
        for number in 1..=11 {
            assert!(html.contains(&format!("Figure {number}: ")), "{number}");
        }
        assert!(html.contains("default-src 'none'") && !html.contains("NaN"));
        assert!(html.contains("of its 10 of 20, 9 remain; of the 2 after Holm&#39;s correction, 1"), "{html}");
        assert!(!html.contains("Questions of ours"));
    }
    #[test]
    fn answers_stand_in_every_section_and_their_names_are_no_markup() {
        let evaluation = |model: &str| {
            let mut evaluation = Evaluation::new(model, Prompt::Gsm);
            for (template, instance) in (0..16).flat_map(|template| (-1..4).map(move |instance| (template, instance))) {
                let row = Observation {
                    template: format!("t{template}"),
                    instance,
                    variant: instance >= 0,
                    correct: (template + 2 * instance) % 5 != 0,
                    gamma: Some(f64::from(template as u8) / 4.0 + instance as f64),
                    failure: None,
                };
                if instance > 1 {
                    evaluation.harder.entry("p1".to_owned()).or_default().push(row.clone());
                }
                evaluation.rows.push(row);
            }
            evaluation
        };
        let run = StudyRun {
            run: "run-<1>".to_owned(),
            model: "<mine>".to_owned(),
            prompts: vec![Prompt::Gsm],
            questions: vec!["The originals are GSM-Base: all 100 known GSM8K questions.".to_owned()],
            limits: vec!["asks 10 of the 50 variants of a template".to_owned()],
        };
        let study = Study::new(vec![run], vec![evaluation("gemma-2-2b"), evaluation("<mine>")], None);
        let html = page(&study).unwrap();
        for part in ["results", "harder", "questions", "claims", "artefacts", "formulas", "figures", "tables"] {
            assert!(html.contains(&format!("<section id=\"{part}\">")), "{part} is missing in {html}");
        }
        for part in ["listing", "choices", "runs"] {
            assert!(html.contains(&format!("<details class=\"part\" id=\"{part}\">")), "{part} is missing in {html}");
        }
        assert!(html.contains("<th scope=\"row\">&lt;mine&gt;") && html.contains("<td>run-&lt;1&gt;</td>"), "{html}");
        assert!(html.contains("<p class=\"dim of\">Questions of ours: originals published"), "{html}");
        assert!(html.contains("<a href=\"#questions\">") && html.contains("<b>These runs:</b>"), "{html}");
        assert!(html.contains("class=\"num\">diff.</th>") && html.contains("class=\"own\""), "{html}");
    }
}
