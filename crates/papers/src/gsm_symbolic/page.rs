//! The study as one HTML page: results, questions, claims, figures and tables with the paper's values beside ours.
use std::fmt::Write;

use super::analysis::Analysis;
use super::drawing::drawn;
use super::models::paper_tables;
use super::result_table::{Kind, ResultTable};
use super::study::Study;
use super::text::{HARDER_COLUMNS, artefacts, harder_rows, ours, p_value, printed, ratio, with_ends};
use crate::gsm_symbolic::published::odds_ratios;
use crate::text::WRITES;
use earnest_report::markup::safe;
use earnest_report::page::{Frame, Sections, framed};
use earnest_report::plot::escape;
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

/// Renders the page. It opens no connection and needs no script but for sorting.
pub fn page(study: &Study) -> String {
    let mut sections = Sections::default();
    let lead = "Odds ratios are of a mixed model of each model and prompt, right ~ variant + (1 | template), fully converged: below \
                1, variants are answered worse than the questions they were made from. Beside it the same by 25-point quadrature, \
                which few right answers need. Intervals are 95 %; differences are paired by template. Detectable: the least \
                difference that this design finds with power 80 %.";
    sections.section("results", "Our runs", lead, safe(results(study)));
    let harder = harder_rows(study);
    if !harder.is_empty() {
        let lead = "GSM-P1 and GSM-P2 have one and two more clauses than GSM-Symbolic. Each is compared with the originals of its \
                    templates, paired by template; the paper does not ask them.";
        let rows = identity(study) + &table(&HARDER_COLUMNS, 3, harder);
        sections.section("harder", "Harder sets", lead, safe(rows));
    }
    sections.section("questions", "Questions and comparability", "", safe(list(&study.comparability())));
    sections.section("claims", "The paper's claims", "", safe(claims(study)));
    sections.section("artefacts", "lme4's artefact", ARTEFACT, safe(artefact(study)));
    let lead = "The maximal model that a model's answers to all its prompts support, chosen by the design and stepped down while it is \
                singular: templates differ in difficulty, and prompts where several were asked. This is the default of earnest; the \
                paper's GLMM 1, in the last column, is fitted to each prompt alone.";
    sections.section("formulas", "Mixed models by formula", lead, safe(formulas(study)));
    let lead = "Where both are known, ours and the paper's stand in one drawing. Hollow, hatched and n.s.: p of .05 or more, each test \
                for itself.";
    sections.section("figures", "Figures 1 to 11", lead, safe(figures(study)));
    let tables: String = study.tables.iter().map(|table| result_table(study, table)).collect();
    let lead = "The published value, ours, and the difference where it is defined. Rows with numbers of ours are coloured. An asterisk \
                leads to a remark below its table.";
    sections.section("tables", "Tables 2 to 15", lead, safe(tables));
    sections.part("listing", "Listing 6", "Listing 6: estimates across optimisers", "", safe(listing(study)));
    let choices = list(&study.recommendations);
    sections.part(
        "choices",
        "Discrepancies",
        "Discrepancies between paper and code, and the choice made here",
        "",
        safe(choices),
    );
    sections.part("runs", "Runs", "Runs", "", safe(runs(study)));
    framed(&Frame {
        title: "earnest: GSM-Symbolic re-evaluated",
        heading: "GSM-Symbolic re-evaluated",
        sections,
        appendix: true,
        style: STYLE,
        footer: &study.paper,
        tail: safe("<script>sortable(document); document.documentElement.classList.add(\"js\");</script>"),
    })
}

/// The identity of the questions behind our numbers: it stands with every table and figure, with a link to what else is not as in the paper.
fn identity(study: &Study) -> String {
    let Some(identity) = study.identity() else { return String::new() };
    let more = match study.differs() {
        Some(_) => " <a href=\"#questions\">What else is not as in the paper</a>",
        None => "",
    };
    format!("<p class=\"dim of\">{}{more}</p>", escape(&identity))
}

/// Figures 1 to 11, the drawings of a number together, each with the identity of the questions.
fn figures(study: &Study) -> String {
    let drawn = drawn(study);
    let mut html = String::new();
    for shown in &study.figures {
        let own = shown.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.ours.is_some());
        let beside = match own {
            true => identity(study),
            false => "<p class=\"dim of\">The paper's values alone: no run has numbers for this figure.</p>".to_owned(),
        };
        write!(
            html,
            "<h3 id=\"figure-{0}\">Figure {0}: {1}</h3>{beside}<div class=\"figures\">",
            shown.number,
            escape(&shown.title)
        )
        .expect(WRITES);
        for (_, figure) in drawn.iter().filter(|(number, _)| *number == shown.number) {
            let title = figure.title.trim_start_matches(&format!("Figure {}: ", shown.number));
            write!(
                html,
                "<figure><figcaption>{}</figcaption><div class=\"scroll\">{}</div></figure>",
                escape(title),
                figure.inline()
            )
            .expect(WRITES);
        }
        html.push_str("</div>");
        html.push_str(&list(&shown.notes));
    }
    html
}

/// Description of lme4's artefact.
const ARTEFACT: &str = "The paper fits its models with lme4's default settings, whose inner loop stops by a tolerance at which the \
                        likelihood of some data jumps. The optimiser settles on the edge, and the curvature measured there gives \
                        standard errors of about 0.0004 for every coefficient, so that anything is significant.";

/// The counts with and without the artefact, and our rows fitted both ways.
fn artefact(study: &Study) -> String {
    let mut html = list(&[artefacts(study)]);
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
    let rows: Vec<Vec<String>> = fits.collect();
    if !rows.is_empty() {
        let names =
            ["model", "prompt", "odds ratio, converged", "p", "odds ratio, lme4's defaults", "p", "of our rows"];
        html.push_str(&identity(study));
        html.push_str(&table(&names, 2, rows));
    }
    html
}

fn list(sentences: &[String]) -> String {
    let items: String = sentences.iter().map(|sentence| format!("<li>{}</li>", escape(sentence))).collect();
    if items.is_empty() { items } else { format!("<ul class=\"notes\">{items}</ul>") }
}

/// A table of texts; the first `left` columns are names.
fn table(names: &[&str], left: usize, rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut html = String::from("<div class=\"scroll\"><table class=\"sortable\"><thead><tr>");
    for (index, name) in names.iter().enumerate() {
        let class = if index < left { "" } else { " class=\"num\"" };
        write!(html, "<th scope=\"col\"{class}>{}</th>", escape(name)).expect(WRITES);
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            match index {
                0 => write!(html, "<th scope=\"row\">{}</th>", escape(cell)),
                _ if index < left => write!(html, "<td>{}</td>", escape(cell)),
                _ => write!(html, "<td class=\"num\">{}</td>", escape(cell)),
            }
            .expect(WRITES);
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div>"
}

fn missing() -> String {
    "–".to_owned()
}

fn points(value: Option<Interval>) -> String {
    value.map_or_else(missing, with_ends)
}

fn results(study: &Study) -> String {
    if study.analyses.is_empty() {
        return "<p>No runs: only the published values are shown.</p>".to_owned();
    }
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
    identity(study) + &table(&names, 2, rows) + &folded("Remarks on the fits", &list(&explained.collect::<Vec<_>>()))
}

/// A folded part, unless it is empty.
fn folded(title: &str, content: &str) -> String {
    if content.is_empty() {
        return String::new();
    }
    format!("<details><summary>{}</summary>{content}</details>", escape(title))
}

fn claims(study: &Study) -> String {
    let names = ["claim", "published", "without artefacts", "ours", "ours by lme4's defaults"];
    let mut html = identity(study);
    let said = study.said();
    let mut conclusions: Vec<&str> = study.claims.iter().map(|claim| claim.conclusion).collect();
    conclusions.dedup();
    for (index, conclusion) in conclusions.into_iter().enumerate() {
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
        write!(html, "<h3>{}. {}</h3>{}", index + 1, escape(conclusion), table(&names, 1, rows)).expect(WRITES);
        if let Some((_, says)) = said.iter().find(|(known, _)| *known == conclusion) {
            write!(html, "<p class=\"says\"><b>These runs:</b> {}</p>", escape(says)).expect(WRITES);
        }
        if index == 0 {
            let says = study.pooled.published.says();
            write!(html, "<p class=\"says\"><b>The paper's models:</b> {}</p>", escape(&says)).expect(WRITES);
        }
    }
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
    html + &list(&notes)
}

fn formulas(study: &Study) -> String {
    if study.formulas.is_empty() {
        return String::new();
    }
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
    let notes =
        study.formulas.iter().flat_map(|fit| fit.notes.iter().map(move |note| format!("{}: {note}", fit.model)));
    let warnings: Vec<String> = study
        .formulas
        .iter()
        .flat_map(|fit| {
            fit.notes.iter().filter(|note| is_warning(note)).map(move |note| format!("{}: {note}", fit.model))
        })
        .collect();
    identity(study)
        + &table(&names, 2, rows)
        + &list(&warnings)
        + &folded("How each formula was chosen", &list(&notes.collect::<Vec<_>>()))
}

/// True for a note about the trust in a fit, which must not be folded.
fn is_warning(note: &str) -> bool {
    ["only ", "separated", "no fit"].iter().any(|beginning| note.starts_with(beginning))
}

fn result_table(study: &Study, shown: &ResultTable) -> String {
    let kind = if shown.kind == Kind::Table { "Table" } else { "Figure" };
    let series = shown.rows.iter().any(|row| row.series.is_some());
    let has_ours = shown.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.ours.is_some());
    let mut html = format!("<h3 id=\"table-{0}\">{kind} {0}: {1}</h3>", shown.number, escape(&shown.title));
    html.push_str(&match has_ours || study.is_in(shown) {
        true => identity(study),
        false => "<p class=\"dim of\">The paper's values alone: no run has numbers for this table.</p>".to_owned(),
    });
    html.push_str("<div class=\"scroll\"><table class=\"sortable\"><thead>");
    let left = 1 + usize::from(series);
    if has_ours {
        write!(html, "<tr><th data-skip colspan=\"{left}\"></th>").expect(WRITES);
        for column in &shown.columns {
            write!(html, "<th data-skip scope=\"colgroup\" colspan=\"3\">{}</th>", escape(&column.name)).expect(WRITES);
        }
        html.push_str("</tr>");
    }
    html.push_str("<tr><th scope=\"col\">model</th>");
    html.push_str(if series { "<th scope=\"col\">prompt</th>" } else { "" });
    for column in &shown.columns {
        if has_ours {
            html.push_str("<th scope=\"col\" class=\"num\">paper</th><th scope=\"col\" class=\"num\">ours</th><th scope=\"col\" class=\"num\">diff.</th>");
        } else {
            write!(html, "<th scope=\"col\" class=\"num\">{}</th>", escape(&column.name)).expect(WRITES);
        }
    }
    html.push_str("</tr></thead><tbody>");
    for row in &shown.rows {
        let mark = if row.remarks.is_empty() { "" } else { "*" };
        let own = row.cells.iter().any(|cell| cell.ours.is_some());
        let class = if own { " class=\"own\"" } else { "" };
        write!(html, "<tr{class}><th scope=\"row\">{}{mark}</th>", escape(&row.name)).expect(WRITES);
        if series {
            write!(html, "<td>{}</td>", escape(row.series.as_deref().unwrap_or_default())).expect(WRITES);
        }
        for (cell, column) in row.cells.iter().zip(&shown.columns) {
            let mut values = vec![cell.published.map_or_else(missing, |value| printed(value, column.decimals))];
            if has_ours {
                values.push(cell.ours.map_or_else(missing, |value| ours(value, column.decimals)));
                values.push(cell.difference.map_or_else(missing, |value| format!("{value:+.*}", column.decimals)));
            }
            for value in values {
                write!(html, "<td class=\"num\">{}</td>", escape(&value)).expect(WRITES);
            }
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    let notes: Vec<String> = shown.remarks().into_iter().chain(shown.notes.iter().cloned()).collect();
    html + &list(&notes)
}

fn listing(study: &Study) -> String {
    let published = study.listing_6.published.iter().map(|row| {
        vec![
            row.prompt.to_string(),
            row.optimiser.clone(),
            format!("{:.6}", row.intercept),
            format!("{:.7}", row.is_variant),
        ]
    });
    let mut html = format!("<p>{}</p>", escape(&study.listing_6.note));
    html.push_str(&table(&["gemma-2-2b, published", "optimiser", "intercept", "variant"], 2, published));
    for row in &study.listing_6.ours {
        let names = ["objective", "optimiser", "intercept", "variant", "-2 log L"];
        let ends = row.ends.iter().map(|end| {
            let number = |index: usize| end.coefficients.get(index).map_or_else(missing, |value| format!("{value:.6}"));
            vec![end.objective.to_owned(), end.optimiser.to_owned(), number(0), number(1), format!("{:.5}", end.value)]
        });
        write!(
            html,
            "<h3>{}, {} prompt: spread of the variant effect {:.1e} on lme4's objective, {:.1e} on the converged one</h3>{}",
            escape(&row.model),
            row.prompt,
            row.lme4_spread,
            row.converged_spread,
            table(&names, 2, ends)
        )
        .expect(WRITES);
    }
    html
}

fn runs(study: &Study) -> String {
    if study.runs.is_empty() {
        return String::new();
    }
    let rows = study.runs.iter().map(|run| {
        let prompts: Vec<&str> = run.prompts.iter().map(|prompt| prompt.name()).collect();
        let tables: Vec<String> = run.prompts.iter().map(|prompt| paper_tables(*prompt).0.to_string()).collect();
        vec![run.model.clone(), run.run.clone(), prompts.join(", "), tables.join(", ")]
    });
    table(&["model", "run", "prompts", "accuracies in table"], 4, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_paper_alone_has_all_tables_and_no_connection() {
        let html = page(&Study::new(Vec::new(), Vec::new(), None));
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
}
