//! Training from scratch, end to end: it is reproducible, it resumes, and its result is an ordinary checkpoint that the engine runs
//! as the trainer does.
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use earnest_engine::cpu::{CpuEngine, Options};
use earnest_engine::{Engine, Event, Request, RequestId};
use earnest_models::checkpoint::Checkpoint;
use earnest_train::{
    AdamWSettings, AnswerStyle, DigitGroups, FormatSettings, PositionEncoding, Size, SplitVersion, StoredType,
    TokenizerSettings, TrainEvent, TrainOutcome, TrainSettings, Trainer, Validation,
};

fn settings() -> TrainSettings {
    TrainSettings {
        size: Size { layers: 2, hidden: 48, intermediate: 96, heads: 4, kv_heads: 2 },
        position: PositionEncoding::Rope,
        tokenizer: TokenizerSettings { digits: 1, groups: DigitGroups::default(), words: 256 },
        tasks: vec!["max_Integer".into(), "length_Integer".into()],
        styles: vec![AnswerStyle::Question],
        then: None,
        lengths: vec![1, 2],
        beyond: vec![3],
        format: FormatSettings::default(),
        any_shorter_operand: true,
        splits: SplitVersion::Two,
        seed: 5,
        batch: 32,
        steps: 60,
        until: None,
        learning_rate: 3e-3,
        warm_up: 5,
        optimiser: AdamWSettings::default(),
        validate_every: 20,
        validation: 12,
        context: 128,
        parts: 2,
        stored: StoredType::F32,
    }
}

/// Runs, stopping after so many steps; the losses and the last validation.
fn train(
    settings: &TrainSettings,
    folder: &Path,
    stop_after: Option<u64>,
) -> (Vec<(u64, f64)>, Option<Validation>, TrainOutcome) {
    let mut trainer = Trainer::open(settings.clone(), folder).unwrap();
    let stop = AtomicBool::new(false);
    let (mut losses, mut last) = (Vec::new(), None);
    let ended = trainer
        .run(&stop, &mut |event| match event {
            TrainEvent::Step { step, loss, .. } => {
                losses.push((*step, *loss));
                stop.store(stop_after.is_some_and(|after| *step >= after), Ordering::Relaxed);
            }
            TrainEvent::Validated(validation) => last = Some(validation.clone()),
            TrainEvent::Restarted { .. } | TrainEvent::Saved { .. } => {}
        })
        .unwrap();
    (losses, last, ended)
}

#[test]
fn an_interrupted_training_ends_as_an_unbroken_one() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, broken) = (folder.path().join("whole"), folder.path().join("broken"));
    let (losses, last, ended) = train(&settings(), &whole, None);
    assert_eq!((losses.len(), ended), (60, TrainOutcome::Finished));
    assert!(losses[59].1 < 0.6 * losses[0].1, "{losses:?}");
    let mut all = Vec::new();
    for stop in [Some(7), Some(33), None] {
        let (part, _, ended) = train(&settings(), &broken, stop);
        assert_eq!(ended, if stop.is_some() { TrainOutcome::Stopped } else { TrainOutcome::Finished });
        all.extend(part);
    }
    assert_eq!(all, losses);
    for file in ["model.safetensors", "config.json", "tokenizer.json"] {
        assert_eq!(std::fs::read(whole.join(file)).unwrap(), std::fs::read(broken.join(file)).unwrap(), "{file}");
    }
    let log = |folder: &Path| -> Vec<TrainEvent> {
        let text = std::fs::read_to_string(folder.join("log.jsonl")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let steps = |events: Vec<TrainEvent>| -> Vec<u64> {
        let step = |event| if let TrainEvent::Step { step, .. } = event { Some(step) } else { None };
        events.into_iter().filter_map(step).collect()
    };
    assert_eq!(steps(log(&broken)), (1..=60).collect::<Vec<_>>());
    assert!(last.unwrap().cells.iter().any(|cell| !cell.learnt && cell.length == 3));
    assert!(!broken.join("state.json").exists(), "a finished training needs no state");
    // A killed session leaves steps in the log that the state does not know.
    let other = TrainSettings { seed: 6, ..settings() };
    train(&settings(), &folder.path().join("third"), Some(3));
    let refused = Trainer::open(other, &folder.path().join("third")).err().unwrap();
    assert!(refused.to_string().contains("other settings"), "{refused}");
}

#[test]
fn a_damaged_state_names_a_way_on() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    train(&settings(), folder, Some(5));
    let open = || Trainer::open(settings(), folder);
    let tensors = folder.join("state-5.safetensors");
    let whole = std::fs::read(&tensors).unwrap();
    std::fs::write(&tensors, &whole[..whole.len() / 2]).unwrap();
    let cut = open().err().unwrap().to_string();
    assert!(cut.contains("state-5.safetensors") && cut.contains("Delete state.json"), "{cut}");
    std::fs::remove_file(&tensors).unwrap();
    let missing = open().err().unwrap().to_string();
    assert!(missing.contains("missing") && missing.contains("Delete state.json"), "{missing}");
    std::fs::write(&tensors, &whole).unwrap();
    assert_eq!(open().unwrap().steps_done(), 5);
    let header = folder.join("state.json");
    std::fs::write(&header, "{\"step\"").unwrap();
    let broken = open().err().unwrap().to_string();
    assert!(broken.contains("state.json") && broken.contains("damaged"), "{broken}");
    std::fs::remove_file(&header).unwrap();
    assert_eq!(open().unwrap().steps_done(), 0);
    // A state that nothing names any more goes with the next one.
    let (_, _, ended) = train(&settings(), folder, Some(3));
    assert_eq!(ended, TrainOutcome::Stopped);
    assert!(folder.join("state-3.safetensors").exists() && !tensors.exists());
}

#[test]
fn hints_are_tokens_of_the_checkpoint() {
    let place = tempfile::tempdir().unwrap();
    for (digits, text, tokens) in [
        (1, "<i27>6<i26>5<i25>4<i24>3", vec!["<i27>", "6", "<i26>", "5", "<i25>", "4", "<i24>", "3"]),
        (3, "<i25>6<i24>543", vec!["<i25>", "6", "<i24>", "543"]),
    ] {
        let settings = TrainSettings {
            tokenizer: TokenizerSettings { digits, groups: DigitGroups::RightAligned, words: 256 },
            tasks: vec!["add_Integer".into()],
            lengths: vec![3, 4],
            beyond: vec![],
            format: FormatSettings { index_hints: Some(30), ..FormatSettings::default() },
            steps: 6,
            validate_every: 3,
            ..settings()
        };
        let (whole, broken) =
            (place.path().join(format!("whole{digits}")), place.path().join(format!("broken{digits}")));
        train(&settings, &whole, None);
        for stop in [Some(4), None] {
            train(&settings, &broken, stop);
        }
        for file in ["model.safetensors", "tokenizer.json"] {
            assert_eq!(std::fs::read(whole.join(file)).unwrap(), std::fs::read(broken.join(file)).unwrap(), "{file}");
        }
        let tokenizer = Checkpoint::open(&whole).unwrap().tokenizer;
        let one = |text: &str| -> u32 {
            let ids = tokenizer.encode(text, false).unwrap();
            assert_eq!(ids.len(), 1, "{text}: {ids:?}");
            ids[0]
        };
        let expected: Vec<u32> = tokens.into_iter().map(one).collect();
        let ids = tokenizer.encode(text, false).unwrap();
        assert_eq!(ids, expected);
        assert_eq!(tokenizer.decode(&ids, true), text);
    }
}

#[test]
fn where_several_spellings_are_right_the_newest_model_is_kept() {
    let place = tempfile::tempdir().unwrap();
    let random = TrainSettings {
        tokenizer: TokenizerSettings { digits: 2, groups: DigitGroups::Random, words: 256 },
        steps: 8,
        validate_every: 4,
        ..settings()
    };
    assert!(random.has_ambiguous_tokenization() && random.keeps_last());
    assert!(!settings().keeps_last());
    let one_digit = TokenizerSettings { digits: 1, groups: DigitGroups::Random, words: 256 };
    assert!(!TrainSettings { tokenizer: one_digit, ..random.clone() }.has_ambiguous_tokenization());
    let folder = place.path().join("model");
    let mut trainer = Trainer::open(random, &folder).unwrap();
    trainer.run(&AtomicBool::new(false), &mut |_| {}).unwrap();
    let kept = std::fs::read(folder.join("model.safetensors")).unwrap();
    trainer.write(StoredType::F32).unwrap();
    assert_eq!(kept, std::fs::read(folder.join("model.safetensors")).unwrap(), "the last step's weights are kept");
}

/// Answers of the engine to the validation's first questions, greedy.
fn engine_answers(folder: &Path, prompts: &[String]) -> Vec<String> {
    let checkpoint = Checkpoint::open(folder).unwrap();
    let options = Options { threads: Some(2), kv_memory: Some(1 << 24), max_batch: 16, ..Options::default() };
    let mut engine = CpuEngine::load(&checkpoint, options).unwrap();
    for (number, prompt) in prompts.iter().enumerate() {
        let ids = checkpoint.tokenizer.encode(prompt, true).unwrap();
        assert_eq!(ids.iter().filter(|id| **id == 1).count(), 1, "one beginning");
        let stop_ids = vec![checkpoint.tokenizer.eos().unwrap()];
        engine.submit(Request { stop_ids, ..Request::greedy(RequestId(number as u64), ids, 16) }).unwrap();
    }
    let mut answers = vec![String::new(); prompts.len()];
    loop {
        let events = engine.poll().unwrap();
        if events.is_empty() {
            return answers;
        }
        for event in events {
            if let Event::Finished(completion) = event {
                answers[completion.id.0 as usize] = completion.text.clone();
            }
        }
    }
}

#[test]
fn the_engine_answers_as_the_trainer_validates() {
    use earnest_tasks::suite::nupa::{NumberFormat, PairRules, ShorterOperand, Split};
    use earnest_train::{QuestionStream, StreamSettings};
    let folder = tempfile::tempdir().unwrap();
    for position in [PositionEncoding::Rope, PositionEncoding::Nope, PositionEncoding::Alibi] {
        let settings = TrainSettings { position, steps: 120, validate_every: 120, ..settings() };
        let place = folder.path().join(format!("{position:?}"));
        let (_, last, _) = train(&settings, &place, None);
        let cells = last.unwrap().cells;
        let mut right = 0;
        for (lengths, learnt) in [(&settings.lengths, true), (&settings.beyond, false)] {
            let stream = StreamSettings {
                tasks: settings.training_tasks().unwrap(),
                lengths: lengths.clone(),
                pairs: PairRules { shorter: ShorterOperand::Any, ..PairRules::default() },
                format: NumberFormat::default(),
                tokens: None,
                seed: settings.seed,
                splits: settings.splits,
                styles: vec![AnswerStyle::Question],
            };
            let stream = QuestionStream::new(stream, Split::Valid).unwrap();
            let questions = stream.first_questions(settings.validation);
            let prompts: Vec<String> =
                questions.iter().enumerate().map(|(n, q)| stream.text(q, n as u64).unwrap().prompt).collect();
            let answers = engine_answers(&place, &prompts);
            for cell in cells.iter().filter(|cell| cell.learnt == learnt) {
                let asked = questions.iter().zip(&answers);
                let asked = asked.filter(|(q, _)| q.task().to_string() == cell.task && q.length() == cell.length);
                let exact = asked.filter(|(q, answer)| **answer == format!(" {}", q.answer())).count();
                assert_eq!(exact, cell.exact, "{position:?} {cell:?}");
                right += exact;
            }
        }
        assert!(right > 0, "{position:?}: nothing was learnt, so nothing was compared");
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let fails =
        |settings: TrainSettings| Trainer::open(settings, folder.path()).err().map(|error| error.to_string()).unwrap();
    assert!(fails(TrainSettings { tasks: vec!["addd_Integer".into()], ..settings() }).contains("addd"));
    assert!(fails(TrainSettings { lengths: vec![101], beyond: vec![], ..settings() }).contains("lengths"));
    assert!(fails(TrainSettings { parts: 33, ..settings() }).contains("part"));
    assert!(fails(TrainSettings { beyond: vec![2], ..settings() }).contains("length 2"));
    assert!(fails(TrainSettings { lengths: vec![0, 1], ..settings() }).contains("at least 1"));
    let hints = FormatSettings { index_hints: Some(0), ..FormatSettings::default() };
    assert!(fails(TrainSettings { format: hints, ..settings() }).contains("index_hints"));
    assert!(fails(TrainSettings { context: 4, ..settings() }).contains("context 4"));
}
