//! Chat templates: rendering messages as the text that the model was trained on.
use super::super::json_fields;
use super::super::tokenizer::special_text;
use super::super::{ChatMessage, CheckpointError, bounded_file};
use super::engine::{Conversation, Renderer, TemplateFailure, TemplateText};
use serde_json::Map;
use sha2::{Digest, Sha256};
use std::path::Path;

/// A Jinja template in the dialect of `transformers`: blocks trimmed, Python's string methods, `raise_exception`,
/// `strftime_now` (a fixed date, 26 July 2024, so that prompts do not depend on the day) and Python's JSON.
///
/// It is compiled and rendered within bounds; where the program can be a worker ([`crate::serve_if_worker`]), in a process of its own.
#[derive(Debug)]
pub struct ChatTemplate {
    name: String,
    source: String,
    renderer: Renderer,
}

impl ChatTemplate {
    /// Keeps a template for rendering. `name` is its origin, for error messages; `bos` and `eos` are the texts of those tokens. A syntax
    /// error is reported by [`ChatTemplate::render`], because a run without chat does not need the template.
    pub fn new(name: impl Into<String>, source: String, bos: Option<String>, eos: Option<String>) -> ChatTemplate {
        let text = TemplateText { source: source.clone(), bos, eos };
        let renderer = Renderer::new(&text);
        ChatTemplate { name: name.into(), source, renderer }
    }

    /// Renders a question once.
    ///
    /// # Errors
    /// [`CheckpointError::TemplateLimit`] if the template reaches a limit, as no template of a usable checkpoint does. Its own errors are
    /// left to [`ChatTemplate::render`], because it may need another conversation.
    pub(in crate::checkpoint) fn check(&self) -> Result<(), CheckpointError> {
        match self.render(&[ChatMessage::new("user", "1 + 1 = ?")], true) {
            Err(error @ CheckpointError::TemplateLimit { .. }) => Err(error),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Reads the template of a folder: `chat_template.jinja`, else `tokenizer_config.json`'s (of several, the one named
    /// `default`).
    pub(in crate::checkpoint) fn from_folder(
        folder: &Path,
        config: Option<&Map<String, serde_json::Value>>,
    ) -> Result<Option<ChatTemplate>, CheckpointError> {
        let bos = special_text(config.and_then(|c| c.get("bos_token")));
        let eos = special_text(config.and_then(|c| c.get("eos_token")));
        let path = folder.join("chat_template.jinja");
        match bounded_file::read(&path, bounded_file::MAX_JSON, "") {
            Ok(bytes) => {
                let what = "it is not UTF-8".to_owned();
                let source =
                    String::from_utf8(bytes).map_err(|_| CheckpointError::Malformed { path: path.clone(), what })?;
                return Ok(Some(ChatTemplate::new(path.display().to_string(), source, bos, eos)));
            }
            Err(CheckpointError::FileMissing { .. }) => {}
            Err(error) => return Err(error),
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
                        return Err(fields.error("chat_template", "one of several templates must be named `default`"));
                    }
                }
            }
            Some(_) => return Err(fields.error("chat_template", "must be a string or a list of named templates")),
        };
        Ok(Some(ChatTemplate::new(path.display().to_string(), source, bos, eos)))
    }

    /// Renders a conversation; with `add_generation_prompt`, the text ends where the assistant's answer begins. It usually
    /// begins with BOS already, so encode it without special tokens.
    ///
    /// # Errors
    /// [`CheckpointError::Template`] and [`CheckpointError::TemplateLimit`].
    pub fn render(&self, messages: &[ChatMessage], add_generation_prompt: bool) -> Result<String, CheckpointError> {
        self.render_thinking(messages, add_generation_prompt, None)
    }

    /// Renders a conversation with the template's variable `enable_thinking`; `None` leaves it undefined, for the template's
    /// default.
    ///
    /// # Errors
    /// [`CheckpointError::Template`] and [`CheckpointError::TemplateLimit`].
    pub fn render_thinking(
        &self,
        messages: &[ChatMessage],
        add_generation_prompt: bool,
        enable_thinking: Option<bool>,
    ) -> Result<String, CheckpointError> {
        let conversation = Conversation { messages: messages.to_vec(), add_generation_prompt, enable_thinking };
        let rendered = self.renderer.render(&conversation);
        rendered.map_err(|failure| {
            let template = self.name.clone();
            match failure {
                TemplateFailure::Template { line, message } => CheckpointError::Template { template, line, message },
                TemplateFailure::Limit(what) => CheckpointError::TemplateLimit { template, what },
            }
        })
    }

    /// The template's text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the SHA-256 of the template's text, in hexadecimal.
    pub fn sha256(&self) -> String {
        Sha256::digest(self.source.as_bytes()).iter().map(|b| format!("{b:02x}")).collect()
    }

    /// True if the template has the variable `enable_thinking`, which turns thinking on and off.
    pub fn has_thinking_switch(&self) -> bool {
        self.source.contains("enable_thinking")
    }

    /// True if the template has a thinking mode: answers may begin with a chain of thought in `<think>` tags.
    pub fn thinks(&self) -> bool {
        self.source.contains("<think>") || self.source.contains("enable_thinking")
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
    fn a_template_does_not_run_for_ever() {
        let nested = "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}";
        let error = render(nested, &[], false).unwrap_err().to_string();
        assert!(error.contains("fuel"), "{error}");
        // Long conversations are far from it.
        let chatml = "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] | trim + '<|im_end|>\n' }}{% endfor %}";
        let long = vec![("user", "12 + 30 = ?"); 2000];
        assert_eq!(render(chatml, &long, false).unwrap().matches("30").count(), 2000);
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
