//! Chat templates in the style of four model families render as in transformers' Jinja2.
//!
//! The expected texts were made with transformers 5.23 (Jinja2 3.1.6) on 26 July 2024, as far as templates can tell.
use earnest_models::checkpoint::{ChatMessage, ChatTemplate, Checkpoint, CheckpointError, TextStream, Tokenizer};

fn template(file: &str) -> ChatTemplate {
    let path = format!("{}/tests/chat_templates/{file}", env!("CARGO_MANIFEST_DIR"));
    let source = std::fs::read_to_string(path).unwrap();
    ChatTemplate::new(file, source, Some("<s>".into()), Some("</s>".into()))
}

fn conversation() -> Vec<ChatMessage> {
    let answer = "<think>\nhm\n</think>\n\nyes";
    [("user", " 1 < 2?\n"), ("assistant", answer), ("user", "why")].map(|(r, c)| ChatMessage::new(r, c)).into()
}

#[test]
fn families_render_as_in_transformers() {
    let qwen3 = "<|im_start|>user\n 1 < 2?\n<|im_end|>\n<|im_start|>assistant\nyes<|im_end|>\n<|im_start|>user\nwhy<|im_end|>\n\
        <|im_start|>assistant\n";
    let gemma = "<s><start_of_turn>user\n1 < 2?<end_of_turn>\n<start_of_turn>model\n<think>\nhm\n</think>\n\nyes<end_of_turn>\n\
        <start_of_turn>user\nwhy<end_of_turn>\n<start_of_turn>model\n";
    let llama31 = "<s><|start_header_id|>system<|end_header_id|>\n\nCutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n<|eot_id|>\
        <|start_header_id|>user<|end_header_id|>\n\n1 < 2?<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n\
        <think>\nhm\n</think>\n\nyes<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nwhy<|eot_id|>\
        <|start_header_id|>assistant<|end_header_id|>\n\n";
    let mistral = "<s> [INST]  1 < 2?\n [/INST] <think>\nhm\n</think>\n\nyes</s> [INST] why [/INST]";
    for (file, expected) in
        [("qwen3.jinja", qwen3), ("gemma.jinja", gemma), ("llama31.jinja", llama31), ("mistral_v01.jinja", mistral)]
    {
        assert_eq!(template(file).render(&conversation(), true).unwrap(), expected, "{file}");
    }
    assert!(template("qwen3.jinja").thinks() && !template("llama31.jinja").thinks());
}

#[test]
fn a_template_may_refuse_a_conversation() {
    let messages = [ChatMessage::new("system", "x"), ChatMessage::new("user", "y")];
    let error = template("gemma.jinja").render(&messages, true).unwrap_err();
    assert!(matches!(error, CheckpointError::Template { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("gemma.jinja") && text.contains("System role not supported"), "{text}");
    assert!(template("mistral_v01.jinja").render(&messages, true).unwrap().contains("x\n\ny"));
}

#[test]
fn checkpoints_are_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Checkpoint>();
    shared::<Tokenizer>();
    shared::<TextStream>();
    shared::<CheckpointError>();
}
