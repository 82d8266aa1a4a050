//! Prompts as text and token ids.
use sha2::{Digest, Sha256};

use super::PromptSource;
use earnest_answer::opened_by;
use earnest_models::checkpoint::{ChatMessage, PromptIdsError, with_one_bos};
use earnest_results::{Mode, ModeRequest, SystemPlace};
use earnest_tasks::suite::registry::{Takes, TemplateThinking};
use earnest_tasks::suite::{Segments, Shot};

/// Renders prompts for one checkpoint in one mode, but for those with a mode of their own.
pub struct Prompter<'a> {
    source: &'a dyn PromptSource,
    request: ModeRequest,
    mode: Mode,
    system: SystemPlace,
}

/// A rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// Text before tokenising, without a BOS that is added as an id.
    pub text: String,
    /// Token ids, BOS included.
    pub ids: Vec<u32>,
    /// Number of leading BOS ids: 1, or 0 if the checkpoint does not use one.
    pub bos: usize,
    /// Lower-case hex SHA-256 over the ids, each as four little-endian bytes; over the text where there are no ids.
    pub sha256: String,
    /// Form in which the engine gets the prompt.
    pub wire: Wire,
}

/// Form in which a prompt goes to the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wire {
    /// Token ids.
    Ids,
    /// Text that the endpoint tokenises.
    Text,
    /// A conversation that the endpoint renders with its chat template.
    Messages(Vec<ChatMessage>),
}

impl Rendered {
    /// Creates a prompt that an endpoint tokenises.
    fn untokenised(text: String, messages: Option<Vec<ChatMessage>>) -> Rendered {
        let sha256 = earnest_digest::hex(&earnest_digest::sha256(text.as_bytes()));
        Rendered { text, ids: Vec::new(), bos: 0, sha256, wire: messages.map_or(Wire::Text, Wire::Messages) }
    }

    /// Creates a conversation that an endpoint renders; its text is the JSON.
    fn messages(messages: Vec<ChatMessage>) -> Rendered {
        let text = serde_json::to_string_pretty(&messages).expect("messages are strings, so they serialise");
        Rendered::untokenised(text, Some(messages))
    }
}

/// Error of rendering a prompt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// Chat mode was requested of a checkpoint without a chat template.
    #[error("the checkpoint has no chat template for the setting `prompt = chat`")]
    NoTemplate,
    /// Error of the template, e.g. because it requires alternating turns.
    #[error("the chat template failed: {0}")]
    Template(String),
    /// A continuation without tokens of its own.
    #[error("the continuation {0:?} adds no token to the prompt")]
    NoContinuation(String),
    /// A continuation of nothing, for a model that has no token to begin a text with.
    #[error(
        "the prompt before a continuation is empty, and the tokenizer has neither a BOS nor an end-of-text token to stand there"
    )]
    NoContext,
    /// A continuation of messages, which only the endpoint turns into a text.
    #[error("the chat API gives no log-likelihoods of given continuations")]
    NoBorder,
    /// Error of tokenising the rendered text.
    #[error(transparent)]
    Ids(#[from] PromptIdsError),
}

impl PromptError {
    /// Returns the next step.
    pub fn help(&self) -> &'static str {
        match self {
            PromptError::NoTemplate => "use the setting `prompt = raw` for a base model",
            PromptError::NoContinuation(_) => "give every continuation a text",
            PromptError::NoContext => "begin the prompt with a text",
            PromptError::NoBorder => {
                "use the setting `api = completions`, with the setting `tokenizer` for chat prompts"
            }
            PromptError::Template(_) | PromptError::Ids(_) => {
                "the setting `prompt = raw` does not use the chat template"
            }
        }
    }
}

impl<'a> Prompter<'a> {
    /// Resolves the mode.
    ///
    /// # Errors
    /// [`PromptError::NoTemplate`].
    pub fn new(source: &'a dyn PromptSource, request: ModeRequest) -> Result<Self, PromptError> {
        let mode = match (request, source.has_template()) {
            (ModeRequest::Raw, _) | (ModeRequest::Auto, false) => Mode::Raw,
            (ModeRequest::Auto | ModeRequest::Chat, true) => Mode::Chat,
            (ModeRequest::Chat, false) => return Err(PromptError::NoTemplate),
        };
        let system = if mode == Mode::Chat { system_place(source) } else { SystemPlace::Own };
        Ok(Prompter { source, request, mode, system })
    }

    /// Returns the tokenizer and chat template.
    pub(crate) fn source(&self) -> &dyn PromptSource {
        self.source
    }

    /// Returns the resolved mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Returns the position of system messages.
    pub fn system(&self) -> SystemPlace {
        self.system
    }

    pub fn render(&self, segments: &Segments) -> Result<Rendered, PromptError> {
        if !self.source.tokenises() {
            return Ok(match self.mode_of(segments) {
                Mode::Raw => Rendered::untokenised(raw_text(segments), None),
                Mode::Chat => Rendered::messages(conversation(segments, self.system)),
            });
        }
        tokenise(self.source, self.text(segments)?)
    }

    /// Returns the text of a prompt before tokenising; the conversation as JSON if the endpoint has the chat template.
    pub fn text(&self, segments: &Segments) -> Result<String, PromptError> {
        match self.mode_of(segments) {
            Mode::Raw => Ok(raw_text(segments)),
            Mode::Chat if !self.source.tokenises() => Ok(Rendered::messages(conversation(segments, self.system)).text),
            Mode::Chat => {
                let messages = conversation(segments, self.system);
                match segments.thinking {
                    Some(thinking) => self.source.apply_template_thinking(&messages, thinking),
                    None => self.source.apply_template(&messages),
                }
            }
        }
    }

    /// Returns the mode of a prompt.
    fn mode_of(&self, segments: &Segments) -> Mode {
        segments.mode.unwrap_or(self.mode)
    }

    /// Returns the forms of prompts that the model takes: those of the mode that was asked for, or all where none was.
    pub fn takes(&self) -> Takes {
        if self.request != ModeRequest::Auto && self.mode == Mode::Raw {
            return Takes::only(Mode::Raw);
        }
        // An endpoint with a chat API takes messages alone.
        let raw = self.request == ModeRequest::Auto && (self.mode == Mode::Raw || self.source.tokenises());
        let question = Segments { system: Some("Answer with a number.".to_owned()), ..Segments::question("1 + 1 =") };
        let shot = Shot { question: "2 + 2 =".to_owned(), answer: "4".to_owned() };
        let with_turns = Segments { shots: vec![shot], ..question.clone() };
        let chat = self.mode == Mode::Chat && self.text(&question).is_ok();
        Takes { chat, turns: chat && self.text(&with_turns).is_ok(), raw }
    }

    /// Returns what the chat template makes of thinking; none where no template is used, it is an endpoint's, or it knows no thinking.
    pub fn thinking(&self) -> Option<TemplateThinking> {
        if self.mode == Mode::Raw || !self.source.thinks() {
            return None;
        }
        let text = |thinking| self.text(&Segments { thinking: Some(thinking), ..Segments::question("1 + 1 =") }).ok();
        let (on, off) = (text(true)?, text(false)?);
        Some(TemplateThinking { switch: on != off, opened: opened_by(&on) })
    }
}

/// Tokenises a text, with exactly one BOS if the checkpoint uses one.
pub fn tokenise(source: &dyn PromptSource, text: String) -> Result<Rendered, PromptError> {
    let ids = source.encode(&text)?;
    let (ids, count) = with_one_bos(ids, source.bos(), source.adds_bos())?;
    let sha256 = hash_ids(&ids);
    Ok(Rendered { text, ids, bos: count, sha256, wire: Wire::Ids })
}

/// Joins system message, shots and question by newlines; returns the suite's exact bytes if it prescribes them.
fn raw_text(segments: &Segments) -> String {
    if let Some(raw) = &segments.raw {
        return raw.clone();
    }
    let mut pieces: Vec<&str> = Vec::with_capacity(2 + 2 * segments.shots.len());
    pieces.extend(segments.system.as_deref());
    for shot in &segments.shots {
        pieces.push(&shot.question);
        pieces.push(&shot.answer);
    }
    pieces.push(&segments.question);
    pieces.join("\n")
}

/// Returns the position of system messages: some templates (Gemma, early Mistral) reject or silently drop them. A template that
/// fails without one too is broken otherwise, which the first prompt reports.
fn system_place(source: &dyn PromptSource) -> SystemPlace {
    const PROBE: &str = "earnest-system-probe";
    let user = ChatMessage::new("user", "question");
    let kept = source
        .apply_template(&[ChatMessage::new("system", PROBE), user.clone()])
        .is_ok_and(|text| text.contains(PROBE));
    if kept || source.apply_template(&[user]).is_err() { SystemPlace::Own } else { SystemPlace::FirstUserTurn }
}

/// Returns the conversation of a prompt, with the shots as earlier turns.
fn conversation(segments: &Segments, place: SystemPlace) -> Vec<ChatMessage> {
    let turn = |role: &str, content: &str| ChatMessage::new(role, content);
    let mut turns = Vec::with_capacity(2 + 2 * segments.shots.len());
    if place == SystemPlace::Own {
        turns.extend(segments.system.as_deref().map(|system| turn("system", system)));
    }
    for shot in &segments.shots {
        turns.push(turn("user", &shot.question));
        turns.push(turn("assistant", &shot.answer));
    }
    turns.push(turn("user", &segments.question));
    if let (SystemPlace::FirstUserTurn, Some(system), Some(first)) = (place, &segments.system, turns.first_mut()) {
        first.content = format!("{system}\n\n{}", first.content);
    }
    turns
}

fn hash_ids(ids: &[u32]) -> String {
    let mut hasher = Sha256::new();
    for id in ids {
        hasher.update(id.to_le_bytes());
    }
    earnest_digest::hex(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_tasks::suite::Shot;

    /// One id a character, so that texts can be read back; BOS is written `^`.
    struct Letters {
        bos: Option<u32>,
        adds_bos: bool,
        template: Option<&'static str>,
    }

    const BOS: u32 = '^' as u32;

    impl PromptSource for Letters {
        fn encode(&self, text: &str) -> Result<Vec<u32>, PromptError> {
            if text.contains('\u{0}') {
                return Err(PromptIdsError::Tokenizer("a NUL".to_owned()).into());
            }
            Ok(text.chars().map(u32::from).collect())
        }
        fn bos(&self) -> Option<u32> {
            self.bos
        }
        fn adds_bos(&self) -> bool {
            self.adds_bos
        }
        fn has_template(&self) -> bool {
            self.template.is_some()
        }
        fn apply_template(&self, messages: &[ChatMessage]) -> Result<String, PromptError> {
            if messages.iter().any(|message| message.role == "system") {
                return Err(PromptError::Template("System role not supported".to_owned()));
            }
            let turns: String =
                messages.iter().map(|message| format!("<{}>{}", message.role, message.content)).collect();
            Ok(format!("{}{turns}<assistant>", self.template.unwrap_or_default()))
        }
    }

    fn segments() -> Segments {
        Segments { shots: vec![Shot { question: "1+1=?".into(), answer: "2".into() }], ..Segments::question("2+2=?") }
    }

    fn render(letters: &Letters, request: ModeRequest) -> Result<Rendered, PromptError> {
        Prompter::new(letters, request)?.render(&segments())
    }

    /// A template with a thinking switch, or one that only thinks.
    struct Thinker {
        switch: bool,
    }

    impl PromptSource for Thinker {
        fn encode(&self, text: &str) -> Result<Vec<u32>, PromptError> {
            Ok(text.bytes().map(u32::from).collect())
        }

        fn bos(&self) -> Option<u32> {
            None
        }

        fn adds_bos(&self) -> bool {
            false
        }

        fn has_template(&self) -> bool {
            true
        }

        fn apply_template(&self, messages: &[ChatMessage]) -> Result<String, PromptError> {
            self.apply_template_thinking(messages, true)
        }

        fn thinks(&self) -> bool {
            true
        }

        fn apply_template_thinking(&self, _: &[ChatMessage], thinking: bool) -> Result<String, PromptError> {
            Ok(if thinking || !self.switch { "<think>\n" } else { "<think>\n\n</think>\n" }.to_owned())
        }
    }

    #[test]
    fn a_prompt_may_have_its_own_value_of_the_thinking_switch() {
        let source = Thinker { switch: true };
        let prompter = Prompter::new(&source, ModeRequest::Chat).unwrap();
        assert_eq!(prompter.thinking(), Some(TemplateThinking { switch: true, opened: Some("<think>") }));
        let text = |thinking| prompter.render(&Segments { thinking, ..segments() }).unwrap().text;
        assert_eq!([None, Some(true), Some(false)].map(text), ["<think>\n", "<think>\n", "<think>\n\n</think>\n"]);
        let always = Thinker { switch: false };
        let always = Prompter::new(&always, ModeRequest::Chat).unwrap();
        assert_eq!(always.thinking(), Some(TemplateThinking { switch: false, opened: Some("<think>") }));
        assert_eq!(Prompter::new(&source, ModeRequest::Raw).unwrap().thinking(), None);
        let without = Letters { bos: None, adds_bos: false, template: Some("") };
        assert_eq!(Prompter::new(&without, ModeRequest::Chat).unwrap().thinking(), None);
    }

    #[test]
    fn auto_takes_the_template_if_there_is_one() {
        let with = Letters { bos: None, adds_bos: false, template: Some("") };
        let without = Letters { bos: None, adds_bos: false, template: None };
        assert_eq!(render(&with, ModeRequest::Auto).unwrap().text, "<user>1+1=?<assistant>2<user>2+2=?<assistant>");
        assert_eq!(render(&with, ModeRequest::Raw).unwrap().text, "1+1=?\n2\n2+2=?");
        assert_eq!(render(&without, ModeRequest::Auto).unwrap().text, "1+1=?\n2\n2+2=?");
        assert_eq!(render(&without, ModeRequest::Chat), Err(PromptError::NoTemplate));
    }

    #[test]
    fn exactly_one_bos_whoever_writes_it() {
        let template_writes = Letters { bos: Some(BOS), adds_bos: true, template: Some("^") };
        let tokenizer_adds = Letters { bos: Some(BOS), adds_bos: true, template: Some("") };
        let both_raw = Letters { bos: Some(BOS), adds_bos: true, template: None };
        for letters in [&template_writes, &tokenizer_adds, &both_raw] {
            let rendered = render(letters, ModeRequest::Auto).unwrap();
            assert_eq!(rendered.bos, 1);
            assert_eq!(rendered.ids.iter().filter(|&&id| id == BOS).count(), 1);
            assert_eq!(rendered.ids[0], BOS);
        }
        assert_eq!(
            render(&template_writes, ModeRequest::Chat).unwrap().ids,
            render(&tokenizer_adds, ModeRequest::Chat).unwrap().ids
        );
    }

    #[test]
    fn a_checkpoint_without_bos_gets_none() {
        let named_only = Letters { bos: Some(BOS), adds_bos: false, template: None };
        let none = Letters { bos: None, adds_bos: false, template: None };
        for letters in [&named_only, &none] {
            assert_eq!(render(letters, ModeRequest::Auto).unwrap().bos, 0);
        }
    }

    #[test]
    fn a_doubled_bos_is_never_sent() {
        let doubled = Letters { bos: Some(BOS), adds_bos: true, template: Some("^^") };
        assert_eq!(render(&doubled, ModeRequest::Auto), Err(PromptIdsError::RepeatedBos { count: 2, bos: BOS }.into()));
    }

    #[test]
    fn prescribed_raw_text_is_kept_to_the_byte() {
        let letters = Letters { bos: None, adds_bos: false, template: None };
        let prompter = Prompter::new(&letters, ModeRequest::Raw).unwrap();
        let prescribed = Segments { raw: Some(" a\n\n".into()), system: Some("ignored".into()), ..segments() };
        assert_eq!(prompter.render(&prescribed).unwrap().text, " a\n\n");
    }

    #[test]
    fn a_refused_system_message_goes_before_the_first_user_turn() {
        let letters = Letters { bos: None, adds_bos: false, template: Some("") };
        let prompter = Prompter::new(&letters, ModeRequest::Chat).unwrap();
        assert_eq!(prompter.system(), SystemPlace::FirstUserTurn);
        let system = Segments { system: Some("Be brief.".into()), ..segments() };
        assert_eq!(
            prompter.render(&system).unwrap().text,
            "<user>Be brief.\n\n1+1=?<assistant>2<user>2+2=?<assistant>"
        );
        let zero_shot = Segments { shots: Vec::new(), ..system };
        assert_eq!(prompter.render(&zero_shot).unwrap().text, "<user>Be brief.\n\n2+2=?<assistant>");
        // Without a system message nothing moves, and a raw prompt has no turns.
        assert_eq!(prompter.render(&segments()).unwrap().text, "<user>1+1=?<assistant>2<user>2+2=?<assistant>");
        assert!(Prompter::new(&letters, ModeRequest::Raw).unwrap().system().is_own());
    }

    #[test]
    fn refusals_carry_the_reason() {
        let letters = Letters { bos: None, adds_bos: false, template: Some("") };
        let prompter = Prompter::new(&letters, ModeRequest::Chat).unwrap();
        let nul = Segments::question("\u{0}");
        assert_eq!(prompter.render(&nul), Err(PromptIdsError::Tokenizer("a NUL".into()).into()));
    }

    #[test]
    fn the_hash_is_of_the_ids() {
        let letters = Letters { bos: None, adds_bos: false, template: None };
        let prompter = Prompter::new(&letters, ModeRequest::Raw).unwrap();
        let rendered = prompter.render(&Segments::question("a")).unwrap();
        // printf 'a\0\0\0' | sha256sum
        assert_eq!(rendered.sha256, "a2d398922901344d08180dc41d3e9d73d8c148c7f6e092835bbb28e02dbcf184");
    }
}
