//! Markup of pages, by the templates in `templates/`. Every text is escaped; drawings, styles and what a template made are not.
use std::sync::LazyLock;

use minijinja::{Environment, Error, UndefinedBehavior, Value, context, escape_formatter};

use crate::plot::{Figure, STYLES, escape};

/// Templates that every page can use.
const SHARED: [(&str, &str); 2] = [
    ("frame.html", include_str!("../templates/frame.html")),
    ("macros.html", include_str!("../templates/macros.html")),
];

static PAGES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    environment(&[
        ("browser.html", include_str!("../templates/browser.html")),
        ("chapter.html", include_str!("../templates/chapter.html")),
        ("differences.html", include_str!("../templates/differences.html")),
        ("figures.html", include_str!("../templates/figures.html")),
        ("heat.html", include_str!("../templates/heat.html")),
        ("map.html", include_str!("../templates/map.html")),
        ("notes.html", include_str!("../templates/notes.html")),
        ("picker.html", include_str!("../templates/picker.html")),
        ("provenance.html", include_str!("../templates/provenance.html")),
        ("results.html", include_str!("../templates/results.html")),
        ("tail.html", include_str!("../templates/tail.html")),
        ("tables.html", include_str!("../templates/tables.html")),
    ])
});

/// Prepares templates, beside those of every page. Their lines are joined: line ends and indentation are no part of a page.
pub fn environment(templates: &[(&'static str, &str)]) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => out.write_str(&escape(text)).map_err(Error::from),
        _ => escape_formatter(out, state, value),
    });
    environment.add_global("styles", STYLES);
    // Narrow columns break a name at its underscores.
    environment.add_filter("breakable", |name: &str| safe(escape(name).replace('_', "_<wbr>")));
    for (name, source) in SHARED.iter().chain(templates) {
        let joined: String = source.lines().map(str::trim_start).collect();
        environment.add_template_owned(*name, joined).expect(TESTED);
    }
    environment
}

const TESTED: &str = "templates are part of the program and tested";

/// Renders a template; the result is markup, which other templates do not escape.
pub fn rendered(environment: &Environment<'_>, template: &str, context: Value) -> Value {
    safe(environment.get_template(template).and_then(|template| template.render(context)).expect(TESTED))
}

/// Renders a template of this crate.
pub(crate) fn html(template: &str, context: Value) -> Value {
    rendered(&PAGES, template, context)
}

/// Marks a text as markup, which is not escaped.
pub fn safe(markup: impl Into<String>) -> Value {
    Value::from_safe_string(markup.into())
}

/// Returns a figure's title and drawing, for templates.
pub fn drawing(figure: &Figure) -> Value {
    context!(title => &figure.title, svg => safe(figure.inline()))
}
