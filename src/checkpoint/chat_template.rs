//! A checkpoint's chat template: messages become the text that the model was trained on.
use super::CheckpointError;
use super::json_fields;
use super::tokenizer::special_text;
use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Environment, Error, ErrorKind, Value};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use sha2::{Digest, Sha256};
use std::path::Path;

/// The date that templates are given when they ask for today's, so that a prompt is the same every day: 26 July 2024, the
/// one that Llama 3.1's own template falls back to.
const FIXED_DATE: Date = Date { year: 2024, month: 7, day: 26, weekday: 5, day_of_year: 208 };

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ChatMessage {
    /// `system`, `user` or `assistant`; which of them exist is up to the template.
    pub role: String,
    /// The text.
    pub content: String,
}

impl ChatMessage {
    /// A message of the given role.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> ChatMessage {
        ChatMessage { role: role.into(), content: content.into() }
    }
}

/// A Jinja template in the dialect of `transformers`: blocks trimmed, Python's string methods, `raise_exception`,
/// `strftime_now` (a fixed date, 26 July 2024, so that prompts do not depend on the day) and Python's JSON.
#[derive(Debug)]
pub struct ChatTemplate {
    name: String,
    source: String,
    bos: Option<String>,
    eos: Option<String>,
    environment: Result<Environment<'static>, (usize, String)>,
}

impl ChatTemplate {
    /// `name` says in messages where the template is from; `bos` and `eos` are the texts of those tokens. A template with
    /// a syntax error is kept (a run without chat does not need it); [`ChatTemplate::render`] reports the error.
    pub fn new(name: impl Into<String>, source: String, bos: Option<String>, eos: Option<String>) -> ChatTemplate {
        let environment = environment(&source);
        ChatTemplate { name: name.into(), source, bos, eos, environment }
    }

    /// The template of a folder: `chat_template.jinja`, else `tokenizer_config.json`'s (of several, the one named
    /// `default`).
    pub(super) fn from_folder(
        folder: &Path,
        config: Option<&Map<String, serde_json::Value>>,
    ) -> Result<Option<ChatTemplate>, CheckpointError> {
        let bos = special_text(config.and_then(|c| c.get("bos_token")));
        let eos = special_text(config.and_then(|c| c.get("eos_token")));
        let path = folder.join("chat_template.jinja");
        match std::fs::read_to_string(&path) {
            Ok(source) => return Ok(Some(ChatTemplate::new(path.display().to_string(), source, bos, eos))),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => return Err(CheckpointError::io(&path, "", e)),
        }
        let Some(map) = config else { return Ok(None) };
        let path = folder.join("tokenizer_config.json");
        let fields = json_fields::Fields::new(&path, "", map);
        let source = match fields.value("chat_template") {
            None => return Ok(None),
            Some(serde_json::Value::String(source)) => source.clone(),
            Some(serde_json::Value::Array(list)) => {
                let text = |v: &serde_json::Value, key: &str| v.get(key).and_then(|v| v.as_str()).map(str::to_string);
                let default = list.iter().find(|v| text(v, "name").as_deref() == Some("default"));
                match default.and_then(|v| text(v, "template")) {
                    Some(source) => source,
                    None => {
                        return Err(
                            fields.error("chat_template", "of several templates, one has to be named `default`")
                        );
                    }
                }
            }
            Some(_) => return Err(fields.error("chat_template", "a string or a list of named templates is needed")),
        };
        Ok(Some(ChatTemplate::new(path.display().to_string(), source, bos, eos)))
    }

    /// The text of a conversation; with `add_generation_prompt`, it ends where the assistant's answer begins. It usually
    /// begins with BOS already, so encode it without special tokens.
    pub fn render(&self, messages: &[ChatMessage], add_generation_prompt: bool) -> Result<String, CheckpointError> {
        let environment = self.environment.as_ref().map_err(|(line, message)| CheckpointError::Template {
            template: self.name.clone(),
            line: *line,
            message: message.clone(),
        })?;
        let message = |m: &ChatMessage| {
            Value::from_pairs([("role", Value::from(m.role.as_str())), ("content", Value::from(m.content.as_str()))])
        };
        let mut variables = vec![
            ("messages", messages.iter().map(message).collect::<Value>()),
            ("add_generation_prompt", Value::from(add_generation_prompt)),
            ("tools", Value::from(())),
            ("documents", Value::from(())),
        ];
        // transformers leaves absent tokens undefined, which templates test for.
        let tokens = [("bos_token", &self.bos), ("eos_token", &self.eos)];
        variables.extend(tokens.into_iter().filter_map(|(name, text)| Some((name, Value::from(text.as_deref()?)))));
        let rendered = environment.get_template(TEMPLATE).and_then(|t| t.render(Value::from_pairs(variables)));
        rendered.map_err(|e| {
            let (line, message) = locate(&e);
            CheckpointError::Template { template: self.name.clone(), line, message }
        })
    }

    /// The template's text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// SHA-256 of the template's text, in hexadecimal.
    pub fn sha256(&self) -> String {
        Sha256::digest(self.source.as_bytes()).iter().map(|b| format!("{b:02x}")).collect()
    }

    /// True if the template knows a thinking mode: answers may begin with a chain of thought between `<think>` tags.
    pub fn thinks(&self) -> bool {
        self.source.contains("<think>") || self.source.contains("enable_thinking")
    }
}

/// The template's name inside its environment.
const TEMPLATE: &str = "chat";

fn environment(source: &str) -> Result<Environment<'static>, (usize, String)> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(|e| locate(&e))?;
    environment.set_syntax(syntax);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, message))
    });
    environment.add_function("strftime_now", |format: String| FIXED_DATE.format(&format));
    environment.add_filter("tojson", python_json);
    environment.add_template_owned(TEMPLATE, source.to_string()).map_err(|e| locate(&e))?;
    Ok(environment)
}

fn locate(error: &Error) -> (usize, String) {
    let message = match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    };
    (error.line().unwrap_or(0), message)
}

/// `json.dumps(value, ensure_ascii=False)`: a space after `,` and `:`, nothing escaped for HTML; `indent` as there.
fn python_json(value: &Value, options: Kwargs) -> Result<String, Error> {
    let indent: Option<usize> = options.get("indent")?;
    for key in ["ensure_ascii", "separators", "sort_keys"] {
        // transformers accepts these; a template that changes them would not get what it asks for.
        if options.get::<Option<Value>>(key)?.is_some_and(|v| v.is_true()) {
            return Err(Error::new(ErrorKind::InvalidOperation, format!("tojson({key}=...) is not supported")));
        }
    }
    options.assert_all_used()?;
    let mut out = String::new();
    write_json(value, indent.map(|n| n.min(16)), 0, &mut out)?;
    Ok(out)
}

fn write_json(value: &Value, indent: Option<usize>, depth: usize, out: &mut String) -> Result<(), Error> {
    let line = |depth: usize, out: &mut String| {
        if let Some(n) = indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(' ', n * depth));
        }
    };
    let quote = |text: &str| serde_json::Value::from(text).to_string();
    let kind = value.kind();
    match kind {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&value.to_string()),
        ValueKind::String => out.push_str(&quote(value.as_str().unwrap_or_default())),
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            let (open, close) = if kind == ValueKind::Map { ('{', '}') } else { ('[', ']') };
            out.push(open);
            let mut count = 0;
            for item in value.try_iter()? {
                out.push_str(match (count, indent) {
                    (0, _) => "",
                    (_, Some(_)) => ",",
                    (_, None) => ", ",
                });
                count += 1;
                line(depth + 1, out);
                if kind == ValueKind::Map {
                    out.push_str(&quote(&item.to_string()));
                    out.push_str(": ");
                    write_json(&value.get_item(&item)?, indent, depth + 1, out)?;
                } else {
                    write_json(&item, indent, depth + 1, out)?;
                }
            }
            if count > 0 {
                line(depth, out);
            }
            out.push(close);
        }
        other => return Err(Error::new(ErrorKind::BadSerialization, format!("{other} has no JSON form"))),
    }
    Ok(())
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
    /// C's `strftime` in the C locale, the conversions that have a meaning for a day.
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
                    let what = other.map_or("nothing".to_string(), |c| format!("%{c}"));
                    return Err(Error::new(ErrorKind::InvalidOperation, format!("strftime_now does not know {what}")));
                }
            });
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str, messages: &[(&str, &str)], prompt: bool) -> Result<String, CheckpointError> {
        let messages: Vec<ChatMessage> = messages.iter().map(|(r, c)| ChatMessage::new(*r, *c)).collect();
        ChatTemplate::new("test", source.to_string(), Some("<s>".into()), None).render(&messages, prompt)
    }

    #[test]
    fn chatml_renders_as_transformers_does() {
        let source = "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";
        let text = render(source, &[("user", "1 < 2 & \"3\"?")], true).unwrap();
        assert_eq!(text, "<|im_start|>user\n1 < 2 & \"3\"?<|im_end|>\n<|im_start|>assistant\n");
    }

    #[test]
    fn blocks_are_trimmed_and_python_methods_exist() {
        let source = "{{ bos_token }}\n    {%- for m in messages %}\n    {% set c = m.content.strip().upper() %}\n{{ c }}\n{% endfor %}\n";
        assert_eq!(render(source, &[("user", " a "), ("user", "b")], false).unwrap(), "<s>A\nB\n");
        assert_eq!(render("[{{ eos_token }}]", &[], false).unwrap(), "[]");
    }

    #[test]
    fn errors_name_the_template_and_the_line() {
        let raised = render("a\nb\n{{ raise_exception('roles must alternate') }}", &[], false).unwrap_err();
        let CheckpointError::Template { template, line, message } = raised else { panic!("{raised}") };
        assert_eq!((template.as_str(), line), ("test", 3));
        assert!(message.contains("roles must alternate"), "{message}");
        let syntax = render("x\n{% if %}", &[], false).unwrap_err();
        assert!(matches!(syntax, CheckpointError::Template { line: 2, .. }), "{syntax}");
    }

    #[test]
    fn the_date_is_fixed() {
        let text = render("{{ strftime_now('%d %b %Y, %A %-m %%') }}", &[], false).unwrap();
        assert_eq!(text, "26 Jul 2024, Friday 7 %");
        assert!(render("{{ strftime_now('%Q') }}", &[], false).is_err());
        assert!(render("{{ strftime_now('%') }}", &[], false).is_err());
    }

    #[test]
    fn json_is_pythons() {
        assert_eq!(
            render("{{ {'a': [1, '<é>'], 'b': none} | tojson }}", &[], false).unwrap(),
            "{\"a\": [1, \"<é>\"], \"b\": null}"
        );
        assert_eq!(render("{{ [1, {}] | tojson(indent=2) }}", &[], false).unwrap(), "[\n  1,\n  {}\n]");
    }

    #[test]
    fn a_template_says_whether_it_thinks() {
        let thinks = |s: &str| ChatTemplate::new("t", s.to_string(), None, None).thinks();
        assert!(thinks("{{ '<think>' }}") && thinks("{% if enable_thinking %}{% endif %}") && !thinks("{{ x }}"));
        let hash = ChatTemplate::new("t", "abc".into(), None, None).sha256();
        assert_eq!(hash, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
