//! Size, context and memory of the models in the list, from the table of shapes.
use std::path::Path;

use earnest_models::checkpoint::{DecoderConfig, ElementType, MemoryEstimate, Quant};
use earnest_models::hub::{Entry, shape};

/// Decoder of an entry, from its row of the table.
pub fn decoder(entry: &Entry) -> Option<DecoderConfig> {
    let keys = shape(entry.shape.as_deref()?)?;
    DecoderConfig::from_config_keys(Path::new("src/hub/shapes.json"), &keys).ok()
}

/// Number of weights, as the safetensors headers count them or as the shape says; of a model that also sees or hears, those of its text model.
pub fn parameters(entry: &Entry) -> Option<u64> {
    entry.parameters.or_else(|| decoder(entry).map(|config| config.parameter_count()))
}

/// Longest sequence in tokens, of a model whose shape has a source. Others share shapes with models that read on further or less far.
pub fn context(entry: &Entry) -> Option<usize> {
    decoder(entry).filter(|_| !entry.sources.is_empty()).map(|config| config.max_positions)
}

/// Size of the weights in bytes where the projections are quantised at load and the rest is bf16.
pub fn quantised(entry: &Entry, quant: Quant) -> Option<u64> {
    decoder(entry).map(|config| MemoryEstimate::quantised(&config, quant).weights)
}

/// Size of the weights in an element type, in bytes; without a shape, parameter count times element size.
pub fn weights(entry: &Entry, dtype: ElementType) -> Option<u64> {
    decoder(entry)
        .map(|config| MemoryEstimate::of(&config, dtype).weights)
        .or_else(|| entry.parameters.map(|count| count * dtype.size_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use earnest_models::hub::Registry;

    #[test]
    fn every_runnable_model_has_a_shape_that_native_takes() {
        let list = Registry::built_in();
        let mut families = Vec::new();
        let of_papers = |entry: &&Entry| entry.not_runnable.is_none() && !entry.papers.is_empty();
        for entry in list.entries.iter().filter(of_papers) {
            let keys = shape(entry.shape.as_deref().unwrap()).unwrap_or_else(|| panic!("{}", entry.name));
            let config = DecoderConfig::from_config_keys(Path::new("shapes.json"), &keys)
                .unwrap_or_else(|error| panic!("{}: {error}", entry.name));
            assert_eq!(
                keys.get("model_type").and_then(|family| family.as_str()),
                entry.family.as_deref(),
                "{}",
                entry.name
            );
            // The counts of the list are those of the safetensors headers; the shapes lead to the same, to the last weight.
            assert_eq!(Some(config.parameter_count()), entry.parameters, "{}", entry.name);
            families.push(config.architecture);
        }
        families.sort();
        families.dedup();
        assert_eq!(families.len(), 8, "{families:?}");
    }

    #[test]
    fn models_of_today_have_the_sizes_that_their_publishers_count() {
        let list = Registry::built_in();
        let today = list.entries.iter().filter(|entry| entry.papers.is_empty());
        for entry in today.filter(|entry| entry.not_runnable.is_none()) {
            let config = decoder(entry).unwrap_or_else(|| panic!("{}: native does not take its shape", entry.name));
            assert!(context(entry).is_some_and(|tokens| tokens >= 8192), "{}", entry.name);
            let (half, eight, four) = (
                MemoryEstimate::of(&config, ElementType::Bf16).weights,
                quantised(entry, Quant::Q8).unwrap(),
                quantised(entry, Quant::Q4k).unwrap(),
            );
            assert!(four < eight && eight < half, "{}: {four} {eight} {half}", entry.name);
        }
        // Counts of safetensors headers and of papers.
        for (name, count) in [
            ("Qwen3-30B-A3B", 30_532_122_624),
            ("Llama-3.2-1B-Instruct", 1_235_814_400),
            ("Llama-3.3-70B-Instruct", 70_553_706_496),
            ("gemma-3-270m-it", 268_098_176),
            ("SmolLM3-3B-Base", 3_075_098_624),
            ("SmolLM2-135M-Instruct", 134_515_008),
            ("gpt-oss-20b", 20_914_757_184),
            ("gpt-oss-120b", 116_829_156_672),
            ("Phi-4-mini-instruct", 3_836_021_760),
        ] {
            assert_eq!(parameters(list.get(name).unwrap()), Some(count), "{name}");
        }
    }

    #[test]
    fn an_unknown_key_of_a_shape_is_refused() {
        let mut keys = shape("phi-2").unwrap();
        keys.insert("new_kind_of_attention".into(), true.into());
        let refused = DecoderConfig::from_config_keys(Path::new("shapes.json"), &keys).unwrap_err().to_string();
        assert!(refused.contains("new_kind_of_attention"), "{refused}");
    }

    #[test]
    fn memory_of_known_models() {
        let list = Registry::built_in();
        let bytes = |name: &str, dtype| weights(list.get(name).unwrap(), dtype).unwrap();
        // Half precision: two bytes a weight, and a little more for norms.
        let llama = bytes("Meta-Llama-3-8B", ElementType::Bf16);
        assert!((llama as f64 / (2.0 * 8_030_261_248.0) - 1.0).abs() < 1e-3);
        assert_eq!(bytes("Meta-Llama-3-8B", ElementType::F32), 4 * 8_030_261_248);
        assert_eq!(bytes("gpt2", ElementType::F32), 4 * 124_439_808);
    }
}
