//! Profiles: questions chosen by answers, stored as a run like any other, the same after interruptions.
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;

use crate::program::{code, document, earnest, run_in, stderr, stdout, store, tiny};
use earnest_eval::EvalError;
use earnest_eval::evaluate::{Decoding, Evaluated, EvaluationSettings, GenerationSettings, ModelSession, Questions};
use earnest_eval::model::{Device, EngineSettings, LocatedModel, ModelSource};
use earnest_models::hub::HubSettings;
use earnest_report::profile::{Comparison, comparison, page, profile, text};
use earnest_results::runs::verify;
use earnest_results::store::{Filter, RunRecord, Store};
use earnest_results::suites::LocalHost;
use earnest_results::{Plan, Reporter, RunEvent, Status};
use earnest_tasks::anatomy::ErrorClass;
use earnest_tasks::suite::Suite;
use earnest_tasks::suite::profile::{
    PAIRS, ProfileOptions, ProfileSuite, PromptForm, SCREENED, SharedQuestions, Skill, THINKING_PAIRS, ThinkingBudgets,
    ThinkingTask, Way,
};

/// Questions of a skill at most: three rounds.
const BUDGET: usize = 18;

fn options(skills: &[&str]) -> ProfileOptions {
    let skills = skills.iter().flat_map(|name| Skill::named(name).unwrap()).collect();
    ProfileOptions { skills, notations: false, budget: BUDGET, seed: 3, ..ProfileOptions::default() }
}

fn settings(results: &Path, skills: &[&str]) -> EvaluationSettings {
    let model = LocatedModel::find(&tiny(), &HubSettings::default(), Default::default()).unwrap();
    let model = ModelSource::Local { model, device: Device::Cpu, note: None };
    let suite = Suite::new(ProfileSuite::new(options(skills)).unwrap());
    EvaluationSettings {
        decoding: Decoding::Asked(GenerationSettings { max_tokens: Some(6), ..Default::default() }),
        // Few at a time, so that a session can be stopped inside a round.
        engine: EngineSettings { max_batch: Some(2), ..Default::default() },
        ..EvaluationSettings::new(suite, model, results)
    }
}

const SKILLS: [&str; 4] = ["add_Integer", "max_Integer", "copy", "in_text"];

/// Sets a flag after so many samples.
struct StopAfter {
    left: usize,
    stop: Arc<AtomicBool>,
}

impl Reporter for StopAfter {
    fn event(&mut self, event: &RunEvent<'_>) {
        if let RunEvent::Sample(_) = event {
            self.left = self.left.saturating_sub(1);
            self.stop.store(self.left == 0, Ordering::Relaxed);
        }
    }
}

fn evaluated(settings: &EvaluationSettings) -> Result<Evaluated, EvalError> {
    ModelSession::open(settings)?.evaluate(settings, &mut ())
}

/// Rows without what depends on time.
fn rows(store: &Store, run: &RunRecord) -> Vec<(usize, String, String, bool)> {
    let samples = store.samples(run, Filter::default()).indexed().map(|sample| {
        let (place, sample) = sample.unwrap();
        (place, sample.item, sample.completion.unwrap().text, sample.score.unwrap().correct)
    });
    samples.collect()
}

#[test]
fn an_interrupted_profile_asks_the_same_and_finds_the_same() {
    // With a screening of two forms before and the notations after the rounds of the skills.
    let forms: Vec<PromptForm> = ["raw", "raw+3"].map(|form| form.parse().unwrap()).to_vec();
    let settings = |results: &Path| {
        let options = ProfileOptions { notations: true, forms: forms.clone(), ..options(&SKILLS) };
        let suite = ProfileSuite::new(options).unwrap();
        EvaluationSettings { questions: Questions::Suite(Suite::new(suite)), ..settings(results, &SKILLS) }
    };
    let whole = tempfile::tempdir().unwrap();
    let Evaluated { store, run } = evaluated(&settings(whole.path())).unwrap();
    let expected = rows(&store, &run);
    // More than the two rounds in which the sessions below are stopped, even if all answers of a round land before the first is seen.
    // Numbers in nine notations come after the budgets of the skills.
    let most = 2 * 3 * SCREENED + BUDGET * SKILLS.len() + 9 * PAIRS;
    assert!(expected.len() > 2 * SCREENED + 12 * SKILLS.len() && expected.len() <= most, "{}", expected.len());
    assert_eq!((run.manifest.status, run.planned), (Status::Finished, expected.len()));
    assert!(expected.iter().enumerate().all(|(number, row)| row.0 == number), "places follow each other");
    let found = profile(&store, &run).unwrap();
    assert_eq!((found.answers, found.skills.len()), (expected.len(), SKILLS.len()));
    assert!(found.screening.iter().all(|form| form.asked >= SCREENED), "{:?}", found.screening);
    assert!(found.form.is_some() && found.skills.iter().map(|skill| skill.asked).sum::<usize>() < expected.len());

    let parts = tempfile::tempdir().unwrap();
    // In the screening, and in a later round.
    for left in [5, 2 * SCREENED + 3] {
        let stop: Arc<AtomicBool> = Arc::default();
        let settings = EvaluationSettings { stop: Arc::clone(&stop), ..settings(parts.path()) };
        let stopped = ModelSession::open(&settings).unwrap().evaluate(&settings, &mut StopAfter { left, stop });
        assert!(matches!(stopped, Err(EvalError::Interrupted { .. })), "{left}");
    }
    let Evaluated { store, run } = evaluated(&settings(parts.path())).unwrap();
    assert_eq!(rows(&store, &run), expected);
    assert_eq!((run.manifest.sessions, run.planned), (3, expected.len()));
    let again = profile(&store, &run).unwrap();
    assert_eq!(
        again.skills.iter().map(|skill| &skill.limits).collect::<Vec<_>>(),
        found.skills.iter().map(|skill| &skill.limits).collect::<Vec<_>>()
    );
    // Rows, questions, plan and scores agree, and the same command reports it.
    let verification = verify(&store, std::slice::from_ref(&run.manifest.run), &LocalHost::default(), &mut ()).unwrap();
    assert_eq!(verification.damaged(), 0, "{verification:?}");
    assert_eq!(evaluated(&settings(parts.path())).unwrap().run.manifest.sessions, 3);
}

#[test]
fn thinking_budgets_go_on_where_the_cap_cut_and_survive_interruptions() {
    let thinking = ThinkingBudgets { caps: vec![16, 24, 40], way: Way::Steps };
    let settings = |results: &Path| {
        let options = ProfileOptions { skills: Vec::new(), thinking: Some(thinking.clone()), ..options(&[]) };
        // Sampled: only the same random numbers give the same beginning.
        let generation = GenerationSettings { temperature: Some(1.0), ..Default::default() };
        EvaluationSettings {
            questions: Questions::Suite(Suite::new(ProfileSuite::new(options).unwrap())),
            decoding: Decoding::Asked(generation),
            ..settings(results, &SKILLS)
        }
    };
    let whole = tempfile::tempdir().unwrap();
    let Evaluated { store, run } = evaluated(&settings(whole.path())).unwrap();
    let mut answers: BTreeMap<(String, u64), (Vec<u32>, bool)> = BTreeMap::new();
    for sample in store.samples(&run, Filter::default()) {
        let sample = sample.unwrap();
        let cut = sample.truncated();
        assert!(!sample.clipped() && ThinkingTask::of_task(&sample.task).is_some());
        answers.insert(
            (sample.cluster, sample.covariates["cap"].as_u64().unwrap()),
            (sample.completion.unwrap().ids, cut),
        );
    }
    let mut longer = 0;
    for ((question, cap), (ids, _)) in answers.iter().filter(|((_, cap), _)| *cap > 16) {
        let smaller = if *cap == 24 { 16 } else { 24 };
        let (beginning, cut) = &answers[&(question.clone(), smaller)];
        assert!(*cut && ids.starts_with(beginning), "{question} under {cap}: only cut answers go on, as they began");
        longer += 1;
    }
    assert!(longer > 0);
    let found = profile(&store, &run).unwrap();
    assert_eq!(found.thinking.len(), 2);
    for one in &found.thinking {
        let caps: Vec<_> = one.caps.iter().map(|row| (row.cap, row.asked)).collect();
        let expected = [None, Some(16), Some(24), Some(40)].map(|cap| (cap, THINKING_PAIRS));
        assert_eq!(caps, expected, "answers that ended count under larger caps");
        assert!(one.caps.windows(2).skip(1).all(|rows| rows[0].tokens <= rows[1].tokens && rows[0].cut >= rows[1].cut));
    }
    let screen = text(&found, 80);
    assert!(screen.contains("Thinking, products of 2 digits by cap (tokens used): off "), "{screen}");
    let html = page(&[&found], &Comparison::default()).unwrap();
    assert!(html.contains("id=\"thinking\"") && !html.contains("NaN"));

    let parts = tempfile::tempdir().unwrap();
    for left in [20, 60] {
        let stop: Arc<AtomicBool> = Arc::default();
        let settings = EvaluationSettings { stop: Arc::clone(&stop), ..settings(parts.path()) };
        let stopped = ModelSession::open(&settings).unwrap().evaluate(&settings, &mut StopAfter { left, stop });
        assert!(matches!(stopped, Err(EvalError::Interrupted { .. })), "{left}");
    }
    let again = evaluated(&settings(parts.path())).unwrap();
    assert_eq!(rows(&again.store, &again.run), rows(&store, &run));
    let verification =
        verify(&again.store, std::slice::from_ref(&again.run.manifest.run), &LocalHost::default(), &mut ()).unwrap();
    assert_eq!(verification.damaged(), 0, "{verification:?}");
}

#[test]
fn a_thinking_switch_is_off_and_on_under_caps() {
    let folder = tempfile::tempdir().unwrap();
    let thinker = folder.path().join("thinker");
    std::fs::create_dir(&thinker).unwrap();
    for file in std::fs::read_dir(tiny()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), thinker.join(file.file_name())).unwrap();
    }
    // Off closes the thinking at once, on opens it in the prompt.
    let template = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}<assistant>\
        {% if enable_thinking is defined and enable_thinking is false %}<think>\n\n</think>\n{% else %}<think>\n{% endif %}";
    std::fs::write(thinker.join("chat_template.jinja"), template).unwrap();
    let words =
        ["profile", "--model", "thinker", "--skills", "mul", "--budget", "6", "--thinking-budgets", "16,24", "--json"];
    let output = run_in(folder.path(), &words);
    assert_eq!(code(&output), 0, "{}", stderr(&output));
    let json = document(&output);
    let run = json["run"].as_str().unwrap();
    assert_eq!(json["thinking"].as_array().unwrap().len(), 2);
    for one in json["thinking"].as_array().unwrap() {
        let caps: Vec<_> =
            one["caps"].as_array().unwrap().iter().map(|row| (&row["cap"], row["asked"].as_u64())).collect();
        let asked = Some(THINKING_PAIRS as u64);
        assert_eq!(caps, [(&Value::Null, asked), (&16.into(), asked), (&24.into(), asked)], "{one}");
    }
    let store = store(folder.path());
    let run = store.run(run).unwrap();
    let thinking = &run.manifest.settings.suite_options["thinking"];
    assert_eq!((&thinking["way"], &thinking["opened"]), (&"switch".into(), &"<think>".into()), "{thinking}");
    let mut under: BTreeMap<u64, usize> = BTreeMap::new();
    for sample in store.samples(&run, Filter::default()) {
        let sample = sample.unwrap();
        if ThinkingTask::of_task(&sample.task).is_none() {
            continue;
        }
        let cap = sample.covariates["cap"].as_u64().unwrap();
        *under.entry(cap).or_default() += 1;
        // What the prompt opened is thinking until it is closed: digits in it are no answer.
        let closed = sample.completion.as_ref().is_some_and(|completion| completion.text.contains("</think>"));
        if cap > 0 && sample.truncated() && !closed {
            assert_eq!(sample.score.as_ref().unwrap().answer, None, "{}", sample.item);
        }
    }
    let pairs = 2 * THINKING_PAIRS;
    assert_eq!((under[&0], under[&16]), (pairs, pairs), "{under:?}");
    assert!(under[&24] > 0 && under[&24] <= pairs, "the second round asks what was cut: {under:?}");
    let verification = verify(&store, std::slice::from_ref(&run.manifest.run), &LocalHost::default(), &mut ()).unwrap();
    assert_eq!(verification.damaged(), 0, "{verification:?}");
}

#[test]
fn prompts_are_screened_in_the_forms_that_the_model_takes() {
    let folder = tempfile::tempdir().unwrap();
    let picky = folder.path().join("picky");
    std::fs::create_dir(&picky).unwrap();
    for file in std::fs::read_dir(tiny()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), picky.join(file.file_name())).unwrap();
    }
    let template = "{% for m in messages %}{% if m.role == 'assistant' %}{{ raise_exception('no turns') }}{% endif %}\
        <{{ m.role }}>{{ m.content }}{% endfor %}<assistant>";
    std::fs::write(picky.join("chat_template.jinja"), template).unwrap();
    let words = ["profile", "--model", "picky", "--skills", "copy,rev", "--budget", "6", "--max-tokens", "6", "--json"];
    let asked = |more: &[&str]| {
        let output = run_in(folder.path(), &[&words[..], more].concat());
        assert_eq!(code(&output), 0, "{more:?}: {}", stderr(&output));
        document(&output)
    };
    let forms = |json: &Value| -> Vec<String> {
        let forms = json["screening"].as_array().map_or(&[][..], Vec::as_slice);
        forms.iter().map(|form| form["form"].as_str().unwrap().to_owned()).collect()
    };
    let screened = asked(&[]);
    assert_eq!(forms(&screened), ["chat", "raw", "raw+3"], "{screened}");
    let counts: Vec<(u64, &str)> = screened["screening"]
        .as_array()
        .unwrap()
        .iter()
        .map(|form| (form["right"].as_u64().unwrap(), form["form"].as_str().unwrap()))
        .collect();
    let most = counts.iter().map(|(right, _)| *right).max().unwrap();
    let first = counts.iter().find(|(right, _)| *right == most).unwrap().1;
    assert_eq!(screened["form"], first, "of equals the first: {counts:?}");
    // The prompts of the skills are those of that form.
    let store = store(folder.path());
    let run = store.run(screened["run"].as_str().unwrap()).unwrap();
    let mut measured = 0;
    let mut questions = store.questions(&run);
    for sample in store.samples(&run, Filter::default()).indexed() {
        let (index, sample) = sample.unwrap();
        if PromptForm::of_task(&sample.task).is_none() {
            let prompt = questions.of_sample(index, &sample).unwrap().unwrap().prompt.unwrap();
            assert_eq!(prompt.contains("<assistant>"), first == "chat", "{prompt}");
            measured += 1;
        }
    }
    assert_eq!(measured, 12);
    for (more, expected) in [
        (&["--prompt", "raw"][..], &["raw", "raw+3"][..]),
        (&["--shots", "2"], &["raw+2"]),
        (&["--prompt", "chat"], &["chat"]),
        (&["--prompt", "raw", "--shots", "0"], &["raw"]),
    ] {
        let json = asked(more);
        assert_eq!(forms(&json), if expected.len() > 1 { expected } else { &[] }, "{more:?}");
        assert!(expected.contains(&json["form"].as_str().unwrap()), "{more:?}: {}", json["form"]);
    }
    let shown = stdout(&run_in(folder.path(), &["profile", screened["run"].as_str().unwrap()]));
    let found =
        if most == 0 { ": no form of prompts had a short question right." } else { ". Short questions right: " };
    assert!(shown.contains(found), "{shown}");
    let refused = run_in(folder.path(), &["profile", "--model", "picky", "--shots", "9"]);
    assert!(code(&refused) == 2 && stderr(&refused).contains("from 0 to 8"), "{}", stderr(&refused));
}

#[test]
fn classes_of_errors_select_samples_and_make_up_the_anatomy() {
    let folder = tempfile::tempdir().unwrap();
    let Evaluated { store, run } = evaluated(&settings(folder.path(), &SKILLS)).unwrap();
    let found = profile(&store, &run).unwrap();
    let wrong = rows(&store, &run).iter().filter(|row| !row.3).count();
    assert_eq!(found.anatomy.wrong, wrong);
    let of = |error| store.samples(&run, Filter { error: Some(error), ..Filter::default() }).count();
    for class in ErrorClass::ALL {
        let share = found.anatomy.classes.iter().find(|share| share.class == class);
        assert_eq!(of(class), share.map_or(0, |share| share.count), "{class}");
    }
    assert_eq!(found.anatomy.by_task.iter().map(|row| row.wrong).sum::<usize>(), wrong);
    assert_eq!(found.anatomy.by_length.iter().map(|row| row.wrong).sum::<usize>(), wrong);
    // The same model twice does not differ from itself.
    let itself = comparison(&found, &found, None);
    assert!(itself.differences.len() <= SKILLS.len() && itself.holding().next().is_none());
    let html = page(&[&found, &found], &itself).unwrap();
    assert!(html.contains("id=\"limits\"") && html.contains("id=\"anatomy\"") && !html.contains("NaN"));
    for width in [60, 80, 140] {
        let screen = text(&found, width);
        assert!(screen.lines().count() <= 40 && screen.lines().all(|line| line.chars().count() <= width), "{screen}");
    }
}

#[test]
fn the_whole_profile_fits_a_screen() {
    let folder = tempfile::tempdir().unwrap();
    let all = ProfileSuite::new(ProfileOptions { budget: 3, ..ProfileOptions::default() }).unwrap();
    let settings =
        EvaluationSettings { questions: Questions::Suite(Suite::new(all)), ..settings(folder.path(), &SKILLS) };
    let Evaluated { store, run } = evaluated(&settings).unwrap();
    let found = profile(&store, &run).unwrap();
    assert_eq!(found.skills.len(), 72);
    for width in [60, 80, 100, 140] {
        let screen = text(&found, width);
        // With the page and the next commands it is a screen.
        assert!(screen.lines().count() <= 37 && screen.lines().all(|line| line.chars().count() <= width), "{screen}");
    }
}

#[test]
fn the_command_stores_a_run_that_other_commands_read() {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny().display().to_string();
    let words = ["profile", "--model", &model, "--skills", "add_Integer,copy", "--budget", "6", "--max-tokens", "4"];
    let first = run_in(folder.path(), &words);
    assert_eq!(code(&first), 0, "{}", stderr(&first));
    assert!(stdout(&first).starts_with("Numeracy profile of "), "{}", stdout(&first));
    let said = stdout(&first);
    let ending = &said[said.find("\npage: ").unwrap_or_else(|| panic!("{said}"))..];
    assert!(ending.contains("\nnext: earnest ") && ending.contains(" earnest profile --compare "), "{said}");
    let json = document(&run_in(folder.path(), &[&words[..], &["--json", "-o", "page.html"]].concat()));
    // The tiny model has no template: two forms, neither of which is better in 24 questions of the one skill and of the other, then the trial of both, then six of each skill.
    assert_eq!((json["answers"].as_u64(), json["skills"].as_array().map(Vec::len)), (Some(122), Some(2)));
    let run = json["run"].as_str().unwrap();
    assert!(folder.path().join("page.html").is_file());
    assert!(folder.path().join("earnest-results").join(format!("{run}.html")).is_file());
    for words in [
        &["runs", "show", run][..],
        &["samples", run, "--failed", "--limit", "2"],
        &["score", run],
        &["export", run, "--format", "csv", "-o", "rows.csv"],
        &["runs", "verify"],
    ] {
        let output = run_in(folder.path(), words);
        assert_eq!(code(&output), 0, "{words:?}: {}", stderr(&output));
    }
    // Its questions are near the limits, so that the share of right answers says nothing: no screen and no page has one.
    let entries = document(&run_in(folder.path(), &["runs", "list", "--json"]));
    assert_eq!((&entries[0]["adaptive"], &entries[0]["accuracy"]), (&true.into(), &Value::Null));
    let list = stdout(&run_in(folder.path(), &["runs", "list"]));
    assert!(list.contains("share of right answers says nothing"), "{list}");
    let reported = run_in(folder.path(), &["report", run, "-o", "report.html"]);
    assert_eq!(code(&reported), 0, "{}", stderr(&reported));
    let html = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert!(html.contains("no share of right answers") && !html.contains("accuracy-by-task"));
    assert!(html.contains(" digits</text>") && html.contains("columns: limits"), "the key counts digits");
    // Two runs of one model go by their runs.
    let again = document(&run_in(folder.path(), &[&words[..], &["--seed", "2", "--json"]].concat()));
    let again = again["run"].as_str().unwrap();
    let compared = run_in(folder.path(), &["profile", "--compare", run, again, "-o", "both.html"]);
    assert!(stdout(&compared).starts_with(&format!("{run} and {again} have no skill")), "{}", stdout(&compared));
    let html = std::fs::read_to_string(folder.path().join("both.html")).unwrap();
    assert!(html.contains(&format!("<h3>{run}</h3>")) && html.contains(&format!("<h3>{again}</h3>")));
    let itself = run_in(folder.path(), &["profile", "--compare", run, run]);
    assert!(code(&itself) == 2 && stderr(&itself).contains("twice"), "{}", stderr(&itself));
    // What does not go together is said.
    let refused = run_in(folder.path(), &["run", "profile", "--model", &model, "--limit", "5"]);
    assert!(
        code(&refused) == 2 && stderr(&refused).contains("--limit does not go with profile"),
        "{}",
        stderr(&refused)
    );
    let unknown = run_in(folder.path(), &["profile", "--model", &model, "--skills", "adding"]);
    assert!(code(&unknown) == 2 && stderr(&unknown).contains("there is no skill adding"), "{}", stderr(&unknown));
    std::fs::write(folder.path().join("answers.jsonl"), "{\"id\": \"profile/in_text/3/0\", \"completion\": \"5\"}\n")
        .unwrap();
    let imported = run_in(folder.path(), &["import", "profile", "--completions", "answers.jsonl", "--name", "mine"]);
    assert!(code(&imported) == 2 && stderr(&imported).contains("cannot be imported"), "{}", stderr(&imported));
    assert!(stderr(&imported).contains("earnest import nupa"), "{}", stderr(&imported));
    for (words, expected) in [
        (&["profile", "--thinking-budgets", "256,many"][..], "'many' is not a number of tokens"),
        (&["profile", "--thinking-budgets", "--max-tokens", "5"], "--max-tokens"),
        (&["run", "profile", "--thinking-budgets", "256", "--max-tokens", "5"], "--max-tokens does not go with"),
    ] {
        let refused = run_in(folder.path(), &[words, &["--model", &model]].concat());
        assert!(code(&refused) == 2 && stderr(&refused).contains(expected), "{words:?}: {}", stderr(&refused));
    }
    let suites = stdout(&run_in(folder.path(), &["suites"]));
    assert!(suites.contains("depends on the answers: at most 5424 with default options"), "{suites}");
    let plan = Plan { limit: Some(2), samples: 1, shard: None };
    let limited = evaluated(&EvaluationSettings { plan, ..settings(folder.path(), &SKILLS) });
    assert!(limited.is_err());
}

#[test]
fn shared_questions_survive_interruptions() {
    let of = |task: &str, length, first, count| SharedQuestions {
        task: task.to_owned(),
        length,
        first,
        count,
        screened: 0,
        form: None,
    };
    let shared = vec![of("copy", 3, 4, 12), of("in_text", 2, 0, 12)];
    let settings = |results: &Path| {
        let suite = ProfileSuite::new(options(&SKILLS).with_shared(7, shared.clone())).unwrap();
        EvaluationSettings { questions: Questions::Suite(Suite::new(suite)), ..settings(results, &SKILLS) }
    };
    let whole = tempfile::tempdir().unwrap();
    let Evaluated { store, run } = evaluated(&settings(whole.path())).unwrap();
    let expected = rows(&store, &run);
    assert_eq!((expected.len(), run.planned), (24, 24));
    // They are no profile.
    let refused = profile(&store, &run).unwrap_err().to_string();
    assert!(refused.contains("has the questions of a comparison"), "{refused}");
    let parts = tempfile::tempdir().unwrap();
    let stop: Arc<AtomicBool> = Arc::default();
    let stopping = EvaluationSettings { stop: Arc::clone(&stop), ..settings(parts.path()) };
    let stopped = ModelSession::open(&stopping).unwrap().evaluate(&stopping, &mut StopAfter { left: 5, stop });
    assert!(matches!(stopped, Err(EvalError::Interrupted { .. })));
    let again = evaluated(&settings(parts.path())).unwrap();
    assert_eq!((rows(&again.store, &again.run), again.run.manifest.sessions), (expected, 2));
    let verification =
        verify(&again.store, std::slice::from_ref(&again.run.manifest.run), &LocalHost::default(), &mut ()).unwrap();
    assert_eq!(verification.damaged(), 0, "{verification:?}");
}

#[test]
fn two_models_are_asked_what_their_profiles_leave_open() {
    let folder = tempfile::tempdir().unwrap();
    let moved = folder.path().join("moved");
    std::fs::create_dir(&moved).unwrap();
    for file in std::fs::read_dir(tiny()).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), moved.join(file.file_name())).unwrap();
    }
    let profile_of = |words: &[&str]| {
        let fixed = ["profile", "--skills", "add_Integer,sub_Integer,copy,in_text", "--budget", "6", "--json"];
        let output = run_in(folder.path(), &[&fixed[..], words].concat());
        assert_eq!(code(&output), 0, "{}", stderr(&output));
        document(&output)["run"].as_str().unwrap().to_owned()
    };
    // The model inside the program, and one that knows nothing.
    let (one, other) = (profile_of(&[]), profile_of(&["--model", "moved", "--max-tokens", "6"]));
    let compare = |words: &[&str]| run_in(folder.path(), &[&["profile", "--compare", &one, &other], words].concat());
    let alone = compare(&["--questions", "0", "--json"]);
    assert_eq!(code(&alone), 0, "{}", stderr(&alone));
    let alone = document(&alone);
    assert_eq!((&alone["pairs"], &alone["shared_runs"]), (&0.into(), &Value::Null));
    assert!(alone["floor"].as_u64().unwrap() > 0, "sentences are below the shortest length of both: {alone}");

    let first = compare(&["--questions", "48"]);
    assert!(code(&first) == 0 && stderr(&first).contains("asking moved at most"), "{}", stderr(&first));
    assert!(
        stdout(&first).starts_with("earnest-abacus") && stdout(&first).contains(" is better in "),
        "{}",
        stdout(&first)
    );
    assert!(stdout(&first).contains(" not compared: ") && stdout(&first).contains("McNemar's"));
    let output = compare(&["--questions", "48", "--json", "-o", "both.html"]);
    assert!(!stderr(&output).contains("asking"), "{}", stderr(&output));
    let found = document(&output);
    let differences = found["differences"].as_array().unwrap();
    let pairs: u64 = differences.iter().filter_map(|one| one["pairs"].as_u64()).sum();
    assert!(pairs > 12 && found["pairs"] == pairs, "{found}");
    for (difference, alone) in differences.iter().zip(alone["differences"].as_array().unwrap()) {
        assert_eq!(difference["p_profiles"], alone["p"]);
        let Some(pairs) = difference["pairs"].as_u64() else { continue };
        let right: Vec<u64> = serde_json::from_value(difference["right"].clone()).unwrap();
        assert!(right[0] > right[1] && right[0] <= pairs && difference["better"] == 0, "{difference}");
        assert!(difference["p"].as_f64() < difference["p_profiles"].as_f64(), "{difference}");
        assert!(difference["low"].as_f64() > Some(0.0) && difference["difference"].as_f64() <= Some(1.0));
    }
    let html = std::fs::read_to_string(folder.path().join("both.html")).unwrap();
    assert!(html.contains(" is better in ") && html.contains("right, shared questions"));
    // Options that a stored numeracy profile has no use for are refused; a model from the environment is no mistake.
    for words in [
        &["--compare", &one, &other, "--questions", "5"][..],
        &["--compare", &one, &other, "--budget", "12"],
        &["--compare", &one, &other, "--temperature", "1"],
        &[&one, "--model", "moved"],
        &[&one, "--max-tokens", "3"],
        &[&one, "--questions", "24"],
    ] {
        let refused = run_in(folder.path(), &[&["profile"], words].concat());
        assert_eq!(code(&refused), 2, "{words:?}: {}", stderr(&refused));
    }
    let shown = earnest(folder.path()).args(["profile", &one]).env("EARNEST_MODEL", "moved").output().unwrap();
    assert_eq!(code(&shown), 0, "{}", stderr(&shown));
    // What was asked is stored: the model is not needed again, unless others are to be asked.
    std::fs::rename(&moved, folder.path().join("away")).unwrap();
    assert_eq!(document(&compare(&["--questions", "48", "--json"]))["pairs"], pairs);
    let gone = compare(&["--questions", "24"]);
    let said = stderr(&gone).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code(&gone) == 0 && said.contains("moved cannot be asked shared questions: "), "{said}");
    assert!(
        said.contains("`--questions 0`")
            && stdout(&gone)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
                .contains("answers of the numeracy profiles alone"),
        "{said}"
    );
    // Another model in its place is not asked for it.
    std::fs::rename(folder.path().join("away"), &moved).unwrap();
    let config = std::fs::read_to_string(moved.join("config.json")).unwrap();
    std::fs::write(moved.join("config.json"), format!("{config}\n")).unwrap();
    let other = compare(&["--questions", "24"]);
    let said = stderr(&other).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code(&other) == 0 && said.contains("the content of its files"), "{said}");
    let shared_run = found["shared_runs"][0].as_str().unwrap();
    let refused = run_in(folder.path(), &["profile", "--compare", &one, shared_run]);
    assert!(code(&refused) != 0 && stderr(&refused).contains("is no numeracy profile"), "{}", stderr(&refused));
}

/// Standard output of a command at 80, 100 and 140 columns; the wider ones only where they differ.
fn at_widths(folder: &Path, words: &[&str]) -> String {
    let mut shown = String::new();
    let mut usual = String::new();
    for columns in ["100", "80", "140"] {
        let output = earnest(folder).args(words).env("COLUMNS", columns).output().unwrap();
        assert_eq!(code(&output), 0, "{words:?}: {}", stderr(&output));
        let screen = stdout(&output);
        if screen != usual {
            shown += &format!("=== {columns} columns\n{screen}");
        }
        if usual.is_empty() {
            usual = screen;
        }
    }
    shown
}

#[test]
fn screens() {
    let folder = tempfile::tempdir().unwrap();
    let model = tiny().display().to_string();
    let skills = "integers,scientific,arithmetic-bench,text";
    let words = ["profile", "--model", &model, "--skills", skills, "--budget", "6", "--max-tokens", "4"];
    let mut settings = insta::Settings::clone_current();
    settings.add_filter(r"\d+ s\b", "[time]");
    settings.bind(|| insta::assert_snapshot!("profile", at_widths(folder.path(), &words)));
}
