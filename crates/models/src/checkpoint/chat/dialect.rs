//! The dialect of Jinja in which chat templates are written: what `transformers` adds to Jinja2, on top of minijinja.
use std::borrow::Cow;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Kwargs;
use minijinja::{Environment, Error, ErrorKind, Value};
use regex::Regex;

use super::python_values;

/// The template's name inside its environment.
pub(in crate::checkpoint) const TEMPLATE: &str = "chat";

/// The date that templates get as today's, so that prompts do not depend on the day: 26 July 2024, the fallback of Llama 3.1's
/// own template.
const FIXED_DATE: Date = Date { year: 2024, month: 7, day: 26, weekday: 5, day_of_year: 208 };

/// Largest number of instructions of a rendering, some seconds' worth: a downloaded template may loop forever. Those of
/// published models take a few thousand per message.
pub(in crate::checkpoint) const FUEL: u64 = 20_000_000;

/// Compiles a template.
pub(in crate::checkpoint) fn environment(source: &str) -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?;
    environment.set_syntax(syntax);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    environment.add_function("strftime_now", |format: String| FIXED_DATE.format(&format));
    environment.add_function("dict", |pairs: Kwargs| -> Result<Value, Error> {
        let names: Vec<String> = pairs.args().map(str::to_owned).collect();
        let values: Result<Vec<(String, Value)>, Error> =
            names.into_iter().map(|name| pairs.get::<Value>(&name).map(|value| (name.clone(), value))).collect();
        Ok(Value::from_pairs(values?))
    });
    // None is none of these in Python; minijinja iterates over it as over an empty list.
    environment.add_test("iterable", |value: &Value| {
        use minijinja::value::ValueKind::{Bytes, Iterable, Map, Seq, String, Undefined};
        matches!(value.kind(), Bytes | Iterable | Map | Seq | String | Undefined)
    });
    environment.add_filter("tojson", python_values::json);
    environment.add_filter("string", python_values::string);
    environment.set_formatter(python_values::print);
    environment.add_template_owned(TEMPLATE, without_generation_marks(source).into_owned())?;
    Ok(environment)
}

/// Replaces `{% generation %}`, which marks the assistant's text for training and prints nothing.
fn without_generation_marks(source: &str) -> Cow<'_, str> {
    let mark = Regex::new(r"\{%(?P<left>[-+]?)\s*(?P<end>end)?generation\s*(?P<right>[-+]?)%\}")
        .expect("the pattern is a constant that compiles");
    mark.replace_all(source, |found: &regex::Captures<'_>| {
        let word = if found.name("end").is_some() { "endif" } else { "if true" };
        format!("{{%{} {word} {}%}}", &found["left"], &found["right"])
    })
}

/// Returns the line and message of an error.
pub(in crate::checkpoint) fn locate(error: &Error) -> (usize, String) {
    let message = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    (error.line().unwrap_or(0), message)
}

/// A calendar day at midnight.
struct Date {
    year: u32,
    month: usize,
    day: u32,
    /// Sunday is 0.
    weekday: usize,
    day_of_year: u32,
}

impl Date {
    /// Formats as C's `strftime` in the C locale, with the conversions that apply to a date.
    fn format(&self, format: &str) -> Result<String, Error> {
        const MONTHS: [&str; 12] = [
            "January",
            "February",
            "March",
            "April",
            "May",
            "June",
            "July",
            "August",
            "September",
            "October",
            "November",
            "December",
        ];
        const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
        let month = MONTHS.get(self.month - 1).copied().unwrap_or_default();
        let weekday = DAYS.get(self.weekday).copied().unwrap_or_default();
        let short = |name: &str| name.chars().take(3).collect::<String>();
        let mut out = String::new();
        let mut chars = format.chars();
        while let Some(c) = chars.next() {
            if c != '%' {
                out.push(c);
                continue;
            }
            let mut conversion = chars.next();
            let padded = conversion != Some('-');
            if !padded {
                conversion = chars.next();
            }
            let number = |n: u32, width: usize| if padded { format!("{n:0width$}") } else { n.to_string() };
            out.push_str(&match conversion {
                Some('Y') => self.year.to_string(),
                Some('y') => number(self.year % 100, 2),
                Some('m') => number(self.month as u32, 2),
                Some('d') => number(self.day, 2),
                Some('e') => format!("{:2}", self.day),
                Some('j') => number(self.day_of_year, 3),
                Some('B') => month.to_string(),
                Some('b' | 'h') => short(month),
                Some('A') => weekday.to_string(),
                Some('a') => short(weekday),
                Some('H' | 'M' | 'S') => number(0, 2),
                Some('I') => number(12, 2),
                Some('p') => "AM".to_string(),
                Some('F') => format!("{}-{:02}-{:02}", self.year, self.month, self.day),
                Some('T') => "00:00:00".to_string(),
                Some('%') => "%".to_string(),
                other => {
                    let conversion = other.map_or("%".to_string(), |c| format!("%{c}"));
                    let message = format!("strftime_now does not support {conversion}");
                    return Err(Error::new(ErrorKind::InvalidOperation, message));
                }
            });
        }
        Ok(out)
    }
}
