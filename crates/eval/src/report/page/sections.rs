//! The report's sections as HTML.
use std::fmt::Write;

use super::data::cut;
use super::figures::{Placed, Section};
use super::run::outcome;
use super::{Chapter, ReportRun};
use crate::report::plot::{Figure, compact, escape};
use crate::report::text::{sampling, warnings};
use crate::run::{Sample, Status};
use earnest_tasks::suite::{Grid, Interval, Readings, SummaryRow, Unit};

const WRITES: &str = "writing to a String cannot fail";

/// A card a run: the main number, what it rests on, what makes it less than it seems.
pub fn summary(runs: &[ReportRun]) -> String {
    let mut html = String::from("<div class=\"cards\">");
    for (place, run) in runs.iter().enumerate() {
        let document = &run.document;
        let (manifest, totals) = (&document.manifest, &document.totals);
        let settings = &manifest.settings;
        let all = document.summary.rows.last();
        let main = all.and_then(|row| row.values.first());
        write!(
            html,
            "<article class=\"card\" data-run=\"{place}\"><h3><span class=\"swatch s{}\"></span>{}</h3>",
            place % 8,
            escape(&run.label)
        )
        .expect(WRITES);
        if let Some((name, value)) = main {
            // A rule's own column names it already.
            let by = document.readings.as_ref().filter(|readings| !readings.primary.contains(name));
            let name = by.map_or_else(|| name.clone(), |readings| format!("{name}, read by {}", readings.decides()));
            write!(
                html,
                "<p class=\"big\">{} <small>% {}</small></p><p class=\"dim\">95 % interval {} to {}</p>",
                percent(value.estimate),
                escape(&name),
                percent(value.low),
                percent(value.high)
            )
            .expect(WRITES);
        }
        let answered = totals.recorded - totals.failed;
        let mut facts = vec![
            ("suite", format!("{} {}", settings.suite, settings.suite_version)),
            ("samples", format!("{} of {} planned", totals.recorded, totals.planned)),
            (
                "prompts",
                if settings.imported() {
                    format!("{}; completions made elsewhere", settings.prompt_mode)
                } else {
                    format!("{}, {}", settings.prompt_mode, sampling(&settings.generation.sampling))
                },
            ),
            ("no answer", totals.failed.to_string()),
            (
                "cut by the budget",
                format!("{} ({} %)", totals.truncated, percent(totals.truncated as f64 / answered.max(1) as f64)),
            ),
            (
                "tokens",
                // Imported completions have texts, but no token ids.
                if settings.imported() && totals.completion_tokens == 0 {
                    "not known".to_owned()
                } else {
                    totals.completion_tokens.to_string()
                },
            ),
        ];
        if manifest.generation_s > 0.0 {
            let rate = answered as f64 / manifest.generation_s;
            facts.push(("speed", format!("{rate:.2} samples/s over {:.0} s", manifest.generation_s)));
        }
        if manifest.status != Status::Finished {
            facts.push(("status", "not finished: numbers will change".to_owned()));
        }
        html.push_str("<dl>");
        for (name, value) in facts {
            write!(html, "<dt>{name}</dt><dd>{}</dd>", escape(&value)).expect(WRITES);
        }
        html.push_str("</dl></article>");
    }
    html.push_str("</div>");
    let mut remarks: Vec<(String, Vec<String>)> = Vec::new();
    for run in runs {
        let notes = run.document.summary.notes.iter().cloned().chain(warnings(&run.document));
        for note in notes {
            match remarks.iter_mut().find(|(known, _)| *known == note) {
                Some((_, labels)) => labels.push(run.label.clone()),
                None => remarks.push((note, vec![run.label.clone()])),
            }
        }
    }
    if !remarks.is_empty() {
        html.push_str("<h3>What to know about these numbers</h3><ul class=\"notes\">");
        for (note, labels) in remarks {
            let whose = if labels.len() == runs.len() {
                String::new()
            } else {
                format!("<b>{}:</b> ", escape(&labels.join(", ")))
            };
            write!(html, "<li>{whose}{}</li>", escape(&note)).expect(WRITES);
        }
        html.push_str("</ul>");
    }
    html
}

/// The table model x task, then every run's table with all its columns.
pub fn tables(runs: &[ReportRun]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for row in runs.iter().flat_map(|run| &run.document.summary.rows) {
        if !names.contains(&row.name.as_str()) {
            names.push(&row.name);
        }
    }
    names.sort_by_key(|name| *name == "all");
    let mut html = String::from(
        "<div class=\"scroll\"><table class=\"sortable\" id=\"matrix\"><caption>Accuracy in per cent with 95 % intervals, tasks by models</caption><thead><tr><th scope=\"col\">task</th>",
    );
    for (place, run) in runs.iter().enumerate() {
        let by = run
            .document
            .readings
            .as_ref()
            .map(|readings| format!("<br><small>read by {}</small>", escape(&readings.decides())));
        write!(
            html,
            "<th scope=\"col\" class=\"num\" data-run=\"{place}\">{}{}</th>",
            escape(&run.label),
            by.unwrap_or_default()
        )
        .expect(WRITES);
    }
    html.push_str("</tr></thead><tbody>");
    for name in names {
        write!(
            html,
            "<tr data-task=\"{0}\"{1}><th scope=\"row\" title=\"{0}\">{2}</th>",
            escape(name),
            total(name),
            breakable(&compact(name))
        )
        .expect(WRITES);
        for (place, run) in runs.iter().enumerate() {
            let row = run.document.summary.rows.iter().find(|row| row.name == name);
            match row.and_then(|row| row.values.first().map(|(_, value)| (row.n, value))) {
                Some((n, value)) => write!(
                    html,
                    "<td class=\"num\" data-run=\"{place}\" data-value=\"{}\" title=\"n = {n}\">{}</td>",
                    sortable(value.estimate),
                    interval(value)
                )
                .expect(WRITES),
                None => write!(html, "<td class=\"num\" data-run=\"{place}\">–</td>").expect(WRITES),
            }
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div>");
    for (place, run) in runs.iter().enumerate() {
        let tables = match run.document.grids.as_slice() {
            [] => vec![("All columns".to_owned(), every_column(run))],
            grids => grids.iter().map(|grid| (grid.title.clone(), grid_table(grid))).collect(),
        };
        let readings = run.document.readings.iter().map(|found| (side_by_side_title(found), side_by_side(found)));
        for (title, table) in readings.chain(tables) {
            write!(
                html,
                "<details data-run=\"{place}\"{}><summary>{}: {}</summary>{table}</details>",
                // Which rule decides is not to be missed.
                if title.starts_with(HOW_READ) { " open" } else { "" },
                escape(&title),
                escape(&run.label),
            )
            .expect(WRITES);
        }
    }
    html
}

/// Beginning of the title of the table of rules.
const HOW_READ: &str = "How answers were read";

fn side_by_side_title(readings: &Readings) -> String {
    format!("{HOW_READ}; {} decides", readings.decides())
}

/// All rules on all samples, against the one that decides.
fn side_by_side(readings: &Readings) -> String {
    let mut html =
        String::from("<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th scope=\"col\">read by</th>");
    let differs = format!("differs from {}", readings.decides());
    for name in ["right, %", "right", "of", &differs, "right alone", "wrong alone"] {
        write!(html, "<th scope=\"col\" class=\"num\">{}</th>", escape(name)).expect(WRITES);
    }
    html.push_str("</tr></thead><tbody>");
    for rule in &readings.rules {
        let share = rule.right as f64 / rule.samples.max(1) as f64;
        write!(
            html,
            "<tr><th scope=\"row\">{}</th><td class=\"num\" data-value=\"{share}\">{}</td>",
            escape(&rule.name),
            percent(share)
        )
        .expect(WRITES);
        for count in [rule.right, rule.samples] {
            write!(html, "<td class=\"num\" data-value=\"{count}\">{count}</td>").expect(WRITES);
        }
        for count in [rule.differs(), rule.alone, rule.missed] {
            match readings.is_primary(rule) {
                true => html.push_str("<td class=\"num\">–</td>"),
                false => {
                    write!(html, "<td class=\"num\" data-value=\"{count}\">{count}</td>").expect(WRITES);
                }
            }
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div>"
}

/// One of the suite's own tables; a cell's samples are in its tip.
fn grid_table(grid: &Grid) -> String {
    let mut html =
        String::from("<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th scope=\"col\">task</th>");
    for name in &grid.columns {
        write!(html, "<th scope=\"col\" class=\"num\">{}</th>", escape(name)).expect(WRITES);
    }
    html.push_str("</tr></thead><tbody>");
    for group in &grid.groups {
        for row in &group.rows {
            let name = format!("{} {}", row.name, group.name);
            let name = name.trim_end();
            let task = row.task.as_ref().map_or_else(String::new, |task| format!(" data-task=\"{}\"", escape(task)));
            write!(html, "<tr{task}{}><th scope=\"row\">{}</th>", total(name), breakable(name)).expect(WRITES);
            for cell in &row.cells {
                match cell {
                    Some(cell) => write!(
                        html,
                        "<td class=\"num\" data-value=\"{}\" title=\"n = {}\">{}</td>",
                        sortable(cell.value.estimate),
                        cell.n,
                        in_unit(grid.unit, &cell.value)
                    )
                    .expect(WRITES),
                    None => html.push_str("<td class=\"num\">–</td>"),
                }
            }
            html.push_str("</tr>");
        }
    }
    html + "</tbody></table></div>"
}

/// A value with its interval; a bound that is not known is none.
fn in_unit(unit: Unit, value: &Interval) -> String {
    let number = |value: f64| match unit {
        _ if !value.is_finite() => "–".to_owned(),
        Unit::Fraction => percent(value),
        Unit::Digits => format!("{value:.1}"),
        Unit::Reach => format!("{value:.0}"),
    };
    if !value.estimate.is_finite() {
        return "–".to_owned();
    }
    format!("{} <small>[{}, {}]</small>", number(value.estimate), number(value.low), number(value.high))
}

fn every_column(run: &ReportRun) -> String {
    let rows = &run.document.summary.rows;
    let columns = |names: &mut dyn Iterator<Item = &String>| {
        let mut found: Vec<String> = Vec::new();
        for name in names {
            if !found.contains(name) {
                found.push(name.clone());
            }
        }
        found
    };
    let values = columns(&mut rows.iter().flat_map(|row| row.values.iter().map(|(name, _)| name)));
    let numbers = columns(&mut rows.iter().flat_map(|row| row.numbers.iter().map(|(name, _)| name)));
    let mut html = String::from(
        "<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th scope=\"col\">task</th><th scope=\"col\" class=\"num\">n</th>",
    );
    for name in values.iter().chain(&numbers) {
        write!(html, "<th scope=\"col\" class=\"num\">{}</th>", escape(name)).expect(WRITES);
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        write!(
            html,
            "<tr data-task=\"{0}\"{2}><th scope=\"row\">{0}</th><td class=\"num\" data-value=\"{1}\">{1}</td>",
            escape(&row.name),
            row.n,
            total(&row.name)
        )
        .expect(WRITES);
        for name in &values {
            match find(row, name) {
                Some(value) => write!(
                    html,
                    "<td class=\"num\" data-value=\"{}\">{}</td>",
                    sortable(value.estimate),
                    interval(value)
                )
                .expect(WRITES),
                None => html.push_str("<td class=\"num\">–</td>"),
            }
        }
        for name in &numbers {
            match row.numbers.iter().find(|(other, _)| other == name) {
                Some((_, value)) => {
                    write!(html, "<td class=\"num\" data-value=\"{}\">{}</td>", sortable(*value), plain(*value))
                        .expect(WRITES)
                }
                None => html.push_str("<td class=\"num\">–</td>"),
            }
        }
        html.push_str("</tr>");
    }
    html + "</tbody></table></div>"
}

fn find<'a>(row: &'a SummaryRow, name: &str) -> Option<&'a Interval> {
    row.values.iter().find(|(other, _)| other == name).map(|(_, value)| value)
}

/// A task's name as markup that narrow columns break between words.
fn breakable(name: &str) -> String {
    escape(name).replace('_', "_<wbr>")
}

/// The line over all tasks stays below whatever the order.
fn total(name: &str) -> &'static str {
    if name == "all" { " class=\"total\"" } else { "" }
}

/// The figures of these sections, in one grid.
pub fn figures(placed: &[Placed], sections: &[Section]) -> String {
    grid(placed.iter().filter(|one| sections.contains(&one.section)))
}

/// More figures than this are folded by the groups of their tasks.
const UNFOLDED: usize = 16;

/// The tasks of each group of the runs' own tables, by the group's name; the groups in their order.
pub fn groups(runs: &[ReportRun]) -> Vec<(String, Vec<String>)> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    let every = runs.iter().filter_map(|run| run.document.grids.first()).flat_map(|grid| &grid.groups);
    for group in every.filter(|group| !group.name.is_empty()) {
        let tasks = group.rows.iter().filter_map(|row| row.task.clone());
        match groups.iter_mut().find(|(name, _)| *name == group.name) {
            Some((_, known)) => known.extend(tasks),
            None => groups.push((group.name.clone(), tasks.collect())),
        }
    }
    groups
}

/// The figures of a section; where they are many and their tasks have groups, folded by these, the first one open.
pub fn grouped(placed: &[Placed], section: Section, groups: &[(String, Vec<String>)]) -> String {
    let of_section = || placed.iter().filter(move |one| one.section == section);
    if of_section().count() <= UNFOLDED || groups.len() < 2 {
        return figures(placed, &[section]);
    }
    let group =
        |one: &Placed| groups.iter().position(|(_, tasks)| one.task.as_ref().is_some_and(|task| tasks.contains(task)));
    let mut html = String::new();
    for (place, (name, _)) in groups.iter().enumerate() {
        let content = grid(of_section().filter(|one| group(one) == Some(place)));
        if !content.is_empty() {
            let open = if html.is_empty() { " open" } else { "" };
            write!(html, "<details class=\"group\"{open}><summary>{}</summary>{content}</details>", escape(name))
                .expect(WRITES);
        }
    }
    html + &grid(of_section().filter(|one| group(one).is_none()))
}

/// Sentences below figures; nothing without any.
pub fn remarks(sentences: &[String]) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let items = sentences.iter().map(|sentence| format!("<li>{}</li>", escape(sentence)));
    format!("<ul class=\"notes\">{}</ul>", items.collect::<String>())
}

/// A chapter's figures. Their series are no runs and their rows no tasks: the page's script knows them by `data-apart`.
pub fn chapter(chapter: &Chapter) -> String {
    let figures: String = chapter.figures.iter().map(|one| drawn("", one)).collect();
    if figures.is_empty() {
        return figures;
    }
    format!("<div data-apart><div class=\"figures\">{figures}</div>{}</div>", remarks(&chapter.notes))
}

fn drawn(attributes: &str, figure: &Figure) -> String {
    format!(
        "<figure{attributes}><figcaption>{}</figcaption><div class=\"scroll\">{}</div></figure>",
        escape(&figure.title),
        figure.inline()
    )
}

fn grid<'a>(placed: impl Iterator<Item = &'a Placed>) -> String {
    let mut html = String::new();
    for one in placed {
        let mut attributes = String::new();
        if let Some(task) = &one.task {
            write!(attributes, " data-task=\"{}\"", escape(task)).expect(WRITES);
        }
        if let Some(run) = one.run {
            write!(attributes, " data-run=\"{run}\"").expect(WRITES);
        }
        html.push_str(&drawn(&attributes, &one.figure));
    }
    if html.is_empty() { html } else { format!("<div class=\"figures\">{html}</div>") }
}

/// Figures behind a line that opens them; nothing where there is none.
pub fn folded(title: &str, figures: String) -> String {
    if figures.is_empty() {
        figures
    } else {
        format!("<details><summary>{}</summary>{figures}</details>", escape(title))
    }
}

/// Wrong answers to read without a script: of each run the first two of every task.
pub fn examples(runs: &[ReportRun]) -> String {
    let mut html = String::new();
    for (place, run) in runs.iter().enumerate() {
        write!(
            html,
            "<details class=\"static\" data-run=\"{place}\"><summary>First wrong answers: {}</summary>",
            escape(&run.label)
        )
        .expect(WRITES);
        let mut any = false;
        for task in run.tasks() {
            let wrong = run.samples.iter().filter(|sample| sample.task == task && outcome(sample) != "correct");
            for sample in wrong.take(2) {
                any = true;
                html.push_str(&example(run, sample));
            }
        }
        html.push_str(if any { "</details>" } else { "<p>There is none.</p></details>" });
    }
    html
}

fn example(run: &ReportRun, sample: &Sample) -> String {
    let question = run.questions.get(&sample.item).unwrap_or_default();
    let answer = match (&sample.completion, &sample.failure) {
        (Some(completion), _) => cut(&completion.text),
        (None, Some(failure)) => failure.message.clone(),
        (None, None) => String::new(),
    };
    format!(
        "<div class=\"example\"><p class=\"dim\">{} · {}</p><pre>{}</pre><p>expected</p><pre>{}</pre><p>answered</p><pre>{}</pre></div>",
        escape(&sample.item),
        escape(outcome(sample)),
        escape(question),
        escape(&sample.gold),
        escape(&answer),
    )
}

/// What is needed to repeat the runs.
pub fn provenance(runs: &[ReportRun]) -> String {
    let mut html = String::new();
    for (place, run) in runs.iter().enumerate() {
        let manifest = &run.document.manifest;
        let settings = &manifest.settings;
        let mut facts: Vec<(&str, String)> = vec![
            ("run", manifest.run.clone()),
            ("settings, SHA-256", manifest.settings_sha256.clone()),
            ("suite", format!("{} {} {}", settings.suite, settings.suite_version, settings.suite_options)),
            (
                "model",
                format!(
                    "{} ({}, {}, context {})",
                    manifest.model.name, manifest.model.architecture, manifest.model.format, manifest.model.context
                ),
            ),
            ("earnest", settings.earnest.clone()),
            ("started", manifest.started.clone()),
            ("ended", manifest.ended.clone().unwrap_or_else(|| "–".into())),
            (
                "host",
                format!(
                    "{} {}, {}, {} threads",
                    manifest.host.os,
                    manifest.host.arch,
                    manifest.host.cpu.as_deref().unwrap_or("unknown CPU"),
                    manifest.host.threads
                ),
            ),
        ];
        if let Some(engine) = &manifest.engine {
            let card = &engine.card;
            facts.push((
                "engine",
                format!(
                    "{} {}, weights {}, {}",
                    card.engine,
                    card.version,
                    card.weights_dtype,
                    card.devices.join(", ")
                ),
            ));
        }
        for file in &settings.model_files {
            facts.push(("file, SHA-256", format!("{} {} ({} bytes)", file.name, file.sha256, file.size)));
        }
        write!(html, "<details data-run=\"{place}\"><summary>{}</summary><dl class=\"wide\">", escape(&run.label))
            .expect(WRITES);
        for (name, value) in facts {
            write!(html, "<dt>{name}</dt><dd>{}</dd>", escape(&value)).expect(WRITES);
        }
        html.push_str("</dl>");
        if let Some(first) = &manifest.first_prompt {
            write!(
                html,
                "<p class=\"dim\">The first prompt to the letter ({} tokens, {} BOS):</p><pre>{}</pre>",
                first.ids.len(),
                first.bos,
                escape(&first.text)
            )
            .expect(WRITES);
        }
        html.push_str("</details>");
    }
    html
}

fn percent(fraction: f64) -> String {
    if fraction.is_finite() { format!("{:.1}", 100.0 * fraction) } else { "–".to_owned() }
}

fn interval(value: &Interval) -> String {
    if !value.estimate.is_finite() {
        return "–".to_owned();
    }
    format!("{} <small>[{}, {}]</small>", percent(value.estimate), percent(value.low), percent(value.high))
}

/// A number for sorting; what is none sorts as missing.
fn sortable(value: f64) -> String {
    if value.is_finite() { value.to_string() } else { String::new() }
}

fn plain(value: f64) -> String {
    if !value.is_finite() {
        "–".to_owned()
    } else if value.fract() == 0.0 && value.abs() < 1e15 {
        format!("{value:.0}")
    } else {
        format!("{value:.3}")
    }
}
