//! LoRA on the tiny reference checkpoints: the differentiable decoder computes what the engine computes, gradients are right,
//! trainings are reproducible and resume, and the merged weights are the trained ones.
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use candle_core::{Device, Tensor};
use earnest_engine::cpu::{CpuEngine, Options};
use earnest_models::checkpoint::Checkpoint;
use earnest_train::{
    AdamWSettings, AdapterFolder, AdapterSettings, Base, BaseRecord, Batch, Decoder, Example, FormatSettings,
    Gradients, LoraData, LoraSettings, LoraTrainer, Parameters, PromptForm, Retrofit, StoredType, TrainEvent,
    TrainOutcome, Validation, answer_loss, merge,
};

const ADAPTED: [&str; 10] = [
    "llama",
    "llama-mha-tied-headdim",
    "llama31-ropescaling",
    "mistral-sliding",
    "mistral-full",
    "qwen2",
    "qwen3",
    "gemma",
    "gemma2",
    "gemma3-text",
];

fn tiny(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/engine/checkpoints").join(name)
}

fn adapters() -> AdapterSettings {
    AdapterSettings { rank: 4, alpha: 8.0, ..AdapterSettings::default() }
}

/// A text of the given length.
fn ids(length: usize) -> Vec<u32> {
    (0..length as u32).map(|place| 3 + (place * 37 + place * place * 11) % 500).collect()
}

/// The logits after all of `ids`.
fn after(decoder: &Decoder, ids: &[u32]) -> Vec<f32> {
    let example = Example { ids: [ids, &[1]].concat(), prompt: ids.len() };
    let batch = Batch::new(&[example], 0, &Device::Cpu).unwrap();
    decoder.logits(&batch).unwrap().flatten_all().unwrap().to_vec1().unwrap()
}

fn engine(folder: &Path) -> CpuEngine {
    let checkpoint = Checkpoint::open(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let options = Options { threads: Some(2), kv_memory: Some(1 << 24), max_batch: 4, ..Options::default() };
    CpuEngine::load(&checkpoint, options).unwrap()
}

fn near(name: &str, ours: &[f32], theirs: &[f32], within: f32) {
    assert_eq!(ours.len(), theirs.len(), "{name}");
    let far = ours.iter().zip(theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(far < within, "{name}: logits differ by {far}");
    assert!(ours.iter().any(|logit| logit.abs() > 0.1), "{name}: the logits say nothing");
}

#[test]
fn the_differentiable_decoder_is_the_engine() {
    for name in ADAPTED {
        let base = Base::open(&tiny(name), Retrofit::default()).unwrap_or_else(|error| panic!("{name}: {error}"));
        let decoder = base.decoder(&adapters(), 1, &mut Parameters::default()).unwrap();
        let mut engine = engine(&tiny(name));
        // Longer than the windows of 16.
        for length in [1, 7, 50] {
            let ids = ids(length);
            near(name, &after(&decoder, &ids), &engine.logits_after(&ids, 1).unwrap(), 1e-4);
        }
    }
}

#[test]
fn other_decoders_are_refused_by_name() {
    for (name, part) in [
        ("mixtral", "MixtralForCausalLM cannot be trained: its decoder layout"),
        ("phi2", "PhiForCausalLM cannot be trained"),
        ("phi3", "Phi3ForCausalLM cannot be trained: adapting its fused projections"),
    ] {
        let failed = Base::open(&tiny(name), Retrofit::default()).unwrap_err().to_string();
        assert!(failed.contains(part), "{failed}");
    }
    // SmolLM3 knows layers without positions, but no norm of queries and no windows.
    let nope = Retrofit { nope: true, ..Retrofit::default() };
    for name in ["qwen3", "gemma", "mistral-sliding", "qwen2"] {
        let failed = Base::open(&tiny(name), nope).unwrap_err().to_string();
        assert!(failed.contains("positions"), "{name}: {failed}");
    }
}

#[test]
fn gradients_of_both_factors_agree_with_finite_differences() {
    for name in ["llama", "qwen3", "gemma2", "gemma3-text"] {
        let base = Base::open(&tiny(name), Retrofit::default()).unwrap();
        let mut parameters = Parameters::default();
        let decoder = base.decoder(&adapters(), 1, &mut parameters).unwrap();
        // B begins as zero, where A has no gradient.
        for (index, (_, variable)) in parameters.iter().enumerate() {
            let count = variable.elem_count();
            let values: Vec<f32> = (0..count).map(|i| ((i * 7 + index) as f32 * 0.7).sin() * 0.2).collect();
            variable.set(&Tensor::from_vec(values, variable.shape(), &Device::Cpu).unwrap()).unwrap();
        }
        let examples = [Example { ids: ids(20), prompt: 12 }, Example { ids: ids(9), prompt: 2 }];
        let batch = Batch::new(&examples, 0, &Device::Cpu).unwrap();
        let loss = || answer_loss(&decoder.logits(&batch).unwrap(), &batch).unwrap();
        let gradients = Gradients::of(&loss(), &parameters).unwrap();
        let mut checked = 0;
        for (name_of, variable) in parameters.iter().step_by(3) {
            let flat = |tensor: &Tensor| tensor.flatten_all().unwrap().to_vec1::<f32>().unwrap();
            let (gradient, values) = (flat(gradients.get(name_of).unwrap()), flat(variable.as_tensor()));
            let norm = gradient.iter().map(|g| f64::from(*g).powi(2)).sum::<f64>().sqrt();
            let step = 5e-3;
            let moved = |sign: f64| {
                let along = |(v, g): (&f32, &f32)| (f64::from(*v) + sign * step * f64::from(*g) / norm) as f32;
                let values: Vec<f32> = values.iter().zip(&gradient).map(along).collect();
                variable.set(&Tensor::from_vec(values, variable.shape(), &Device::Cpu).unwrap()).unwrap();
                f64::from(loss().to_scalar::<f32>().unwrap())
            };
            let slope = (moved(1.0) - moved(-1.0)) / (2.0 * step);
            variable.set(&Tensor::from_vec(values.clone(), variable.shape(), &Device::Cpu).unwrap()).unwrap();
            assert!((slope - norm).abs() < 0.02 * norm + 0.02, "{name} {name_of}: {slope} and {norm}");
            checked += usize::from(norm > 0.1);
        }
        assert!(checked > 5, "{name}: only {checked} gradients were large enough to say something");
    }
}

fn settings(name: &str) -> LoraSettings {
    let path = tiny(name);
    let files = Base::open(&path, Retrofit::default()).unwrap().digests().unwrap();
    LoraSettings {
        base: BaseRecord { model: name.to_owned(), path, files, allow_config: Vec::new() },
        retrofit: Retrofit::default(),
        adapters: AdapterSettings { dropout: 0.1, ..adapters() },
        data: LoraData::Questions {
            tasks: vec!["max_Integer".into(), "length_Integer".into()],
            lengths: vec![1, 2],
            beyond: vec![3],
            format: FormatSettings::default(),
            any_shorter_operand: true,
            rule_following: false,
        },
        prompt: PromptForm::Raw,
        seed: 3,
        batch: 8,
        accumulate: 2,
        parts: 2,
        steps: 12,
        learning_rate: 2e-2,
        warm_up: 2,
        optimiser: AdamWSettings::default(),
        validate_every: 6,
        validation: 3,
        context: 256,
    }
}

/// Trains, stopping after so many steps; losses, validations, how it ended.
fn train(
    settings: &LoraSettings,
    folder: &Path,
    stop_after: Option<u64>,
) -> (LoraTrainer, Vec<f64>, Vec<Validation>, TrainOutcome) {
    let mut trainer = LoraTrainer::open(settings.clone(), folder).unwrap();
    let stop = AtomicBool::new(false);
    let (mut losses, mut validations) = (Vec::new(), Vec::new());
    let ended = trainer
        .run(&stop, &mut |event| match event {
            TrainEvent::Step { step, loss, .. } => {
                losses.push(*loss);
                stop.store(stop_after.is_some_and(|after| *step >= after), Ordering::Relaxed);
            }
            TrainEvent::Validated(validation) => validations.push(validation.clone()),
            TrainEvent::Restarted { .. } | TrainEvent::Saved { .. } => {}
        })
        .unwrap();
    (trainer, losses, validations, ended)
}

#[test]
fn an_interrupted_training_ends_as_an_unbroken_one() {
    let place = tempfile::tempdir().unwrap();
    let (whole, broken) = (place.path().join("whole"), place.path().join("broken"));
    let (_, losses, validations, ended) = train(&settings("llama"), &whole, None);
    assert_eq!((losses.len(), ended), (12, TrainOutcome::Finished));
    assert!(losses[11] < 0.8 * losses[0], "{losses:?}");
    assert_eq!(validations.iter().map(|v| v.step).collect::<Vec<_>>(), [0, 6, 12]);
    assert!(validations[2].cells.iter().any(|cell| cell.length == 3 && !cell.learnt && cell.questions == 3));
    let mut all = Vec::new();
    for stop in [Some(3), Some(7), None] {
        let (_, part, _, _) = train(&settings("llama"), &broken, stop);
        all.extend(part);
    }
    assert_eq!(all, losses);
    for file in ["adapter_model.safetensors", "adapter_config.json", "training.json"] {
        assert_eq!(std::fs::read(whole.join(file)).unwrap(), std::fs::read(broken.join(file)).unwrap(), "{file}");
    }
    assert!(!broken.join("state.json").exists());
    // Another training, or another base, is not gone on with.
    let third = place.path().join("third");
    train(&settings("llama"), &third, Some(2));
    let other = LoraSettings { seed: 4, ..settings("llama") };
    let refused = LoraTrainer::open(other, &third).err().unwrap().to_string();
    assert!(refused.contains("other settings"), "{refused}");
    let mut other = settings("llama");
    other.base.path = tiny("mistral-full");
    let refused = LoraTrainer::open(other, &third).err().unwrap().to_string();
    assert!(refused.contains("not the checkpoint that was adapted"), "{refused}");
}

/// Greedy tokens of the differentiable decoder.
fn greedy(decoder: &Decoder, prompt: &[u32], count: usize) -> Vec<u32> {
    let mut ids = prompt.to_vec();
    for _ in 0..count {
        let logits = after(decoder, &ids);
        let best = logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0;
        ids.push(best as u32);
    }
    ids.split_off(prompt.len())
}

#[test]
fn merged_is_what_was_trained() {
    let place = tempfile::tempdir().unwrap();
    for name in ADAPTED {
        let settings = LoraSettings { steps: 3, validate_every: 3, validation: 1, batch: 4, ..settings(name) };
        let folder = place.path().join(name);
        let (trainer, ..) = train(&settings, &folder, None);
        let merged = folder.join("merged");
        let adapters = AdapterFolder::open(&folder).unwrap();
        let done = merge(trainer.base(), Some(&adapters), &merged, StoredType::F32).unwrap();
        let config = &trainer.base().checkpoint().config;
        assert_eq!(done.adapted, 7 * config.layers.len(), "{name}");
        assert_eq!(done.architecture, config.architecture, "{name}");
        let opened = Checkpoint::open(&merged).unwrap();
        assert_eq!(opened.generation.eos_ids, trainer.base().checkpoint().generation.eos_ids);
        let text = "Add 12 and 345.";
        assert_eq!(
            opened.tokenizer.encode(text, true).unwrap(),
            trainer.base().checkpoint().tokenizer.encode(text, true).unwrap()
        );
        let decoder = trainer.decoder().for_inference();
        let (mut engine, mut unadapted) = (engine(&merged), engine(&tiny(name)));
        let prompt = ids(30);
        let ours = after(&decoder, &prompt);
        near(name, &ours, &engine.logits_after(&prompt, 1).unwrap(), 1e-4);
        let before = unadapted.logits_after(&prompt, 1).unwrap();
        assert!(ours.iter().zip(&before).any(|(a, b)| (a - b).abs() > 1e-2), "{name}: nothing was learnt");
        let mut generated = prompt.clone();
        for _ in 0..12 {
            let logits = engine.logits_after(&generated, 1).unwrap();
            generated.push(logits.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).unwrap().0 as u32);
        }
        assert_eq!(generated[30..], greedy(&decoder, &prompt, 12), "{name}");
    }
}

#[test]
fn adapters_have_the_layout_of_peft_and_come_back_without_our_settings() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("adapters");
    let (trainer, ..) = train(&LoraSettings { steps: 2, ..settings("qwen2") }, &folder, None);
    let config: serde_json::Value =
        serde_json::from_slice(&std::fs::read(folder.join("adapter_config.json")).unwrap()).unwrap();
    assert_eq!((&config["peft_type"], &config["r"], &config["lora_alpha"]), (&"LORA".into(), &4.into(), &8.0.into()));
    let bytes = std::fs::read(folder.join("adapter_model.safetensors")).unwrap();
    let tensors = candle_core::safetensors::load_buffer(&bytes, &Device::Cpu).unwrap();
    assert_eq!(tensors.len(), 2 * 7 * 3);
    let a = &tensors["base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"];
    assert_eq!(a.dims(), [4, 64]);
    let merged = |name: &str| {
        let to = place.path().join(name);
        merge(trainer.base(), Some(&AdapterFolder::open(&folder).unwrap()), &to, StoredType::F32).unwrap();
        std::fs::read(to.join("model.safetensors")).unwrap()
    };
    let with = merged("with");
    std::fs::remove_file(folder.join("training.json")).unwrap();
    assert_eq!(merged("without"), with);
    // Another base with the same widths is found out by its files; one with other widths by its shapes.
    let adapters = AdapterFolder::open(&folder).unwrap();
    let other = Base::open(&tiny("llama-mha-tied-headdim"), Retrofit::default()).unwrap();
    let refused = merge(&other, Some(&adapters), &place.path().join("no"), StoredType::F32).unwrap_err().to_string();
    assert!(refused.contains("in the base"), "{refused}");
    assert!(!place.path().join("no/model.safetensors").exists());
}

#[test]
fn a_merged_retrofit_has_no_positions_and_a_name_that_says_so() {
    let place = tempfile::tempdir().unwrap();
    let retrofit = Retrofit { nope: true, single_digits: true };
    let mut settings = LoraSettings { retrofit, steps: 3, ..settings("llama") };
    settings.data = LoraData::Questions {
        tasks: vec!["add_Integer".into()],
        lengths: vec![2],
        beyond: Vec::new(),
        format: FormatSettings { reversal: "int".into(), zero_padding: true, index_hints: None },
        any_shorter_operand: false,
        rule_following: false,
    };
    let folder = place.path().join("adapters");
    let (trainer, ..) = train(&settings, &folder, None);
    // PEFT would put them on a model with positions.
    assert!(!folder.join("adapter_config.json").exists());
    let merged = place.path().join("merged");
    let base = Base::open(&tiny("llama"), retrofit).unwrap();
    merge(&base, Some(&AdapterFolder::open(&folder).unwrap()), &merged, StoredType::F32).unwrap();
    let config = std::fs::read_to_string(merged.join("config.json")).unwrap();
    assert!(config.contains("SmolLM3ForCausalLM") && !config.to_lowercase().contains("llama"), "{config}");
    let prompt = ids(20);
    let ours = after(&trainer.decoder().for_inference(), &prompt);
    near("nope", &ours, &engine(&merged).logits_after(&prompt, 1).unwrap(), 1e-4);
    // Without positions, only the last token's place matters to what attention sees.
    let mut swapped = prompt.clone();
    swapped.swap(3, 11);
    let plain = Base::open(&tiny("llama"), Retrofit::default()).unwrap();
    let rotated = plain.decoder(&adapters(), 1, &mut Parameters::default()).unwrap();
    let moved = |decoder: &Decoder| {
        let (a, b) = (after(decoder, &prompt), after(decoder, &swapped));
        a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    };
    assert!(moved(&trainer.decoder().for_inference()) < moved(&rotated));
    let digits = Checkpoint::open(&merged).unwrap().tokenizer;
    let of = |text: &str| digits.encode(text, false).unwrap();
    assert_eq!(of("907"), [of("9"), of("0"), of("7")].concat());
    assert_eq!(of("a 907"), base.checkpoint().tokenizer.encode("a 907", false).unwrap());
}

#[test]
fn pairs_and_rules_are_learnt() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("pairs.jsonl");
    let rows: String = (0..20)
        .map(|row| {
            format!(
                "{{\"Body\": \"Row {row}.\", \"Question\": \"Letter?\", \"Answer\": \"{}\"}}\n",
                ["a", "b"][row % 2]
            )
        })
        .collect();
    std::fs::write(&file, rows).unwrap();
    let sha256 = earnest_digest::sha256_file(&file, |_| {}).unwrap();
    let pairs = |held_out| LoraData::Pairs {
        file: file.clone(),
        sha256: sha256.clone(),
        held_out,
        prompt_field: None,
        completion_field: None,
        system: Some("Answer.".into()),
        separator: " ".into(),
    };
    let with = |data| LoraSettings { data, steps: 6, validate_every: 3, ..settings("llama") };
    let (_, losses, validations, _) = train(&with(pairs(0.3)), &place.path().join("pairs"), None);
    assert!(losses[5] < losses[0], "{losses:?}");
    let cell = &validations[2].cells[0];
    assert_eq!((cell.task.as_str(), cell.length, cell.questions), ("pairs", 0, 3));
    // Nothing held out is a choice; nothing left to learn is not.
    let (_, _, validations, _) = train(&with(pairs(0.0)), &place.path().join("all"), None);
    assert!(validations.iter().all(|validation| validation.cells.is_empty()));
    let refused = LoraTrainer::open(with(pairs(0.999_999)), &place.path().join("none")).err().unwrap().to_string();
    assert!(refused.contains("0 rows are for training"), "{refused}");
    std::fs::write(&file, "{}").unwrap();
    let refused = LoraTrainer::open(with(pairs(0.3)), &place.path().join("pairs")).err().unwrap().to_string();
    assert!(refused.contains("not the file"), "{refused}");

    let ruled = |tasks: &[&str]| {
        let data = LoraData::Questions {
            tasks: tasks.iter().map(|task| (*task).to_owned()).collect(),
            lengths: vec![1],
            beyond: Vec::new(),
            format: FormatSettings::default(),
            any_shorter_operand: false,
            rule_following: true,
        };
        LoraSettings { data, steps: 1, validate_every: 1, validation: 1, context: 512, ..settings("llama") }
    };
    let run = |settings, name: &str| {
        LoraTrainer::open(settings, &place.path().join(name))
            .and_then(|mut trainer| trainer.run(&AtomicBool::new(false), &mut |_| {}))
    };
    assert_eq!(run(ruled(&["length_Integer"]), "ruled").unwrap(), TrainOutcome::Finished);
    // No trace fits.
    let failed = run(LoraSettings { context: 40, ..ruled(&["length_Integer"]) }, "short");
    assert!(failed.as_ref().is_err_and(|error| error.to_string().contains("into 40 tokens")), "{failed:?}");
    assert!(ruled(&["count_Integer"]).check().unwrap_err().to_string().contains("count"));
}
