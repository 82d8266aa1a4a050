//! Conversion of a GGUF file's tokenizer to one of the `tokenizers` crate.
use super::super::allowed::{AllowError, PRE_TOKENIZER_KEY, named_pre_tokenizer};
use super::super::tokenizer::pieces::{byte_alphabet, byte_token};
use super::super::tokenizer::sentencepiece::merges_from_scores;
use super::super::tokenizer::{SpecialToken, TokenizerSettings};
use super::super::{CheckpointError, Tokenizer};
use super::file::{GgufFile, GgufValue};
use super::missing_pre::{self, Merged};
use super::pretokenizer::{self, NamedScheme};
use earnest_isolation::on_thread;
use tokenizers::decoders::byte_fallback::ByteFallback;
use tokenizers::decoders::byte_level::ByteLevel;
use tokenizers::decoders::fuse::Fuse;
use tokenizers::decoders::sequence::Sequence as DecoderSequence;
use tokenizers::decoders::strip::Strip;
use tokenizers::models::bpe::{BPE, Vocab};
use tokenizers::normalizers::{NormalizerWrapper, Prepend, Replace, Sequence as NormalizerSequence};
use tokenizers::{AddedToken, DecoderWrapper};

/// Kinds of tokens (`tokenizer.ggml.token_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::checkpoint) enum TokenKind {
    Normal,
    Unknown,
    Control,
    UserDefined,
    Unused,
    Byte,
}

/// A pre-tokenizer that a GGUF file does not name, or by a name that is not known here. Tokens depend on it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuppliedPreTokenizer {
    /// Name, as files have it.
    pub name: String,
    /// True if the user named it, false if the vocabulary leaves no other.
    pub by_user: bool,
    /// Sentence for the user.
    pub note: String,
    /// Token of the vocabulary that the user's pre-tokenizer splits, in quotes: with it, it may be the wrong one.
    pub splits: Option<String>,
}

impl SuppliedPreTokenizer {
    /// Returns the option that names it, as in [`Checkpoint::open_allowing`](super::super::Checkpoint::open_allowing); none unless the user
    /// gave it.
    pub fn option(&self) -> Option<String> {
        self.by_user.then(|| format!("{PRE_TOKENIZER_KEY}={}", self.name))
    }
}

/// The vocabulary of a file.
struct Vocabulary<'a> {
    file: &'a GgufFile,
    tokens: &'a [String],
    kinds: Vec<TokenKind>,
}

/// Builds the tokenizer; `embeddings` is the number of rows of the embedding table. `tokenizer.ggml.pre=NAME` in `allow` names the
/// pre-tokenizer of a file that does not.
///
/// In this process and without a trial: the file names one of our own pre-tokenizers and decoders, so that its texts reach the library
/// as tokens and merges only, in proportion to the file.
pub(in crate::checkpoint) fn build(
    file: &GgufFile,
    embeddings: usize,
    allow: &[String],
) -> Result<(Tokenizer, Option<SuppliedPreTokenizer>), CheckpointError> {
    let named = named_pre_tokenizer(allow)?;
    on_thread(|| build_here(file, embeddings, named)).unwrap_or_else(|panic| {
        let what = format!("building the tokenizer panicked: {panic}");
        Err(CheckpointError::Tokenizer { path: file.path.clone(), what })
    })
}

fn build_here(
    file: &GgufFile,
    embeddings: usize,
    named: Option<&str>,
) -> Result<(Tokenizer, Option<SuppliedPreTokenizer>), CheckpointError> {
    let vocabulary = Vocabulary::read(file)?;
    let model = file.text("tokenizer.ggml.model").unwrap_or("(none named)");
    let mut supplied = None;
    let (mut tokenizer, adds_bos) = match model {
        "gpt2" => {
            let scheme;
            (scheme, supplied) = vocabulary.pre_tokenizer(named)?;
            vocabulary.byte_level(scheme)?
        }
        "llama" => (vocabulary.sentencepiece()?, true),
        "gemma4" => (vocabulary.spaced()?, true),
        other => {
            let what = format!("tokenizer.ggml.model is {other}; gpt2, llama and gemma4 are supported");
            return Err(vocabulary.fail(what));
        }
    };
    tokenizer
        .add_special_tokens(vocabulary.added(&[TokenKind::Control, TokenKind::Unknown], true))
        .and_then(|_| tokenizer.add_tokens(vocabulary.added(&[TokenKind::UserDefined], false)))
        .map_err(|e| vocabulary.fail(e.to_string()))?;
    let id = |name: &str| file.token_id(&format!("tokenizer.ggml.{name}_token_id"));
    let bos = id("bos").map(SpecialToken::Id);
    let settings = TokenizerSettings {
        // Without the key, the kind of vocabulary decides, as in llama.cpp.
        add_bos: Some(file.flag("tokenizer.ggml.add_bos_token").unwrap_or(adds_bos && bos.is_some())),
        add_eos: Some(file.flag("tokenizer.ggml.add_eos_token").unwrap_or(false)),
        bos,
        eos: id("eos").map(SpecialToken::Id),
    };
    Ok((Tokenizer::new(file.path.clone(), tokenizer, settings, embeddings)?, supplied))
}

impl<'a> Vocabulary<'a> {
    fn read(file: &'a GgufFile) -> Result<Vocabulary<'a>, CheckpointError> {
        let fail = |what: String| CheckpointError::Tokenizer { path: file.path.clone(), what };
        let Some(GgufValue::Texts(tokens)) = file.metadata.get("tokenizer.ggml.tokens") else {
            return Err(fail("tokenizer.ggml.tokens is missing or not a list of strings".into()));
        };
        let kinds = match file.metadata.get("tokenizer.ggml.token_type") {
            None => vec![TokenKind::Normal; tokens.len()],
            Some(GgufValue::Integers(list)) if list.len() == tokens.len() => {
                let kind = |(code, token): (&i64, &String)| match code {
                    0 | 1 => Ok(TokenKind::Normal),
                    2 => Ok(TokenKind::Unknown),
                    3 => Ok(TokenKind::Control),
                    4 => Ok(TokenKind::UserDefined),
                    5 => Ok(TokenKind::Unused),
                    6 => Ok(TokenKind::Byte),
                    _ => Err(fail(format!("token {token:?} has unknown type {code}"))),
                };
                list.iter().zip(tokens).map(kind).collect::<Result<_, _>>()?
            }
            Some(_) => {
                return Err(fail(format!(
                    "tokenizer.ggml.token_type must be a list of {} integers, one per token",
                    tokens.len()
                )));
            }
        };
        Ok(Vocabulary { file, tokens, kinds })
    }

    fn fail(&self, what: String) -> CheckpointError {
        CheckpointError::Tokenizer { path: self.file.path.clone(), what }
    }

    /// Returns ids by text; of equal texts the first id counts.
    fn ids(&self) -> Vocab {
        self.tokens.iter().enumerate().rev().map(|(id, token)| (token.clone(), id as u32)).collect()
    }

    /// Returns the tokens of these kinds, which are matched before a text is split further.
    fn added(&self, kinds: &[TokenKind], special: bool) -> Vec<AddedToken> {
        let chosen =
            self.tokens.iter().zip(&self.kinds).filter(|(token, kind)| kinds.contains(kind) && !token.is_empty());
        chosen.map(|(token, _)| AddedToken::from(token.clone(), special).normalized(false)).collect()
    }

    /// Returns the merges, the first ones first.
    fn merges(&self) -> Result<Vec<(String, String)>, CheckpointError> {
        let Some(GgufValue::Texts(list)) = self.file.metadata.get("tokenizer.ggml.merges") else {
            return Err(self.fail("tokenizer.ggml.merges is missing or not a list of strings".into()));
        };
        list.iter()
            .map(|merge| merge.split_once(' ').map(|(l, r)| (l.to_string(), r.to_string())))
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| self.fail("a merge does not have two parts".into()))
    }

    /// Returns the scheme by which texts are split before merging, and how it was chosen if the file does not name it: by the user's
    /// name, or because the vocabulary leaves no other.
    fn pre_tokenizer(
        &self,
        named: Option<&str>,
    ) -> Result<(&'static NamedScheme, Option<SuppliedPreTokenizer>), CheckpointError> {
        let in_file = match self.file.metadata.get(PRE_TOKENIZER_KEY) {
            None => None,
            Some(GgufValue::Text(name)) => Some(name.as_str()),
            Some(_) => return Err(self.fail(format!("{PRE_TOKENIZER_KEY} is not a string"))),
        };
        if let Some(scheme) = in_file.and_then(pretokenizer::named) {
            return match named {
                None => Ok((scheme, None)),
                Some(named) => Err(self.fail(format!(
                    "{PRE_TOKENIZER_KEY} is {} in the file, and `{PRE_TOKENIZER_KEY}={named}` of allow-config is for files \
                     that name none or an unknown one: leave it out",
                    in_file.unwrap_or_default()
                ))),
            };
        }
        let merged = self.merged()?;
        if let Some(named) = named {
            let scheme =
                pretokenizer::named(named).ok_or_else(|| AllowError::UnknownName { name: named.to_owned() })?;
            let mut note = match in_file {
                None => format!("{PRE_TOKENIZER_KEY} is missing in the file"),
                Some(name) => format!("{PRE_TOKENIZER_KEY} is {name} in the file, which is not known here"),
            };
            note.push_str(&format!(": {named} is used, as allow-config says, and recorded"));
            let broken = merged.broken_by(scheme).map_err(|e| self.fail(e.to_string()))?;
            if let Some(token) = &broken {
                note.push_str(&format!(
                    "; it splits tokens of the vocabulary, such as {token:?}, so it may be the wrong one"
                ));
            }
            let supplied = SuppliedPreTokenizer {
                name: named.to_owned(),
                by_user: true,
                note,
                splits: broken.map(|token| format!("{token:?}")),
            };
            return Ok((scheme, Some(supplied)));
        }
        let allowed = merged.allowed().map_err(|e| self.fail(e.to_string()))?;
        // A name that is not known says that it is none of those.
        if in_file.is_none() {
            let architecture = self.file.text("general.architecture").unwrap_or_default();
            if let Some((name, why)) = missing_pre::without_doubt(&allowed, architecture, self.tokens)
                && let Some(scheme) = pretokenizer::named(name)
            {
                let note = format!(
                    "{PRE_TOKENIZER_KEY} is missing in the file: {name} is used, because {why}, and recorded; \
                     the setting `allow_config = {PRE_TOKENIZER_KEY}=NAME` names another"
                );
                let name = name.to_owned();
                return Ok((scheme, Some(SuppliedPreTokenizer { name, by_user: false, note, splits: None })));
            }
        }
        let what = match in_file {
            None => format!("{PRE_TOKENIZER_KEY} is missing, so how the model splits texts and numbers is not known"),
            Some(name) => {
                format!("{PRE_TOKENIZER_KEY} is {name}, a way to split texts and numbers that is not known here")
            }
        };
        let may = match allowed.is_empty() {
            false => {
                format!("by its tokens, the vocabulary may split numbers as {}", pretokenizer::described(&allowed))
            }
            true => format!(
                "each of those known here splits tokens of the vocabulary: {}",
                pretokenizer::described(&pretokenizer::candidates().collect::<Vec<_>>())
            ),
        };
        let example = allowed.first().map_or("llama-bpe", |scheme| scheme.name());
        Err(CheckpointError::PreTokenizer { path: self.file.path.clone(), what: format!("{what}; {may}"), example })
    }

    /// Returns the texts of the tokens that merges make; parts of a character are left out.
    fn merged(&self) -> Result<Merged, CheckpointError> {
        let alphabet = byte_alphabet();
        let text = |(left, right): &(String, String)| {
            let bytes = left.chars().chain(right.chars()).map(|letter| alphabet.get(&letter).copied());
            String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok()
        };
        Ok(Merged::new(self.merges()?.iter().filter_map(text)))
    }

    /// Builds a byte-level BPE as GPT-2's: bytes as characters, merges by rank. Also returns whether its texts begin with BOS.
    fn byte_level(&self, scheme: &NamedScheme) -> Result<(tokenizers::Tokenizer, bool), CheckpointError> {
        let merges = self.merges()?;
        let scheme = scheme.build().map_err(|e| self.fail(e.to_string()))?;
        let model = BPE::builder()
            .vocab_and_merges(self.ids(), merges)
            .ignore_merges(scheme.whole_words_first)
            .build()
            .map_err(|e| self.fail(e.to_string()))?;
        let mut tokenizer = tokenizers::Tokenizer::new(model);
        tokenizer.with_pre_tokenizer(Some(scheme.pre_tokenizer));
        tokenizer.with_decoder(Some(ByteLevel::new(false, false, false)));
        Ok((tokenizer, scheme.adds_bos))
    }

    /// Builds a SentencePiece BPE: spaces as `▁`, merges by the score of their result, unknown characters as bytes.
    fn sentencepiece(&self) -> Result<tokenizers::Tokenizer, CheckpointError> {
        let scores = match self.file.metadata.get("tokenizer.ggml.scores") {
            Some(GgufValue::Floats(list)) if list.len() == self.tokens.len() => list,
            _ => {
                return Err(self.fail(format!(
                    "tokenizer.ggml.scores must be a list of {} numbers, one per token",
                    self.tokens.len()
                )));
            }
        };
        let merges = merges_from_scores(self.tokens, scores, |id| {
            matches!(self.kinds.get(id), Some(TokenKind::Normal | TokenKind::Unused))
        });
        self.with_spaces(merges, self.file.flag("tokenizer.ggml.add_space_prefix").unwrap_or(true))
    }

    /// Builds a BPE over characters, spaces as `▁` and unknown characters as bytes, with the file's merges (Gemma 4).
    fn spaced(&self) -> Result<tokenizers::Tokenizer, CheckpointError> {
        self.with_spaces(self.merges()?, self.file.flag("tokenizer.ggml.add_space_prefix").unwrap_or(false))
    }

    /// Builds a BPE over characters with spaces as `▁`, also before a text if `prefix`.
    fn with_spaces(
        &self,
        merges: Vec<(String, String)>,
        prefix: bool,
    ) -> Result<tokenizers::Tokenizer, CheckpointError> {
        let fallback = self.tokens.iter().filter(|token| byte_token(token).is_some()).count() == 256;
        let mut builder = BPE::builder().vocab_and_merges(self.ids(), merges).fuse_unk(true).byte_fallback(fallback);
        if let Some(unknown) = self.file.token_id("tokenizer.ggml.unknown_token_id") {
            let token = self.tokens.get(unknown as usize);
            let token =
                token.ok_or_else(|| self.fail(format!("unknown_token_id {unknown} is not in the vocabulary")))?;
            builder = builder.unk_token(token.clone());
        }
        let model = builder.build().map_err(|e| self.fail(e.to_string()))?;
        let fail = |e: tokenizers::Error| self.fail(e.to_string());
        let mut steps: Vec<NormalizerWrapper> = Vec::new();
        if prefix {
            steps.push(Prepend::new("▁".into()).into());
        }
        steps.push(Replace::new(" ", "▁").map_err(fail)?.into());
        let mut decoders: Vec<DecoderWrapper> =
            vec![Replace::new("▁", " ").map_err(fail)?.into(), ByteFallback::new().into(), Fuse::new().into()];
        if prefix {
            decoders.push(Strip::new(' ', 1, 0).into());
        }
        let mut tokenizer = tokenizers::Tokenizer::new(model);
        tokenizer.with_normalizer(Some(NormalizerSequence::new(steps))).map_err(fail)?;
        tokenizer.with_decoder(Some(DecoderSequence::new(decoders)));
        Ok(tokenizer)
    }
}
