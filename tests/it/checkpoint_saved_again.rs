//! Folders as transformers 5.23 saves published models again, and values that the errors of loading have to place.
use std::process::Command;

use earnest_engine::cpu::{CpuEngine, Options};
use earnest_models::checkpoint::{Checkpoint, Parameter};
use serde_json::json;

use super::checkpoint_folder::{assert_says, copy, edit, refusal, with_config, with_tensors};

const TIED: &str = "llama-mha-tied-headdim";
const EMBEDDING: &str = "model.embed_tokens.weight";
const HEAD: &str = "lm_head.weight";

#[test]
fn a_head_of_its_own_unties_and_a_copy_does_not() {
    let same = with_tensors(TIED, |tensors| {
        let embedding = tensors[EMBEDDING].clone();
        tensors.insert(HEAD.to_owned(), embedding);
    });
    assert!(Checkpoint::open(same.path()).unwrap().config.tied_embeddings);
    let other = with_tensors(TIED, |tensors| {
        let mut head = tensors[EMBEDDING].clone();
        head.2[3] ^= 1;
        tensors.insert(HEAD.to_owned(), head);
    });
    let opened = Checkpoint::open(other.path()).unwrap();
    assert!(!opened.config.tied_embeddings);
    let shape = [opened.config.vocab_size, opened.config.hidden_size];
    let read = |p| format!("{:?}", opened.tensor(p, &shape).unwrap().values);
    assert!(read(Parameter::Head) != read(Parameter::Embedding));
    // A head of another shape is none.
    let cut = with_tensors(TIED, |tensors| {
        let (dtype, shape, bytes) = tensors[EMBEDDING].clone();
        let half = (dtype, vec![shape[0] / 2, shape[1]], bytes[..bytes.len() / 2].to_vec());
        tensors.insert(HEAD.to_owned(), half);
    });
    assert_says(&refusal(&cut), &[HEAD, "has shape"]);
}

#[test]
fn a_tied_matrix_may_be_stored_as_the_head_alone() {
    let usual = with_tensors(TIED, |_| ());
    let moved = with_tensors(TIED, |tensors| {
        let embedding = tensors.remove(EMBEDDING).unwrap();
        tensors.insert(HEAD.to_owned(), embedding);
    });
    let [usual, moved] = [usual, moved].map(|folder| {
        let opened = Checkpoint::open(folder.path()).unwrap();
        assert!(opened.config.tied_embeddings);
        let shape = [opened.config.vocab_size, opened.config.hidden_size];
        format!("{:?}", opened.tensor(Parameter::Embedding, &shape).unwrap().values)
    });
    assert!(usual == moved);
    let neither = with_tensors(TIED, |tensors| drop(tensors.remove(EMBEDDING)));
    assert_says(&refusal(&neither), &[EMBEDDING, "is missing"]);
}

#[test]
fn heads_are_tied_by_either_flag_unless_one_is_stored() {
    let flags = |outer: serde_json::Value, inner: serde_json::Value| {
        let folder = copy("gemma4-e2b");
        edit(folder.path(), "config.json", |config| {
            config["tie_word_embeddings"] = outer;
            config["text_config"]["tie_word_embeddings"] = inner;
        });
        folder
    };
    for (outer, inner) in [(true, false), (false, true), (true, true)] {
        assert!(Checkpoint::open(flags(json!(outer), json!(inner)).path()).unwrap().config.tied_embeddings);
    }
    assert_says(&refusal(&flags(json!(false), json!(false))), &[HEAD, "is missing"]);
}

#[test]
fn heads_of_full_layers_are_read_from_the_list_of_layers() {
    let listed = |layers: serde_json::Value| {
        let folder = copy("gemma4-e2b");
        edit(folder.path(), "config.json", |config| {
            let text = config["text_config"].as_object_mut().unwrap();
            text.remove("global_head_dim");
            text.insert("per_layer_config".to_owned(), layers);
        });
        folder
    };
    let published = Checkpoint::open(copy("gemma4-e2b").path()).unwrap();
    let again = Checkpoint::open(listed(json!({"2": {"head_dim": 32}, "5": {"head_dim": 32}})).path()).unwrap();
    assert_eq!(again.config, published.config);
    for layers in [
        json!({"2": {"head_dim": 32}}),
        json!({"2": {"head_dim": 32}, "5": {"head_dim": 64}}),
        json!({"1": {"head_dim": 32}, "5": {"head_dim": 32}}),
        json!({"2": {"head_dim": 32, "sliding_window": 3}, "5": {"head_dim": 32}}),
    ] {
        assert_says(&refusal(&listed(layers)), &["per_layer_config"]);
    }
}

#[test]
fn a_feature_that_is_missing_has_other_engines() {
    let folder = with_config("phi2", json!({"qk_layernorm": true}));
    let help = refusal(&folder).help().unwrap();
    assert!(help.contains("`engine = openai` and the setting `base_url = URL`"), "{help}");
    // A value that makes no sense has not.
    assert!(refusal(&with_config("phi2", json!({"num_attention_heads": 0}))).help().is_none());
}

#[test]
fn a_value_that_is_not_finite_has_a_tensor_and_a_file() {
    let name = "model.layers.0.mlp.down_proj.weight";
    let folder = with_tensors("llama", |tensors| {
        let (dtype, _, bytes) = tensors.get_mut(name).unwrap();
        assert_eq!(dtype, "F32");
        bytes[..4].copy_from_slice(&f32::NAN.to_le_bytes());
    });
    let checkpoint = Checkpoint::open(folder.path()).unwrap();
    let error = CpuEngine::load(&checkpoint, Options::default()).err().unwrap().to_string();
    assert!(error.contains(name) && error.contains("model.safetensors") && error.contains("1 values"), "{error}");
}

#[test]
fn options_that_change_nothing_are_errors() {
    let place = tempfile::tempdir().unwrap();
    let earnest = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_earnest"));
        command.args(arguments).current_dir(place.path()).output().unwrap()
    };
    let narrow = ["train", "number-model", "--out", "narrow", "--size", "1,8,16,1,1", "--steps", "1", "--lengths", "1"];
    let trained = earnest(&[&narrow[..], &["--batch", "4", "--validation", "1"]].concat());
    assert!(trained.status.success(), "{trained:?}");
    let ask = ["run", "nupa", "--limit", "2", "--model", "narrow"];
    let options =
        [(["--quant", "q4k"], "multiple of 32"), (["--allow-config", "nosuch"], "no unknown key of this name")];
    for (option, reason) in options {
        let refused = earnest(&[&ask[..], &option].concat());
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{said}");
        // A study file has the entry without the dashes of the option.
        let entry = option.join(" ");
        assert!(
            said.contains(entry.trim_start_matches('-')) && said.contains(reason) && said.contains("leave it out"),
            "{said}"
        );
    }
    assert!(earnest(&ask).status.success());
}
