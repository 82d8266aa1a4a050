//! The HTML page.
use super::data::data;
use super::figures::{Section, difference_remarks, figures, model_remarks};
use super::pack::pack;
use super::sections;
use super::{Chapter, ReportRun};
use crate::report::plot::{DARK, LIGHT, RULES, compact, escape};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Renders the report as one HTML document. It opens no connection (its content security policy forbids them), needs no script for
/// tables, plots and examples, and is reproducible byte by byte. `chapters` follow the differences.
pub fn page(runs: &[ReportRun], chapters: &[Chapter]) -> String {
    let placed = figures(runs, false);
    let labels: Vec<&str> = runs.iter().map(|run| run.label.as_str()).collect();
    let title = format!("earnest: {}", labels.join(", "));
    let (rows, texts) = data(runs);
    let samples: usize = runs.iter().map(|run| run.samples.len()).sum();
    let mut body = String::new();
    let mut links = Vec::new();
    let mut section = |id: &str, link: &str, title: &str, lead: &str, content: String| {
        if content.is_empty() {
            return;
        }
        links.push(format!("<a href=\"#{id}\">{link}</a>"));
        let lead = if lead.is_empty() { String::new() } else { format!("<p class=\"lead\">{lead}</p>") };
        body.push_str(&format!("<section id=\"{id}\"><h2>{title}</h2>{lead}{content}</section>\n"));
    };
    section("summary", "Summary", "Summary", "", sections::summary(runs));
    section("tables", "Results", "Results", "", sections::tables(runs));
    let figures = |which: &[Section]| sections::figures(&placed, which);
    let differences = "Differences are paired by item: the same questions, minus the first model's result. Their intervals are \
         cluster-robust and not adjusted for the number of tasks. Hatched and marked n.s.: the interval includes zero, so these data do \
         not show a difference; that is not evidence that there is none.";
    let lead = match runs {
        [_] => "Lines are 95 % intervals.".to_owned(),
        _ => format!("Lines are 95 % intervals. {differences}"),
    };
    section(
        "accuracy",
        "Accuracy",
        "Accuracy",
        &lead,
        figures(&[Section::Accuracy, Section::Differences])
            + &sections::remarks(&[difference_remarks(runs), model_remarks(runs)].concat()),
    );
    for chapter in chapters {
        section(&chapter.id, &chapter.id, &chapter.title, &escape(&chapter.lead), sections::chapter(chapter));
    }
    let groups = sections::groups(runs);
    section(
        "curves",
        "Lengths",
        "Accuracy by length",
        "Bands are 95 % intervals of each length, Wilson's for shares.",
        sections::grouped(&placed, Section::Curves, &groups)
            + &sections::folded("Further metrics by length", sections::grouped(&placed, Section::MoreCurves, &groups)),
    );
    section(
        "heat",
        "Heat maps",
        "Tasks and lengths",
        "",
        figures(&[Section::Heat]) + &sections::folded("Further metrics", figures(&[Section::MoreHeat])),
    );
    section(
        "outcomes",
        "Outcomes",
        "How answers end",
        "Each sample has one outcome. A wrong answer that the token budget ended counts as cut.",
        figures(&[Section::Outcomes]),
    );
    section(
        "latency",
        "Latency",
        "Latency and length",
        "Dashed lines are medians. Latency is from the first prompt token computed to the last token generated, under the load of \
         the run; it compares runs on one machine with equal settings.",
        figures(&[Section::Latency]),
    );
    section("samples", "Samples", "Samples", "", browser(samples) + &sections::examples(runs));
    section("provenance", "Repeat", "How to repeat this", "", sections::provenance(runs));
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\
         <meta name=\"color-scheme\" content=\"light dark\"><link rel=\"icon\" href=\"data:,\"><title>{title}</title>\n<style>\
         :root {{ {LIGHT} color-scheme: light; }}\n\
         @media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {DARK} color-scheme: dark; }} }}\n\
         @media screen {{ :root[data-theme=dark] {{ {DARK} color-scheme: dark; }} }}\n{RULES}\n{STYLE}</style></head>\n\
         <body><header><h1>earnest <span class=\"dim\">report</span></h1><nav aria-label=\"Sections\">{nav}</nav>\
         <button id=\"theme\" class=\"script\" type=\"button\">dark or light</button></header>\n{picker}<main>{body}</main>\n\
         <footer class=\"dim\">Made by earnest {version} from {samples} samples. No script, font or image comes from elsewhere.</footer>\n\
         <script type=\"text/plain\" id=\"rows\">{rows}</script>\n<script type=\"text/plain\" id=\"texts\">{texts}</script>\n\
         <script>{SCRIPT}</script></body></html>\n",
        title = escape(&title),
        nav = links.join(" "),
        picker = picker(runs),
        version = env!("CARGO_PKG_VERSION"),
        rows = pack(&rows),
        texts = pack(&texts),
    )
}

/// Renders checkboxes for models and tasks, shown by the script.
fn picker(runs: &[ReportRun]) -> String {
    let mut tasks: Vec<&str> = Vec::new();
    for task in runs.iter().flat_map(ReportRun::tasks) {
        if !tasks.contains(&task) {
            tasks.push(task);
        }
    }
    let models = runs.iter().enumerate().map(|(place, run)| {
        format!(
            "<label><input type=\"checkbox\" name=\"run\" value=\"{place}\" data-label=\"{1}\" checked><span class=\"swatch s{0}\"></span>{1}</label>",
            place % 8,
            escape(&run.label)
        )
    });
    let tasks = tasks.into_iter().map(|name| {
        let task = escape(name);
        format!(
            "<label><input type=\"checkbox\" name=\"task\" value=\"{task}\" checked>{}</label>",
            escape(&compact(name))
        )
    });
    format!(
        "<details class=\"picker script\" id=\"picker\"><summary>Choose models and tasks</summary>\
         <fieldset><legend>Models <button type=\"button\" data-all=\"run\">all</button> <button type=\"button\" data-none=\"run\">none</button></legend>{}</fieldset>\
         <fieldset><legend>Tasks <button type=\"button\" data-all=\"task\">all</button> <button type=\"button\" data-none=\"task\">none</button></legend>{}</fieldset></details>\n\
         <p class=\"legend\">{}</p>\n",
        models.collect::<String>(),
        tasks.collect::<String>(),
        runs.iter()
            .enumerate()
            .map(|(place, run)| format!(
                "<span data-run=\"{place}\"><span class=\"swatch s{}\"></span>{}</span>",
                place % 8,
                escape(&run.label)
            ))
            .collect::<String>(),
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
