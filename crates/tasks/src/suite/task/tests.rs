//! Tests of tasks as suites, on rows in memory.
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use super::{Registration, check};
use crate::suite::registry::{
    BuiltIn, Channel, ErrorKind, Host, HostError, Mode, OptionError, OptionValues, Row, RowFile, RowSource, Rows,
};
use crate::suite::{Answered, ContinuationScore, Item, Likelihoods, Score, Scored, Suite};

/// Files in memory; questions are JSON lines.
#[derive(Default)]
struct Files {
    texts: BTreeMap<PathBuf, String>,
    moved: Option<PathBuf>,
    /// Set where rows cannot be read any more.
    gone: Arc<AtomicBool>,
}

struct Lines {
    gone: Arc<AtomicBool>,
    files: Vec<RowFile>,
    rows: Vec<Row>,
}

impl Host for Files {
    fn is_file(&self, path: &Path) -> bool {
        self.texts.contains_key(path)
    }

    fn is_folder(&self, path: &Path) -> bool {
        self.texts.keys().any(|file| file.parent() == Some(path))
    }

    fn read(&self, path: &Path) -> Result<Vec<u8>, HostError> {
        self.texts.get(path).map(|text| text.clone().into_bytes()).ok_or_else(|| HostError::failed("not there"))
    }

    fn rows(&self, source: &RowSource) -> Result<Arc<dyn Rows>, OptionError> {
        let mut found = Lines { gone: Arc::clone(&self.gone), files: Vec::new(), rows: Vec::new() };
        for path in &source.paths {
            let text = self.texts.get(path).ok_or_else(|| OptionError::usage("not there"))?;
            for (number, line) in text.lines().enumerate() {
                let values: Value = serde_json::from_str(line).map_err(OptionError::usage)?;
                found.rows.push(Row {
                    place: format!("{}, line {}", path.display(), number + 1),
                    values: values.as_object().cloned().unwrap_or_default(),
                    written: std::collections::BTreeMap::new(),
                });
            }
            found.files.push(RowFile {
                path: path.clone(),
                sha256: super::row_id::row_id(text),
                rows: text.lines().count(),
            });
        }
        Ok(Arc::new(found))
    }

    fn moved(&self) -> Option<PathBuf> {
        self.moved.clone()
    }
}

impl Rows for Lines {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn row(&self, number: usize) -> Result<Row, HostError> {
        let there = number < 2 || !self.gone.load(Ordering::Relaxed);
        self.rows.get(number).filter(|_| there).cloned().ok_or_else(|| HostError::failed("no such row"))
    }

    fn files(&self) -> &[RowFile] {
        &self.files
    }

    fn skipped(&self) -> (usize, &[String]) {
        (0, &[])
    }
}

fn files(texts: &[(&str, String)]) -> Files {
    let texts = texts.iter().map(|(name, text)| (PathBuf::from(name), text.clone())).collect();
    Files { texts, ..Files::default() }
}

fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

fn values(file: &str) -> OptionValues {
    OptionValues::new(1, Vec::new()).with("file", file)
}

fn suite(host: &Files, values: &OptionValues, mode: Mode) -> Result<Suite, OptionError> {
    Registration.configure(values, host)?.suite(Channel::local(mode))
}

fn items(suite: &Suite) -> Vec<Item> {
    suite.items.iter().collect()
}

fn scored(suite: &Suite, item: &Item, completion: &str) -> Score {
    suite.score(item, &Answered { completion, truncated: false })
}

/// Asserts that a stored run asks the same.
fn round_trip(suite: &Suite, host: &Files) {
    let options = suite.scoring.options();
    let again = Registration.stored(&options, host).unwrap();
    assert_eq!(again.scoring.options(), options);
    assert_eq!(items(&again), items(suite));
    assert_eq!(
        (again.scoring.name(), again.scoring.version(), again.scoring.chosen()),
        (suite.scoring.name(), suite.scoring.version(), suite.scoring.chosen())
    );
    assert_eq!(Registration.chosen(&options), suite.scoring.chosen());
}

fn numbers() -> Files {
    let row = |index: i32| json!({"question": format!("{index}+1=?"), "answer": index + 1, "cluster": index / 4, "level": index});
    files(&[("sums.jsonl", lines(&(0..12).map(row).collect::<Vec<_>>()))])
}

#[test]
fn questions_alone_are_a_task() {
    let host = numbers();
    let suite = suite(&host, &values("sums.jsonl"), Mode::Chat).unwrap();
    assert_eq!(
        (suite.scoring.name(), suite.scoring.version(), suite.items.len(), suite.scoring.chosen()),
        ("sums", "1", 12, vec!["final"])
    );
    let all = items(&suite);
    let clusters: Vec<&str> = all.iter().map(|item| item.cluster.as_str()).collect();
    assert_eq!(clusters[..6], ["0", "1", "2", "0", "1", "2"]);
    let first = &all[0];
    assert_eq!((first.segments.question.as_str(), first.gold.as_str(), first.task.as_str()), ("0+1=?", "1", "sums"));
    assert_eq!(first.covariates, BTreeMap::from([("level".to_owned(), json!(0))]));
    assert!(scored(&suite, first, "<think>2</think>The answer is **1**.").correct);
    assert!(!scored(&suite, first, "The answer is 2.").correct);
    round_trip(&suite, &host);
    let raw = self::suite(&host, &values("sums.jsonl"), Mode::Raw).unwrap();
    let asked = items(&raw).remove(0);
    assert_eq!(asked.segments.raw.as_deref(), Some("Question: 0+1=?\nAnswer:"));
    assert_eq!(asked.stop_strings, ["\nQuestion:"]);
    assert_eq!(asked.id, first.id);
    round_trip(&raw, &host);
}

#[test]
fn the_answers_settle_the_scorers() {
    let texts = files(&[("q.jsonl", lines(&[json!({"question": "Capital of France?", "answer": "Paris"})]))]);
    let suite = suite(&texts, &values("q.jsonl"), Mode::Chat).unwrap();
    assert_eq!(suite.scoring.scorers(), ["exact", "contains"]);
    let item = items(&suite).remove(0);
    let score = scored(&suite, &item, "It is Paris.");
    assert!(!score.correct && score.scorers.get("contains") == Some(true));
    assert!(scored(&suite, &item, " paris. ").correct);
    let mixed = [json!({"question": "1+1?", "answer": 2}), json!({"question": "France?", "answer": "Paris"})];
    let mixed = files(&[("m.jsonl", lines(&mixed))]);
    let suite = self::suite(&mixed, &values("m.jsonl"), Mode::Chat).unwrap();
    let all = items(&suite);
    assert_eq!((suite.scoring.chosen(), all[1].gold.as_str()), (vec!["final"], "Paris"));
    for (item, right, wrong) in [(&all[0], "That makes 2.", "It is 3."), (&all[1], "Paris.", "2")] {
        assert!(scored(&suite, item, right).correct && !scored(&suite, item, wrong).correct);
    }
    round_trip(&suite, &mixed);
    // A task file that asks for numbers gets an error instead.
    let strict = "scorers = [\"final\"]\n[questions]\npath = \"m.jsonl\"";
    let strict = files(&[("m.toml", strict.to_owned()), ("m.jsonl", mixed.texts[Path::new("m.jsonl")].clone())]);
    let error = self::suite(&strict, &values("m.toml"), Mode::Chat).err().unwrap();
    assert!(error.message.contains("m.jsonl, line 2: answer: no number can be read from \"Paris\""), "{error}");
    let asked = self::suite(&mixed, &values("m.jsonl").with("profile", "exact"), Mode::Chat).unwrap();
    assert_eq!(asked.scoring.chosen(), ["exact"]);
    round_trip(&asked, &mixed);
    let solution = "3 + 4 = <<3+4=7>>7\n#### 7";
    let gsm = files(&[("g.jsonl", lines(&[json!({"question": "How many?", "answer": solution})]))]);
    let suite = self::suite(&gsm, &values("g.jsonl"), Mode::Chat).unwrap();
    assert_eq!(items(&suite)[0].gold, "7");
}

#[test]
fn choices_are_asked_by_letter_or_scored_by_likelihood() {
    let rows = [json!({"question": "Capital?", "choices": ["Rome", "Paris"], "answer": 1})];
    let host = files(&[("c.jsonl", lines(&rows))]);
    let chat = suite(&host, &values("c.jsonl"), Mode::Chat).unwrap();
    let item = items(&chat).remove(0);
    assert!(item.segments.question.contains("A. Rome\nB. Paris") && item.continuations.is_empty());
    assert_eq!(item.gold, "B");
    assert!(scored(&chat, &item, "The answer is (B).").correct);
    assert!(!scored(&chat, &item, "A").correct);
    round_trip(&chat, &host);
    let raw = suite(&host, &values("c.jsonl"), Mode::Raw).unwrap();
    let item = items(&raw).remove(0);
    assert_eq!(
        (item.gold.as_str(), &item.continuations[..]),
        ("Paris", &[" Rome".to_owned(), " Paris".to_owned()][..])
    );
    let likelihood = |text: &str, logprob| ContinuationScore { text: text.to_owned(), logprob, tokens: 1 };
    let found = Likelihoods(vec![likelihood(" Rome", -3.0), likelihood(" Paris", -1.0)]);
    let score = scored(&raw, &item, &found.to_completion());
    assert!(score.correct && score.answer.as_deref() == Some("Paris"));
    let summary = raw.scoring.summarise(&[Scored { item: &item, score: &score, tokens: 0, truncated: false }]);
    assert_eq!(summary.rows[0].numbers, [("mean log-likelihood".to_owned(), -1.0)]);
    round_trip(&raw, &host);
}

const TASK: &str = r#"
name = "arith"
version = "3"
scorers = ["exact", "final"]
primary = "final"
[questions]
path = "sums.jsonl"
[prompt]
template = "{{ question }} ({{ level }})"
system = "Be brief."
[prompts.plain]
template = "{{ question }}"
mode = "raw"
[examples]
count = 2
answer = "It is {{ answer }}."
[generation]
max_tokens = 9
stop = ["\n"]
"#;

#[test]
fn a_task_file_says_the_rest() {
    let mut host = numbers();
    host.texts.insert("arith.toml".into(), TASK.to_owned());
    let suite = suite(&host, &values("arith.toml"), Mode::Chat).unwrap();
    assert_eq!((suite.scoring.name(), suite.scoring.version(), suite.scoring.chosen()), ("arith", "3", vec!["final"]));
    let all = items(&suite);
    let shots = |item: &Item| item.segments.shots.iter().map(|shot| shot.question.clone()).collect::<Vec<_>>();
    // A question is not its own example.
    assert_eq!(shots(&all[0]), ["1+1=? (1)", "2+1=? (2)"]);
    assert_eq!(shots(&all[1]), ["0+1=? (0)", "1+1=? (1)"]);
    assert_eq!(all[0].segments.shots[0].answer, "It is 2.");
    assert_eq!((all[0].segments.system.as_deref(), all[0].budget.answer), (Some("Be brief."), 9));
    round_trip(&suite, &host);
    let mut named = values("arith.toml");
    named.prompts.push("plain".into());
    let choice = Registration.configure(&named, &host).unwrap();
    assert_eq!(choice.mode(), Some(Mode::Raw));
    let raw = choice.suite(Channel::local(Mode::Raw)).unwrap();
    let prompt = items(&raw)[0].segments.raw.clone().unwrap();
    assert_eq!(prompt, "1+1=? It is 2.\n\n2+1=? It is 3.\n\n0+1=?");
    round_trip(&raw, &host);
}

#[test]
fn examples_are_drawn_by_the_seed() {
    let mut host = numbers();
    host.texts.insert("arith.toml".into(), TASK.replace("count = 2", "count = 3\ndraw = \"seed\""));
    let of = |seed| {
        let mut values = values("arith.toml");
        values.seed = seed;
        suite(&host, &values, Mode::Chat).unwrap()
    };
    let (one, again, two) = (of(1), of(1), of(2));
    assert_eq!((items(&one), one.scoring.options()), (items(&again), again.scoring.options()));
    assert_ne!(items(&one), items(&two));
    assert!(items(&one).iter().all(|item| item.segments.shots.len() == 3
        && item.segments.shots.iter().all(|shot| shot.question != item.segments.question)));
    round_trip(&two, &host);
}

#[test]
fn the_seed_is_no_part_of_a_task_that_draws_nothing() {
    let host = numbers();
    let of = |seed| {
        let mut values = values("sums.jsonl");
        values.seed = seed;
        suite(&host, &values, Mode::Chat).unwrap().scoring.options()
    };
    assert_eq!(of(1), of(2));
}

#[test]
fn bad_rows_are_counted_or_left_out() {
    let rows = [
        json!({"question": "1+1?", "answer": 2}),
        json!({"question": "1+2?"}),
        json!({"question": " ", "answer": 3}),
        json!({"id": "a", "question": "1+4?", "answer": 5}),
        json!({"id": "a", "question": "1+5?", "answer": 6}),
        json!({"question": "1+1?", "answer": 2}),
    ];
    let host = files(&[("b.jsonl", lines(&rows))]);
    let error = suite(&host, &values("b.jsonl"), Mode::Chat).err().unwrap();
    assert!(
        error.message.starts_with("3 of 6 questions cannot be asked:\n  b.jsonl, line 2: answer: there is none"),
        "{error}"
    );
    assert!(error.message.contains("line 5: id: a is also the id of b.jsonl, line 4"), "{error}");
    assert!(error.help.unwrap().contains("`skip_bad_rows`"));
    let mut skipping = values("b.jsonl");
    skipping.set("skip-bad-rows", Vec::new());
    let suite = suite(&host, &skipping, Mode::Chat).unwrap();
    let all = items(&suite);
    assert_eq!(all.len(), 3);
    // The same question twice: two ids, one cluster.
    assert!(all[0].id != all[2].id && all[0].cluster == all[2].cluster);
    assert!(suite.scoring.summarise(&[]).notes[0].starts_with("3 rows were left out"));
    round_trip(&suite, &host);
}

#[test]
fn data_of_a_stored_run_are_found_again_and_must_be_the_same() {
    let mut host = numbers();
    let options = suite(&host, &values("sums.jsonl"), Mode::Chat).unwrap().scoring.options();
    let text = host.texts.remove(Path::new("sums.jsonl")).unwrap();
    let missing = Registration.stored(&options, &host).err().unwrap();
    assert_eq!((missing.kind, missing.help.is_some()), (ErrorKind::Data, true));
    host.texts.insert("elsewhere/sums.jsonl".into(), text.clone());
    host.moved = Some("elsewhere".into());
    assert_eq!(Registration.stored(&options, &host).unwrap().items.len(), 12);
    host.texts.insert("elsewhere/sums.jsonl".into(), text.replace("0+1", "0+2"));
    let changed = Registration.stored(&options, &host).err().unwrap();
    assert!(changed.kind == ErrorKind::Data && changed.message.contains("changed after the run"), "{changed}");
}

#[test]
fn a_file_that_goes_away_ends_the_questions_with_a_reason() {
    let row = |index: usize| json!({"question": format!("{index}?"), "answer": 1});
    let host = files(&[("t.jsonl", lines(&(0..4).map(row).collect::<Vec<_>>()))]);
    let suite = suite(&host, &values("t.jsonl"), Mode::Chat).unwrap();
    assert_eq!((suite.items.iter().count(), suite.items.unread()), (4, None));
    host.gone.store(true, Ordering::Relaxed);
    assert_eq!((suite.items.iter().count(), suite.items.unread().as_deref()), (2, Some("no such row")));
}

#[test]
fn wrong_task_files_are_explained() {
    let mut host = numbers();
    for (text, words) in [
        ("name = \"nupa\"\n[questions]\npath = \"sums.jsonl\"", "nupa is the name of a suite"),
        ("[questions]\nquestion = \"q\"", "no path under [questions]"),
        ("scorers = [\"likelihood\", \"final\"]\n[questions]\npath = \"sums.jsonl\"", "one task can do one of them"),
        ("scorers = [\"final\", \"final\"]\n[questions]\npath = \"sums.jsonl\"", "two scorers have the name final"),
        ("primary = \"best\"\nscorers = [\"final\"]\n[questions]\npath = \"sums.jsonl\"", "there is no scorer best"),
        (
            "scorers = [{ kind = \"exact\", tolerance = 1 }]\n[questions]\npath = \"sums.jsonl\"",
            "an option of number, not of exact",
        ),
        ("[questions]\npath = \"sums.jsonl\"\nsha256 = \"00\"", "is not the file that"),
        ("[questions]\npath = \"sums.jsonl\"\n[prompt]\ntemplate = \"{{ question\"", "line 4, column"),
        ("[questions]\npath = \"sums.jsonl\"\n[examples]\ncount = 12", "no question is its own example"),
        ("[questions]\npath = \"sums.jsonl\"\nanswer = \"anser\"", "did you mean answer?"),
    ] {
        host.texts.insert("t.toml".into(), text.to_owned());
        let error = suite(&host, &values("t.toml"), Mode::Chat).err().unwrap();
        assert!(error.message.contains(words), "{words}: {error}");
    }
}

#[test]
fn tasks_are_balanced_and_have_a_row_each() {
    let task = |index: usize| if index < 4 { "a" } else { "b" };
    let row = |index| json!({"question": format!("{index}?"), "answer": 1, "task": task(index)});
    let host = files(&[("t.jsonl", lines(&(0..6).map(row).collect::<Vec<_>>()))]);
    let suite = suite(&host, &values("t.jsonl"), Mode::Chat).unwrap();
    let all = items(&suite);
    assert_eq!(all.iter().map(|item| item.task.as_str()).collect::<Vec<_>>(), ["a", "b", "a", "b", "a", "a"]);
    let scores: Vec<Score> = all.iter().map(|item| scored(&suite, item, "1")).collect();
    let samples: Vec<Scored<'_>> =
        all.iter().zip(&scores).map(|(item, score)| Scored { item, score, tokens: 1, truncated: false }).collect();
    let summary = suite.scoring.summarise(&samples);
    let rows: Vec<(&str, usize)> = summary.rows.iter().map(|row| (row.name.as_str(), row.n)).collect();
    assert_eq!(rows, [("a", 4), ("b", 2), ("all", 6)]);
}

#[test]
fn a_question_without_a_label_is_its_own_cluster() {
    let row = |index: usize, cluster: Value| json!({"id": index.to_string(), "question": format!("{index}+1=?"), "answer": index + 1, "cluster": cluster});
    // A label may be the id of another question.
    let labels = [json!("a"), json!("a"), json!("3"), json!(""), json!(" "), json!(null), json!("NaN"), json!(7)];
    let mut rows: Vec<Value> = (0..).zip(labels).map(|(index, label)| row(index, label)).collect();
    rows.push(json!({"id": "8", "question": "8+1=?", "answer": 9}));
    let host = files(&[("c.jsonl", lines(&rows))]);
    let found = check(&values("c.jsonl"), &host).unwrap();
    assert_eq!((found.questions, found.clusters, found.without_label), (9, 8, 5));
    let all = items(&suite(&host, &values("c.jsonl"), Mode::Chat).unwrap());
    let clusters: std::collections::BTreeSet<&str> = all.iter().map(|item| item.cluster.as_str()).collect();
    assert_eq!(clusters.len(), 8);
    assert_eq!(all.iter().filter(|item| super::usual::is_own_cluster(&item.cluster, &item.id)).count(), 6);
    // Without any label nothing is said of them.
    let rows: Vec<Value> = (0..3).map(|index| row(index, json!(""))).collect();
    let found = check(&values("c.jsonl"), &files(&[("c.jsonl", lines(&rows))])).unwrap();
    assert_eq!((found.clusters, found.without_label), (3, 0));
}

#[test]
fn a_check_finds_what_is_wrong() {
    let rows = [
        json!({"question": "3+4?", "answer": "7", "solution": "3 + 4 = 7.", "note": null, "level": 1}),
        json!({"question": "3+5?", "answer": "8", "solution": "3 + 5 = 9.", "note": "", "level": 2}),
        json!({"question": "3+4?", "answer": "7", "note": null, "level": 1}),
        json!({"question": "3+6?", "note": null}),
    ];
    let host = files(&[("c.jsonl", lines(&rows))]);
    let found = check(&values("c.jsonl"), &host).unwrap();
    let whats: Vec<(&str, usize)> =
        found.findings.iter().map(|finding| (finding.what.as_str(), finding.count)).collect();
    assert_eq!(
        whats,
        [
            ("reference solutions that end with another answer, as the reader sees it", 1),
            ("questions that repeat an earlier one", 1),
            ("questions without a usable answer", 1),
            ("columns that are empty in all rows", 1),
        ]
    );
    assert_eq!(found.findings[0].first, ["c.jsonl, line 2: 9 is read, 8 is the answer"]);
    assert_eq!((found.questions, found.clusters), (3, 2));
    assert_eq!((found.covariates[0].name.as_str(), found.covariates[0].kind.as_str()), ("level", "number"));
    let (text, questions) = super::example("mine");
    let host = files(&[("mine.toml", text), ("mine.jsonl", questions.to_owned())]);
    let found = check(&values("mine.toml"), &host).unwrap();
    assert_eq!((found.task.as_str(), found.questions, found.findings), ("mine", 3, Vec::new()));
}

#[test]
fn base_models_get_sentences_to_answer() {
    let questions =
        ["What is 12 + 7?", "12 + 7 =", "Question: How many?", "The sum of 12 and 7 is", "Ann has 3 (\"three\")."];
    let rows: Vec<Value> = questions.iter().map(|question| json!({"question": question, "answer": 19})).collect();
    let host = files(&[("sums.jsonl", lines(&rows))]);
    let asked = |suite: &Suite| -> Vec<(String, Vec<String>)> {
        items(suite).into_iter().map(|item| (item.segments.raw.unwrap(), item.stop_strings)).collect()
    };
    let raw = suite(&host, &values("sums.jsonl"), Mode::Raw).unwrap();
    let framed = |question: &str| (format!("Question: {question}\nAnswer:"), vec!["\nQuestion:".to_owned()]);
    let bare = |question: &str, stop: &[&str]| (question.to_owned(), stop.iter().map(|one| one.to_string()).collect());
    let expected = vec![
        framed(questions[0]),
        bare(questions[1], &["\n"]),
        bare(questions[2], &[]),
        bare(questions[3], &[]),
        framed(questions[4]),
    ];
    assert_eq!(asked(&raw), expected);
    round_trip(&raw, &host);
    // A task file without a template asks the same, and one with a template what it says.
    let host = files(&[
        ("sums.jsonl", lines(&rows)),
        ("sums.toml", "[questions]\npath = \"sums.jsonl\"\n".to_owned()),
        ("own.toml", "[questions]\npath = \"sums.jsonl\"\n[prompt]\ntemplate = \"{{ question }}\"\n".to_owned()),
    ]);
    assert_eq!(asked(&suite(&host, &values("sums.toml"), Mode::Raw).unwrap()), expected);
    let own = suite(&host, &values("own.toml"), Mode::Raw).unwrap();
    assert_eq!(asked(&own), questions.map(|question| bare(question, &[])));
    assert_eq!(own.scoring.options().get("framed"), None);
    // Runs of before had no frame, and keep their options.
    let mut stored = raw.scoring.options();
    assert_eq!(stored["framed"], true);
    stored.as_object_mut().unwrap().remove("framed");
    let before = Registration.stored(&stored, &host).unwrap();
    assert_eq!(
        (asked(&before), before.scoring.options()),
        (questions.map(|question| bare(question, &[])).to_vec(), stored)
    );
}

#[test]
fn columns_that_may_be_meant_are_named() {
    for (row, said) in [
        (json!({"qustion": "1+1?", "answer": 2}), "is qustion meant to be question?"),
        (json!({"question": "1+1?", "anwser": 2}), "is anwser meant to be answer?"),
        (json!({"question": "1+1?", "answer ": 2}), "is \"answer \" meant to be answer?"),
        (json!({"question": "1+1?", "answer": null}), "answer: the column answer has none"),
        (json!({"question": null, "answer": 2}), "question: the column question has none"),
    ] {
        let host = files(&[("sums.jsonl", lines(&[row]))]);
        let error = suite(&host, &values("sums.jsonl"), Mode::Chat).map(|suite| suite.items.len()).unwrap_err();
        assert!(error.message.contains(said), "{error}");
        assert!(!error.message.contains("is answer meant"), "{error}");
    }
}

#[test]
fn all_answers_choose_the_scorers_whatever_their_order() {
    let row = |(index, answer): (usize, &&str)| json!({"question": format!("Question {index}?"), "answer": answer});
    // Answers, what completions say, and how many of them are right in any order of the rows.
    let numbers = ["yes", "23", "$14.25", "073"];
    let texts = ["Apollo 11", "Henry VIII", "Catch-22", "1889", "Paris"];
    let units = ["18", "5 apples", "20 miles", "3 hours"];
    for (answers, said, scorers, kinds) in [
        (
            &numbers[..],
            &["Yes.", "The answer is 23.", "It is $14.25", "73"][..],
            &["final"][..],
            "3 numbers and 1 text",
        ),
        (
            &texts,
            &["Apollo 11", "henry viii", "Catch-22.", "The year was 1889.", "Paris"],
            &["final", "contains"],
            "1 number and 4 texts",
        ),
        (&units, &["18", "5 apples", "The answer is 20 miles.", "3"], &["final"], "1 number and 3 numbers with units"),
        (&["Rome", "Paris"], &["Rome", "paris."], &["exact", "contains"], "2 texts"),
    ] {
        for turn in 0..answers.len() {
            let turned = |all: &[&str]| -> Vec<String> {
                all.iter().cycle().skip(turn).take(all.len()).map(|one| (*one).to_owned()).collect()
            };
            let rows: Vec<&str> = answers.iter().cycle().skip(turn).take(answers.len()).copied().collect();
            let host = files(&[("q.jsonl", lines(&rows.iter().enumerate().map(row).collect::<Vec<_>>()))]);
            let checked = super::check(&values("q.jsonl"), &host).unwrap();
            assert_eq!(
                (checked.scorers.as_slice(), checked.chosen_for.as_deref()),
                (&scorers.iter().map(|scorer| (*scorer).to_owned()).collect::<Vec<_>>()[..], Some(kinds)),
                "{rows:?}"
            );
            let suite = suite(&host, &values("q.jsonl"), Mode::Chat).unwrap();
            for (item, said) in items(&suite).iter().zip(turned(said)) {
                let score = scored(&suite, item, &said);
                assert!(score.correct, "{said:?} for {:?}: {score:?}", item.gold);
                assert!(
                    !scored(&suite, item, "Apollo 13, or London in 1889 with 99 pears").correct || item.gold == "1889"
                );
            }
            round_trip(&suite, &host);
        }
    }
    let host = files(&[("q.jsonl", lines(&texts.iter().enumerate().map(row).collect::<Vec<_>>()))]);
    let notes = Registration.configure(&values("q.jsonl"), &host).unwrap().notes();
    assert_eq!(notes, ["4 of 5 answers are not numbers; they are compared as texts"]);
}

#[test]
fn zeros_before_a_number_count_in_texts_alone() {
    let rows = ["073", "16", "004", "000", "-07", "007.50", "3/4"]
        .iter()
        .enumerate()
        .map(|(index, answer)| json!({"question": format!("Remainder {index}?"), "answer": answer}));
    let rows = lines(&rows.collect::<Vec<_>>());
    let said = ["73", "016", "\\boxed{04}", "0", "-7", "7.5", "3/4"];
    let own = files(&[("q.jsonl", rows.clone())]);
    let suite = suite(&own, &values("q.jsonl"), Mode::Chat).unwrap();
    for (item, said) in items(&suite).iter().zip(said) {
        assert!(scored(&suite, item, said).correct, "{said} for {}", item.gold);
        assert!(scored(&suite, item, &item.gold).correct, "{}", item.gold);
        // Zeros behind it make another number.
        assert!(!scored(&suite, item, "730").correct, "{}", item.gold);
    }
    let file = "[questions]\npath = \"q.jsonl\"\n[[scorers]]\nkind = \"exact\"\n[[scorers]]\nkind = \"number\"\n";
    let texts = files(&[("t.toml", file.to_owned()), ("q.jsonl", rows)]);
    let suite = self::suite(&texts, &values("t.toml"), Mode::Chat).unwrap();
    for (item, said) in items(&suite).iter().zip(["73", "016", "04", "0", "-7", "7.5", "3/04"]) {
        let score = scored(&suite, item, said);
        assert_eq!((score.scorers["exact"], score.scorers["number"]), (false, true), "{said} for {}", item.gold);
        assert!(scored(&suite, item, &item.gold).correct, "{}", item.gold);
    }
}
