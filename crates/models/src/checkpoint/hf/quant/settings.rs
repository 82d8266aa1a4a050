//! `quantization_config` of a `config.json`.
//!
//! Every key is read, listed here as provenance, or rejected by name.
use crate::checkpoint::CheckpointError;
use crate::checkpoint::json_fields::Fields;
use std::fmt;

/// Quantisation of a folder's weights, as its `config.json` names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::checkpoint) struct Quantisation {
    pub(super) method: Method,
    /// Name for the manifest and for messages, e.g. `gptq 4-bit, groups of 128, act order`.
    pub(in crate::checkpoint) name: String,
    /// The format is meant for activations, keys or values of fewer bits, too.
    pub(in crate::checkpoint) of_activations: bool,
}

/// Layout of quantised matrices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// 8-bit floats or integers in `weight`, scales in `weight_scale` or `weight_scale_inv`.
    Scaled(Scaled),
    /// Integers of `bits` bits in the words of `weight_packed`.
    Packed { bits: u32, scales: Scales, asymmetric: bool, act_order: bool },
    /// `qweight`, `qzeros`, `scales`, packed along the outputs.
    Awq { group: Option<usize> },
    /// `qweight`, `qzeros`, `scales`, `g_idx`, packed along the inputs.
    Gptq { bits: u32, group: Option<usize>, act_order: bool, stored_zero: StoredZero },
    /// `weight`, `weight.absmax`, `weight.quant_state.bitsandbytes__nf4` and others.
    Nf4 { double: bool },
}

/// Elements of [`Method::Scaled`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scaled {
    pub(super) scales: Scales,
    /// Integers, else E4M3.
    pub(super) integers: bool,
    pub(super) asymmetric: bool,
}

/// Weights that share a scale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scales {
    Tensor,
    /// A row, which is an output channel.
    Row,
    /// This many neighbours in a row.
    Group(usize),
    /// A rectangle of rows and columns; those at the edges are smaller.
    Block(usize, usize),
}

/// Zero point of GPTQ as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredZero {
    /// `checkpoint_format: gptq`: less one.
    LessOne,
    /// `gptq_v2`.
    Plain,
}

impl fmt::Display for Scales {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scales::Tensor => f.write_str("one scale a matrix"),
            Scales::Row => f.write_str("one scale a row"),
            Scales::Group(size) => write!(f, "groups of {size}"),
            Scales::Block(rows, columns) => write!(f, "blocks of {rows} x {columns}"),
        }
    }
}

/// The next step for a format that is not read.
const INSTEAD: &str = "use the original checkpoint or a GGUF file, or serve it with another program and give the setting `engine = openai` its address";

/// Formats that are read, for messages.
const READ: &str = "fp8 and fbgemm_fp8 (E4M3), compressed-tensors (float-quantized, int-quantized, naive-quantized, pack-quantized), awq \
     (gemm), gptq and bitsandbytes (nf4)";

/// Keys that name modules. Files say by their tensors which matrices are quantised.
const MODULES: &[&str] = &["modules_to_not_convert", "ignore", "ignored_layers", "llm_int8_skip_modules", "lm_head"];

/// Settings of the search for the values, of kernels and of the program that wrote the file.
const PROVENANCE: &[&str] = &[
    "quant_method",
    "bits",
    "w_bit",
    "act_group_aware",
    "activation_scale_ub",
    "amp",
    "autoround_version",
    "backend",
    "batch_size",
    "block_name_to_quantize",
    "cache_block_outputs",
    "damp_auto_increment",
    "damp_percent",
    "data_type",
    "dataset",
    "dequantize",
    "disable_exllama",
    "do_fuse",
    "enable_minmax_tuning",
    "enable_quanted_input",
    "exllama_config",
    "fuse_max_seq_len",
    "global_compression_ratio",
    "gradient_accumulate_steps",
    "is_marlin_format",
    "iters",
    "low_gpu_mem_usage",
    "lr",
    "max_input_length",
    "meta",
    "minmax_lr",
    "model_file_base_name",
    "model_name_or_path",
    "model_seqlen",
    "module_name_preceding_first_block",
    "modules_in_block_to_quantize",
    "modules_to_fuse",
    "mse",
    "nsamples",
    "pad_token_id",
    "quantization_status",
    "quantizer",
    "scale_fmt",
    "seqlen",
    "static_groups",
    "sym",
    "tokenizer",
    "true_sequential",
    "use_cuda_fp16",
    "use_exllama",
    "version",
];
/// Keys of bitsandbytes for the other widths, for kernels and for loading.
const BITSANDBYTES: &[&str] = &[
    "_load_in_4bit",
    "_load_in_8bit",
    "bnb_4bit_compute_dtype",
    "bnb_4bit_quant_storage",
    "llm_int8_enable_fp32_cpu_offload",
    "llm_int8_has_fp16_weight",
    "llm_int8_threshold",
];

impl Quantisation {
    /// Reads the key `quantization_config`; none if it is absent.
    pub(in crate::checkpoint) fn read(config: &Fields) -> Result<Option<Quantisation>, CheckpointError> {
        let Some(f) = config.object("quantization_config")? else { return Ok(None) };
        f.ignore(PROVENANCE);
        f.ignore(MODULES);
        let method = f.text("quant_method")?;
        let quantisation = match method {
            Some("fp8") => fp8(&f)?,
            Some("fbgemm_fp8") => scaled("fbgemm_fp8 e4m3", Scales::Row, true),
            Some("compressed-tensors") => compressed(&f)?,
            Some("awq") => awq(&f)?,
            Some("gptq") => gptq(&f)?,
            Some("bitsandbytes") => bitsandbytes(&f)?,
            // As bitsandbytes did before the key existed.
            None if f.contains("load_in_4bit") => bitsandbytes(&f)?,
            _ => {
                let reason = format!("this quantisation is not read; read are {READ}; {INSTEAD}");
                return Err(f.error("quant_method", reason));
            }
        };
        f.finish()?;
        Ok(Some(quantisation))
    }
}

fn scaled(name: &str, scales: Scales, of_activations: bool) -> Quantisation {
    let method = Method::Scaled(Scaled { scales, integers: false, asymmetric: false });
    Quantisation { method, name: format!("{name}, {scales}"), of_activations }
}

fn fp8(f: &Fields) -> Result<Quantisation, CheckpointError> {
    match f.text("fmt")? {
        None | Some("e4m3" | "float8_e4m3fn") => {}
        Some(_) => return Err(f.error("fmt", format!("only e4m3 is read; {INSTEAD}"))),
    }
    match f.text("activation_scheme")? {
        None | Some("dynamic" | "static") => {}
        Some(_) => return Err(f.error("activation_scheme", "expected dynamic or static")),
    }
    let scales = if f.value("weight_block_size").is_some() { block(f, "weight_block_size")? } else { Scales::Tensor };
    Ok(scaled("fp8 e4m3", scales, true))
}

/// Reads two sizes, rows and columns.
fn block(f: &Fields, key: &str) -> Result<Scales, CheckpointError> {
    let sizes = f.value(key).and_then(|v| v.as_array()).map(|list| list.iter().map(|v| v.as_u64()).collect::<Vec<_>>());
    match sizes.as_deref() {
        Some(&[Some(rows @ 1..=65_536), Some(columns @ 1..=65_536)]) => {
            Ok(Scales::Block(rows as usize, columns as usize))
        }
        _ => Err(f.error(key, "must be two sizes from 1 to 65536, rows and columns")),
    }
}

fn compressed(f: &Fields) -> Result<Quantisation, CheckpointError> {
    let format = f.text("format")?.unwrap_or("(none)");
    let packed = format == "pack-quantized";
    if !packed && !["float-quantized", "int-quantized", "naive-quantized"].contains(&format) {
        let reason = format!("this format of compressed-tensors is not read; read are {READ}; {INSTEAD}");
        return Err(f.error("format", reason));
    }
    if let Some(sparse) = f.object("sparsity_config")? {
        match sparse.text("format")? {
            None | Some("dense") => {}
            Some(_) => return Err(sparse.error("format", format!("only dense weights are read; {INSTEAD}"))),
        }
    }
    if let Some(transforms) = f.object("transform_config")?
        && transforms.keys().next().is_some()
    {
        return Err(f.error("transform_config", format!("transforms of activations are not computed; {INSTEAD}")));
    }
    f.ignore(&["version"]);
    let mut of_activations = f.value("kv_cache_scheme").is_some();
    let groups =
        f.object("config_groups")?.ok_or_else(|| f.error("config_groups", "names the scheme of the weights"))?;
    let mut found: Option<(Method, String)> = None;
    for key in groups.keys() {
        let Some(group) = groups.object(key)? else { continue };
        group.ignore(&["targets", "format"]);
        for key in ["input_activations", "output_activations"] {
            of_activations |= group.value(key).is_some();
        }
        let Some(weights) = group.object("weights")? else { continue };
        let method = compressed_weights(&weights, packed)?;
        group.finish()?;
        if found.as_ref().is_some_and(|(first, _)| *first != method.0) {
            let reason = format!("groups with different schemes of weights are not read; {INSTEAD}");
            return Err(f.error("config_groups", reason));
        }
        found = Some(method);
    }
    let Some((method, scheme)) = found else {
        return Err(f.error("config_groups", "no group quantises weights"));
    };
    Ok(Quantisation { method, name: format!("compressed-tensors {format} {scheme}"), of_activations })
}

fn compressed_weights(f: &Fields, packed: bool) -> Result<(Method, String), CheckpointError> {
    f.ignore(&["observer", "observer_kwargs", "dynamic", "scale_dtype", "zp_dtype"]);
    let bits = f.positive("num_bits", None)?;
    let integers = match f.text("type")? {
        Some("int") => true,
        Some("float") => false,
        _ => return Err(f.error("type", "expected int or float")),
    };
    let group = f.value("group_size").and_then(|v| v.as_i64());
    let scales = match (f.text("strategy")?, group) {
        (Some("tensor"), _) => Scales::Tensor,
        (Some("channel"), _) => Scales::Row,
        (Some("group"), Some(size @ 1..=65_536)) => Scales::Group(size as usize),
        (Some("group"), _) => return Err(f.error("group_size", "must be a size from 1 to 65536")),
        (Some("block"), _) => block(f, "block_structure")?,
        _ => return Err(f.error("strategy", format!("tensor, channel, group and block are read; {INSTEAD}"))),
    };
    f.ignore(&["block_structure"]);
    let asymmetric = !f.flag("symmetric")?.unwrap_or(true);
    let act_order = match f.value("actorder") {
        None => false,
        Some(value) => match value.as_str().map(str::to_ascii_lowercase).as_deref() {
            Some("group" | "dynamic") => true,
            // Columns were visited in another order, and stored in theirs.
            Some("weight" | "static") => false,
            _ if value.as_bool() == Some(true) => true,
            _ => return Err(f.error("actorder", "expected group, dynamic, weight or static")),
        },
    };
    f.finish()?;
    let kind = if integers { "int" } else { "float" };
    let name = format!("{bits}-bit {kind}, {scales}{}", if act_order { ", act order" } else { "" });
    let method = match (packed, integers, bits) {
        (true, true, 2..=8) => {
            if matches!(scales, Scales::Block(..)) {
                return Err(f.error("strategy", "packed integers have a scale a matrix, row or group"));
            }
            Method::Packed { bits: bits as u32, scales, asymmetric, act_order }
        }
        (false, true, 2..=8) | (false, false, 8) if !act_order => {
            Method::Scaled(Scaled { scales, integers, asymmetric })
        }
        _ => {
            let reason = format!("{kind}s of {bits} bits are not read in this format; {INSTEAD}");
            return Err(f.error("num_bits", reason));
        }
    };
    Ok((method, name))
}

/// Reads a size of groups, in which -1 is a whole row.
fn group_size(f: &Fields, keys: [&str; 2]) -> Result<Option<usize>, CheckpointError> {
    for key in keys {
        match f.value(key).map(|v| v.as_i64()) {
            None => continue,
            Some(Some(-1)) => return Ok(None),
            Some(Some(size @ 1..=65_536)) => return Ok(Some(size as usize)),
            Some(_) => return Err(f.error(key, "must be -1 (a whole row) or a size from 1 to 65536")),
        }
    }
    Err(f.error(keys[0], "must be -1 (a whole row) or a size from 1 to 65536"))
}

fn groups(group: Option<usize>) -> String {
    group.map_or("one group a row".to_owned(), |size| format!("groups of {size}"))
}

fn awq(f: &Fields) -> Result<Quantisation, CheckpointError> {
    let bits = if f.contains("bits") { "bits" } else { "w_bit" };
    if f.size(bits)? != Some(4) {
        return Err(f.error(bits, format!("AWQ of 4 bits is read; {INSTEAD}")));
    }
    // Newer files may have it as `format`.
    let version = if f.value("version").is_some() { "version" } else { "format" };
    match f.text(version)?.map(str::to_ascii_lowercase).as_deref() {
        None | Some("gemm") => {}
        Some(_) => return Err(f.error(version, format!("of AWQ's layouts gemm is read; {INSTEAD}"))),
    }
    if f.flag("zero_point")? == Some(false) {
        return Err(f.error("zero_point", format!("AWQ without zero points is not read; {INSTEAD}")));
    }
    let group = group_size(f, ["group_size", "q_group_size"])?;
    Ok(Quantisation {
        method: Method::Awq { group },
        name: format!("awq 4-bit, {}", groups(group)),
        of_activations: false,
    })
}

fn gptq(f: &Fields) -> Result<Quantisation, CheckpointError> {
    let bits = match f.size("bits")? {
        Some(bits @ (2 | 4 | 8)) => bits as u32,
        _ => return Err(f.error("bits", format!("GPTQ of 2, 4 and 8 bits is read; {INSTEAD}"))),
    };
    if f.flag("is_marlin_format")? == Some(true) {
        return Err(f.error("is_marlin_format", format!("the layout of the marlin kernels is not read; {INSTEAD}")));
    }
    let stored_zero = {
        let key = if f.value("checkpoint_format").is_some() { "checkpoint_format" } else { "format" };
        match f.text(key)? {
            None | Some("gptq") => StoredZero::LessOne,
            Some("gptq_v2") => StoredZero::Plain,
            Some(_) => return Err(f.error(key, format!("of GPTQ's layouts gptq and gptq_v2 are read; {INSTEAD}"))),
        }
    };
    f.ignore(&["checkpoint_format", "format"]);
    match f.text("pack_dtype")? {
        None | Some("int32") => {}
        Some(_) => return Err(f.error("pack_dtype", format!("words of int32 are read; {INSTEAD}"))),
    }
    // Rules for modules: those that exclude some change nothing here, others change bits or groups.
    if let Some(dynamic) = f.object("dynamic")?
        && dynamic.keys().any(|rule| !rule.starts_with("-:"))
    {
        return Err(f.error("dynamic", format!("other settings for some modules are not read; {INSTEAD}")));
    }
    let group = group_size(f, ["group_size", "group_size"])?;
    let act_order = f.flag("desc_act")?.unwrap_or(false);
    let order = if act_order { ", act order" } else { "" };
    let name = format!("gptq {bits}-bit, {}{order}", groups(group));
    Ok(Quantisation { method: Method::Gptq { bits, group, act_order, stored_zero }, name, of_activations: false })
}

fn bitsandbytes(f: &Fields) -> Result<Quantisation, CheckpointError> {
    f.ignore(BITSANDBYTES);
    if f.flag("load_in_8bit")? == Some(true) {
        return Err(f.error("load_in_8bit", format!("of bitsandbytes's formats nf4 is read; {INSTEAD}")));
    }
    if f.flag("load_in_4bit")? != Some(true) {
        return Err(f.error("load_in_4bit", format!("of bitsandbytes's formats nf4 is read; {INSTEAD}")));
    }
    // Its default is fp4.
    if f.text("bnb_4bit_quant_type")? != Some("nf4") {
        return Err(f.error("bnb_4bit_quant_type", format!("of bitsandbytes's formats nf4 is read; {INSTEAD}")));
    }
    let double = f.flag("bnb_4bit_use_double_quant")?.unwrap_or(false);
    let name = format!("bitsandbytes nf4{}", if double { ", double quantisation" } else { "" });
    Ok(Quantisation { method: Method::Nf4 { double }, name, of_activations: false })
}
