//! Text to token ids and back, exactly as the checkpoint's own tokenizer.
use super::CheckpointError;
use super::digit_places;
use super::json_fields;
use super::text_stream::TextStream;
use super::token_pieces::TokenPieces;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokenizers::pre_tokenizers::digits::Digits;
use tokenizers::pre_tokenizers::sequence::Sequence;

/// A checkpoint's tokenizer; cloning shares it.
#[derive(Debug, Clone)]
pub struct Tokenizer {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    source: PathBuf,
    backend: tokenizers::Tokenizer,
    /// The same without its normaliser where that only marks the places of digits, which [`digit_places::mark`] does faster.
    placed: Option<tokenizers::Tokenizer>,
    pieces: Arc<TokenPieces>,
    /// Ids that `add_special` puts before and after a text.
    prefix: Vec<u32>,
    suffix: Vec<u32>,
    bos: Option<u32>,
    eos: Option<u32>,
    vocab_size: usize,
    /// Rows of the model's embedding table: ids from here on can not be given to it.
    usable: usize,
}

/// What a checkpoint says about its tokenizer outside of the tokenizer itself.
#[derive(Debug, Default)]
pub(super) struct TokenizerSettings {
    /// Text or id of the token that begins a text.
    pub(super) bos: Option<SpecialToken>,
    /// Text or id of the token that ends one.
    pub(super) eos: Option<SpecialToken>,
    /// Whether a text gets BOS in front; None: as the post-processor has it.
    pub(super) add_bos: Option<bool>,
    /// Whether a text gets EOS behind it.
    pub(super) add_eos: Option<bool>,
}

/// A special token, named in the way of the source.
#[derive(Debug, Clone)]
pub(super) enum SpecialToken {
    Text(String),
    Id(u32),
}

impl Tokenizer {
    /// `tokenizer.json` of a folder with `tokenizer_config.json`, if there is one; `fallback_bos` is `config.json`'s.
    pub(super) fn from_folder(
        folder: &Path,
        config: Option<&Map<String, Value>>,
        fallback_bos: Option<u32>,
        usable: usize,
    ) -> Result<Tokenizer, CheckpointError> {
        let path = folder.join("tokenizer.json");
        let advice = "it holds the vocabulary; fetch the checkpoint again (a lone tokenizer.model can not be read, convert it with transformers)";
        let bytes = std::fs::read(&path).map_err(|e| CheckpointError::io(&path, advice, e))?;
        let backend = tokenizers::Tokenizer::from_bytes(&bytes)
            .map_err(|e| CheckpointError::Tokenizer { path: path.clone(), what: e.to_string() })?;
        let mut settings = TokenizerSettings::default();
        if let Some(map) = config {
            let fields = json_fields::Fields::new(&folder.join("tokenizer_config.json"), "", map);
            settings.add_bos = fields.flag("add_bos_token")?;
            settings.add_eos = fields.flag("add_eos_token")?;
            settings.bos = special_text(map.get("bos_token")).map(SpecialToken::Text);
            settings.eos = special_text(map.get("eos_token")).map(SpecialToken::Text);
        }
        if config.is_none_or(|map| !map.contains_key("bos_token")) {
            settings.bos = fallback_bos.map(SpecialToken::Id);
        }
        Tokenizer::new(path, backend, settings, usable)
    }

    /// Prepares a tokenizer: truncation and padding off, special prefix and suffix known, the table of pieces built.
    pub(super) fn new(
        source: PathBuf,
        mut backend: tokenizers::Tokenizer,
        settings: TokenizerSettings,
        usable: usize,
    ) -> Result<Tokenizer, CheckpointError> {
        let fail = |what: String| CheckpointError::Tokenizer { path: source.clone(), what };
        backend.with_padding(None);
        backend.with_truncation(None).map_err(|e| fail(e.to_string()))?;
        let resolve = |token: &Option<SpecialToken>, name: &str| match token {
            None => Ok(None),
            Some(SpecialToken::Id(id)) if backend.id_to_token(*id).is_some() => Ok(Some(*id)),
            Some(SpecialToken::Id(id)) => Err(fail(format!("{name} id {id} is not in the vocabulary"))),
            Some(SpecialToken::Text(text)) => match backend.token_to_id(text) {
                Some(id) => Ok(Some(id)),
                None => Err(fail(format!("{name} {text:?} is not in the vocabulary"))),
            },
        };
        let bos = resolve(&settings.bos, "bos_token")?;
        let eos = resolve(&settings.eos, "eos_token")?;
        let (mut prefix, mut suffix) = affixes(&backend).map_err(fail)?;
        match (settings.add_bos, bos) {
            (Some(true), None) => return Err(fail("add_bos_token is true, but there is no BOS token".into())),
            (Some(true), Some(bos)) if prefix.first() != Some(&bos) => prefix.insert(0, bos),
            (Some(false), Some(bos)) => prefix.retain(|id| *id != bos),
            _ => {}
        }
        match (settings.add_eos, eos) {
            (Some(true), None) => return Err(fail("add_eos_token is true, but there is no EOS token".into())),
            (Some(true), Some(eos)) if suffix.last() != Some(&eos) => suffix.push(eos),
            (Some(false), Some(eos)) => suffix.retain(|id| *id != eos),
            _ => {}
        }
        let vocab = backend.get_vocab(true);
        let size = vocab.values().map(|id| *id as usize + 1).max().unwrap_or(0);
        if size == 0 {
            return Err(fail("the vocabulary is empty".into()));
        }
        // Sparse ids could make a small file ask for a large table.
        if size > vocab.len().saturating_mul(16).saturating_add(1 << 20) {
            return Err(fail(format!("the largest id is {}, but there are only {} tokens", size - 1, vocab.len())));
        }
        let added = backend.get_added_vocabulary();
        // A model may lack rows for added tokens that no text contains by chance (the image token of Gemma 3), but not for
        // ordinary ones.
        let outside = vocab
            .iter()
            .filter(|(t, id)| **id as usize >= usable && !added.is_special_token(t))
            .min_by_key(|(_, id)| **id);
        if let Some((token, id)) = outside {
            return Err(fail(format!(
                "token {token:?} has id {id}, but the model's vocabulary has {usable} entries; tokenizer and config.json belong to different models"
            )));
        }
        let json = match backend.get_decoder() {
            Some(decoder) => Some(serde_json::to_value(decoder).map_err(|e| fail(e.to_string()))?),
            None => None,
        };
        // The crate looks a token up among the added ones first, by content.
        let text = |id: u32| added.simple_id_to_token(id).or_else(|| backend.id_to_token(id));
        let pieces = TokenPieces::new(json.as_ref(), size, text, |t| added.is_special_token(t)).map_err(fail)?;
        let vocab_size = vocab.len();
        drop(vocab);
        let placed = without_places(&backend);
        let pieces = Arc::new(pieces);
        let inner = Inner { source, pieces, placed, backend, prefix, suffix, bos, eos, vocab_size, usable };
        Ok(Tokenizer { inner: Arc::new(inner) })
    }

    /// The ids of `text`. With `add_special`, BOS (and EOS) as the checkpoint adds them. Special tokens that are written
    /// out in the text are recognised. An id that the model has no embedding for is an error.
    pub fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>, CheckpointError> {
        let t = &*self.inner;
        let fail = |what: String| CheckpointError::Tokenizer { path: t.source.clone(), what };
        let encoded = match &t.placed {
            Some(placed) => placed.encode_fast(digit_places::mark(text), false),
            None => t.backend.encode_fast(text, false),
        };
        let encoding = encoded.map_err(|e| fail(e.to_string()))?;
        let ids = encoding.get_ids();
        let (prefix, suffix) = if add_special { (&*t.prefix, &*t.suffix) } else { (&[][..], &[][..]) };
        let all = [prefix, ids, suffix].concat();
        if let Some(id) = all.iter().find(|id| **id as usize >= t.usable) {
            let token = self.token(*id).unwrap_or_default();
            return Err(fail(format!(
                "the text contains {token:?}, whose id {id} is outside of the model's {} entries",
                t.usable
            )));
        }
        Ok(all)
    }

    /// The text of `ids`; with `skip_special`, without control tokens. Ids that do not exist are no text, bytes that form
    /// no character become U+FFFD.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> String {
        let mut stream = TextStream::new(Arc::clone(&self.inner.pieces), !skip_special);
        let mut text = String::new();
        for id in ids {
            text.push_str(stream.push(*id));
        }
        text.push_str(stream.finish());
        text
    }

    /// A new incremental detokeniser; it owns what it needs, can be sent to another thread, and is cheap to make.
    pub fn stream(&self) -> TextStream {
        TextStream::new(Arc::clone(&self.inner.pieces), false)
    }

    /// Number of tokens, added ones included. The model's vocabulary may be larger (padding).
    pub fn vocab_size(&self) -> usize {
        self.inner.vocab_size
    }

    /// The token that begins a text, if the checkpoint names one; [`Tokenizer::encode`] decides whether it is added.
    pub fn bos(&self) -> Option<u32> {
        self.inner.bos
    }

    /// The token that ends a text, by the tokenizer's own settings. Generation stops at any of
    /// [`super::GenerationDefaults::eos_ids`], which may be more.
    pub fn eos(&self) -> Option<u32> {
        self.inner.eos
    }

    /// The same tokenizer with every digit of a text cut off from its neighbours first, so that a token holds one digit at
    /// most: what the vocabulary has of longer numbers is never used.
    ///
    /// # Errors
    /// [`CheckpointError::Tokenizer`].
    pub fn with_single_digits(&self) -> Result<Tokenizer, CheckpointError> {
        let t = &*self.inner;
        let mut backend = t.backend.clone();
        let mut steps: Vec<tokenizers::PreTokenizerWrapper> = vec![Digits::new(true).into()];
        steps.extend(backend.get_pre_tokenizer().cloned());
        backend.with_pre_tokenizer(Some(Sequence::new(steps)));
        let inner = Inner {
            source: t.source.clone(),
            placed: without_places(&backend),
            backend,
            pieces: Arc::clone(&t.pieces),
            prefix: t.prefix.clone(),
            suffix: t.suffix.clone(),
            bos: t.bos,
            eos: t.eos,
            vocab_size: t.vocab_size,
            usable: t.usable,
        };
        Ok(Tokenizer { inner: Arc::new(inner) })
    }

    /// A `tokenizer.json` of this tokenizer, whatever file it comes from, with a post-processor that adds what
    /// [`Tokenizer::encode`] adds.
    ///
    /// # Errors
    /// [`CheckpointError::Tokenizer`].
    pub fn json(&self) -> Result<Value, CheckpointError> {
        let t = &*self.inner;
        let fail = |what: String| CheckpointError::Tokenizer { path: t.source.clone(), what };
        let text = t.backend.to_string(false).map_err(|e| fail(e.to_string()))?;
        let mut json: Value = serde_json::from_str(&text).map_err(|e| fail(e.to_string()))?;
        if affixes(&t.backend).map_err(fail)? != (t.prefix.clone(), t.suffix.clone()) {
            let mut tokens = Map::new();
            let mut special = |id: &u32| {
                let token = self.token(*id).unwrap_or_default();
                tokens.insert(token.clone(), json!({"id": token, "ids": [id], "tokens": [token]}));
                json!({"SpecialToken": {"id": token, "type_id": 0}})
            };
            let mut single: Vec<Value> = t.prefix.iter().map(&mut special).collect();
            single.push(json!({"Sequence": {"id": "A", "type_id": 0}}));
            single.extend(t.suffix.iter().map(&mut special));
            let pair: Vec<Value> = [single.clone(), vec![json!({"Sequence": {"id": "B", "type_id": 1}})]].concat();
            json["post_processor"] = json!({
                "type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens,
            });
        }
        Ok(json)
    }

    /// A token as the vocabulary spells it.
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.backend.id_to_token(id)
    }

    /// The id of a token, spelt as in the vocabulary.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.backend.token_to_id(token)
    }

    /// True for a control token, which is no text.
    pub fn is_special(&self, id: u32) -> bool {
        self.inner.pieces.is_special(id)
    }
}

/// The tokenizer without a normaliser that only marks the places of digits; none if it has another, or if its added tokens would be
/// found elsewhere in a marked text.
fn without_places(backend: &tokenizers::Tokenizer) -> Option<tokenizers::Tokenizer> {
    let normalizer = serde_json::to_value(backend.get_normalizer()?).ok()?;
    let added = backend.get_added_vocabulary().get_added_tokens_decoder();
    let apart = added.values().all(|token| {
        let marked = token.content.bytes().any(|b| b.is_ascii_digit() || b.is_ascii_control());
        !(marked || token.normalized || token.single_word)
    });
    if !apart || normalizer != digit_places::normalizer() {
        return None;
    }
    let mut plain = backend.clone();
    plain.with_normalizer(None::<tokenizers::NormalizerWrapper>).ok()?;
    Some(plain)
}

/// The ids that the post-processor puts around a text.
fn affixes(backend: &tokenizers::Tokenizer) -> Result<(Vec<u32>, Vec<u32>), String> {
    let encode = |special: bool| backend.encode_fast("a", special).map_err(|e| e.to_string());
    let (with, without) = (encode(true)?, encode(false)?);
    let (with, without) = (with.get_ids(), without.get_ids());
    if without.is_empty() {
        // A vocabulary that can not spell "a" leaves no text to find; what remains is all added.
        return Ok((with.to_vec(), Vec::new()));
    }
    let at = with.windows(without.len()).position(|w| w == without);
    let at = at.ok_or("its post-processor changes the ids of a text")?;
    let (prefix, rest) = with.split_at(at);
    Ok((prefix.to_vec(), rest.get(without.len()..).unwrap_or_default().to_vec()))
}

/// A token in `tokenizer_config.json`: a string, or an object with its `content`.
pub(super) fn special_text(value: Option<&Value>) -> Option<String> {
    let value = value?;
    value.as_str().or_else(|| value.get("content")?.as_str()).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_marked_without_regular_expressions_and_with_the_same_ids() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../embedded/earnest-abacus-1m");
        let tokenizer = Tokenizer::from_folder(&folder, None, None, usize::MAX).unwrap();
        assert!(tokenizer.inner.placed.is_some(), "the embedded model's tokenizer marks the places of digits");
        let file = tokenizers::Tokenizer::from_file(folder.join("tokenizer.json")).unwrap();
        for text in [
            "Add two numbers: 12345 + 987654321098765 =",
            "Subtract two numbers: 0.5 - 10.25e7 = <|end|>12<|begin|>\u{e}34",
            "",
        ] {
            let expected = file.encode(text, false).unwrap();
            assert_eq!(tokenizer.encode(text, false).unwrap(), expected.get_ids(), "{text:?}");
        }
        // What is written out again still says it in the library's words.
        let written = tokenizer.json().unwrap();
        assert_eq!(written["normalizer"], digit_places::normalizer());
    }

    #[test]
    fn an_added_token_with_digits_keeps_the_regular_expressions() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../embedded/earnest-abacus-1m");
        let mut file = tokenizers::Tokenizer::from_file(folder.join("tokenizer.json")).unwrap();
        assert!(without_places(&file).is_some());
        file.add_special_tokens([tokenizers::AddedToken::from("<i27>", true)]).unwrap();
        assert!(without_places(&file).is_none());
    }
}
