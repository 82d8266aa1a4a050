//! Grids of figures.
use minijinja::{Value, context};

use crate::markup::{Markup, drawing, html, safe};
use crate::page::Chapter;
use crate::page::figures::{Placed, Section};

/// Renders a grid for each of these sections, then remarks.
pub fn figures(placed: &[Placed], sections: &[Section], remarks: Vec<String>) -> Markup {
    let grids = sections.iter().map(|section| of_section(placed, *section).map(placed_drawing).collect::<Vec<_>>());
    let (groups, further) = (Vec::<Value>::new(), Value::from(""));
    html("figures.html", context!(groups, grids => grids.collect::<Vec<_>>(), remarks, further))
}

/// Largest number of figures that are shown without folding.
const UNFOLDED: usize = 16;

/// Renders the figures of a section, and `further` ones folded; many figures are folded by the groups of their tasks, the first one open.
pub fn grouped(placed: &[Placed], section: Section, groups: &[(String, Vec<String>)], further: Value) -> Markup {
    let remarks = Vec::<String>::new();
    let folds = of_section(placed, section).count() > UNFOLDED && groups.len() > 1;
    let groups = if folds { groups } else { &[] };
    let group =
        |one: &Placed| groups.iter().position(|(_, tasks)| one.task.as_ref().is_some_and(|task| tasks.contains(task)));
    let drawn = |wanted: Option<usize>| -> Vec<Value> {
        of_section(placed, section).filter(|one| group(one) == wanted).map(placed_drawing).collect()
    };
    let folded = groups.iter().enumerate().map(|(index, (name, _))| (name, drawn(Some(index))));
    let folded = folded.filter(|(_, figures)| !figures.is_empty());
    let folded: Vec<Value> = folded.map(|(name, figures)| context!(name, figures)).collect();
    html("figures.html", context!(groups => folded, grids => [drawn(None)], remarks, further))
}

fn of_section(placed: &[Placed], section: Section) -> impl Iterator<Item = &Placed> {
    placed.iter().filter(move |one| one.section == section)
}

fn placed_drawing(one: &Placed) -> Value {
    context!(task => &one.task, run => one.run, title => &one.figure.title, svg => safe(one.figure.inline()))
}

/// Renders a chapter's figures. Their series are not runs and their rows not tasks, which `data-apart` tells the page's script.
pub fn chapter(chapter: &Chapter) -> Markup {
    let figures: Vec<Value> = chapter.figures.iter().map(drawing).collect();
    html("chapter.html", context!(figures, notes => &chapter.notes))
}
