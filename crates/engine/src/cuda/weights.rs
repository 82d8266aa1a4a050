//! A decoder's parameters on the device, read by several threads while they are copied there.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;

use super::device::{Address, Device, DeviceError, Element, Mark};
use super::e4m3;
use super::error::CudaError;
use super::kernels::Kind;
use earnest_models::checkpoint::{
    BlockLayout, BlockType, Checkpoint, DecoderConfig, ElementType, Format, LayerParameter as P, Parameter, QkNorm,
    Routing, Values,
};

/// Most threads that read.
const READERS: usize = 8;

/// Rows of a matrix that are held in one way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) kind: Kind,
    pub(crate) rows: usize,
    pub(crate) at: Address,
}

/// A matrix `[n, k]`: parts on top of each other.
#[derive(Debug, Clone)]
pub(crate) struct Matrix {
    pub(crate) parts: Vec<Part>,
    pub(crate) n: usize,
    pub(crate) k: usize,
}

/// A norm's scale and offset in f32; 0 for none. Without a scale it is no norm.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NormWeights {
    pub(crate) scale: Address,
    pub(crate) offset: Address,
}

/// Feed-forward weights; the gate lies on top of the up projection. Biases in f32, 0 for none.
pub(crate) struct MlpWeights {
    pub(crate) gate_up: Matrix,
    pub(crate) gate_up_bias: Address,
    pub(crate) down: Matrix,
    pub(crate) down_bias: Address,
}

/// A mixture of experts. A part of its matrices has the rows of the first expert, then those of the second, and so on; `rows` and `n`
/// are those of one. Biases are `[experts, n]`.
pub(crate) struct ExpertWeights {
    pub(crate) router: Matrix,
    pub(crate) router_bias: Address,
    /// Added to scores for the choice only.
    pub(crate) choice_bias: Address,
    pub(crate) mlp: MlpWeights,
}

/// The feed-forward part of a layer.
pub(crate) struct FeedForward {
    /// The block computed for every token.
    pub(crate) dense: Option<MlpWeights>,
    pub(crate) experts: Option<ExpertWeights>,
}

pub(crate) struct LayerWeights {
    /// Without a scale where norms follow the blocks.
    pub(crate) attention_norm: NormWeights,
    pub(crate) qkv: Matrix,
    pub(crate) qkv_bias: Address,
    /// In f32; 0 for none.
    pub(crate) query_norm: Address,
    pub(crate) key_norm: Address,
    /// Of each query head, in f32; 0 for none.
    pub(crate) sinks: Address,
    pub(crate) output: Matrix,
    pub(crate) output_bias: Address,
    pub(crate) post_attention_norm: NormWeights,
    pub(crate) mlp_norm: NormWeights,
    pub(crate) feed_forward: FeedForward,
    pub(crate) post_mlp_norm: NormWeights,
}

/// All parameters.
pub(crate) struct Weights {
    pub(crate) element: Element,
    pub(crate) embedding: Matrix,
    pub(crate) layers: Vec<LayerWeights>,
    pub(crate) final_norm: NormWeights,
    pub(crate) head: Matrix,
    pub(crate) head_bias: Address,
    /// Bytes on the device.
    pub(crate) bytes: u64,
}

/// The type that a checkpoint is computed in: the one that was asked for, else the file's; what a GGUF file has in blocks or f32,
/// and what a folder has quantised, is computed in bf16.
pub(crate) fn element_of(checkpoint: &Checkpoint) -> Result<Element, CudaError> {
    let c = &checkpoint.config;
    if let Some(asked) = checkpoint.weight_format().dtype {
        return Ok(match asked {
            ElementType::F32 => Element::F32,
            ElementType::Bf16 => Element::Bf16,
            ElementType::F16 => Element::F16,
        });
    }
    let parameter = Parameter::Layer(0, P::Query);
    let shape = [c.num_heads * c.head_dim, c.hidden_size];
    if checkpoint.block_type(parameter, &shape).is_some() {
        return Ok(Element::Bf16);
    }
    Ok(match checkpoint.tensor(parameter, &shape)?.values {
        Values::Bf16(_) => Element::Bf16,
        Values::F16(_) => Element::F16,
        // Quantised in a way that has no kernel here, or at load: 16 bits hold more than those values have.
        Values::F32(_) if checkpoint.format != Format::Safetensors || checkpoint.is_quantised() => Element::Bf16,
        Values::F32(_) if checkpoint.weight_format().quant.is_some() => Element::Bf16,
        Values::F32(_) if checkpoint.weight_format().is_fp8() => Element::Bf16,
        Values::F32(_) => Element::F32,
    })
}

/// Something to read and copy.
struct Job {
    parameter: Parameter,
    shape: Vec<usize>,
    /// Format of a matrix; none for a vector, which is in f32.
    kind: Option<Kind>,
    to: Address,
}

impl Job {
    /// True if the values are copies of a block of random numbers, which the device makes itself.
    fn is_block(&self, checkpoint: &Checkpoint, element: Element) -> bool {
        self.kind == Some(Kind::Dense)
            && element == Element::Bf16
            && checkpoint.block_copies(self.parameter, &self.shape).is_some()
    }
}

impl Weights {
    /// Allocates memory for every parameter, then reads them on several threads and copies each as it comes.
    pub(crate) fn load(device: &dyn Device, checkpoint: &Checkpoint, element: Element) -> Result<Weights, CudaError> {
        let mut placer = Placer { device, checkpoint, c: &checkpoint.config, element, jobs: vec![], bytes: 0 };
        let mut weights = placer.weights()?;
        weights.bytes = placer.bytes;
        let (copied, read): (Vec<Job>, Vec<Job>) =
            placer.jobs.into_iter().partition(|job| job.is_block(checkpoint, element));
        copy_blocks(device, checkpoint, &copied)?;
        copy_all(device, checkpoint, element, &read)?;
        Ok(weights)
    }

    /// The ways in which matrices are held, e.g. `bf16+q4k`.
    pub(crate) fn dtype(&self) -> String {
        let all = [self.kinds(), self.expert_kinds()].concat();
        let mut names: Vec<&str> = all.into_iter().map(|kind| kind.name(self.element)).collect();
        names.sort_unstable();
        names.dedup();
        names.join("+")
    }

    /// The ways in which matrices are held, without those of experts.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let layers = self.layers.iter().flat_map(|l| {
            let dense = l.feed_forward.dense.iter().flat_map(|m| [&m.gate_up, &m.down]);
            let routers = l.feed_forward.experts.iter().map(|e| &e.router);
            [&l.qkv, &l.output].into_iter().chain(dense).chain(routers)
        });
        kinds_of(layers.chain([&self.embedding, &self.head]))
    }

    /// The ways in which matrices of experts are held.
    pub(crate) fn expert_kinds(&self) -> Vec<Kind> {
        let experts = self.layers.iter().flat_map(|l| &l.feed_forward.experts);
        kinds_of(experts.flat_map(|e| [&e.mlp.gate_up, &e.mlp.down]))
    }
}

/// The kinds of some matrices' parts, each once.
fn kinds_of<'a>(matrices: impl Iterator<Item = &'a Matrix>) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = vec![];
    for part in matrices.flat_map(|m| &m.parts) {
        if !kinds.contains(&part.kind) {
            kinds.push(part.kind);
        }
    }
    kinds
}

/// Assigns every parameter its destination.
struct Placer<'a> {
    device: &'a dyn Device,
    checkpoint: &'a Checkpoint,
    c: &'a DecoderConfig,
    element: Element,
    jobs: Vec<Job>,
    bytes: u64,
}

impl Placer<'_> {
    fn allocate(&mut self, bytes: u64) -> Result<Address, DeviceError> {
        self.bytes += bytes;
        self.device.allocate(bytes, "weights")
    }

    fn kind(&self, parameter: Parameter, shape: &[usize]) -> Kind {
        match self.checkpoint.block_type(parameter, shape) {
            // Without matrix instructions in f32 there are no kernels for blocks.
            _ if self.element == Element::F32 => Kind::Dense,
            _ if shape.last().is_some_and(|&k| self.checkpoint.computes_fp8(parameter, k)) => Kind::E4m3,
            Some(BlockType::Q8_0) => Kind::Q8_0,
            Some(BlockType::Q4K) => Kind::Q4K,
            Some(BlockType::Q5K) => Kind::Q5K,
            Some(BlockType::Q6K) => Kind::Q6K,
            // The others have no kernels.
            _ => Kind::Dense,
        }
    }

    /// Parameters of `k` columns on top of each other; neighbours that are held alike are one part.
    fn matrix(&mut self, parameters: &[(Parameter, usize)], k: usize) -> Result<Matrix, CudaError> {
        if !k.is_multiple_of(8) {
            return Err(CudaError::Width { what: parameters[0].0.to_string(), width: k });
        }
        let kinds: Vec<Kind> = parameters.iter().map(|&(p, n)| self.kind(p, &[n, k])).collect();
        let mut parts: Vec<Part> = vec![];
        let mut i = 0;
        while i < parameters.len() {
            let end = (i..parameters.len()).find(|&j| kinds[j] != kinds[i]).unwrap_or(parameters.len());
            let row = kinds[i].row_bytes(k, self.element);
            let rows: usize = parameters[i..end].iter().map(|p| p.1).sum();
            let at = self.allocate(rows as u64 * row)?;
            let mut to = at;
            for &(parameter, n) in &parameters[i..end] {
                self.jobs.push(Job { parameter, shape: vec![n, k], kind: Some(kinds[i]), to });
                to += n as u64 * row;
            }
            parts.push(Part { kind: kinds[i], rows, at });
            i = end;
        }
        Ok(Matrix { parts, n: parameters.iter().map(|p| p.1).sum(), k })
    }

    /// A matrix for each of `count` experts, of `k` columns; `of` has an expert's parameters on top of each other.
    fn expert_matrices(
        &mut self,
        count: usize,
        of: &dyn Fn(usize) -> Vec<(Parameter, usize)>,
        k: usize,
    ) -> Result<Matrix, CudaError> {
        let first = of(0);
        if !k.is_multiple_of(8) {
            return Err(CudaError::Width { what: first[0].0.to_string(), width: k });
        }
        // What is not held alike in all experts is held as elements.
        let kind = |i: usize| {
            let (parameter, n) = first[i];
            let kind = self.kind(parameter, &[n, k]);
            let alike = (1..count).all(|e| self.kind(of(e)[i].0, &[n, k]) == kind);
            if alike { kind } else { Kind::Dense }
        };
        let kinds: Vec<Kind> = (0..first.len()).map(kind).collect();
        let (mut parts, mut i): (Vec<Part>, usize) = (vec![], 0);
        while i < first.len() {
            let end = (i..first.len()).find(|&j| kinds[j] != kinds[i]).unwrap_or(first.len());
            let row = kinds[i].row_bytes(k, self.element);
            let rows: usize = first[i..end].iter().map(|p| p.1).sum();
            let at = self.allocate((count * rows) as u64 * row)?;
            let mut to = at;
            for expert in 0..count {
                for &(parameter, n) in &of(expert)[i..end] {
                    self.jobs.push(Job { parameter, shape: vec![n, k], kind: Some(kinds[i]), to });
                    to += n as u64 * row;
                }
            }
            parts.push(Part { kind: kinds[i], rows, at });
            i = end;
        }
        Ok(Matrix { parts, n: first.iter().map(|p| p.1).sum(), k })
    }

    /// Vectors after each other, in f32.
    fn vectors(&mut self, parameters: &[(Parameter, usize)]) -> Result<Address, CudaError> {
        let at = self.allocate(4 * parameters.iter().map(|p| p.1 as u64).sum::<u64>())?;
        let mut to = at;
        for &(parameter, n) in parameters {
            self.jobs.push(Job { parameter, shape: vec![n], kind: None, to });
            to += 4 * n as u64;
        }
        Ok(at)
    }

    fn bias(&mut self, wanted: bool, parameters: &[(Parameter, usize)]) -> Result<Address, CudaError> {
        if wanted { self.vectors(parameters) } else { Ok(0) }
    }

    fn norm(&mut self, scale: Parameter, offset: Parameter) -> Result<NormWeights, CudaError> {
        let n = self.c.hidden_size;
        let offset = self.bias(self.c.has_norm_bias(), &[(offset, n)])?;
        Ok(NormWeights { scale: self.vectors(&[(scale, n)])?, offset })
    }

    /// A norm after a block, which exists in decoders with RMS norms only.
    fn post_norm(&mut self, scale: Parameter) -> Result<NormWeights, CudaError> {
        let after = matches!(self.c.block, BlockLayout::Sandwich | BlockLayout::PostNorm);
        Ok(NormWeights { scale: self.bias(after, &[(scale, self.c.hidden_size)])?, offset: 0 })
    }

    fn weights(&mut self) -> Result<Weights, CudaError> {
        let c = self.c;
        let (vocab, hidden) = (c.vocab_size, c.hidden_size);
        let embedding = self.matrix(&[(Parameter::Embedding, vocab)], hidden)?;
        let head =
            if c.tied_embeddings { embedding.clone() } else { self.matrix(&[(Parameter::Head, vocab)], hidden)? };
        let head_bias = self.bias(c.head_bias, &[(Parameter::HeadBias, vocab)])?;
        let final_norm = self.norm(Parameter::FinalNorm, Parameter::FinalNormBias)?;
        let layers = (0..c.layers.len()).map(|i| self.layer(i)).collect::<Result<_, _>>()?;
        Ok(Weights { element: self.element, embedding, layers, final_norm, head, head_bias, bytes: 0 })
    }

    fn layer(&mut self, i: usize) -> Result<LayerWeights, CudaError> {
        let c = self.c;
        let at = |p| Parameter::Layer(i, p);
        let (hidden, d) = (c.hidden_size, c.head_dim);
        let (q, kv) = (c.num_heads * d, c.num_kv_heads * d);
        let norms = match c.qk_norm {
            QkNorm::None | QkNorm::PlainAfterRotary => None,
            QkNorm::Head | QkNorm::HeadAfterRotary => Some((d, d)),
            QkNorm::Width => Some((q, kv)),
        };
        let before_mlp = matches!(c.block, BlockLayout::Sandwich | BlockLayout::PreNorm);
        Ok(LayerWeights {
            attention_norm: match c.block {
                BlockLayout::PostNorm => NormWeights::default(),
                _ => self.norm(at(P::AttentionNorm), at(P::AttentionNormBias))?,
            },
            qkv: self.matrix(&[(at(P::Query), q), (at(P::Key), kv), (at(P::Value), kv)], hidden)?,
            qkv_bias: self.bias(c.qkv_bias, &[(at(P::QueryBias), q), (at(P::KeyBias), kv), (at(P::ValueBias), kv)])?,
            query_norm: self.bias(norms.is_some(), &[(at(P::QueryNorm), norms.unwrap_or_default().0)])?,
            key_norm: self.bias(norms.is_some(), &[(at(P::KeyNorm), norms.unwrap_or_default().1)])?,
            sinks: self.bias(c.sinks, &[(at(P::Sinks), c.num_heads)])?,
            output: self.matrix(&[(at(P::Output), hidden)], q)?,
            output_bias: self.bias(c.output_bias, &[(at(P::OutputBias), hidden)])?,
            post_attention_norm: self.post_norm(at(P::PostAttentionNorm))?,
            mlp_norm: match before_mlp {
                true => self.norm(at(P::MlpNorm), at(P::MlpNormBias))?,
                false => NormWeights::default(),
            },
            feed_forward: FeedForward { dense: self.dense(i)?, experts: self.experts(i)? },
            post_mlp_norm: self.post_norm(at(P::PostMlpNorm))?,
        })
    }

    fn dense(&mut self, i: usize) -> Result<Option<MlpWeights>, CudaError> {
        let c = self.c;
        let at = |p| Parameter::Layer(i, p);
        let (hidden, inner) = (c.hidden_size, c.layers[i].intermediate_size);
        if inner == 0 {
            return Ok(None);
        }
        let (matrices, biases) = if c.gated {
            (vec![(at(P::Gate), inner), (at(P::Up), inner)], vec![(at(P::GateBias), inner), (at(P::UpBias), inner)])
        } else {
            (vec![(at(P::Up), inner)], vec![(at(P::UpBias), inner)])
        };
        Ok(Some(MlpWeights {
            gate_up: self.matrix(&matrices, hidden)?,
            gate_up_bias: self.bias(c.mlp_bias, &biases)?,
            down: self.matrix(&[(at(P::Down), hidden)], inner)?,
            down_bias: self.bias(c.mlp_bias, &[(at(P::DownBias), hidden)])?,
        }))
    }

    fn experts(&mut self, i: usize) -> Result<Option<ExpertWeights>, CudaError> {
        let c = self.c;
        let Some(e) = c.experts.filter(|_| c.layers[i].experts) else { return Ok(None) };
        let at = |p| Parameter::Layer(i, p);
        let (hidden, inner) = (c.hidden_size, e.intermediate_size);
        let gate_up = |n: usize| vec![(at(P::ExpertGate(n)), inner), (at(P::ExpertUp(n)), inner)];
        let down = |n: usize| vec![(at(P::ExpertDown(n)), hidden)];
        let gate_up_bias = |n| [(at(P::ExpertGateBias(n)), inner), (at(P::ExpertUpBias(n)), inner)];
        let down_bias = |n| [(at(P::ExpertDownBias(n)), hidden)];
        let by_choice = matches!(e.routing, Routing::Sigmoid { .. });
        Ok(Some(ExpertWeights {
            router: self.matrix(&[(at(P::Router), e.count)], hidden)?,
            router_bias: self.bias(e.router_bias, &[(at(P::RouterBias), e.count)])?,
            choice_bias: self.bias(by_choice, &[(at(P::ChoiceBias), e.count)])?,
            mlp: MlpWeights {
                gate_up: self.expert_matrices(e.count, &gate_up, hidden)?,
                gate_up_bias: self.bias(e.bias, &(0..e.count).flat_map(gate_up_bias).collect::<Vec<_>>())?,
                down: self.expert_matrices(e.count, &down, inner)?,
                down_bias: self.bias(e.bias, &(0..e.count).flat_map(down_bias).collect::<Vec<_>>())?,
            },
        }))
    }
}

/// Uploads the block of a random checkpoint once and copies the jobs' values from it.
fn copy_blocks(device: &dyn Device, checkpoint: &Checkpoint, jobs: &[Job]) -> Result<(), DeviceError> {
    let size = Element::Bf16.size_bytes();
    let mut uploaded = None;
    for job in jobs {
        let Some(copies) = checkpoint.block_copies(job.parameter, &job.shape) else { continue };
        let from = match uploaded {
            Some(from) => from,
            None => {
                let from = device.allocate(copies.block.len() as u64 * size, "random weights")?;
                uploaded = Some(from);
                let bytes: Vec<u8> = copies.block.iter().flat_map(|x| x.to_ne_bytes()).collect();
                device.upload(from, &bytes)?;
                from
            }
        };
        let mut to = job.to;
        for (first, count) in copies.parts {
            device.copy(from + first as u64 * size, to, count as u64 * size)?;
            to += count as u64 * size;
        }
    }
    uploaded.map_or(Ok(()), |at| device.free(at))
}

/// Bytes of the host's memory that are copied to the device while the next ones are put into it.
const STAGED: usize = if cfg!(test) { 1 << 12 } else { 16 << 20 };

/// Uploads through pinned memory: the device copies one half while the host fills the other.
struct Staging<'a> {
    device: &'a dyn Device,
    halves: [*mut u8; 2],
    /// Copies asked for that the host has not waited for.
    marks: [Option<Mark>; 2],
    next: usize,
}

impl<'a> Staging<'a> {
    fn new(device: &'a dyn Device) -> Result<Staging<'a>, DeviceError> {
        let halves = [device.host_memory(STAGED)?, device.host_memory(STAGED)?];
        Ok(Staging { device, halves, marks: [None; 2], next: 0 })
    }

    fn upload(&mut self, to: Address, bytes: &[u8]) -> Result<(), DeviceError> {
        for (i, part) in bytes.chunks(STAGED).enumerate() {
            let half = self.next;
            if let Some(mark) = self.marks[half].take() {
                self.device.wait(mark)?;
            }
            // SAFETY: the half is as large, and its last copy has been waited for.
            unsafe {
                self.halves[half].copy_from_nonoverlapping(part.as_ptr(), part.len());
                self.device.send(to + (i * STAGED) as u64, self.halves[half], part.len())?;
            }
            self.marks[half] = Some(self.device.mark(half)?);
            self.next = 1 - half;
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(), DeviceError> {
        for mark in self.marks.iter_mut().filter_map(Option::take) {
            self.device.wait(mark)?;
        }
        Ok(())
    }
}

/// Reads every job's values on several threads and copies them to the device on this one.
fn copy_all(device: &dyn Device, checkpoint: &Checkpoint, element: Element, jobs: &[Job]) -> Result<(), CudaError> {
    let readers = std::thread::available_parallelism().map_or(1, usize::from).min(READERS);
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None);
    // Few at a time, so that the host never holds more than some matrices.
    let (sender, receiver) = sync_channel::<(usize, Vec<u8>)>(2);
    let copied = std::thread::scope(|scope| {
        for number in 0..readers {
            let sender = sender.clone();
            let (next, failed) = (&next, &failed);
            let reader = std::thread::Builder::new().spawn_scoped(scope, move || {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(i) else { return };
                    match bytes(checkpoint, element, job) {
                        Ok(bytes) => {
                            // The receiver is gone only after a failure of its own.
                            if sender.send((i, bytes)).is_err() {
                                return;
                            }
                        }
                        Err(error) => {
                            next.fetch_add(jobs.len(), Ordering::Relaxed);
                            if let Ok(mut first) = failed.lock() {
                                first.get_or_insert(error);
                            }
                            return;
                        }
                    }
                }
            });
            match reader {
                Ok(_) => {}
                Err(error) if number == 0 => {
                    return Err(DeviceError::NoDevice(format!(
                        "no thread to read the weights could be started: {error}"
                    )));
                }
                // Those that were started read all.
                Err(_) => break,
            }
        }
        drop(sender);
        let mut staging = Staging::new(device)?;
        for (i, bytes) in receiver {
            staging.upload(jobs[i].to, &bytes)?;
        }
        staging.finish()
    });
    match failed.into_inner() {
        Ok(Some(error)) => Err(error),
        _ => Ok(copied?),
    }
}

/// A job's values as the device has them.
fn bytes(checkpoint: &Checkpoint, element: Element, job: &Job) -> Result<Vec<u8>, CudaError> {
    let (parameter, shape) = (job.parameter, &job.shape[..]);
    let kind = match job.kind {
        None => {
            let values = wide(checkpoint.tensor(parameter, shape)?.values);
            finite(parameter, &values, |v| v.is_finite())?;
            return Ok(values.iter().flat_map(|v| v.to_ne_bytes()).collect());
        }
        Some(Kind::Dense) => return dense(checkpoint, element, parameter, shape),
        Some(Kind::E4m3) => {
            let values = wide(checkpoint.tensor(parameter, shape)?.values);
            finite(parameter, &values, |v| v.is_finite())?;
            return Ok(e4m3::pack(&values, shape[1], checkpoint.e4m3_scales(parameter, shape)?.as_deref()));
        }
        Some(kind) => kind,
    };
    Ok(repack(kind, checkpoint.blocks(parameter, shape)?, shape[1]))
}

/// ggml's blocks of rows of `k` weights as the device has them.
pub(crate) fn repack(kind: Kind, blocks: Vec<u8>, k: usize) -> Vec<u8> {
    match kind {
        Kind::Q8_0 => repack_q8_0(&blocks, k),
        Kind::Q6K => {
            let (before, after) = (210, 224);
            let mut out = vec![0u8; blocks.len() / before * after];
            for (from, to) in blocks.chunks_exact(before).zip(out.chunks_exact_mut(after)) {
                to[..before].copy_from_slice(from);
            }
            out
        }
        Kind::Dense | Kind::Q4K | Kind::Q5K | Kind::E4m3 => blocks,
    }
}

/// A row's numbers, then its scales, then zeros up to a multiple of 16 bytes.
fn repack_q8_0(blocks: &[u8], k: usize) -> Vec<u8> {
    let after = Kind::Q8_0.row_bytes(k, Element::Bf16) as usize;
    let before = k / 32 * 34;
    let mut out = vec![0u8; blocks.len() / before * after];
    for (from, to) in blocks.chunks_exact(before).zip(out.chunks_exact_mut(after)) {
        for (i, block) in from.chunks_exact(34).enumerate() {
            to[k + 2 * i..k + 2 * i + 2].copy_from_slice(&block[..2]);
            to[32 * i..32 * (i + 1)].copy_from_slice(&block[2..]);
        }
    }
    out
}

fn wide(values: Values) -> Vec<f32> {
    match values {
        Values::F32(v) => v,
        Values::Bf16(v) => v.into_iter().map(|x| half::bf16::from_bits(x).to_f32()).collect(),
        Values::F16(v) => v.into_iter().map(|x| half::f16::from_bits(x).to_f32()).collect(),
    }
}

fn finite<T>(parameter: Parameter, values: &[T], is_finite: impl Fn(&T) -> bool) -> Result<(), CudaError> {
    match values.iter().filter(|v| !is_finite(v)).count() {
        0 => Ok(()),
        count => Err(CudaError::NotFinite { parameter: parameter.to_string(), count }),
    }
}

fn dense(
    checkpoint: &Checkpoint,
    element: Element,
    parameter: Parameter,
    shape: &[usize],
) -> Result<Vec<u8>, CudaError> {
    let halves = |v: Vec<u16>, exponent: u16| {
        // An exponent of all ones is an infinity or not a number.
        finite(parameter, &v, |x| x & exponent != exponent)?;
        Ok(v.iter().flat_map(|x| x.to_ne_bytes()).collect::<Vec<u8>>())
    };
    match (checkpoint.tensor(parameter, shape)?.values, element) {
        (Values::Bf16(v), Element::Bf16) => halves(v, 0x7F80),
        (Values::F16(v), Element::F16) => halves(v, 0x7C00),
        (values, Element::F32) => {
            let v = wide(values);
            finite(parameter, &v, |x| x.is_finite())?;
            Ok(v.iter().flat_map(|x| x.to_ne_bytes()).collect())
        }
        (values, Element::Bf16) => {
            halves(wide(values).into_iter().map(|x| half::bf16::from_f32(x).to_bits()).collect(), 0x7F80)
        }
        (values, Element::F16) => {
            halves(wide(values).into_iter().map(|x| half::f16::from_f32(x).to_bits()).collect(), 0x7C00)
        }
    }
}
