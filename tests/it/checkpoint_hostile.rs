//! Checkpoints that set out to end the program: every one is an error with the file and the reason, exit code 3 and no panic.
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::program::*;
use serde_json::{Value, json};

/// A change of a checkpoint, and words that its error must have.
struct Case {
    name: &'static str,
    spoil: Box<dyn Fn(&Path) + Sync>,
    words: &'static [&'static str],
}

fn template(name: &'static str, source: impl Into<String>, words: &'static [&'static str]) -> Case {
    let source = source.into();
    let spoil = move |folder: &Path| std::fs::write(folder.join("chat_template.jinja"), &source).unwrap();
    Case { name, spoil: Box::new(spoil), words }
}

fn tokenizer(name: &'static str, edit: impl Fn(&mut Value) + Sync + 'static, words: &'static [&'static str]) -> Case {
    let spoil = move |folder: &Path| edit_json(&folder.join("tokenizer.json"), &edit);
    Case { name, spoil: Box::new(spoil), words }
}

fn templates() -> Vec<Case> {
    let doubling =
        "{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}";
    let deep_value = "{% set ns = namespace(x=[]) %}{% for i in range(90000) %}{% for j in range(60) %}{% set ns.x = [ns.x] %}{% endfor %}{% endfor %}";
    let long_list = "{% set ns = namespace(x=[0]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x|join }}";
    let nested = |open: &str, close: &str| format!("{}{}", open.repeat(20_000), close.repeat(20_000));
    vec![
        template("format", "{{ '%1000000000d'|format(1) }}", &["memory"]),
        template("format-more", "{{ '%99999999999d'|format(1) }}{{ '%9999999999s' % 'a' }}", &[]),
        template("indent", "{{ messages[0]['content']|indent(10**10) }}", &[]),
        template("indent-lines", "{{ 'a\nb\nc'|indent(2000000000) }}", &["memory"]),
        template("doubling", doubling, &["memory"]),
        template("long-list", long_list, &[]),
        template("repeat", "{{ 'a' * 10**9 }}", &[]),
        template("repeat-more", "{% for i in range(1000) %}{{ 'a' * 10**8 }}{% endfor %}", &["longer than"]),
        template("center", "{{ 'a'.center(10**10) }}{{ 'a'|center(10**10) }}", &[]),
        template("not", format!("{{{{ {}true }}}}", "not ".repeat(200_000)), &["nest too deeply"]),
        template("minus", format!("{{{{ {}1 }}}}", "-".repeat(900_000)), &["nest too deeply"]),
        template("brackets", format!("{{{{ {} }}}}", nested("[", "]")), &["too deeply"]),
        template("parentheses", format!("{{{{ {}1{} }}}}", "(".repeat(10_000), ")".repeat(10_000)), &["too deeply"]),
        template("loops", nested("{% for i in [1] %}", "{% endfor %}"), &["nest too deeply"]),
        template("ifs", nested("{% if 1 %}", "{% endif %}"), &["nest too deeply"]),
        template("elif", format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(80_000)), &["nest too deeply"]),
        template("range", "{% for i in range(10**12) %}{% endfor %}", &["range"]),
        template(
            "for-ever",
            "{% for i in range(99999) %}{% for j in range(99999) %}{% for k in range(99999) %}{% endfor %}{% endfor %}{% endfor %}",
            &["fuel"],
        ),
        template("recursive-macro", "{% macro m(x) %}{{ m(x ~ x) }}{% endmacro %}{{ m('ab') }}", &[]),
        template("recursive-loop", "{% for i in [[1]] recursive %}{{ loop([[[1]]]) }}{% endfor %}", &[]),
        template("deep-value", deep_value, &[]),
        template("huge-output", "{% for i in range(90000) %}{{ 'abcdefgh' * 1000 }}{% endfor %}", &["longer than"]),
        template("huge-source", "a".repeat(2 << 20), &["bytes"]),
        template("syntax", "{% if %}", &["line 1"]),
    ]
}

fn tokenizers() -> Vec<Case> {
    let precompiled = |map: &'static str| {
        move |t: &mut Value| t["normalizer"] = json!({"type": "Precompiled", "precompiled_charsmap": map})
    };
    let replace = |pattern: Value, content: &str| json!({"type": "Replace", "pattern": pattern, "content": content});
    let regex = |expression: String| {
        move |t: &mut Value| {
            t["pre_tokenizer"] =
                json!({"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": false});
        }
    };
    vec![
        tokenizer("dropout", |t| t["model"]["dropout"] = json!(0.1), &["model.dropout", "0.1", "random"]),
        tokenizer("replace", move |t| t["normalizer"] = replace(json!({"String": ""}), "ab"), &["pattern", "empty"]),
        tokenizer("replace-regex", move |t| t["normalizer"] = replace(json!({"Regex": "x*"}), "ab"), &[]),
        tokenizer(
            "replace-chain",
            move |t| {
                let steps = vec![replace(json!({"String": "a"}), "aaaaaaaa"); 60];
                t["normalizer"] = json!({"type": "Sequence", "normalizers": steps});
            },
            &["normalizer", "times as long"],
        ),
        tokenizer(
            "replace-decoder",
            move |t| t["decoder"] = replace(json!({"String": ""}), "ab"),
            &["decoder.pattern", "empty"],
        ),
        tokenizer(
            "absent-token",
            |t| {
                let token = json!({"SpecialToken": {"id": "<absent>", "type_id": 0}});
                let text = json!({"Sequence": {"id": "A", "type_id": 0}});
                t["post_processor"] =
                    json!({"type": "TemplateProcessing", "single": [token, text], "pair": [], "special_tokens": {}});
            },
            &["<absent>"],
        ),
        tokenizer("prefix", |t| t["model"]["continuing_subword_prefix"] = json!("ééé"), &[]),
        tokenizer("map-junk", precompiled("!!!!"), &[]),
        tokenizer("map-empty", precompiled(""), &[]),
        tokenizer("map-truncated", precompiled("ALQCAACEAAAAAACAAQAAgMz8AgC4BQAAhyIAgMzkAgC4PQ"), &[]),
        tokenizer("map-index", precompiled("BAAAAAD///9hAA=="), &[]),
        tokenizer("map-large", precompiled("/////wAAAAA="), &[]),
        tokenizer("regex-large", regex("((((a{1000}){1000}){1000}){1000})".to_owned()), &[]),
        tokenizer("regex-classes", regex(r"(\p{L}{1000}){1000}(?=x)".to_owned()), &[]),
        tokenizer("regex-deep", regex(format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000))), &[]),
        tokenizer("regex-look", regex("(?=".repeat(50_000) + &")".repeat(50_000)), &[]),
        tokenizer("regex-syntax", regex("(".to_owned()), &[]),
        tokenizer(
            "fixed-length",
            |t| t["pre_tokenizer"] = json!({"type": "FixedLength", "length": 0}),
            &["pre_tokenizer.length"],
        ),
        tokenizer(
            "byte-levels",
            |t| {
                let step =
                    json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false});
                t["pre_tokenizer"] = json!({"type": "Sequence", "pretokenizers": vec![step; 60]});
            },
            &["pre_tokenizer", "times as long"],
        ),
        tokenizer("types", |t| t["model"] = json!([1, 2]), &[]),
        tokenizer("merges", |t| t["model"]["merges"] = json!([["a"], 3]), &[]),
        tokenizer("vocabulary", |t| t["model"]["vocab"] = json!({"a": -1}), &[]),
        tokenizer("sparse", |t| t["model"]["vocab"]["zz"] = json!(4_000_000_000u32), &["4000000000"]),
        tokenizer("model", |t| t["model"] = json!({"type": "Unigram", "unk_id": 9, "vocab": [["a", null]]}), &[]),
        Case {
            name: "deep-json",
            spoil: Box::new(|folder| std::fs::write(folder.join("tokenizer.json"), "[".repeat(1_000_000)).unwrap()),
            words: &[],
        },
        Case {
            name: "large-file",
            spoil: Box::new(|folder| {
                let file = std::fs::File::options().write(true).open(folder.join("tokenizer.json")).unwrap();
                file.set_len(1 << 30).unwrap();
            }),
            words: &["1073741824 bytes", "256 MiB"],
        },
        Case {
            name: "large-config",
            spoil: Box::new(|folder| {
                let file = std::fs::File::options().write(true).open(folder.join("tokenizer_config.json")).unwrap();
                file.set_len(1 << 36).unwrap();
            }),
            words: &["tokenizer_config.json", "64 MiB"],
        },
    ]
}

/// A checkpoint that a case may spoil.
fn checkpoint(place: &Path, case: &Case) -> PathBuf {
    let folder = place.join(case.name);
    std::fs::create_dir(&folder).unwrap();
    let copy = copy_of_tiny(&folder);
    (case.spoil)(&copy);
    copy
}

/// Runs a command on every case, several at a time, and checks the error.
fn assert_refused(cases: &[Case], words: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let model = checkpoint(place.path(), case);
                    let begun = Instant::now();
                    let output = earnest(place.path())
                        .env("EARNEST_CACHE", place.path().join("cache"))
                        .args(words)
                        .args(["--model", model.to_str().unwrap()])
                        .output()
                        .unwrap();
                    let error = stderr(&output);
                    assert_eq!(code(&output), 3, "{}: {error}", case.name);
                    assert!(begun.elapsed() < Duration::from_secs(300), "{}: {:?}", case.name, begun.elapsed());
                    let file = if error.contains("template") { "template" } else { "tokenizer" };
                    assert!(error.contains(file) && error.contains("copy"), "{}: {error}", case.name);
                    for word in case.words {
                        assert!(error.contains(word), "{}: {word:?} is not in: {error}", case.name);
                    }
                    for word in ["panicked at", "RUST_BACKTRACE", "memory allocation of", "overflowed its stack"] {
                        assert!(!error.contains(word), "{}: {error}", case.name);
                    }
                    assert!(error.lines().count() < 8 && error.len() < 3000, "{}: {error}", case.name);
                }
            });
        }
    });
}

#[test]
fn hostile_chat_templates_are_refused() {
    assert_refused(&templates(), &["run", "arithmetic-bench", "--limit", "1", "--threads", "1"]);
}

#[test]
fn hostile_tokenizers_are_refused() {
    assert_refused(&tokenizers(), &["run", "arithmetic-bench", "--limit", "1", "--threads", "1"]);
}

#[test]
fn a_template_that_is_hostile_to_some_messages_only_fails_those_samples() {
    let place = tempfile::tempdir().unwrap();
    let case = template(
        "conditional",
        "{% set c = messages[-1]['content'] %}{% if '1 + 1' not in c %}{% set ns = namespace(x='ab') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{% endif %}{{ c }}",
        &[],
    );
    let model = checkpoint(place.path(), &case);
    let output = tiny_with(place.path(), &model);
    assert_eq!(code(&output), 3, "{}", stderr(&output));
    assert!(stderr(&output).contains("MiB of memory"), "{}", stderr(&output));
}

fn tiny_with(folder: &Path, model: &Path) -> std::process::Output {
    let words = ["run", "arithmetic-bench", "--limit", "2", "--prompt", "chat", "--threads", "1", "--model"];
    earnest(folder).args(words).arg(model).output().unwrap()
}

#[test]
fn a_trial_that_took_long_is_remembered_by_digest() {
    let place = tempfile::tempdir().unwrap();
    let vocabulary = |t: &mut Value| {
        for n in 0..60_000 {
            t["model"]["vocab"][format!("token{n}")] = json!(300 + n);
        }
    };
    let case = tokenizer("large", vocabulary, &[]);
    let model = checkpoint(place.path(), &case);
    edit_json(&model.join("config.json"), |c| c["vocab_size"] = json!(61_000));
    let cache = place.path().join("cache");
    let show = || {
        let mut command = earnest(place.path());
        command.env("EARNEST_CACHE", &cache).args(["run", "arithmetic-bench", "--limit", "1", "--model"]).arg(&model);
        stderr(&command.output().unwrap())
    };
    // The weights do not have the shape of this vocabulary: the tokenizer comes first.
    let error = show();
    let records = || std::fs::read_dir(cache.join("tokenizers")).map_or(0, Iterator::count);
    assert_eq!(records(), 1, "{error}");
    edit_json(&model.join("tokenizer.json"), |t| t["model"]["vocab"]["another"] = json!(60_500));
    show();
    assert_eq!(records(), 2, "another file is tried again");
}
