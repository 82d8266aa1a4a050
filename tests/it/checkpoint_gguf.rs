//! GGUF files of the families of 2024 and before, types, metadata and tokenizers.
use crate::gguf_files::{Gguf, assert_same, convert, is_here, texts};
use candle_core::quantized::GgmlDType;
use candle_core::quantized::gguf_file::Value;
use earnest_models::checkpoint::{
    Checkpoint, CheckpointError, DecoderConfig, Format, LayerParameter, Parameter, RopeScaling, Values,
};

#[test]
fn llama_models_come_back() {
    for name in ["llama", "llama-mha-tied-headdim", "mistral-full", "mixtral"] {
        let (gguf, source) = convert(name, "llama");
        assert_same(&gguf, &source, source.config.clone());
    }
    // Experts as the first files had them, one tensor each.
    let (mut gguf, source) = convert("mixtral", "llama");
    for matrix in ["ffn_gate", "ffn_up", "ffn_down"] {
        for layer in 0..3 {
            let (shape, values) = gguf.tensors.remove(&format!("blk.{layer}.{matrix}_exps.weight")).unwrap();
            let size = shape[1] * shape[2];
            for e in 0..4 {
                let own = values[e * size..(e + 1) * size].to_vec();
                gguf.tensors.insert(format!("blk.{layer}.{matrix}.{e}.weight"), (shape[1..].to_vec(), own));
            }
        }
    }
    assert_same(&gguf, &source, source.config.clone());
}

#[test]
fn llama31_scaling_comes_as_divisors() {
    let (mut gguf, source) = convert("llama31-ropescaling", "llama");
    let divisors = [1.0f32, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0];
    gguf.tensors.insert("rope_freqs.weight".into(), (vec![8], divisors.to_vec()));
    let mut expected = source.config.clone();
    expected.ropes[0].scaling = RopeScaling::Divisors(divisors.map(f64::from).to_vec());
    assert_same(&gguf, &source, expected);
    gguf.tensors.insert("rope_freqs.weight".into(), (vec![4], vec![1.0; 4]));
    let error = gguf.open().unwrap_err().to_string();
    assert!(error.contains("rope_freqs.weight") && error.contains('8'), "{error}");
}

#[test]
fn qwen_models_come_back() {
    for (name, arch) in [("qwen2", "qwen2"), ("qwen3", "qwen3")] {
        let (gguf, source) = convert(name, arch);
        assert_same(&gguf, &source, source.config.clone());
    }
}

#[test]
fn recent_models_come_back() {
    let (gguf, source) = convert("qwen3-moe", "qwen3moe");
    assert_same(&gguf, &source, source.config.clone());
    let (gguf, source) = convert("smollm3", "smollm3");
    assert_same(&gguf, &source, source.config.clone());
    if !is_here("olmo2") {
        return;
    }
    let (gguf, source) = convert("olmo2", "olmo2");
    assert_same(&gguf, &source, source.config.clone());
    let (mut gguf, source) = convert("granite3", "granite");
    let c = source.config.clone();
    let scales = [
        ("embedding_scale", c.embedding_scale),
        ("residual_scale", c.residual_scale),
        ("logit_scale", 1.0 / c.logit_scale),
        ("attention.scale", c.attention_scale),
    ];
    for (key, scale) in scales {
        gguf.set(&format!("granite.{key}"), Value::F32(scale));
    }
    assert_same(&gguf, &source, c);
    gguf.set("granite.rope.scaling.finetuned", Value::Bool(false));
    let layers = gguf.open().unwrap().config.layers;
    assert!(layers.iter().all(|l| l.position == earnest_models::checkpoint::Position::None));
    for (name, arch, original) in [("qwen2.5-yarn", "qwen2", 40), ("qwen3-yarn", "qwen3", 40)] {
        let (mut gguf, source) = convert(name, arch);
        gguf.set(&format!("{arch}.rope.scaling.type"), Value::String("yarn".into()));
        gguf.set(&format!("{arch}.rope.scaling.factor"), Value::F32(4.0));
        gguf.set(&format!("{arch}.rope.scaling.original_context_length"), Value::U32(original));
        assert_same(&gguf, &source, source.config.clone());
    }
}

#[test]
fn gemma_models_come_back() {
    let (gguf, source) = convert("gemma", "gemma");
    assert_same(&gguf, &source, source.config.clone());

    let (mut gguf, source) = convert("gemma2", "gemma2");
    gguf.set("gemma2.attention.sliding_window", Value::U32(16));
    gguf.set("gemma2.attn_logit_softcapping", Value::F32(50.0));
    // The file has no key for the query scale of the test model; llama.cpp's rule is the width of a head.
    let expected = DecoderConfig { attention_scale: 32f32.powf(-0.5), ..source.config.clone() };
    assert_same(&gguf, &source, expected);

    let (mut gguf, source) = convert("gemma3-text", "gemma3");
    gguf.set("gemma3.attention.sliding_window", Value::U32(16));
    assert_same(&gguf, &source, source.config.clone());
    gguf.set("gemma3.rope.scaling.type", Value::String("linear".into()));
    gguf.set("gemma3.rope.scaling.factor", Value::F32(8.0));
    let mut expected = source.config.clone();
    expected.ropes[0].scaling = RopeScaling::Linear { factor: 8.0 };
    assert_same(&gguf, &source, expected);
}

#[test]
fn phi_models_come_back() {
    let (gguf, source) = convert("phi2", "phi2");
    assert_same(&gguf, &source, source.config.clone());

    let (mut gguf, source) = convert("phi3", "phi3");
    gguf.set("phi3.rope.scaling.original_context_length", Value::U32(4096));
    gguf.set("phi3.attention.sliding_window", Value::U32(0));
    assert_same(&gguf, &source, source.config.clone());
    gguf.set("phi3.attention.sliding_window", Value::U32(2047));
    assert_eq!(gguf.open().unwrap().config.layers[0].window, Some(2047));

    let (mut gguf, source) = convert("phi3-longrope", "phi3");
    let RopeScaling::LongRope { short, long, .. } = &source.config.ropes[0].scaling else { panic!() };
    let as_f32 = |list: &[f64]| (vec![list.len()], list.iter().map(|v| *v as f32).collect::<Vec<f32>>());
    gguf.tensors.insert("rope_factors_short.weight".into(), as_f32(short));
    gguf.tensors.insert("rope_factors_long.weight".into(), as_f32(long));
    gguf.set("phi3.rope.scaling.original_context_length", Value::U32(100));
    let c = gguf.open().unwrap();
    let RopeScaling::LongRope { short: s, long: l, original_max_positions, attention_factor } =
        &c.config.ropes[0].scaling
    else {
        panic!()
    };
    assert!(s.iter().zip(short).chain(l.iter().zip(long)).all(|(a, b)| (a - b).abs() < 1e-6));
    assert_eq!(*original_max_positions, 100);
    assert!((attention_factor - (1.0 + 5.12f64.ln() / 100f64.ln()).sqrt()).abs() < 1e-12);
    gguf.set("phi3.rope.scaling.attn_factor", Value::F32(1.25));
    let scaling = gguf.open().unwrap().config.ropes[0].scaling.clone();
    assert!(matches!(scaling, RopeScaling::LongRope { attention_factor: 1.25, .. }), "{scaling:?}");
    gguf.tensors.remove("rope_factors_long.weight");
    assert!(gguf.open().unwrap_err().to_string().contains("rope_factors_long.weight"));
}

/// A llama of one layer whose matrices have rows of 256, which every block size divides.
fn wide() -> Gguf {
    let mut gguf = convert("llama", "llama").0;
    let mut value = 0u32;
    let mut matrix = |rows: usize| {
        let values = (0..rows * 256).map(|_| {
            value = value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (value >> 8) as f32 / (1 << 24) as f32 - 0.5
        });
        (vec![rows, 256], values.collect::<Vec<f32>>())
    };
    gguf.tensors.clear();
    for (name, rows) in [
        ("attn_q", 256),
        ("attn_k", 128),
        ("attn_v", 128),
        ("attn_output", 256),
        ("ffn_gate", 256),
        ("ffn_up", 256),
        ("ffn_down", 256),
    ] {
        gguf.tensors.insert(format!("blk.0.{name}.weight"), matrix(rows));
    }
    gguf.tensors.insert("token_embd.weight".into(), matrix(512));
    for name in ["blk.0.attn_norm.weight", "blk.0.ffn_norm.weight", "output_norm.weight"] {
        gguf.tensors.insert(name.into(), (vec![256], vec![1.0; 256]));
    }
    for (key, n) in [
        ("block_count", 1),
        ("embedding_length", 256),
        ("feed_forward_length", 256),
        ("attention.key_length", 64),
        ("attention.value_length", 64),
        ("rope.dimension_count", 64),
    ] {
        gguf.set(&format!("llama.{key}"), Value::U32(n));
    }
    gguf
}

#[test]
fn every_type_is_dequantised() {
    use GgmlDType::*;
    for (dtype, most) in [
        (Q4_0, 0.07),
        (Q4_1, 0.05),
        (Q5_0, 0.04),
        (Q5_1, 0.03),
        (Q8_0, 0.005),
        (Q2K, 0.3),
        (Q3K, 0.15),
        (Q4K, 0.06),
        (Q5K, 0.03),
        (Q6K, 0.02),
        (Q8K, 0.005),
    ] {
        let mut gguf = wide();
        gguf.metadata.remove("general.file_type");
        let names: Vec<String> = gguf.tensors.iter().filter(|(_, t)| t.0.len() == 2).map(|(n, _)| n.clone()).collect();
        gguf.types.extend(names.into_iter().map(|n| (n, dtype)));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.gguf");
        gguf.write(&path);
        let c = Checkpoint::open(&path).unwrap_or_else(|e| panic!("{dtype:?}: {e}"));
        assert_eq!(c.format, Format::Gguf { quantisation: format!("{dtype:?}") });
        let tensor = c.tensor(Parameter::Embedding, &[512, 256]).unwrap();
        let Values::F32(values) = tensor.values else { panic!("{dtype:?}") };
        let original = &gguf.tensors["token_embd.weight"].1;
        let worst = values.iter().zip(original).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(worst > 0.0 && worst < most, "{dtype:?}: {worst}");
        // Rows that are put back in order are whole rows of the dequantised tensor.
        let Values::F32(query) = c.tensor(Parameter::Layer(0, LayerParameter::Query), &[256, 256]).unwrap().values
        else {
            panic!()
        };
        let stored = &gguf.tensors["blk.0.attn_q.weight"].1;
        let row = |v: &[f32], r: usize| v[r * 256..r * 256 + 256].to_vec();
        let close = |a: Vec<f32>, b: Vec<f32>| a.iter().zip(&b).all(|(a, b)| (a - b).abs() < most);
        assert!(close(row(&query, 1), row(stored, 2)) && close(row(&query, 32), row(stored, 1)), "{dtype:?}");
    }
    for (dtype, kept) in [(F16, "F16"), (BF16, "Bf16")] {
        let mut gguf = wide();
        gguf.types.insert("token_embd.weight".into(), dtype);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.gguf");
        gguf.write(&path);
        let values = Checkpoint::open(&path).unwrap().tensor(Parameter::Embedding, &[512, 256]).unwrap().values;
        assert!(format!("{values:?}").starts_with(kept));
    }
}

#[test]
fn metadata_that_changes_the_maths_is_refused_by_name() {
    let cases: Vec<(&str, Value, Vec<&str>)> = vec![
        ("general.architecture", Value::String("mamba".into()), vec!["mamba", "docs/models.md"]),
        ("general.type", Value::String("adapter".into()), vec!["adapter", "whole models"]),
        ("split.count", Value::U16(2), vec!["the first of 2 parts", "-00001-of-00002.gguf"]),
        ("llama.logit_scale", Value::F32(0.5), vec!["llama.logit_scale", "0.5", "not known"]),
        ("llama.attention.sliding_window", Value::U32(16), vec!["llama.attention.sliding_window"]),
        ("llama.attention.causal", Value::Bool(false), vec!["causal"]),
        ("llama.attention.value_length", Value::U32(8), vec!["value_length"]),
        ("llama.attention.head_count_kv", Value::U32(3), vec!["head_count_kv", "divide"]),
        ("llama.rope.dimension_count", Value::U32(8), vec!["rope.dimension_count", "8 of 16"]),
        ("llama.rope.scaling.type", Value::String("yarn".into()), vec!["rope.scaling.type", "yarn"]),
        ("llama.rope.freq_base", Value::F32(-1.0), vec!["rope.freq_base"]),
        ("llama.block_count", Value::U32(u32::MAX), vec!["block_count"]),
        ("llama.block_count", Value::U32(4), vec!["blk.3.attn_norm.weight", "layer 3"]),
        ("llama.feed_forward_length", Value::U32(128), vec!["ffn_gate", "[160, 64]", "[128, 64]"]),
        ("llama.vocab_size", Value::U32(511), vec!["vocab_size", "512"]),
        ("llama.expert_count", Value::U32(2), vec!["expert_used_count"]),
        ("tokenizer.ggml.model", Value::String("bert".into()), vec!["bert", "gpt2"]),
        ("tokenizer.ggml.pre", Value::String("mystery".into()), vec!["tokenizer.ggml.pre", "mystery", "llama-bpe"]),
        ("tokenizer.ggml.tokens", Value::U32(1), vec!["tokenizer.ggml.tokens"]),
        ("tokenizer.ggml.token_type", Value::Array(vec![Value::I32(1)]), vec!["token_type", "512"]),
        ("tokenizer.ggml.merges", texts(["ab".to_string()]), vec!["merge"]),
        ("tokenizer.ggml.eos_token_id", Value::U32(600), vec!["600", "vocabulary"]),
        ("general.alignment", Value::U32(0), vec!["general.alignment", "0"]),
    ];
    for (key, value, words) in cases {
        let (mut gguf, _) = convert("llama", "llama");
        gguf.set(key, value);
        let error = gguf.open().err().unwrap_or_else(|| panic!("{key} has to be refused")).to_string();
        for word in words {
            assert!(error.contains(word), "{key}: {word:?} is not in: {error}");
        }
        assert!(error.contains("m.gguf"), "{error}");
    }
    let (mut gguf, _) = convert("llama", "llama");
    gguf.metadata.remove("tokenizer.ggml.eos_token_id");
    assert!(gguf.open().unwrap_err().to_string().contains("no end-of-sequence"));
    gguf.set("tokenizer.ggml.eot_token_id", Value::U32(7));
    assert_eq!(gguf.open().unwrap().generation.eos_ids, [7]);
    let (mut gguf, _) = convert("llama", "llama");
    gguf.tensors.insert("blk.0.attn_q.scale".into(), (vec![1], vec![1.0]));
    assert!(gguf.open().unwrap_err().to_string().contains("blk.0.attn_q.scale"));
    // A size given layer by layer, as some converters do.
    let (mut gguf, source) = convert("llama", "llama");
    gguf.set("llama.attention.head_count_kv", Value::Array(vec![Value::U32(2); 3]));
    assert_same(&gguf, &source, source.config.clone());
    gguf.set("llama.attention.head_count_kv", Value::Array(vec![Value::U32(2), Value::U32(4), Value::U32(2)]));
    assert!(gguf.open().unwrap_err().to_string().contains("head_count_kv"));
}

/// Opens a file with `--allow-config` options.
fn open_allowing(gguf: &Gguf, allow: &[&str]) -> Result<Checkpoint, CheckpointError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    gguf.write(&path);
    Checkpoint::open_allowing(&path, &allow.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>())
}

#[test]
fn a_missing_or_unknown_pre_tokenizer_is_named_by_the_user() {
    let text = "is 12345  + 6\n";
    let (named, _) = convert("llama", "llama");
    let expected = named.open().unwrap().tokenizer.encode(text, false).unwrap();
    let mut unknown = convert("llama", "llama").0;
    unknown.set("tokenizer.ggml.pre", Value::String("mystery".into()));
    let mut missing = convert("llama", "llama").0;
    missing.metadata.remove("tokenizer.ggml.pre");
    for (gguf, words) in [(&missing, "tokenizer.ggml.pre is missing"), (&unknown, "tokenizer.ggml.pre is mystery")] {
        let error = gguf.open().unwrap_err();
        let said = error.to_string();
        for part in [words, "m.gguf", "smollm", "llama-bpe", "digit by digit", "up to three digits"] {
            assert!(said.contains(part), "{part:?} is not in: {said}");
        }
        assert!(error.help().unwrap().contains("the setting `allow_config = tokenizer.ggml.pre="), "{said}");
        let checkpoint = open_allowing(gguf, &["tokenizer.ggml.pre=smollm"]).unwrap();
        assert_eq!(checkpoint.tokenizer.encode(text, false).unwrap(), expected);
        let supplied = checkpoint.pre_tokenizer.unwrap();
        assert_eq!(supplied.option().as_deref(), Some("tokenizer.ggml.pre=smollm"));
        assert!(supplied.note.starts_with(words) && supplied.note.contains("smollm is used"), "{}", supplied.note);
        for (names, said, help) in [
            (&["tokenizer.ggml.pre=nosuch"][..], "there is no pre-tokenizer nosuch", "llama-bpe, llama3"),
            (&["tokenizer.ggml.pre=smollm", "tokenizer.ggml.pre=llama3"], "twice", "leave one out"),
        ] {
            let error = open_allowing(gguf, names).unwrap_err();
            assert!(error.to_string().contains(said) && error.help().unwrap().contains(help), "{error}");
        }
    }
    // What the file says itself stays.
    let said = open_allowing(&named, &["tokenizer.ggml.pre=llama-bpe"]).unwrap_err().to_string();
    assert!(
        said.contains("is smollm in the file") && said.contains("llama-bpe") && said.contains("leave it out"),
        "{said}"
    );
    let own = named.open().unwrap();
    assert!(own.pre_tokenizer.is_none() && own.own_pre_tokenizer() == Some("smollm"));
    let mut wrong = convert("llama", "llama").0;
    wrong.set("tokenizer.ggml.pre", Value::U32(3));
    assert!(wrong.open().unwrap_err().to_string().contains("not a string"));
    // A vocabulary by scores is not split.
    let mut scored = sentencepiece(None);
    scored.metadata.remove("tokenizer.ggml.pre");
    let scored = scored.open().unwrap();
    assert!(scored.pre_tokenizer.is_none() && scored.own_pre_tokenizer().is_none());
}

/// Adds a token and the merge that makes it, in the place of a padding token.
pub(crate) fn add_merged(gguf: &mut Gguf, left: &str, right: &str) {
    let Some(Value::Array(tokens)) = gguf.metadata.get_mut("tokenizer.ggml.tokens") else { panic!("no tokens") };
    let id = tokens.iter().position(|token| token.to_string().is_ok_and(|token| token.starts_with("[PAD"))).unwrap();
    tokens[id] = Value::String(format!("{left}{right}"));
    let Some(Value::Array(kinds)) = gguf.metadata.get_mut("tokenizer.ggml.token_type") else { panic!("no kinds") };
    kinds[id] = Value::I32(1);
    let Some(Value::Array(merges)) = gguf.metadata.get_mut("tokenizer.ggml.merges") else { panic!("no merges") };
    merges.push(Value::String(format!("{left} {right}")));
}

#[test]
fn a_vocabulary_that_only_one_scheme_could_make_names_it() {
    let (mut gguf, _) = convert("llama", "llama");
    gguf.metadata.remove("tokenizer.ggml.pre");
    for (left, right) in [("1", "2"), ("3", "4"), ("12", "34"), ("Ġ", "1234")] {
        add_merged(&mut gguf, left, right);
    }
    let checkpoint = gguf.open().unwrap_or_else(|error| panic!("{error}"));
    let supplied = checkpoint.pre_tokenizer.as_ref().unwrap();
    assert_eq!((supplied.name.as_str(), supplied.by_user, supplied.option()), ("gpt-2", false, None));
    assert!(supplied.note.contains("gpt-2 is used, because"), "{}", supplied.note);
    assert_eq!(checkpoint.tokenizer.encode("12345", false).unwrap().len(), 2);
    // A name that is not known says that it is another one.
    gguf.set("tokenizer.ggml.pre", Value::String("mystery".into()));
    let said = gguf.open().unwrap_err().to_string();
    assert!(said.contains("mystery") && said.contains("gpt-2") && !said.contains("llama-bpe"), "{said}");
    // One that the vocabulary contradicts is used with a warning.
    let note = open_allowing(&gguf, &["tokenizer.ggml.pre=smollm"]).unwrap().pre_tokenizer.unwrap().note;
    assert!(note.contains("\"12\"") && note.contains("may be the wrong one"), "{note}");
}

#[test]
fn damaged_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.gguf");
    convert("llama", "llama").0.write(&path);
    let bytes = std::fs::read(&path).unwrap();
    let refusal = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Checkpoint::open(&path).expect_err("it has to be refused")
    };
    // Cut anywhere, it is truncated; nothing panics.
    for length in (0..600).step_by(7).chain((600..bytes.len()).step_by(19_973)).chain([bytes.len() - 64]) {
        let error = refusal(&bytes[..length]);
        assert!(matches!(error, CheckpointError::Truncated { .. }), "{length}: {error}");
    }
    let changed = |at: usize, with: &[u8]| {
        let mut copy = bytes.clone();
        copy[at..at + with.len()].copy_from_slice(with);
        refusal(&copy)
    };
    assert!(changed(0, b"GGML").to_string().contains("letters GGUF"));
    assert!(changed(4, &1u32.to_le_bytes()).to_string().contains("version 1"));
    assert!(changed(4, &9u32.to_le_bytes()).to_string().contains("version 9"));
    assert!(changed(4, &3u32.to_be_bytes()).to_string().contains("big-endian"));
    // Counts that would ask for more memory than the file is long.
    for at in [8, 16, 24] {
        for hostile in [u64::MAX, 1 << 40, 1 << 62] {
            let error = changed(at, &hostile.to_le_bytes());
            assert!(matches!(error, CheckpointError::Truncated { .. }), "{at}: {error}");
        }
    }
    // A tensor with dimensions whose product overflows, one of a type that is not read, one that ends outside.
    let name = b"output_norm.weight";
    let entry = bytes.windows(name.len()).rposition(|w| w == name).unwrap() + name.len();
    let error = changed(entry + 4, &u64::MAX.to_le_bytes());
    assert!(error.to_string().contains("output_norm.weight"), "{error}");
    let error = changed(entry + 12, &19u32.to_le_bytes());
    assert!(matches!(&error, CheckpointError::ElementType { tensor, .. } if tensor == "output_norm.weight"), "{error}");
    assert!(error.to_string().contains("IQ1_S"), "{error}");
    let error = changed(entry + 16, &(1u64 << 50).to_le_bytes());
    assert!(matches!(error, CheckpointError::Truncated { .. }), "{error}");
    let error = changed(entry, &7u32.to_le_bytes());
    assert!(error.to_string().contains("7 dimensions"), "{error}");
}

/// A SentencePiece vocabulary as GGUF has it.
fn sentencepiece(prefix: Option<bool>) -> Gguf {
    let (mut gguf, _) = convert("llama", "llama");
    let mut tokens: Vec<(String, f32, i32)> =
        vec![("<unk>".into(), 0.0, 2), ("<s>".into(), 0.0, 3), ("</s>".into(), 0.0, 3)];
    tokens.extend((0..256).map(|b| (format!("<0x{b:02X}>"), 0.0, 6)));
    for (i, token) in ["▁a", "ab", "▁ab", "abb", "▁", "a", "b", "1"].into_iter().enumerate() {
        tokens.push((token.into(), -(i as f32), 1));
    }
    tokens.push(("  ".into(), -1000.0, 4));
    while tokens.len() < 512 {
        tokens.push((format!("[{}]", tokens.len()), -1000.0, 5));
    }
    gguf.set("tokenizer.ggml.model", Value::String("llama".into()));
    gguf.set("tokenizer.ggml.pre", Value::String("default".into()));
    gguf.metadata.remove("tokenizer.ggml.merges");
    gguf.metadata.remove("tokenizer.ggml.add_bos_token");
    gguf.set("tokenizer.ggml.tokens", texts(tokens.iter().map(|t| t.0.clone())));
    gguf.set("tokenizer.ggml.scores", Value::Array(tokens.iter().map(|t| Value::F32(t.1)).collect()));
    gguf.set("tokenizer.ggml.token_type", Value::Array(tokens.iter().map(|t| Value::I32(t.2)).collect()));
    gguf.set("tokenizer.ggml.unknown_token_id", Value::U32(0));
    if let Some(prefix) = prefix {
        gguf.set("tokenizer.ggml.add_space_prefix", Value::Bool(prefix));
    }
    gguf
}

#[test]
fn sentencepiece_merges_by_score() {
    let t = sentencepiece(None).open().unwrap().tokenizer;
    // BOS unless the file says no; `▁` in front; `▁a` wins over `ab`, then `▁ab`.
    let (unk, first) = (259, 259 + 2);
    assert_eq!(t.encode("ab", true).unwrap(), [1, first]);
    assert_eq!(t.encode("ab ab", false).unwrap(), [first, first]);
    assert_eq!(t.encode("1", false).unwrap(), [unk + 4, unk + 7]);
    // Unknown characters as bytes, user-defined tokens before anything else.
    assert_eq!(t.encode("é", false).unwrap(), [unk + 4, 3 + 0xC3, 3 + 0xA9]);
    let t = sentencepiece(Some(false)).open().unwrap().tokenizer;
    assert_eq!(t.encode("1  1", false).unwrap(), [unk + 7, unk + 8, unk + 7]);
    assert_eq!(t.encode("</s>1", true).unwrap(), [1, 2, unk + 7]);
    for prefix in [true, false] {
        let t = sentencepiece(Some(prefix)).open().unwrap().tokenizer;
        // A user-defined token is followed by another space prefix, as in llama.cpp, so it has none in this text.
        for text in ["ab ab é\n", " 1", "", "🦀"] {
            let ids = t.encode(text, true).unwrap();
            assert_eq!(t.decode(&ids, true), text, "{ids:?}");
            let mut stream = t.stream();
            let mut streamed: String = ids.iter().map(|id| stream.push(*id).to_string()).collect();
            streamed.push_str(stream.finish());
            assert_eq!(streamed, text);
        }
    }
    let mut gguf = sentencepiece(None);
    gguf.set("tokenizer.ggml.scores", Value::Array(vec![Value::F32(0.0)]));
    assert!(gguf.open().unwrap_err().to_string().contains("scores"));
}

#[test]
fn the_chat_template_is_in_the_file() {
    let (mut gguf, _) = convert("llama", "llama");
    gguf.set(
        "tokenizer.chat_template",
        Value::String("{{ bos_token }}{{ messages[0]['content'] }}\n{{ raise_exception('x') }}".into()),
    );
    let template = gguf.open().unwrap().chat_template.unwrap();
    let error =
        template.render(&[earnest_models::checkpoint::ChatMessage::new("user", "Hi")], true).unwrap_err().to_string();
    assert!(error.contains("m.gguf") && error.contains("line 2"), "{error}");
    gguf.set("tokenizer.chat_template", Value::String("{{ bos_token }}{{ messages[0]['content'] }}".into()));
    let template = gguf.open().unwrap().chat_template.unwrap();
    assert_eq!(
        template.render(&[earnest_models::checkpoint::ChatMessage::new("user", "Hi")], true).unwrap(),
        "<bos>Hi"
    );
}
