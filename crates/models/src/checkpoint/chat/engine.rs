//! Compiling and rendering a chat template, within bounds of length, nesting, instructions and output.
//!
//! Memory is bounded by a process around it: see [`earnest_isolation`].
use earnest_isolation::{Answerer, CpuTime, Job, Limited, Output, check_template, on_thread};
use minijinja::{Environment, Error, ErrorKind, Value};
use serde::{Deserialize, Serialize};

use super::super::ChatMessage;
use super::dialect::{FUEL, TEMPLATE, environment, locate};

/// Length of a rendered prompt, in bytes, that every template may reach; with [`BYTES_PER_MESSAGE`] for each message and
/// [`BYTES_PER_BYTE`] for each byte of it.
const MIN_OUTPUT: usize = 1 << 20;
const BYTES_PER_MESSAGE: usize = 1 << 10;
const BYTES_PER_BYTE: usize = 8;

/// A template and the special tokens that it may print.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::checkpoint) struct TemplateText {
    pub(in crate::checkpoint) source: String,
    pub(in crate::checkpoint) bos: Option<String>,
    pub(in crate::checkpoint) eos: Option<String>,
}

/// A conversation to render.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(in crate::checkpoint) struct Conversation {
    pub(in crate::checkpoint) messages: Vec<ChatMessage>,
    pub(in crate::checkpoint) add_generation_prompt: bool,
    /// The variable of this name; undefined if none.
    pub(in crate::checkpoint) enable_thinking: Option<bool>,
}

/// Reason why a conversation was not rendered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::checkpoint) enum TemplateFailure {
    /// An error of its syntax, or one that it raises for these messages.
    Template { line: usize, message: String },
    /// A bound that it reached, or a fault of the library that it found: no conversation can be expected to do better.
    Limit(String),
}

/// Memory for compiling and rendering a template, in bytes.
const MEMORY: u64 = 1 << 30;

/// Time for compiling and rendering a template. Its fuel ends most loops within seconds.
const TIME: CpuTime = CpuTime::Each(20);

/// Rendering of conversations by a template: the settings are a [`TemplateText`], a request a [`Conversation`], all as JSON.
pub(in crate::checkpoint) static JOB: Job = Job { name: "chat-template", begin };

fn begin(settings: &[u8]) -> Answerer {
    let text: serde_json::Result<TemplateText> = serde_json::from_slice(settings);
    let mut template = None;
    Box::new(move |request| {
        let mut rendered = || -> Result<String, TemplateFailure> {
            let text = text.as_ref().map_err(|error| TemplateFailure::Limit(error.to_string()))?;
            let conversation: Conversation =
                serde_json::from_slice(request).map_err(|error| TemplateFailure::Limit(error.to_string()))?;
            // Compiled for the first conversation, so that its failure has an answer to be in.
            template.get_or_insert_with(|| Template::compile(text)).render(&conversation)
        };
        as_json(&rendered())
    })
}

/// A value of our own as JSON; empty, which is no answer, if it has none.
fn as_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// A template that is compiled and rendered within limits.
#[derive(Debug)]
pub(in crate::checkpoint) struct Renderer(Limited);

impl Renderer {
    pub(in crate::checkpoint) fn new(text: &TemplateText) -> Renderer {
        Renderer(Limited::new(&JOB, as_json(text), MEMORY))
    }

    pub(in crate::checkpoint) fn render(&self, conversation: &Conversation) -> Result<String, TemplateFailure> {
        let answer = self.0.ask(&as_json(conversation), TIME);
        let answer = answer.map_err(|end| TemplateFailure::Limit(format!("rendering it {end}")))?;
        serde_json::from_slice(&answer).unwrap_or_else(|error| Err(TemplateFailure::Limit(error.to_string())))
    }
}

/// A compiled template.
#[derive(Debug)]
pub(in crate::checkpoint) struct Template {
    text: TemplateText,
    environment: Result<Environment<'static>, TemplateFailure>,
}

impl Template {
    /// Compiles a template. Its failure is that of every [`Template::render`].
    pub(in crate::checkpoint) fn compile(text: &TemplateText) -> Template {
        let compiled = || match on_thread(|| environment(&text.source)) {
            Ok(compiled) => compiled.map_err(|error| failure(&error)),
            Err(panic) => Err(TemplateFailure::Limit(format!("compiling it panicked: {panic}"))),
        };
        let environment = match check_template(&text.source) {
            Ok(()) => compiled(),
            Err(what) => Err(TemplateFailure::Limit(what.to_string())),
        };
        Template { text: text.clone(), environment }
    }

    pub(in crate::checkpoint) fn render(&self, conversation: &Conversation) -> Result<String, TemplateFailure> {
        let environment = self.environment.as_ref().map_err(Clone::clone)?;
        let rendered = on_thread(|| self.render_here(environment, conversation));
        rendered.unwrap_or_else(|panic| Err(TemplateFailure::Limit(format!("rendering it panicked: {panic}"))))
    }

    fn render_here(
        &self,
        environment: &Environment<'static>,
        conversation: &Conversation,
    ) -> Result<String, TemplateFailure> {
        let messages = &conversation.messages;
        let message = |m: &ChatMessage| {
            Value::from_pairs([("role", Value::from(m.role.as_str())), ("content", Value::from(m.content.as_str()))])
        };
        let mut variables = vec![
            ("messages", messages.iter().map(message).collect::<Value>()),
            ("add_generation_prompt", Value::from(conversation.add_generation_prompt)),
            ("tools", Value::from(())),
            ("documents", Value::from(())),
        ];
        variables.extend(conversation.enable_thinking.map(|on| ("enable_thinking", Value::from(on))));
        // transformers leaves absent tokens undefined, which templates test for.
        let tokens = [("bos_token", &self.text.bos), ("eos_token", &self.text.eos)];
        variables.extend(tokens.into_iter().filter_map(|(name, text)| Some((name, Value::from(text.as_deref()?)))));
        let bytes: usize = messages.iter().map(|m| m.role.len() + m.content.len()).sum();
        let most = MIN_OUTPUT + BYTES_PER_MESSAGE * messages.len() + BYTES_PER_BYTE * bytes;
        let mut output = Output::of_at_most(most);
        let template = environment.get_template(TEMPLATE).map_err(|error| failure(&error))?;
        let rendered = template.render_captured_to(Value::from_pairs(variables), &mut output).map(drop);
        if output.is_full() {
            return Err(TemplateFailure::Limit(format!("the prompt that it writes is longer than {most} bytes")));
        }
        rendered.map_err(|error| failure(&error))?;
        output.into_text().map_err(|error| TemplateFailure::Limit(error.to_string()))
    }
}

/// Sorts the library's errors into those of the template and those of its bounds.
fn failure(error: &Error) -> TemplateFailure {
    let (line, message) = locate(error);
    if error.kind() == ErrorKind::OutOfFuel {
        return TemplateFailure::Limit(format!("it runs for more than {FUEL} instructions (its fuel)"));
    }
    if message.contains("recursion limit") {
        return TemplateFailure::Limit(format!("it nests or recurses too deeply at line {line}"));
    }
    TemplateFailure::Template { line, message }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(source: &str) -> Result<String, TemplateFailure> {
        let text = TemplateText { source: source.to_owned(), bos: None, eos: None };
        let messages = vec![ChatMessage::new("user", "1+1=?")];
        let conversation = Conversation { messages, add_generation_prompt: true, enable_thinking: None };
        Template::compile(&text).render(&conversation)
    }

    #[track_caller]
    fn assert_limit(source: &str, word: &str) {
        match render(source) {
            Err(TemplateFailure::Limit(what)) if what.contains(word) => {}
            other => panic!("{:?}", other.map(|text| text.len())),
        }
    }

    #[test]
    fn nesting_is_bounded_before_it_is_compiled() {
        assert_limit(&format!("{{{{ {}true }}}}", "not ".repeat(200_000)), "nest too deeply");
        assert_limit(&" ".repeat((1 << 20) + 1), "bytes");
        assert_limit(&format!("{{{{ {}1{} }}}}", "[".repeat(5000), "]".repeat(5000)), "too deeply");
        for (open, close) in [("{% if 1 %}", "{% endif %}"), ("{% for i in [1] %}", "{% endfor %}")] {
            assert_limit(&format!("{}{}", open.repeat(1000), close.repeat(1000)), "too deeply");
        }
    }

    #[test]
    fn what_the_bound_lets_through_fits_the_stack() {
        let count = (1 << 15) - 100;
        let expressions = [
            format!("{}true", "not ".repeat(count)),
            format!("{}1", "-".repeat(count)),
            format!("1{}", "+1".repeat(count)),
            format!("1{}", "**1".repeat(count / 2)),
            format!("1{}", "|abs".repeat(count)),
            format!("x{}", ".x".repeat(count)),
            format!("x{}", "[0]".repeat(count)),
            format!("1{}", " if 1 else 1".repeat(count / 2)),
            format!("1{}", " and 1".repeat(count)),
        ];
        for expression in expressions {
            // The result does not matter: that there is one does.
            render(&format!("{{{{ {expression} }}}}")).ok();
        }
        let conditions = format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(count / 4));
        assert_eq!(render(&conditions), Ok(String::new()));
        render(&format!("{{% set {}x{} = 1 %}}", "(".repeat(count), ")".repeat(count))).ok();
    }

    #[test]
    fn output_is_bounded() {
        let many = "{% for i in range(100000) %}{{ 'a' * 100 }}{% endfor %}";
        assert_limit(many, "longer than 1049");
        assert_eq!(render("{{ 'a' * 1000000 }}").map(|text| text.len()), Ok(1_000_000));
    }

    #[test]
    fn recursion_and_loops_end() {
        assert_limit("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "too deeply");
        let nested = "{% for i in range(9999) %}{% for j in range(9999) %}{% endfor %}{% endfor %}";
        assert_limit(nested, "fuel");
        let Err(TemplateFailure::Template { message, .. }) = render("{{ range(10**12) }}") else { panic!() };
        assert!(message.contains("range"), "{message}");
    }

    #[test]
    fn an_ordinary_error_keeps_its_line() {
        let raised = render("a\n{{ raise_exception('no') }}").unwrap_err();
        assert!(matches!(raised, TemplateFailure::Template { line: 2, .. }), "{raised:?}");
    }
}
