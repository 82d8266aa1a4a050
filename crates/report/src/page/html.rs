//! The HTML page.
use super::data::data;
use super::differences::{model_remarks, remarks};
use super::figures::{Section, figures, groups};
use super::pack::pack;
use super::sections;
use super::{Chapter, ReportRun};
use crate::markup::{Markup, SCRIPT, STYLE, html, safe};
use crate::plot::AREAS;
use crate::{Comparison, ReportError};
use earnest_tasks::counted;
use earnest_tasks::suite::registry::task_label;
use minijinja::{Value, context};

/// The report's own script.
const SAMPLES: &str = include_str!("../../templates/report.js");

/// Sections in order, with their links.
#[derive(Default)]
pub struct Sections(Vec<Value>);

/// A page in the report's look.
pub struct Frame<'a> {
    /// Title of the window.
    pub title: &'a str,
    /// Kind of the page, after the name of the program.
    pub heading: &'a str,
    pub sections: Sections,
    /// Control for printing the folded parts.
    pub appendix: bool,
    /// Rules beside those of every page.
    pub style: &'a str,
    /// Text at the end, after the version.
    pub footer: &'a str,
    /// Markup behind the page: its data and scripts, which can use that of every page.
    pub tail: Value,
}

impl Sections {
    /// Adds a section, unless its content is empty.
    pub fn section(&mut self, id: &str, title: &str, lead: &str, content: Value) {
        self.add(context!(id, link => title, title, lead, folded => false, content));
    }

    /// Adds a folded part of the appendix, unless its content is empty.
    pub fn part(&mut self, id: &str, link: &str, title: &str, lead: &str, content: Value) {
        self.add(context!(id, link, title, lead, folded => true, content));
    }

    fn add(&mut self, part: Value) {
        if part.get_attr("content").is_ok_and(|content| content.is_true()) {
            self.0.push(part);
        }
    }
}

/// Renders the report as one HTML document: results, heat map and the differences that hold first, everything else folded, and on paper
/// only if the reader asks for it. It opens no connection (its content security policy forbids them), needs no script for tables, plots
/// and examples, and is reproducible byte by byte. `chapters` follow the figures.
///
/// # Errors
/// If a template fails.
pub fn page(runs: &[ReportRun], comparisons: &[Comparison], chapters: &[Chapter]) -> Result<String, ReportError> {
    let placed = figures(runs, comparisons, false);
    let mut body = Sections::default();
    body.section("summary", "Results", "", sections::results(runs, comparisons)?);
    body.section("heat", "Tasks and lengths", "", sections::heat(runs)?);
    body.section("differences", "Differences", "", sections::differences(runs, comparisons)?);
    body.section("notes", "Notes", "", sections::notes(runs)?);
    body.add(context!(id => "", lead => "", content => picker(runs)?));
    body.part("tables", "Numbers", "All numbers", "", sections::tables(runs)?);
    let figures = |which: &[Section], remarks| sections::figures(&placed, which, remarks);
    let differences = "Differences are paired by item: the same questions, minus the first model's result. Their intervals are \
         cluster-robust. Hatched and marked n.s.: the difference does not hold after Holm's adjustment, so these data do not show \
         one; that is not evidence that there is none.";
    let lead = match comparisons {
        [] => "Lines are 95 % intervals.".to_owned(),
        _ => format!("Lines are 95 % intervals. {differences}"),
    };
    body.part(
        "accuracy",
        "Accuracy",
        "Accuracy by task",
        &lead,
        figures(
            &[Section::Accuracy, Section::Differences],
            [remarks(runs, comparisons), model_remarks(comparisons)].concat(),
        )?,
    );
    for chapter in chapters {
        body.part(&chapter.id, &chapter.id, &chapter.title, &chapter.lead, sections::chapter(chapter)?);
    }
    let groups = groups(runs);
    let grouped = |section, further| sections::grouped(&placed, section, &groups, further);
    body.part(
        "curves",
        "Lengths",
        "Accuracy by length",
        if runs.len() <= AREAS { "Bands are 95 % intervals of each length, Wilson's for shares." } else { "" },
        grouped(Section::Curves, grouped(Section::MoreCurves, Value::from(""))?)?,
    );
    body.part("metrics", "Metrics", "Heat maps of further metrics", "", sections::further_heat(runs)?);
    body.part(
        "outcomes",
        "Outcomes",
        "How answers end",
        "Each sample has one outcome. A wrong answer that the token budget ended counts as cut off.",
        figures(&[Section::Outcomes], Vec::new())?,
    );
    body.part(
        "latency",
        "Latency",
        "Latency and length",
        "Dashed lines are medians. Latency is from the first prompt token computed to the last token generated, under the load of \
         the run; it compares runs on one machine with equal settings.",
        figures(&[Section::Latency], Vec::new())?,
    );
    body.part("samples", "Samples", "Samples", "", sections::samples(runs)?);
    body.part("provenance", "Repeat", "Settings and how to repeat this", "", sections::provenance(runs)?);
    let (rows, texts) = data(runs, comparisons);
    let samples: usize = runs.iter().map(|run| run.samples.len()).sum();
    framed(&Frame {
        title: &format!("{} \u{b7} earnest", sections::title(runs)),
        heading: "report",
        sections: body,
        appendix: true,
        style: "",
        footer: &counted(samples, "sample"),
        tail: html("tail.html", context!(rows => pack(&rows), texts => pack(&texts), script => safe(SAMPLES)))?,
    })
}

/// Renders a page in the report's look. Its content security policy forbids connections.
///
/// # Errors
/// If the template fails.
pub fn framed(frame: &Frame<'_>) -> Result<String, ReportError> {
    let page = context!(
        title => frame.title,
        heading => frame.heading,
        parts => &frame.sections.0,
        appendix => frame.appendix,
        look => safe(STYLE.as_str()),
        style => safe(frame.style),
        version => env!("CARGO_PKG_VERSION"),
        footer => frame.footer,
        shared => safe(SCRIPT),
        tail => &frame.tail,
    );
    Ok(html("frame.html", page)?.to_string())
}

/// Renders checkboxes for models and tasks, shown by the script, and the keys of several models.
fn picker(runs: &[ReportRun]) -> Markup {
    let mut tasks: Vec<&str> = Vec::new();
    for task in runs.iter().flat_map(ReportRun::tasks) {
        if !tasks.contains(&task) {
            tasks.push(task);
        }
    }
    let tasks: Vec<Value> = tasks.into_iter().map(|name| Value::from((name, task_label(name)))).collect();
    let labels: Vec<Value> = runs.iter().map(|run| Value::from(&run.label)).collect();
    html("picker.html", context!(labels, tasks))
}
