//! The HTML page.
use super::data::data;
use super::differences::{model_remarks, remarks};
use super::figures::{Section, figures, groups};
use super::pack::pack;
use super::sections;
use super::{Chapter, ReportRun};
use crate::Comparison;
use crate::plot::{AREAS, DARK, LIGHT, RULES, STYLES, escape};
use earnest_tasks::counted;
use earnest_tasks::suite::registry::task_label;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// Script of every page: the choice of colours (a button with the id `theme`) and `sortable(element)` for tables.
pub const SHARED: &str = include_str!("shared.js");

/// Control for printing the appendix, in [`Frame::tools`].
pub const APPENDIX: &str =
    "<label class=\"dim\"><input type=\"checkbox\" id=\"appendix\" autocomplete=\"off\"> print the appendix</label>";

/// Sections in order, with their links.
#[derive(Default)]
pub struct Sections {
    html: String,
    links: String,
}

/// A page in the report's look.
pub struct Frame<'a> {
    /// Title of the window, as text.
    pub title: &'a str,
    /// Heading of the page, as markup.
    pub heading: &'a str,
    pub sections: Sections,
    /// Controls beside the links, as markup.
    pub tools: &'a str,
    /// Rules beside those of every page.
    pub style: &'a str,
    /// Markup at the end, after the version.
    pub footer: &'a str,
    /// Markup behind the page: its data and scripts, which can use [`SHARED`].
    pub tail: &'a str,
}

impl Sections {
    fn link(&mut self, id: &str, link: &str) {
        self.links.push_str(&format!("<a href=\"#{id}\">{link}</a> "));
    }

    /// Adds a section, unless it is empty.
    pub fn section(&mut self, id: &str, title: &str, lead: &str, content: &str) {
        if !content.is_empty() {
            self.link(id, title);
            self.html.push_str(&format!("<section id=\"{id}\"><h2>{title}</h2>{}{content}</section>\n", leading(lead)));
        }
    }

    /// Adds a folded part of the appendix, unless it is empty.
    pub fn part(&mut self, id: &str, link: &str, title: &str, lead: &str, content: &str) {
        if !content.is_empty() {
            self.link(id, link);
            self.html.push_str(&format!(
                "<details class=\"part\" id=\"{id}\"><summary><h2>{title}</h2></summary>{}{content}</details>\n",
                leading(lead)
            ));
        }
    }
}

fn leading(lead: &str) -> String {
    if lead.is_empty() { String::new() } else { format!("<p class=\"lead\">{lead}</p>") }
}

/// Renders the report as one HTML document: results, heat map and the differences that hold first, everything else folded, and on paper
/// only if the reader asks for it. It opens no connection (its content security policy forbids them), needs no script for tables, plots
/// and examples, and is reproducible byte by byte. `chapters` follow the figures.
pub fn page(runs: &[ReportRun], comparisons: &[Comparison], chapters: &[Chapter]) -> String {
    let placed = figures(runs, comparisons, false);
    let title = sections::title(runs);
    let (rows, texts) = data(runs);
    let samples: usize = runs.iter().map(|run| run.samples.len()).sum();
    let mut body = Sections::default();
    let summary = format!(
        "<p class=\"title\">{}</p>{}{}",
        escape(&title),
        sections::verdicts(runs, comparisons),
        sections::headline(runs)
    );
    body.section("summary", "Results", "", &summary);
    body.section("heat", "Tasks and lengths", "", &sections::heat(runs));
    body.section("differences", "Differences", "", &sections::differences(runs, comparisons));
    body.section("notes", "Notes", "", &sections::notes(runs));
    body.html.push_str(&picker(runs));
    body.part("tables", "Numbers", "All numbers", "", &sections::tables(runs));
    let figures = |which: &[Section]| sections::figures(&placed, which);
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
        &(figures(&[Section::Accuracy])
            + &figures(&[Section::Differences])
            + &sections::remarks(&[remarks(runs, comparisons), model_remarks(comparisons)].concat())),
    );
    for chapter in chapters {
        body.part(
            &chapter.id,
            &chapter.id,
            &escape(&chapter.title),
            &escape(&chapter.lead),
            &sections::chapter(chapter),
        );
    }
    let groups = groups(runs);
    body.part(
        "curves",
        "Lengths",
        "Accuracy by length",
        if runs.len() <= AREAS { "Bands are 95 % intervals of each length, Wilson's for shares." } else { "" },
        &(sections::grouped(&placed, Section::Curves, &groups)
            + &sections::folded("Further metrics by length", sections::grouped(&placed, Section::MoreCurves, &groups))),
    );
    body.part("metrics", "Metrics", "Heat maps of further metrics", "", &sections::further_heat(runs));
    body.part(
        "outcomes",
        "Outcomes",
        "How answers end",
        "Each sample has one outcome. A wrong answer that the token budget ended counts as cut off.",
        &figures(&[Section::Outcomes]),
    );
    body.part(
        "latency",
        "Latency",
        "Latency and length",
        "Dashed lines are medians. Latency is from the first prompt token computed to the last token generated, under the load of \
         the run; it compares runs on one machine with equal settings.",
        &figures(&[Section::Latency]),
    );
    body.part("samples", "Samples", "Samples", "", &(browser(samples) + &sections::examples(runs)));
    body.part("provenance", "Repeat", "Settings and how to repeat this", "", &sections::provenance(runs));
    framed(&Frame {
        title: &format!("{title} \u{b7} earnest"),
        heading: "earnest <span class=\"dim\">report</span>",
        sections: body,
        tools: APPENDIX,
        style: "",
        footer: &counted(samples, "sample"),
        tail: &format!(
            "<script type=\"text/plain\" id=\"rows\">{}</script>\n<script type=\"text/plain\" id=\"texts\">{}</script>\n<script>{SCRIPT}</script>",
            pack(&rows),
            pack(&texts)
        ),
    })
}

/// Renders a page in the report's look. Its content security policy forbids connections.
pub fn framed(frame: &Frame<'_>) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\" data-styles=\"{STYLES}\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\
         <meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" href=\"data:,\"><title>{title}</title>\n<style>\
         :root {{ {LIGHT} color-scheme: light; }}\n\
         @media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {DARK} color-scheme: dark; }} }}\n\
         @media screen {{ :root[data-theme=dark] {{ {DARK} color-scheme: dark; }} }}\n{RULES}\n{STYLE}{style}</style></head>\n\
         <body><header><h1>{heading}</h1><nav aria-label=\"Sections\">{links}</nav>\
         {tools}\
         <button id=\"theme\" class=\"script\" type=\"button\">dark or light</button></header>\n<main>{body}</main>\n\
         <footer class=\"dim\">Made by earnest {version}: {footer}. No script, font or image comes from elsewhere.</footer>\n\
         <script>{SHARED}</script>\n{tail}</body></html>\n",
        title = escape(frame.title),
        heading = frame.heading,
        tools = frame.tools,
        style = frame.style,
        links = frame.sections.links,
        body = frame.sections.html,
        version = env!("CARGO_PKG_VERSION"),
        footer = frame.footer,
        tail = frame.tail,
    )
}

/// Renders checkboxes for models and tasks, shown by the script, and the keys of several models.
fn picker(runs: &[ReportRun]) -> String {
    let mut tasks: Vec<&str> = Vec::new();
    for task in runs.iter().flat_map(ReportRun::tasks) {
        if !tasks.contains(&task) {
            tasks.push(task);
        }
    }
    let models = runs.iter().enumerate().map(|(place, run)| {
        format!(
            "<label><input type=\"checkbox\" name=\"run\" value=\"{place}\" data-label=\"{1}\" autocomplete=\"off\" checked><span class=\"swatch s{0}\"></span>{1}</label>",
            place % STYLES,
            escape(&run.label)
        )
    });
    let tasks = tasks.into_iter().map(|name| {
        let task = escape(name);
        format!(
            "<label><input type=\"checkbox\" name=\"task\" value=\"{task}\" autocomplete=\"off\" checked>{}</label>",
            escape(&task_label(name))
        )
    });
    let keys = runs.iter().enumerate().map(|(place, run)| {
        format!("<span data-run=\"{place}\">{}{}</span>", sections::key(place), escape(&run.label))
    });
    let keys =
        if runs.len() > 1 { format!("<p class=\"legend\">{}</p>", keys.collect::<String>()) } else { String::new() };
    format!(
        "<h2 class=\"part\">Appendix</h2><details class=\"picker script\" id=\"picker\"><summary>Choose models and tasks</summary>\
         <fieldset><legend>Models <button type=\"button\" data-all=\"run\">all</button> <button type=\"button\" data-none=\"run\">none</button></legend>{}</fieldset>\
         <fieldset><legend>Tasks <button type=\"button\" data-all=\"task\">all</button> <button type=\"button\" data-none=\"task\">none</button></legend>{}</fieldset></details>\n\
         {keys}\n",
        models.collect::<String>(),
        tasks.collect::<String>(),
    )
}

fn browser(samples: usize) -> String {
    format!(
        "<noscript><p>Searching all {samples} samples needs JavaScript; the first wrong answers are below.</p></noscript>\
         <form id=\"browser\" class=\"script\" autocomplete=\"off\"><input type=\"search\" id=\"search\" placeholder=\"search questions, answers, items\" aria-label=\"Search\">\
         <select id=\"outcome\" aria-label=\"Outcome\"></select><select id=\"by\" aria-label=\"Order\">\
         <option value=\"place\">by item</option><option value=\"tokens\">longest first</option><option value=\"ms\">slowest first</option></select>\
         <output id=\"count\" aria-live=\"polite\">unpacking …</output></form>\
         <div id=\"list\" class=\"script\"></div><p id=\"pages\" class=\"script\"><button type=\"button\" id=\"back\">previous</button> \
         <span id=\"page\"></span> <button type=\"button\" id=\"next\">next</button></p>"
    )
}
