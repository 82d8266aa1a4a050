//! Encoding and decoding, identical to the checkpoint's own tokenizer.
pub(super) mod fault;
pub(super) mod pieces;
pub(super) mod rules;
pub(super) mod sentencepiece;
pub(super) mod text_stream;

use self::fault::TokenizerFault;
use self::pieces::TokenPieces;
use self::text_stream::TextStream;
use super::CheckpointError;
use super::bounded_file;
use super::digit_places;
use super::json_fields;
use super::trial;
use earnest_isolation::{caught, on_thread};
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
    /// The tokenizer without its normaliser, if that only marks the places of digits: [`digit_places::mark`] does it faster.
    unmarked: Option<tokenizers::Tokenizer>,
    pieces: Arc<TokenPieces>,
    /// Ids that `add_special` adds before and after a text.
    prefix: Vec<u32>,
    suffix: Vec<u32>,
    bos: Option<u32>,
    eos: Option<u32>,
    vocab_size: usize,
    /// Rows of the model's embedding table: larger ids have no embedding.
    embeddings: usize,
}

/// Tokenizer settings that a checkpoint keeps outside the tokenizer itself.
#[derive(Debug, Default)]
pub(super) struct TokenizerSettings {
    /// Text or id of the token that begins a text.
    pub(super) bos: Option<SpecialToken>,
    /// Text or id of the token that ends one.
    pub(super) eos: Option<SpecialToken>,
    /// True to add BOS to every text; none for the post-processor's behaviour.
    pub(super) add_bos: Option<bool>,
    /// True to add EOS to every text; none for the post-processor's behaviour.
    pub(super) add_eos: Option<bool>,
}

/// A special token by text or id.
#[derive(Debug, Clone)]
pub(super) enum SpecialToken {
    Text(String),
    Id(u32),
}

impl Tokenizer {
    /// Reads a folder's `tokenizer.json`, and `tokenizer_config.json` if there is one; `fallback_bos` is the id in `config.json`.
    pub(super) fn from_folder(
        folder: &Path,
        config: Option<&Map<String, Value>>,
        fallback_bos: Option<u32>,
        embeddings: usize,
    ) -> Result<Tokenizer, CheckpointError> {
        let path = folder.join("tokenizer.json");
        let advice = "it has the vocabulary; fetch the checkpoint again (if it has only tokenizer.model, convert that with transformers)";
        let bytes = bounded_file::read(&path, bounded_file::MAX_TOKENIZER, advice)?;
        let fail = |fault: TokenizerFault| CheckpointError::Tokenizer { path: path.clone(), what: fault.to_string() };
        trial::try_tokenizer(&bytes).map_err(fail)?;
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
        let build = || Tokenizer::new(path.clone(), read(&bytes).map_err(fail)?, settings, embeddings);
        on_thread(build).unwrap_or_else(|panic| Err(fail(TokenizerFault::Panicked(panic))))
    }

    /// Prepares a tokenizer: turns truncation and padding off, determines prefix and suffix, and builds the table of pieces.
    pub(super) fn new(
        source: PathBuf,
        mut backend: tokenizers::Tokenizer,
        settings: TokenizerSettings,
        embeddings: usize,
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
        let (mut prefix, mut suffix) = affixes(&backend).map_err(|fault| fail(fault.to_string()))?;
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
        // A model may lack embeddings of special tokens, which texts do not contain by chance (the image token of Gemma 3), but not
        // of ordinary ones.
        let outside = vocab
            .iter()
            .filter(|(t, id)| **id as usize >= embeddings && !added.is_special_token(t))
            .min_by_key(|(_, id)| **id);
        if let Some((token, id)) = outside {
            return Err(fail(format!(
                "token {token:?} has id {id}, but the model's vocabulary has {embeddings} entries: tokenizer and config.json belong to different models"
            )));
        }
        let json = match backend.get_decoder() {
            Some(decoder) => Some(serde_json::to_value(decoder).map_err(|e| fail(e.to_string()))?),
            None => None,
        };
        // As in the crate, added tokens take precedence.
        let text = |id: u32| added.simple_id_to_token(id).or_else(|| backend.id_to_token(id));
        let pieces = TokenPieces::new(json.as_ref(), size, text, |t| added.is_special_token(t))
            .map_err(|fault| fail(fault.to_string()))?;
        let vocab_size = vocab.len();
        drop(vocab);
        let unmarked = without_marks(&backend);
        let pieces = Arc::new(pieces);
        let inner = Inner { source, pieces, unmarked, backend, prefix, suffix, bos, eos, vocab_size, embeddings };
        Ok(Tokenizer { inner: Arc::new(inner) })
    }

    /// Encodes a text; with `add_special`, with BOS and EOS as the checkpoint adds them. Special tokens written out in the text
    /// are recognised.
    ///
    /// # Errors
    /// [`CheckpointError::Tokenizer`], also for an id without an embedding.
    pub fn encode(&self, text: &str, add_special: bool) -> Result<Vec<u32>, CheckpointError> {
        let t = &*self.inner;
        let fail = |what: String| CheckpointError::Tokenizer { path: t.source.clone(), what };
        let encoded = caught(|| match &t.unmarked {
            Some(unmarked) => unmarked.encode_fast(digit_places::mark(text), false),
            None => t.backend.encode_fast(text, false),
        });
        let encoded = encoded.map_err(|panic| fail(format!("encoding a text panicked: {panic}")))?;
        let encoding = encoded.map_err(|e| fail(e.to_string()))?;
        let ids = encoding.get_ids();
        let (prefix, suffix) = if add_special { (&*t.prefix, &*t.suffix) } else { (&[][..], &[][..]) };
        let all = [prefix, ids, suffix].concat();
        if let Some(id) = all.iter().find(|id| **id as usize >= t.embeddings) {
            let token = self.token(*id).unwrap_or_default();
            return Err(fail(format!(
                "the text contains {token:?}, whose id {id} is outside the model's vocabulary of {}",
                t.embeddings
            )));
        }
        Ok(all)
    }

    /// Decodes ids; with `skip_special`, without control tokens. Ids that do not exist are skipped, invalid bytes become U+FFFD.
    pub fn decode(&self, ids: &[u32], skip_special: bool) -> String {
        let mut stream = if skip_special { self.stream() } else { self.whole_stream() };
        let mut text = String::new();
        for id in ids {
            text.push_str(stream.push(*id));
        }
        text.push_str(stream.finish());
        text
    }

    /// Returns a new incremental detokeniser, which is cheap to create and can be sent to another thread.
    pub fn stream(&self) -> TextStream {
        TextStream::new(Arc::clone(&self.inner.pieces), false)
    }

    /// Returns a new incremental detokeniser that also gives the texts of control tokens.
    pub fn whole_stream(&self) -> TextStream {
        TextStream::new(Arc::clone(&self.inner.pieces), true)
    }

    /// Number of tokens, including added ones. The model's vocabulary may be larger (padding).
    pub fn vocab_size(&self) -> usize {
        self.inner.vocab_size
    }

    /// The BOS id, if the checkpoint defines one; it need not be added by [`Tokenizer::encode`].
    pub fn bos(&self) -> Option<u32> {
        self.inner.bos
    }

    /// The EOS id of the tokenizer's settings. Generation ends at any of [`super::GenerationDefaults::eos_ids`], which may be more.
    pub fn eos(&self) -> Option<u32> {
        self.inner.eos
    }

    /// Returns the tokenizer with every digit split from its neighbours first, so that a token has at most one digit and the
    /// vocabulary's longer numbers are never used.
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
            unmarked: without_marks(&backend),
            backend,
            pieces: Arc::clone(&t.pieces),
            prefix: t.prefix.clone(),
            suffix: t.suffix.clone(),
            bos: t.bos,
            eos: t.eos,
            vocab_size: t.vocab_size,
            embeddings: t.embeddings,
        };
        Ok(Tokenizer { inner: Arc::new(inner) })
    }

    /// Returns a `tokenizer.json` of this tokenizer, whatever its source, with a post-processor that adds the same special tokens as
    /// [`Tokenizer::encode`].
    ///
    /// # Errors
    /// [`CheckpointError::Tokenizer`].
    pub fn json(&self) -> Result<Value, CheckpointError> {
        let t = &*self.inner;
        let fail = |what: String| CheckpointError::Tokenizer { path: t.source.clone(), what };
        let text = t.backend.to_string(false).map_err(|e| fail(e.to_string()))?;
        let mut json: Value = serde_json::from_str(&text).map_err(|e| fail(e.to_string()))?;
        if affixes(&t.backend).map_err(|fault| fail(fault.to_string()))? != (t.prefix.clone(), t.suffix.clone()) {
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

    /// Returns a token as the vocabulary spells it.
    pub fn token(&self, id: u32) -> Option<String> {
        self.inner.backend.id_to_token(id)
    }

    /// Returns the id of a token, spelt as in the vocabulary.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.inner.backend.token_to_id(token)
    }

    /// Bytes of a token's text, which are part of a character only where a character has several tokens; empty for control tokens.
    pub fn token_bytes(&self, id: u32) -> &[u8] {
        if self.is_special(id) { &[] } else { self.inner.pieces.bytes(id) }
    }

    /// True for a control token, which has no text.
    pub fn is_special(&self, id: u32) -> bool {
        self.inner.pieces.is_special(id)
    }
}

/// Reads `tokenizer.json`.
pub(super) fn read(file: &[u8]) -> Result<tokenizers::Tokenizer, TokenizerFault> {
    let backend = tokenizers::Tokenizer::from_bytes(file).map_err(|e| TokenizerFault::Said(e.to_string()))?;
    rules::check(&backend)?;
    Ok(backend)
}

/// Builds the tokenizer of a `tokenizer.json` and encodes a few texts, to see that it does so. A text that it refuses, for want of a
/// token, is no fault.
pub(super) fn try_file(file: &[u8]) -> Result<(), TokenizerFault> {
    let build = || {
        let built = Tokenizer::new(PathBuf::new(), read(file)?, TokenizerSettings::default(), usize::MAX);
        let tokenizer = built.map_err(|error| match error {
            CheckpointError::Tokenizer { what, .. } => TokenizerFault::Said(what),
            other => TokenizerFault::Said(other.to_string()),
        })?;
        for text in trial_texts() {
            tokenizer.inner.backend.encode_fast(text, true).ok();
        }
        Ok(())
    };
    on_thread(build).unwrap_or_else(|panic| Err(TokenizerFault::Panicked(panic)))
}

/// Texts of a trial: what prompts have, and what tokenizers stumble over.
fn trial_texts() -> Vec<String> {
    let ascii: String = (0u8..128).map(char::from).collect();
    // Letters of several scripts, combining marks, ligatures that normalise to many characters, emoji, private use.
    let scripts =
        "é e\u{301} ß İ ﬁ ﷺ ½ ① Å 漢字 かな 한글 ١٢٣ हिन्दी ไทย \u{202E}abc 👩‍👩‍👧 \u{E000}\u{FEFF}\u{FFFD}▁Ġ<0x0A>"
            .to_owned();
    let numbers = "12 + 30 = ? 1234567890.000001 1e-9 −5 1,000,000\n\n\t  a   b".to_owned();
    vec![String::new(), numbers, scripts, "a".repeat(2000), " ".repeat(2000), "1".repeat(2000), ascii]
}

/// Returns the tokenizer without its normaliser if that only marks the places of digits, and if marks do not change where added
/// tokens match.
fn without_marks(backend: &tokenizers::Tokenizer) -> Option<tokenizers::Tokenizer> {
    let normalizer = serde_json::to_value(backend.get_normalizer()?).ok()?;
    let added = backend.get_added_vocabulary().get_added_tokens_decoder();
    let unaffected = added.values().all(|token| {
        let marked = token.content.bytes().any(|b| b.is_ascii_digit() || b.is_ascii_control());
        !(marked || token.normalized || token.single_word)
    });
    if !unaffected || normalizer != digit_places::normalizer() {
        return None;
    }
    let mut plain = backend.clone();
    plain.with_normalizer(None::<tokenizers::NormalizerWrapper>).ok()?;
    Some(plain)
}

/// Returns the ids that the post-processor adds before and after a text.
fn affixes(backend: &tokenizers::Tokenizer) -> Result<(Vec<u32>, Vec<u32>), TokenizerFault> {
    let encode = |special: bool| backend.encode_fast("a", special).map_err(|e| TokenizerFault::Said(e.to_string()));
    let (with, without) = (encode(true)?, encode(false)?);
    let (with, without) = (with.get_ids(), without.get_ids());
    if without.is_empty() {
        // The vocabulary cannot encode "a", so all ids are added ones.
        return Ok((with.to_vec(), Vec::new()));
    }
    let at = with.windows(without.len()).position(|w| w == without);
    let at = at.ok_or(TokenizerFault::ChangedIds)?;
    let (prefix, rest) = with.split_at(at);
    Ok((prefix.to_vec(), rest.get(without.len()..).unwrap_or_default().to_vec()))
}

/// Returns a token of `tokenizer_config.json`: a string, or the `content` of an object.
pub(super) fn special_text(value: Option<&Value>) -> Option<String> {
    let value = value?;
    value.as_str().or_else(|| value.get("content")?.as_str()).map(str::to_string)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_marked_without_regular_expressions_and_with_the_same_ids() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../embedded/earnest-abacus-1.4m");
        let tokenizer = Tokenizer::from_folder(&folder, None, None, usize::MAX).unwrap();
        assert!(tokenizer.inner.unmarked.is_some(), "the embedded model's tokenizer marks the places of digits");
        let file = tokenizers::Tokenizer::from_file(folder.join("tokenizer.json")).unwrap();
        for text in [
            "Add two numbers: 12345 + 987654321098765 =",
            "Subtract two numbers: 0.5 - 10.25e7 = <|end|>12<|begin|>\u{e}34",
            "",
        ] {
            let expected = file.encode(text, false).unwrap();
            assert_eq!(tokenizer.encode(text, false).unwrap(), expected.get_ids(), "{text:?}");
        }
        // The written file still has the normaliser.
        let written = tokenizer.json().unwrap();
        assert_eq!(written["normalizer"], digit_places::normalizer());
    }

    #[test]
    fn an_added_token_with_digits_keeps_the_regular_expressions() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../embedded/earnest-abacus-1.4m");
        let mut file = tokenizers::Tokenizer::from_file(folder.join("tokenizer.json")).unwrap();
        assert!(without_marks(&file).is_some());
        file.add_special_tokens([tokenizers::AddedToken::from("<i27>", true)]).unwrap();
        assert!(without_marks(&file).is_none());
    }
}
