//! Chat templates of nine families, and the dialect's rarer parts, render byte for byte as in transformers: `golden.py`
//! in tests/chat_templates recorded its output on 22 conversations each.
use std::path::{Path, PathBuf};

use earnest_models::checkpoint::{ChatMessage, ChatTemplate, CheckpointError};
use serde::Deserialize;

#[derive(Deserialize)]
struct Golden {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    family: String,
    bos: Option<String>,
    eos: Option<String>,
    conversation: usize,
    prompt: bool,
    thinking: Option<bool>,
    text: Option<String>,
    error: Option<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chat_templates")
}

fn read(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(name)).unwrap()
}

fn cases(folder: &Path) -> (Vec<Vec<ChatMessage>>, Vec<Case>) {
    let conversations = serde_json::from_str(&read(&self::folder(), "conversations.json")).unwrap();
    let golden: Golden = serde_json::from_str(&read(folder, "golden.json")).unwrap();
    (conversations, golden.cases)
}

fn template(folder: &Path, case: &Case) -> ChatTemplate {
    let source = read(folder, &format!("{}.jinja", case.family));
    ChatTemplate::new(case.family.as_str(), source, case.bos.clone(), case.eos.clone())
}

#[test]
fn every_family_renders_as_transformers_does() {
    render_alike(&folder());
    // Published templates, which are not ours to copy: `golden.py --other` writes what transformers makes of them.
    if let Some(others) = std::env::var_os("EARNEST_CHAT_TEMPLATES") {
        render_alike(Path::new(&others));
    }
}

fn render_alike(folder: &Path) {
    let (conversations, cases) = cases(folder);
    let mut wrong = Vec::new();
    for case in &cases {
        let messages = &conversations[case.conversation];
        let rendered = template(folder, case).render_thinking(messages, case.prompt, case.thinking);
        let name = format!("{} {} {:?}", case.family, case.conversation, case.thinking);
        match (&rendered, &case.text, &case.error) {
            (Ok(text), Some(expected), None) if text == expected => {}
            // Jinja's own wording of an error differs, that of `raise_exception` is the template's.
            (Err(CheckpointError::Template { message, .. }), None, Some(expected)) if message.contains(expected) => {}
            _ => wrong.push(format!("{name}\n  got      {rendered:?}\n  expected {:?}{:?}", case.text, case.error)),
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn every_family_has_twenty_conversations() {
    let (conversations, cases) = cases(&folder());
    assert!(conversations.len() >= 20);
    let families =
        ["llama2", "llama3", "llama31", "mistral_v01", "mistral_v03", "gemma", "qwen25", "qwen3", "phi3", "dialect"];
    for family in families {
        let of_family = |case: &&Case| case.family == family && case.thinking.is_none();
        assert_eq!(cases.iter().filter(of_family).count(), conversations.len(), "{family}");
    }
    // A set in which nothing is refused would not show that refusals agree.
    assert!(cases.iter().any(|case| case.error.is_some()));
}

#[test]
fn a_thinking_model_can_be_told_not_to_think() {
    let switch = |name: &str| ChatTemplate::new(name, read(&folder(), name), None, None).has_thinking_switch();
    assert!(switch("qwen3.jinja") && !switch("qwen25.jinja"));
    let qwen3 = ChatTemplate::new("qwen3", read(&folder(), "qwen3.jinja"), None, None);
    let question = [ChatMessage::new("user", "1+1?")];
    let render = |thinking| qwen3.render_thinking(&question, true, thinking).unwrap();
    assert!(render(Some(false)).ends_with("<think>\n\n</think>\n\n"));
    assert!(!render(Some(true)).contains("<think>"));
    assert_eq!(render(None), qwen3.render(&question, true).unwrap());
}
