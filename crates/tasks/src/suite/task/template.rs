//! Columns and templates: how a task file says what to take from a row.
use std::collections::BTreeSet;
use std::string::FromUtf8Error;

use earnest_isolation::{Output, TooLarge, check_template};
use minijinja::value::ValueKind;
use minijinja::{AutoEscape, Environment, ErrorKind, UndefinedBehavior};
use serde_json::{Map, Value};

use crate::suite::quoted::{LONGEST_QUOTED, shortened, some_of};

/// Largest number of instructions of one rendering: a template that loops must end.
const FUEL: u64 = 1_000_000;

/// Length in bytes of the text or value that every template may make of a row; with [`BYTES_PER_BYTE`] for each byte of the row.
const MIN_OUTPUT: usize = 1 << 20;
const BYTES_PER_BYTE: usize = 8;

/// Levels of lists and objects that a value may have: what is beyond JSON's 128 cannot be read again.
pub(super) const MAX_LEVELS: usize = 64;

/// Compiled templates. What they do is bounded in instructions, output and the nesting of values; a [`super::reader::RowReader`] bounds
/// stack, memory and time.
pub(super) struct Templates(Environment<'static>);

/// Error of a column, an expression or a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TemplateError {
    /// An error of the templates' library.
    #[error("{0}")]
    Template(String),
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    #[error("{}", no_column(.name, .near.as_deref(), .columns))]
    NoColumn { name: String, near: Option<String>, columns: String },
    #[error("{{{{ {0} }}}} has no value")]
    NoValue(String),
    /// A type that JSON does not have.
    #[error("{{{{ {expression} }}}} is of type {kind}")]
    Type { expression: String, kind: String },
    #[error("the value of {{{{ {0} }}}} has more than {MAX_LEVELS} levels")]
    Deep(String),
    #[error("the value of {{{{ {expression} }}}} has more than {most} bytes")]
    LongValue { expression: String, most: usize },
    #[error("the text of the template is longer than {0} bytes")]
    LongText(usize),
    #[error(transparent)]
    NotUtf8(#[from] FromUtf8Error),
}

/// A column, or a text to render.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expr {
    /// Value of a column.
    Column(String),
    /// Value of one expression, `{{ a }}`.
    Value(String),
    /// Rendered text, by its template's name.
    Text(String),
}

/// Values that a template sees.
pub(super) struct Context {
    values: minijinja::Value,
    names: BTreeSet<String>,
    /// Bytes that a template may make of the row.
    most: usize,
}

impl Context {
    /// Values of a row of so many bytes; what is null is not there. Later ones replace those of the same name.
    pub(super) fn new<'a>(values: impl IntoIterator<Item = (&'a str, &'a Value)>, bytes: usize) -> Self {
        let present: Vec<(&str, &Value)> = values.into_iter().filter(|(_, value)| !value.is_null()).collect();
        let names = present.iter().map(|(name, _)| (*name).to_owned()).collect();
        let pairs = present.into_iter().map(|(name, value)| (name, rendered(value)));
        let most = MIN_OUTPUT.saturating_add(bytes.saturating_mul(BYTES_PER_BYTE));
        Context { values: minijinja::Value::from_pairs(pairs), names, most }
    }
}

impl Templates {
    pub(super) fn new() -> Self {
        let mut environment = Environment::new();
        environment.set_fuel(Some(FUEL));
        environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
        environment.set_auto_escape_callback(|_| AutoEscape::None);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        Templates(environment)
    }

    /// True if a text that may be a column is an expression or template.
    pub(super) fn is_template(text: &str) -> bool {
        text.contains("{{") || text.contains("{%")
    }

    /// Compiles what a task file says: an expression or template if it has `{{` or `{%`, else the name of a column.
    ///
    /// # Errors
    /// The syntax error of a template, or a limit that it exceeds.
    pub(super) fn expr(&mut self, text: &str) -> Result<Expr, TemplateError> {
        if !Templates::is_template(text) {
            return Ok(Expr::Column(text.to_owned()));
        }
        if let Some(inner) = text.trim().strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"))
            && !inner.contains("}}")
            && !inner.contains("{{")
        {
            let inner = inner.trim_matches('-').trim().to_owned();
            check_template(&inner)?;
            self.0.compile_expression_owned(inner.clone()).map_err(|error| described(&error))?;
            return Ok(Expr::Value(inner));
        }
        self.text(text)
    }

    /// Compiles a text, which is a template whatever it contains.
    ///
    /// # Errors
    /// The syntax error of the template, or a limit that it exceeds.
    pub(super) fn text(&mut self, text: &str) -> Result<Expr, TemplateError> {
        check_template(text)?;
        // The text is its own name, so that a template that is used twice is compiled once.
        self.0.add_template_owned(text.to_owned(), text.to_owned()).map_err(|error| described(&error))?;
        Ok(Expr::Text(text.to_owned()))
    }

    /// Columns that an expression uses.
    pub(super) fn columns(&self, expr: &Expr) -> BTreeSet<String> {
        match expr {
            Expr::Column(name) => BTreeSet::from([name.clone()]),
            Expr::Value(source) => match self.0.compile_expression_owned(source.clone()) {
                Ok(compiled) => compiled.undeclared_variables(false).into_iter().collect(),
                Err(_) => BTreeSet::new(),
            },
            Expr::Text(name) => match self.0.get_template(name) {
                Ok(template) => template.undeclared_variables(false).into_iter().collect(),
                Err(_) => BTreeSet::new(),
            },
        }
    }

    /// The value of an expression in a row; null where it is empty.
    ///
    /// # Errors
    /// A column that the row does not have, or an error of the template.
    pub(super) fn value(
        &self,
        expr: &Expr,
        row: &Map<String, Value>,
        context: &Context,
    ) -> Result<Value, TemplateError> {
        match expr {
            Expr::Column(name) => match row.get(name) {
                Some(value) => Ok(value.clone()),
                None => Err(missing_column(name, row.keys().map(String::as_str))),
            },
            Expr::Value(source) => {
                let compiled = self.0.compile_expression_owned(source.clone()).map_err(|error| described(&error))?;
                let found = compiled
                    .eval(context.values.clone())
                    .map_err(|error| self.explained(&error, &compiled.undeclared_variables(false), context))?;
                if found.is_undefined() {
                    return Err(self
                        .missing(&compiled.undeclared_variables(false), context)
                        .unwrap_or_else(|| TemplateError::NoValue(shortened(source, LONGEST_QUOTED))));
                }
                let mut left = context.most;
                let expression = shortened(source, LONGEST_QUOTED);
                json(&found, MAX_LEVELS, &mut left).map_err(|reason| match reason {
                    NotJson::Type(kind) => TemplateError::Type { expression, kind },
                    NotJson::Deep => TemplateError::Deep(expression),
                    NotJson::Long => TemplateError::LongValue { expression, most: context.most },
                    NotJson::Failed(error) => TemplateError::Template(error),
                })
            }
            Expr::Text(name) => self.render(name, context).map(Value::String),
        }
    }

    /// Renders a template.
    ///
    /// # Errors
    /// A column that the row does not have, or an error of the template.
    pub(super) fn render(&self, name: &str, context: &Context) -> Result<String, TemplateError> {
        let template = self.0.get_template(name).map_err(|error| described(&error))?;
        let mut output = Output::of_at_most(context.most);
        let rendered = template.render_captured_to(context.values.clone(), &mut output).map(drop);
        if output.is_full() {
            return Err(TemplateError::LongText(context.most));
        }
        rendered.map_err(|error| self.explained(&error, &template.undeclared_variables(false), context))?;
        Ok(output.into_text()?)
    }

    fn explained(
        &self,
        error: &minijinja::Error,
        used: &std::collections::HashSet<String>,
        context: &Context,
    ) -> TemplateError {
        let described = described(error);
        let undefined = described.to_string().contains("undefined");
        undefined.then(|| self.missing(used, context)).flatten().unwrap_or(described)
    }

    /// The error of the first name that a template uses and the row does not have.
    fn missing(&self, used: &std::collections::HashSet<String>, context: &Context) -> Option<TemplateError> {
        let globals: BTreeSet<&str> = self.0.globals().map(|(name, _)| name).collect();
        let mut missing: Vec<&String> =
            used.iter().filter(|name| !context.names.contains(*name) && !globals.contains(name.as_str())).collect();
        missing.sort();
        missing.first().map(|name| missing_column(name, context.names.iter().map(String::as_str)))
    }
}

/// A value as templates see it.
fn rendered(value: &Value) -> minijinja::Value {
    use minijinja::Value as Rendered;
    match value {
        Value::Null => Rendered::from(()),
        Value::Bool(truth) => Rendered::from(*truth),
        Value::String(text) => Rendered::from(text.as_str()),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(integer), _) => Rendered::from(integer),
            (None, Some(integer)) => Rendered::from(integer),
            (None, None) => Rendered::from(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::Array(list) => Rendered::from(list.iter().map(rendered).collect::<Vec<_>>()),
        Value::Object(fields) => {
            Rendered::from_pairs(fields.iter().map(|(name, value)| (name.as_str(), rendered(value))))
        }
    }
}

/// Reason for a value of a template not being JSON.
enum NotJson {
    /// A type that JSON does not have.
    Type(String),
    /// More levels than JSON may have.
    Deep,
    /// More bytes than a template may make of the row.
    Long,
    /// An error of the value itself.
    Failed(String),
}

/// Bytes that every value counts as, beside those of its text.
const VALUE_BYTES: usize = 8;

/// A value of a template as JSON of at most so many levels and bytes.
fn json(value: &minijinja::Value, levels: usize, left: &mut usize) -> Result<Value, NotJson> {
    let mut take = |bytes: usize| {
        *left = left.checked_sub(bytes).ok_or(NotJson::Long)?;
        Ok(())
    };
    take(VALUE_BYTES + value.as_str().map_or(0, str::len))?;
    let failed = |error: minijinja::Error| NotJson::Failed(error.to_string());
    let below = levels.checked_sub(1).ok_or(NotJson::Deep);
    Ok(match value.kind() {
        ValueKind::None | ValueKind::Undefined => Value::Null,
        ValueKind::Bool => value.is_true().into(),
        ValueKind::String => value.as_str().unwrap_or_default().into(),
        ValueKind::Number => match (i64::try_from(value.clone()), u64::try_from(value.clone())) {
            _ if !value.is_integer() => f64::try_from(value.clone()).unwrap_or(f64::NAN).into(),
            (Ok(integer), _) => integer.into(),
            (_, Ok(integer)) => integer.into(),
            // Beyond JSON's integers, to the digit.
            _ => value.to_string().into(),
        },
        ValueKind::Seq | ValueKind::Iterable => {
            let below = below?;
            let list = value.try_iter().map_err(failed)?.map(|one| json(&one, below, left));
            Value::Array(list.collect::<Result<_, _>>()?)
        }
        ValueKind::Map => {
            let below = below?;
            let field = |name: minijinja::Value| {
                let found = value.get_item(&name).map_err(failed)?;
                let name = name.to_string();
                *left = left.checked_sub(name.len()).ok_or(NotJson::Long)?;
                Ok((name, json(&found, below, left)?))
            };
            Value::Object(value.try_iter().map_err(failed)?.map(field).collect::<Result<_, _>>()?)
        }
        kind => return Err(NotJson::Type(kind.to_string())),
    })
}

fn missing_column<'a>(name: &str, columns: impl Iterator<Item = &'a str> + Clone) -> TemplateError {
    let all = some_of(columns.clone());
    let name = shortened(name, LONGEST_QUOTED);
    let near = crate::nearest(&name, columns).map(str::to_owned);
    TemplateError::NoColumn { name, near, columns: all }
}

fn no_column(name: &str, near: Option<&str>, columns: &str) -> String {
    match near {
        Some(near) => format!("there is no column {name} (did you mean {near}?); the columns are {columns}"),
        None => format!("there is no column {name}; the columns are {columns}"),
    }
}

/// The error of a template, with its line where it has several.
fn described(error: &minijinja::Error) -> TemplateError {
    let what = match error.detail() {
        _ if error.kind() == ErrorKind::OutOfFuel => {
            format!("the template runs for more than {FUEL} instructions, which is the limit of a template and a row")
        }
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    TemplateError::Template(match error.line() {
        Some(line) if line > 1 => format!("{what} (line {line} of the template)"),
        _ => what,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn value(text: &str, row: &Value) -> Result<Value, TemplateError> {
        let mut templates = Templates::new();
        let expr = templates.expr(text)?;
        let row = row.as_object().unwrap();
        let context = Context::new(row.iter().map(|(name, value)| (name.as_str(), value)), 0);
        templates.value(&expr, row, &context)
    }

    #[test]
    fn columns_expressions_and_texts() {
        let row = json!({"q": "1+1", "a": 2, "b": [1, "x"], "d": {"t": ["u"]}, "n": null});
        assert_eq!(value("q", &row), Ok(json!("1+1")));
        assert_eq!(value("{{ [q, a] }}", &row), Ok(json!(["1+1", 2])));
        assert_eq!(value("{{ d.t }}", &row), Ok(json!(["u"])));
        assert_eq!(value("{{ q.split('+')[-1] }}", &row), Ok(json!("1")));
        assert_eq!(value("{{ q }} = {{ a }}", &row), Ok(json!("1+1 = 2")));
        assert_eq!(value("<{{ q }}>", &row), Ok(json!("<1+1>")));
        assert_eq!(value("{% if c is defined %}{{ c }}{% else %}none{% endif %}", &row), Ok(json!("none")));
        assert_eq!(value("{% if n %}{{ n }}{% endif %}x", &row), Ok(json!("x")));
    }

    #[test]
    fn missing_columns_are_named() {
        let row = json!({"question": "1+1", "answer": 2});
        for text in ["qestion", "{{ qestion }}", "a {{ qestion }}", "{{ qestion.strip() }}"] {
            let error = value(text, &row).unwrap_err().to_string();
            assert!(error.contains("no column qestion (did you mean question?)"), "{text}: {error}");
        }
        assert!(value("{{ question", &row).unwrap_err().to_string().contains("syntax"));
        assert!(value("{{ answer.x.y }}", &row).is_err());
        assert!(
            value("{% for i in range(10000) %}{% for j in range(10000) %}{{ j }}{% endfor %}{% endfor %}", &row)
                .is_err()
        );
    }
}
