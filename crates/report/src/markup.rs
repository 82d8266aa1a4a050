//! Markup of pages, by the templates in `templates/`. Every text is escaped; drawings, styles and what a template made are not.
use std::sync::LazyLock;

pub use minijinja::{Environment, Value, context};
use minijinja::{Error, UndefinedBehavior, escape_formatter};

use crate::plot::{DARK, Figure, LIGHT, RULES, STYLES, address_part, escape};
pub use crate::wrap::kept_together;
use crate::{ReportError, options, p_sentence, p_text};
use earnest_results::{fixed, with_commas};
use earnest_tasks::suite::registry::task_label;

/// Script of every page: the choice of colours (a button with the id `theme`), tables that sort and copy, lists that are walked through by keys.
pub const SCRIPT: &str = concat!(include_str!("../templates/shared.js"), include_str!("../templates/copy.js"));

/// Style of every page: the colours of the reader's system unless another choice is made, light ones on paper.
pub static STYLE: LazyLock<String> = LazyLock::new(|| {
    format!(
        ":root {{ {LIGHT} color-scheme: light; }}\n\
         @media screen and (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {DARK} color-scheme: dark; }} }}\n\
         @media screen {{ :root[data-theme=dark] {{ {DARK} color-scheme: dark; }} }}\n{RULES}\n{}",
        include_str!("../templates/look.css")
    )
});

/// Markup of a part of a page, or the failure of its template.
pub type Markup = Result<Value, ReportError>;

/// Templates that every page can use, also those of the viewer.
static SHARED: [(&str, &str); 2] = [
    ("frame.html", include_str!("../templates/frame.html")),
    ("macros.html", include_str!("../templates/macros.html")),
];

/// Templates of the report and of the numeracy profile.
static TEMPLATES: [(&str, &str); 22] = [
    ("anatomy.html", include_str!("../templates/anatomy.html")),
    ("browser.html", include_str!("../templates/browser.html")),
    ("chapter.html", include_str!("../templates/chapter.html")),
    ("differences.html", include_str!("../templates/differences.html")),
    ("each.html", include_str!("../templates/each.html")),
    ("figures.html", include_str!("../templates/figures.html")),
    ("heat.html", include_str!("../templates/heat.html")),
    ("limit_differences.html", include_str!("../templates/limit_differences.html")),
    ("limits.html", include_str!("../templates/limits.html")),
    ("map.html", include_str!("../templates/map.html")),
    ("notations.html", include_str!("../templates/notations.html")),
    ("notes.html", include_str!("../templates/notes.html")),
    ("picker.html", include_str!("../templates/picker.html")),
    ("provenance.html", include_str!("../templates/provenance.html")),
    ("results.html", include_str!("../templates/results.html")),
    ("rising.html", include_str!("../templates/rising.html")),
    ("screening.html", include_str!("../templates/screening.html")),
    ("skills.html", include_str!("../templates/skills.html")),
    ("steps.html", include_str!("../templates/steps.html")),
    ("tail.html", include_str!("../templates/tail.html")),
    ("tables.html", include_str!("../templates/tables.html")),
    ("thinking.html", include_str!("../templates/thinking.html")),
];

static PAGES: LazyLock<Environment<'static>> = LazyLock::new(|| environment(&TEMPLATES));

/// Prepares templates, beside those of every page. Their lines are joined: line ends and indentation are no part of a page.
pub fn environment(templates: &'static [(&'static str, &'static str)]) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_formatter(|out, state, value| match value.as_str() {
        Some(text) if !value.is_safe() => out.write_str(&escape(text)).map_err(Error::from),
        _ => escape_formatter(out, state, value),
    });
    environment.add_global("styles", STYLES);
    environment.add_filter("percent", percent);
    environment.add_filter("points", points);
    environment.add_filter("width", width);
    environment.add_filter("p", p_value);
    environment.add_filter("p_sentence", |p: f64| kept_together(&p_sentence(p)));
    environment.add_filter("count", with_commas);
    environment.add_filter("task", |text: &str| task_label(text).into_owned());
    environment.add_filter("segment", |text: &str| address_part(text));
    // A page is read beside the program's terminal, and names settings as that does.
    environment.add_filter("options", |text: &str| kept_together(&options(text)));
    // Narrow columns break a name at its underscores.
    environment.add_filter("breakable", |name: &str| safe(escape(name).replace('_', "_<wbr>")));
    environment.set_loader(move |name| {
        let source = SHARED.iter().chain(templates).find(|(known, _)| *known == name);
        Ok(source.map(|(_, source)| source.lines().map(str::trim_start).collect::<String>()))
    });
    environment
}

/// A share in per cent with one decimal, without the sign.
pub fn percent(share: f64) -> String {
    if share.is_finite() { fixed(100.0 * share, 1) } else { "\u{2013}".to_owned() }
}

/// A difference of shares in percentage points with a sign.
pub fn points(difference: f64) -> String {
    match difference {
        value if !value.is_finite() => "\u{2013}".to_owned(),
        value if (100.0 * value).abs() < 0.05 => "0.0".to_owned(),
        value => format!("{:+.1}", 100.0 * value),
    }
}

/// A share as a position or width in per cent of a drawing.
fn width(share: f64) -> f64 {
    (10_000.0 * share.clamp(0.0, 1.0)).round() / 100.0
}

/// A p value in a table.
fn p_value(value: f64) -> String {
    if value.is_finite() { p_text(value) } else { "\u{2013}".to_owned() }
}

/// Renders a template; the result is markup, which other templates do not escape.
///
/// # Errors
/// If the template is unknown or has a mistake, or a name that it uses is not in `context`.
pub fn rendered(environment: &Environment<'_>, template: &str, context: Value) -> Markup {
    Ok(safe(environment.get_template(template)?.render(context)?))
}

/// Renders a template of this crate.
pub(crate) fn html(template: &str, context: Value) -> Markup {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_template_has_the_syntax_of_one() {
        for (name, _) in SHARED.iter().chain(&TEMPLATES) {
            PAGES.get_template(name).unwrap();
        }
    }

    #[test]
    fn pages_name_options_and_escape_the_rest() {
        let groups = [("", ["the setting `max_tokens` raises <it>"])];
        let page = html("notes.html", context!(groups)).unwrap().to_string();
        assert!(page.contains("<li>--max-tokens raises &lt;it&gt;</li>"), "{page}");
    }

    #[test]
    fn a_template_that_fails_says_that_there_is_no_page() {
        let error = html("limits.html", context!(panels => ())).unwrap_err();
        assert!(error.to_string().starts_with("the page cannot be made: undefined value"), "{error}");
        assert!(html("unknown.html", context!()).is_err());
    }
}
