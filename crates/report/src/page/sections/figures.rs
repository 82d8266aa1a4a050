//! Grids of figures.
use std::fmt::Write;

use super::WRITES;
use crate::page::Chapter;
use crate::page::figures::{Placed, Section};
use crate::plot::{Figure, escape};

/// Renders the figures of these sections in one grid.
pub fn figures(placed: &[Placed], sections: &[Section]) -> String {
    grid(placed.iter().filter(|one| sections.contains(&one.section)))
}

/// Largest number of figures that are shown without folding.
const UNFOLDED: usize = 16;

/// Renders the figures of a section; many figures are folded by the groups of their tasks, the first one open.
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

/// Renders sentences as a list; empty without any.
pub fn remarks(sentences: &[String]) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let items = sentences.iter().map(|sentence| format!("<li>{}</li>", escape(sentence)));
    format!("<ul class=\"notes\">{}</ul>", items.collect::<String>())
}

/// Renders a chapter's figures. Their series are not runs and their rows not tasks, which `data-apart` tells the page's script.
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

/// Renders figures folded under a title; empty without any.
pub fn folded(title: &str, figures: String) -> String {
    if figures.is_empty() {
        figures
    } else {
        format!("<details><summary>{}</summary>{figures}</details>", escape(title))
    }
}
