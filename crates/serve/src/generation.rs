//! Fields that say how a generation ends, and the keys of its random numbers.
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use super::error::ApiError;
use super::fields::{self, Fields, TooMany};
use super::request::ServedModel;
use earnest_engine::SamplingKey;

/// Largest number of stop strings, OpenAI's limit, and the largest length of one in bytes.
const MAX_STOPS: usize = 4;
const MAX_STOP_BYTES: usize = 1 << 10;
/// Largest number of `stop_token_ids`.
const MAX_STOP_IDS: usize = 256;

/// Parses `top_k`; -1 and 0 keep all tokens.
pub(crate) fn top_k(fields: &Fields<'_>) -> Result<usize, ApiError> {
    match fields.get("top_k")?.map(|value| value.as_i64()) {
        None | Some(Some(-1)) => Ok(0),
        Some(Some(k)) => usize::try_from(k).map_err(|_| ApiError::field("top_k", "must be -1 or more")),
        Some(None) => Err(ApiError::field("top_k", "must be an integer")),
    }
}

/// Parses `stop`.
pub(crate) fn stop_strings(fields: &Fields<'_>) -> Result<Vec<String>, ApiError> {
    let limits = || {
        ApiError::field("stop", format!("at most {MAX_STOPS} strings of at most {MAX_STOP_BYTES} bytes are accepted"))
    };
    // The fifth ends the parsing.
    let stops = match fields.raw("stop") {
        None => return Ok(Vec::new()),
        Some(text) if text.starts_with('[') => match fields::list::<String>(text, MAX_STOPS) {
            Some(Ok(stops)) => Some(stops),
            Some(Err(TooMany)) => return Err(limits()),
            None => None,
        },
        Some(text) => serde_json::from_str(text).ok().map(|stop| vec![stop]),
    };
    let stops = stops.ok_or_else(|| ApiError::field("stop", "must be a string or a list of strings"))?;
    if stops.iter().any(|stop| stop.len() > MAX_STOP_BYTES) {
        return Err(limits());
    }
    Ok(stops)
}

/// Returns the ids that end a generation: the model's own, unless `ignore_eos`, and `stop_token_ids`.
pub(crate) fn stop_ids(fields: &Fields<'_>, model: &ServedModel) -> Result<Vec<u32>, ApiError> {
    let mut ids = if fields.flag("ignore_eos")? { Vec::new() } else { model.checkpoint.generation.eos_ids.clone() };
    if let Some(given) = fields.raw("stop_token_ids") {
        match fields::list::<u32>(given, MAX_STOP_IDS) {
            Some(Ok(given)) => ids.extend(given),
            Some(Err(TooMany)) => {
                return Err(ApiError::field("stop_token_ids", format!("at most {MAX_STOP_IDS} ids are accepted")));
            }
            None => return Err(ApiError::field("stop_token_ids", "must be a list of token ids")),
        }
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// Returns the key of the choice at `index`: from `sampling_key` (64 hexadecimal digits; gives the draws of `earnest run`), else
/// from `seed`, else a fresh one.
pub(crate) fn sampling_key(fields: &Fields<'_>, index: usize) -> Result<SamplingKey, ApiError> {
    static UNSEEDED: AtomicU64 = AtomicU64::new(0);
    if let Some(given) = fields.get("sampling_key")? {
        let invalid = || ApiError::field("sampling_key", "must be 64 hexadecimal digits");
        let digits = given
            .as_str()
            .filter(|digits| digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit()))
            .ok_or_else(invalid)?;
        let mut key = [0; 32];
        for (byte, at) in key.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&digits[at..at + 2], 16).map_err(|_| invalid())?;
        }
        if index == 0 {
            return Ok(SamplingKey(key));
        }
        return Ok(SamplingKey(earnest_digest::sha256(&[&key[..], &(index as u64).to_le_bytes()].concat())));
    }
    let mut bytes = Vec::with_capacity(32);
    match fields.get("seed")? {
        Some(seed) => {
            let seed = seed.as_i64().ok_or_else(|| ApiError::field("seed", "must be an integer"))?;
            bytes.extend(b"seed");
            bytes.extend(seed.to_le_bytes());
        }
        None => {
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
            bytes.extend(now.as_nanos().to_le_bytes());
            bytes.extend(UNSEEDED.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        }
    }
    bytes.extend((index as u64).to_le_bytes());
    Ok(SamplingKey(earnest_digest::sha256(&bytes)))
}
