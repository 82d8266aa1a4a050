//! Memory of the executor, sized once when a model is loaded.

use super::attention_plan::PADDING;
use super::device::{Address, Device, DeviceError, DeviceInfo, Element};
use super::error::CudaError;
use super::executor::RESULT_BYTES;
use super::kernels::{PRODUCTS, WIDE_ROWS};
use super::packing::{LISTS, METADATA_BYTES};
use super::products::Codes;
use crate::core::BLOCK_SIZE;
use crate::cpu::kernels::Angles;
use earnest_models::checkpoint::{DecoderConfig, Experts, RopeScaling};

/// Bytes of logits at a time, on a device without the memory of [`LARGE`].
const LOGITS: u64 = 256 << 20;

/// Bytes of a device that has room for the logits of every sequence at once: the head's weights are read once a step, and a step can be recorded.
pub(crate) const LARGE: u64 = 38 << 30;

/// Bytes of whole rows of logits that come back at a time.
const RETURNED: usize = if cfg!(test) { 4 << 10 } else { 32 << 20 };

/// Most blocks of the cache: 33 million positions are more than any run has.
pub(crate) const MOST_BLOCKS: u64 = 1 << 20;

/// Tokens' worth of partial results of attention.
const STATES: usize = 16 * 1024;

/// Most tokens whose experts are computed at once.
const MIXTURE_TOKENS: usize = if cfg!(test) { 40 } else { 4096 };

/// Cosines and sines `[positions, half]` of one rotary embedding, for the two sets of long-rope models.
#[derive(Clone, Copy, Default)]
pub(crate) struct RopeTables {
    pub(crate) half: usize,
    pub(crate) short: [Address; 2],
    pub(crate) long: [Address; 2],
}

/// Working memory on the device.
pub(crate) struct Buffers {
    /// `[tokens, hidden]`, f32: the residual stream, and a block's output that is normed or scaled before it is added.
    pub(crate) x: Address,
    pub(crate) branch: Address,
    /// Elements: normed input, projections, rotated queries, attention's output, feed-forward.
    pub(crate) h: Address,
    pub(crate) qkv: Address,
    pub(crate) q: Address,
    pub(crate) attended: Address,
    pub(crate) up: Address,
    pub(crate) inner: Address,
    /// Factors of norms over all heads of queries and keys, `[tokens, 2]`, f32.
    pub(crate) factors: Address,
    pub(crate) mixture: Option<MixtureBuffers>,
    /// Activations of the largest product in 8-bit floats.
    pub(crate) codes: Option<Codes>,
    pub(crate) state: Address,
    pub(crate) logits: Address,
    pub(crate) logit_rows: usize,
    pub(crate) results: Address,
    /// Sampled tokens of this step and the one before.
    pub(crate) sampled: [Address; 2],
    /// The host's numbers for this step and the one before ([`super::packing`]).
    pub(crate) numbers: [Address; 2],
}

/// Working memory of a mixture of experts (kernels/experts.cu). A pair is a token and one of its experts.
#[derive(Clone, Copy)]
pub(crate) struct MixtureBuffers {
    /// Tokens that are computed at once.
    pub(crate) tokens: usize,
    /// Logits of the router, `[tokens, experts]`, f32.
    pub(crate) logits: Address,
    /// Of each pair: the expert, its weight, its row.
    pub(crate) chosen: Address,
    pub(crate) weights: Address,
    pub(crate) places: Address,
    /// The pair of each row, sorted by expert; first rows of the experts; tiles of rows.
    pub(crate) order: Address,
    pub(crate) starts: Address,
    pub(crate) tiles: Address,
    /// Of each row: projections and feed-forward in elements, and the answer in f32.
    pub(crate) up: Address,
    pub(crate) inner: Address,
    pub(crate) answers: Address,
}

/// Tiles that hold `pairs` rows of `experts` experts, at most `rows` of one expert each.
pub(crate) fn most_tiles(pairs: usize, experts: usize, rows: usize) -> usize {
    pairs / rows + experts.min(pairs)
}

fn mixture(
    e: &Experts,
    c: &DecoderConfig,
    element: Element,
    tokens: usize,
    take: &mut dyn FnMut(u64) -> Result<Address, DeviceError>,
) -> Result<MixtureBuffers, DeviceError> {
    let tokens = tokens.min(MIXTURE_TOKENS);
    let pairs = tokens * e.per_token;
    let up = if c.gated { 2 * e.intermediate_size } else { e.intermediate_size };
    let tiles = most_tiles(pairs, e.count, PRODUCTS[0].rows);
    let mut words = |count: usize| take(4 * count as u64);
    let (logits, chosen, weights) = (words(tokens * e.count)?, words(pairs)?, words(pairs)?);
    let (places, order, starts, tiles) = (words(pairs)?, words(pairs)?, words(e.count + 1)?, words(3 * tiles)?);
    let answers = words(pairs * c.hidden_size)?;
    let mut elements = |width: usize| take((pairs * width) as u64 * element.size_bytes());
    let (up, inner) = (elements(up)?, elements(e.intermediate_size)?);
    Ok(MixtureBuffers { tokens, logits, chosen, weights, places, order, starts, tiles, up, inner, answers })
}

/// Memory that the host fills for a step and what comes back, for one of two steps at a time. Its sizes are those of the largest step,
/// so nothing is allocated later.
pub(crate) struct Exchange {
    pub(crate) bytes: usize,
    pub(crate) host: *mut u8,
    pub(crate) device: Address,
    pub(crate) results: *mut u8,
    /// Rows of logits that come back at once.
    pub(crate) logit_rows: usize,
    pub(crate) logits: *mut u8,
}

impl Exchange {
    /// For steps of `bytes` that the host prepares for the device's memory `at`, `tokens` tokens and `sequences` sequences.
    pub(crate) fn new(
        device: &dyn Device,
        at: Address,
        bytes: usize,
        tokens: usize,
        sequences: usize,
        vocab: usize,
    ) -> Result<Exchange, DeviceError> {
        let logit_rows = (RETURNED / (4 * vocab)).max(1).min(sequences.max(1));
        Ok(Exchange {
            bytes,
            host: device.host_memory(bytes)?,
            device: at,
            results: device.host_memory(tokens * RESULT_BYTES)?,
            logit_rows,
            logits: device.host_memory(logit_rows * vocab * 4)?,
        })
    }

    /// # Safety
    /// The device has filled the row, and nothing is on its way to it.
    pub(crate) unsafe fn row(&self, row: usize, vocab: usize) -> Vec<f32> {
        // SAFETY: by the caller.
        unsafe { std::slice::from_raw_parts(self.logits.cast::<f32>().add(row * vocab), vocab) }.to_vec()
    }
}

/// Upper bound of the bytes that the host prepares for a step. Every list of [`super::packing::StepAddresses`] is bounded: what there is one of for a token, the
/// blocks of `sequences` sequences, and items of attention, of which each begins a token's rows, a part with a state of its own,
/// or 16 rows of those before it.
pub(crate) fn step_bytes(c: &DecoderConfig, tokens: usize, sequences: usize, blocks: usize) -> usize {
    const INT: usize = 4;
    let tables = sequences * blocks.min(c.position_limit().div_ceil(BLOCK_SIZE));
    let states = states(tokens);
    let items = 8 * (tokens + states) * (c.num_heads / c.num_kv_heads).div_ceil(WIDE_ROWS);
    let merges = 3 * tokens;
    // Token ids, positions, rope factors, growth, slots and rows of logits; at most one block is copied for a sequence.
    let ints = 6 * tokens + tables + items + merges + states + 3 * sequences;
    INT * ints + METADATA_BYTES * tokens + LISTS * 16 + PADDING
}

/// Tokens' worth of attention states for steps of at most `tokens` tokens.
pub(crate) fn states(tokens: usize) -> usize {
    STATES.min(16 * tokens)
}

/// Bytes of a KV block.
pub(crate) fn block_bytes(c: &DecoderConfig, element: Element) -> u64 {
    (2 * c.layers.len() * c.num_kv_heads * BLOCK_SIZE * c.head_dim) as u64 * element.size_bytes()
}

/// Uploads floats and returns their address.
pub(crate) fn upload_floats(device: &dyn Device, floats: &[f32]) -> Result<Address, DeviceError> {
    let at = device.allocate(4 * floats.len() as u64, "tables")?;
    device.upload(at, &floats.iter().flat_map(|f| f.to_ne_bytes()).collect::<Vec<u8>>())?;
    Ok(at)
}

/// Working memory for steps of `wanted` tokens of `sequences` sequences, or of fewer where that does not fit or leaves no cache of as many positions. `needs`
/// are the bytes that the host prepares for a step of so many tokens.
pub(crate) fn buffers(
    device: &dyn Device,
    c: &DecoderConfig,
    (element, fp8): (Element, bool),
    (wanted, sequences): (usize, usize),
    needs: &dyn Fn(usize) -> usize,
    notes: &mut Vec<String>,
) -> Result<(Buffers, usize), DeviceError> {
    const FEWEST: usize = 64;
    let mut tokens = wanted.max(1);
    loop {
        let mut taken = vec![];
        let rows = logit_rows(device.info()?.total, c.vocab_size, sequences).min(tokens);
        let made = buffers_of(device, c, (element, fp8), (tokens, rows), needs(tokens) as u64, &mut taken);
        let enough = tokens <= FEWEST || room(&device.info()?, c, element) >= tokens.div_ceil(BLOCK_SIZE) as u64;
        match made {
            Ok(buffers) if enough => {
                if tokens < wanted {
                    notes.push(format!(
                        "the device's memory is short: a step computes at most {tokens} tokens instead of {wanted}"
                    ));
                }
                return Ok((buffers, tokens));
            }
            Ok(_) | Err(DeviceError::OutOfMemory { .. }) if tokens > FEWEST => {
                for at in taken {
                    device.free(at)?;
                }
                tokens = (tokens / 2).max(FEWEST);
            }
            Ok(buffers) => return Ok((buffers, tokens)),
            Err(error) => return Err(error),
        }
    }
}

/// Rows of logits at a time on a device with so many bytes, for steps of `sequences` sequences.
fn logit_rows(total: u64, vocab: usize, sequences: usize) -> usize {
    let usual = (LOGITS / (4 * vocab as u64)).max(1) as usize;
    if total >= LARGE { usual.max(sequences) } else { usual }
}

fn buffers_of(
    device: &dyn Device,
    c: &DecoderConfig,
    (element, fp8): (Element, bool),
    (tokens, logit_rows): (usize, usize),
    numbers: u64,
    taken: &mut Vec<Address>,
) -> Result<Buffers, DeviceError> {
    let (q, kv) = (c.num_heads * c.head_dim, c.num_kv_heads * c.head_dim);
    let inner = c.layers.iter().map(|l| l.intermediate_size).max().unwrap_or(0);
    let up = if c.gated { 2 * inner } else { inner };
    let row = 4 * c.vocab_size as u64;
    let mut take = |bytes: u64| {
        let at = device.allocate(bytes, "working memory")?;
        taken.push(at);
        Ok::<Address, DeviceError>(at)
    };
    let t = tokens as u64;
    let codes = fp8.then(|| codes(c, tokens, &mut take)).transpose()?;
    let mut elements = |width: usize| take(t * width as u64 * element.size_bytes());
    let (h, qkv, rotated) = (elements(c.hidden_size)?, elements(q + 2 * kv)?, elements(q)?);
    let (attended, up, inner) = (elements(q)?, elements(up)?, elements(inner)?);
    let mut floats = |width: usize| take(4 * t * width as u64);
    let (x, branch) = (floats(c.hidden_size)?, floats(c.hidden_size)?);
    let factors = floats(2)?;
    let state = take(4 * (states(tokens) * c.num_heads * (c.head_dim + 2)) as u64)?;
    let logits = take(logit_rows as u64 * row)?;
    let results = take(t * RESULT_BYTES as u64)?;
    let sampled = [take(4 * t)?, take(4 * t)?];
    let numbers = [take(numbers)?, take(numbers)?];
    let mixture = c.experts.map(|e| mixture(&e, c, element, tokens, &mut take)).transpose()?;
    Ok(Buffers {
        x,
        branch,
        h,
        qkv,
        q: rotated,
        attended,
        up,
        inner,
        factors,
        mixture,
        codes,
        state,
        logits,
        logit_rows,
        results,
        sampled,
        numbers,
    })
}

/// Memory for the inputs of projections in 8-bit floats: the hidden state, attention's output, the inner state of feed-forward blocks and of experts.
fn codes(
    c: &DecoderConfig,
    tokens: usize,
    take: &mut dyn FnMut(u64) -> Result<Address, DeviceError>,
) -> Result<Codes, DeviceError> {
    let inner = c.layers.iter().map(|l| l.intermediate_size).max().unwrap_or(0);
    let width = c.hidden_size.max(c.num_heads * c.head_dim).max(inner);
    let pairs = c.experts.map_or(0, |e| tokens.min(MIXTURE_TOKENS) * e.per_token);
    let bytes = (tokens * width).max(pairs * c.experts.map_or(0, |e| e.intermediate_size));
    Ok(Codes { codes: take(bytes as u64)?, scales: take(4 * tokens.max(pairs) as u64)? })
}

/// Blocks of keys and values that fit into what is free. The rest, a 32nd of the memory and at most 1 GiB, is for kernels that are
/// loaded when they are first used, their spilled registers, and other users of the device.
fn room(info: &DeviceInfo, c: &DecoderConfig, element: Element) -> u64 {
    info.free.saturating_sub((info.total / 32).min(1 << 30)) / block_bytes(c, element)
}

/// Allocates the KV cache: as many blocks as were asked for, or as fit, and at most `most`; (keys, values, blocks).
pub(crate) fn cache(
    device: &dyn Device,
    c: &DecoderConfig,
    element: Element,
    weights: u64,
    (asked, most): (Option<u64>, usize),
    notes: &mut Vec<String>,
) -> Result<(Address, Address, usize), CudaError> {
    let block = block_bytes(c, element);
    let info = device.info()?;
    let (free, fits) = (info.free, room(&info, c, element));
    let mut blocks = match asked {
        Some(given) if given < block => return Err(CudaError::KvMemory { given, needed: block }),
        Some(given) => given / block,
        None => fits.min(MOST_BLOCKS),
    };
    // What others gave back meanwhile is not used: tables and rotary angles were sized for what was free then.
    blocks = blocks.min(most as u64);
    if blocks > fits {
        notes.push(format!(
            "the device's memory is short: {fits} blocks of keys and values ({} MiB) instead of {blocks}",
            (fits * block) >> 20
        ));
        blocks = fits;
    }
    // A block's number times 32 is an int in the kernels.
    blocks = blocks.min(i32::MAX as u64 / 64);
    while blocks > 0 {
        let half = blocks * block / 2;
        let keys = device.allocate(half, "keys");
        let values = keys.as_ref().map_err(DeviceError::clone).and_then(|_| device.allocate(half, "values"));
        match (keys, values) {
            (Ok(keys), Ok(values)) => return Ok((keys, values, blocks as usize)),
            (keys, Err(DeviceError::OutOfMemory { .. })) => {
                if let Ok(keys) = keys {
                    device.free(keys)?;
                }
                let fewer = blocks * 7 / 8;
                notes.push(format!(
                    "the device's memory is short: {fewer} blocks of keys and values instead of {blocks}"
                ));
                blocks = fewer;
            }
            (_, Err(error)) => return Err(error.into()),
            (Err(error), Ok(_)) => return Err(error.into()),
        }
    }
    Err(CudaError::NoRoom { weights, free, needed: block })
}

/// Uploads the cosines and sines of all rotary embeddings, for at most `cached` positions.
pub(crate) fn rope_tables(
    device: &dyn Device,
    c: &DecoderConfig,
    cached: usize,
) -> Result<Vec<RopeTables>, DeviceError> {
    let positions = c.position_limit().min(cached);
    let mut all = vec![];
    for rope in &c.ropes {
        let set = |long: bool| {
            let mut angles = Angles::default();
            angles.reach(rope, positions.saturating_sub(1), long);
            let (cosines, sines) = angles.first(positions, long);
            Ok::<_, DeviceError>([upload_floats(device, cosines)?, upload_floats(device, sines)?])
        };
        let short = set(false)?;
        let long = if matches!(rope.scaling, RopeScaling::LongRope { .. }) { set(true)? } else { short };
        all.push(RopeTables { half: rope.dims / 2, short, long });
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::Piece;
    use crate::cuda::attention_plan::{AttentionPlan, Setting};
    use earnest_models::checkpoint::Checkpoint;

    #[test]
    fn a_large_device_has_room_for_the_logits_of_every_sequence() {
        assert_eq!([8 << 30, 80 << 30].map(|total| logit_rows(total, 151_936, 1024)), [441, 1024]);
        assert_eq!([8 << 30, 80 << 30].map(|total| logit_rows(total, 32_000, 64)), [2097, 2097]);
    }

    #[test]
    fn no_plan_of_attention_is_larger_than_the_room_for_it() {
        let folder =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/engine/checkpoints/llama");
        let mut c = Checkpoint::open(&folder).unwrap().config;
        for (heads, kv_heads) in [(8, 8), (32, 8), (20, 1), (64, 2)] {
            (c.num_heads, c.num_kv_heads) = (heads, kv_heads);
            // Many parts each and some blocks in common, then prompts; few multiprocessors cut nothing.
            for (singles, prompts, blocks, common, multiprocessors) in [
                (40, 0, 100, 0, 9999),
                (40, 3, 300, 96, 9999),
                (1, 1, 900, 0, 9999),
                (200, 2, 12, 8, 9999),
                (200, 2, 12, 8, 1),
            ] {
                let (mut pieces, mut tables) = (vec![], vec![]);
                for i in 0..singles + prompts {
                    let (count, token) = if i < singles { (1, i) } else { (37, singles + (i - singles) * 37) };
                    pieces.push(Piece { token, position: blocks * BLOCK_SIZE - count, count, table: tables.len() });
                    tables.extend((0..blocks).map(|b| if b < common { b as i32 } else { (i * blocks + b) as i32 }));
                }
                let tokens = singles + 37 * prompts;
                let states = states(tokens);
                let setting = Setting { heads, kv_heads, head_dim: c.head_dim, multiprocessors, states };
                let plan = AttentionPlan::new(&pieces, &tables, &setting);
                let lists = [&plan.tall, &plan.wide, &plan.merges, &plan.slots].map(Vec::len);
                let used = 4 * (lists.iter().sum::<usize>() + tables.len() + 6 * tokens)
                    + METADATA_BYTES * tokens
                    + LISTS * 16;
                c.max_positions = blocks * BLOCK_SIZE;
                let room = step_bytes(&c, tokens, singles + prompts, blocks);
                assert!(used <= room, "{heads}/{kv_heads}, {singles}, {prompts}, {blocks}: {used} of {room}");
            }
        }
    }
}
