//! Python's `str()`, `repr()` and `json.dumps()` for values in templates.
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Output, State, Value};

/// Formats a printed value as Jinja2 does: `None`, `True`, lists with quoted strings.
pub(in crate::checkpoint) fn print(out: &mut Output, state: &mut State, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::None | ValueKind::Bool | ValueKind::Seq | ValueKind::Map => {
            let mut text = String::new();
            repr(value, 0, &mut text)?;
            out.write_str(&text).map_err(Error::from)
        }
        _ => minijinja::escape_formatter(out, state, value),
    }
}

/// The filter `string`: Python's `str()`.
pub(in crate::checkpoint) fn string(value: &Value) -> Result<String, Error> {
    if let Some(text) = value.as_str() {
        return Ok(text.to_owned());
    }
    if value.is_undefined() {
        return Ok(String::new());
    }
    let mut text = String::new();
    repr(value, 0, &mut text)?;
    Ok(text)
}

/// Largest nesting of a value, in place of Python's recursion limit.
const MAX_DEPTH: usize = 200;

fn deeper(depth: usize) -> Result<usize, Error> {
    if depth >= MAX_DEPTH {
        return Err(Error::new(ErrorKind::InvalidOperation, "the value is nested too deeply to print"));
    }
    Ok(depth + 1)
}

/// Writes Python's `repr()` of a value.
fn repr(value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
    match value.kind() {
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::String => quote(value.as_str().unwrap_or_default(), out),
        kind @ (ValueKind::Seq | ValueKind::Map) => {
            let depth = deeper(depth)?;
            let (open, close) = if kind == ValueKind::Map { ('{', '}') } else { ('[', ']') };
            out.push(open);
            for (index, item) in value.try_iter()?.enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                repr(&item, depth, out)?;
                if kind == ValueKind::Map {
                    out.push_str(": ");
                    repr(&value.get_item(&item)?, depth, out)?;
                }
            }
            out.push(close);
        }
        _ => out.push_str(&value.to_string()),
    }
    Ok(())
}

/// Writes a string literal in single quotes, or in double quotes if it contains single quotes only.
fn quote(text: &str, out: &mut String) {
    let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(mark);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == mark => out.extend(['\\', c]),
            c if u32::from(c) < 0x20 || u32::from(c) == 0x7f => out.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push(mark);
}

/// Options of `json.dumps`.
struct Json {
    indent: Option<usize>,
    ascii: bool,
    sorted: bool,
    comma: String,
    colon: String,
}

/// The filter `tojson` of transformers, `json.dumps(value, ensure_ascii=False, ...)`: nothing is escaped for HTML.
pub(in crate::checkpoint) fn json(value: &Value, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    let separators: Option<Vec<String>> = options.get("separators")?;
    let (comma, colon) = match separators.as_deref() {
        None => (if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()),
        Some([comma, colon]) => (comma.clone(), colon.clone()),
        Some(_) => return Err(Error::new(ErrorKind::InvalidOperation, "tojson: separators are a pair of strings")),
    };
    let flag = |name: &str| -> Result<bool, Error> { Ok(options.get::<Option<bool>>(name)?.unwrap_or(false)) };
    let json = Json {
        indent: indent.map(|spaces| spaces.min(16)),
        ascii: flag("ensure_ascii")?,
        sorted: flag("sort_keys")?,
        comma,
        colon,
    };
    options.assert_all_used()?;
    let mut out = String::new();
    json.write(value, 0, &mut out)?;
    Ok(out)
}

impl Json {
    fn line(&self, depth: usize, out: &mut String) {
        if let Some(spaces) = self.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', spaces * depth));
        }
    }

    fn quote(&self, text: &str, out: &mut String) {
        out.push('"');
        for c in text.chars() {
            match c {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                c if u32::from(c) < 0x20 || self.ascii && !c.is_ascii() => {
                    let mut units = [0; 2];
                    out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
                }
                // Python escapes it only with ensure_ascii.
                '\u{7f}' => out.push(c),
                c => out.push(c),
            }
        }
        out.push('"');
    }

    fn write(&self, value: &Value, depth: usize, out: &mut String) -> Result<(), Error> {
        let kind = value.kind();
        match kind {
            ValueKind::None => out.push_str("null"),
            ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
            ValueKind::Number => out.push_str(&value.to_string()),
            ValueKind::String => self.quote(value.as_str().unwrap_or_default(), out),
            ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
                let depth = deeper(depth)?;
                let (open, close) = if kind == ValueKind::Map { ('{', '}') } else { ('[', ']') };
                let mut items: Vec<Value> = value.try_iter()?.collect();
                if kind == ValueKind::Map && self.sorted {
                    items.sort_by_key(ToString::to_string);
                }
                out.push(open);
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push_str(&self.comma);
                    }
                    self.line(depth, out);
                    if kind == ValueKind::Map {
                        self.quote(&item.to_string(), out);
                        out.push_str(&self.colon);
                        self.write(&value.get_item(item)?, depth, out)?;
                    } else {
                        self.write(item, depth, out)?;
                    }
                }
                if !items.is_empty() {
                    self.line(depth - 1, out);
                }
                out.push(close);
            }
            other => return Err(Error::new(ErrorKind::BadSerialization, format!("{other} has no JSON form"))),
        }
        Ok(())
    }
}
