//! Options of `earnest models`, and the model options that other commands share.
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::args::{EngineArgs, SeedArgs};
use crate::cli::catalogue::SuiteCommand;
use crate::cli::values::Prompts;
use earnest_models::checkpoint::{Compute, ElementType, KvType, Quant, WeightFormat};
use earnest_models::hub::HubSettings;

/// Lists and cache for looking up models.
#[derive(Debug, Clone, Default, Args)]
pub struct HubArgs {
    /// List of models that extends and overrides the built-in one
    #[arg(long, value_name = "FILE", env = "EARNEST_MODELS_TOML", hide_env_values = true, help_heading = "Model")]
    pub models: Option<PathBuf>,

    /// Connect to this machine only; an endpoint must be local
    #[arg(long, help_heading = "Model")]
    pub offline: bool,

    /// Unknown key of config.json to let through, or tokenizer.ggml.pre=NAME
    #[arg(long, value_name = "KEY", help_heading = "Model")]
    pub allow_config: Vec<String>,
}

impl HubArgs {
    /// The settings.
    pub fn settings(&self) -> HubSettings {
        HubSettings {
            list: self.models.clone(),
            offline: self.offline,
            allow_config: self.allow_config.clone(),
            ..HubSettings::default()
        }
    }
}

/// Changes to the weights at load.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct WeightArgs {
    /// Quantisation of the attention and feed-forward weights at load; all but nf4 stay in their bits in memory. Counts as
    /// another model
    #[arg(long, value_name = "SCHEME", value_enum, help_heading = "Model")]
    pub quant: Option<QuantArg>,

    /// Element type to round matrices to [default: the file's]
    #[arg(long, value_name = "TYPE", value_enum, help_heading = "Model")]
    pub dtype: Option<DtypeArg>,

    /// Arithmetic of matrix products. All but f32 count as other models [default: f32]
    #[arg(long, value_name = "TYPE", value_enum, help_heading = "Model")]
    pub compute: Option<ComputeArg>,

    /// Type of keys and values in memory: f32, or bf16, which halves it and counts as another model [default: f32]
    #[arg(long, value_name = "TYPE", value_enum, hide_possible_values = true, help_heading = "Model")]
    pub kv: Option<KvArg>,
}

/// `--kv`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KvArg {
    /// As they are computed
    F32,
    /// Rounded to bfloat16
    Bf16,
}

/// `--compute`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ComputeArg {
    /// The weights' exact values
    F32,
    /// Weights, activations, keys and values in 8 bits: fast with VNNI, a third of the memory
    Int8,
    /// Activations in 8 bits, quantised weights as the file has them: for 4-bit files the fastest, and the least memory
    A8,
    /// Products of bf16 with sums in f32: fast with AMX, half the memory
    Bf16,
    /// On a GPU (compute capability 8.9 and later): products of 8-bit floats with sums in f32
    Fp8,
}

/// `--quant`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum QuantArg {
    /// The file's values
    None,
    /// 8 bits, blocks of 32
    #[value(name = "q8_0")]
    Q8,
    /// 6 bits, super-blocks of 256
    Q6k,
    /// 5 bits, super-blocks of 256
    Q5k,
    /// 4 bits, super-blocks of 256
    Q4k,
    /// 4-bit normal floats with double quantisation, as in QLoRA
    Nf4,
}

/// `--dtype`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DtypeArg {
    F32,
    Bf16,
    F16,
}

impl ComputeArg {
    /// The arithmetic; none for f32.
    pub fn arithmetic(self) -> Option<Compute> {
        match self {
            ComputeArg::F32 => None,
            ComputeArg::Int8 => Some(Compute::Int8),
            ComputeArg::A8 => Some(Compute::A8),
            ComputeArg::Bf16 => Some(Compute::Bf16),
            ComputeArg::Fp8 => Some(Compute::Fp8),
        }
    }
}

impl From<WeightArgs> for WeightFormat {
    fn from(args: WeightArgs) -> Self {
        let quant = args.quant.and_then(|quant| match quant {
            QuantArg::None => None,
            QuantArg::Q8 => Some(Quant::Q8),
            QuantArg::Q6k => Some(Quant::Q6k),
            QuantArg::Q5k => Some(Quant::Q5k),
            QuantArg::Q4k => Some(Quant::Q4k),
            QuantArg::Nf4 => Some(Quant::Nf4),
        });
        let dtype = args.dtype.map(|dtype| match dtype {
            DtypeArg::F32 => ElementType::F32,
            DtypeArg::Bf16 => ElementType::Bf16,
            DtypeArg::F16 => ElementType::F16,
        });
        let kv = args.kv.and_then(|kv| match kv {
            KvArg::F32 => None,
            KvArg::Bf16 => Some(KvType::Bf16),
        });
        WeightFormat { quant, dtype, compute: args.compute.and_then(ComputeArg::arithmetic), kv }
    }
}

#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "A MODEL is a name in the list, org/repo@<40-digit commit>, a folder or a GGUF file.
Models are stored in huggingface_hub's cache: HF_HUB_CACHE, HF_HOME/hub, or ~/.cache/huggingface/hub.

Examples:
  earnest models list --paper gsm-symbolic
  earnest models fetch gemma-2-2b-it
  earnest models fetch --paper gsm-symbolic
  earnest models fetch microsoft/phi-2@810d367871c1d460086d9f82db8696f2e0a0fcd0
  earnest models resolve Qwen2-7B                 asks the hub for the current commit and keeps it
  earnest models use HuggingFaceTB/SmolLM3-3B     keeps the commit that is in the cache
  earnest models quant-check arithmetic-bench --model model.gguf --quant q4k"
)]
pub struct ModelsArgs {
    #[command(subcommand)]
    pub command: ModelsCommand,
}

#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// List the models of the papers and your own: commit, size, memory, state in the cache
    List(ListArgs),
    /// Show a model: source, licence, recommended decoding, memory, files
    Show(ShowArgs),
    /// Fetch a commit into the cache, resuming earlier downloads, and check every file
    Fetch(FetchArgs),
    /// Hash the files of the cache again
    Verify(VerifyArgs),
    /// Ask the hub for the current commit of a branch, a tag or a short hash
    Resolve(ResolveArgs),
    /// Pin a commit of the cache in your own list, for --model by name or org/repo
    Use(UseArgs),
    /// Remove a commit from the cache
    Remove(RemoveArgs),
    /// Measure the effect of --quant, --dtype or --compute: perplexity and greedy agreement on a suite's prompts
    QuantCheck(Box<QuantCheckArgs>),
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only the models of this suite's paper
    #[arg(long, value_name = "SUITE")]
    pub paper: Option<String>,

    /// Only models in the cache, including those outside the list
    #[arg(long)]
    pub cached: bool,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ShowArgs {
    /// Model to show
    #[arg(value_name = "MODEL")]
    pub model: String,

    /// Ask the hub for the commit's files
    #[arg(long)]
    pub remote: bool,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct FetchArgs {
    /// Models: names in the list, or org/repo@<40-digit commit>
    #[arg(value_name = "MODEL", required_unless_present = "paper")]
    pub names: Vec<String>,

    /// All models of this suite's paper
    #[arg(long, value_name = "SUITE", conflicts_with = "files")]
    pub paper: Option<String>,

    /// File of the repository to fetch, e.g. a GGUF; may be repeated [default: the files that the native engine reads]
    #[arg(long = "file", value_name = "NAME")]
    pub files: Vec<String>,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Models [default: every commit in the cache]
    #[arg(value_name = "MODEL")]
    pub names: Vec<String>,

    /// Compare with the hub's current sizes and hashes instead of those at the time of the download
    #[arg(long)]
    pub remote: bool,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct ResolveArgs {
    /// Name in the list, whose commit is then kept in resolved.toml; or org/repo@REVISION, whose commit is only printed
    #[arg(value_name = "MODEL")]
    pub model: String,

    /// Name under which to keep the commit
    #[arg(long, value_name = "NAME")]
    pub save: Option<String>,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct UseArgs {
    /// Repository, whose only commit in the cache is taken; org/repo@<40-digit commit>; or a name in the list
    #[arg(value_name = "MODEL")]
    pub model: String,

    /// Name of the entry [default: the list's name of the repository, else the repository's own]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// Models to remove
    #[arg(value_name = "MODEL", required = true)]
    pub names: Vec<String>,

    /// Remove the models; without it they are only listed
    #[arg(long)]
    pub yes: bool,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(
    override_usage = "earnest models quant-check <SUITE> [OPTIONS] --model <MODEL>",
    after_help = "Both models get the same prompts. Perplexity is over the prompts' tokens after the first; agreement counts \
the tokens of greedy decoding before the first difference.

Examples:
  earnest models quant-check arithmetic-bench --model model.gguf --quant q4k
  earnest models quant-check nupa --model Meta-Llama-3-8B --quant nf4 --dtype bf16 --limit 100 --json"
)]
pub struct QuantCheckArgs {
    /// Model: a name from `earnest models list`, org/repo@<40-digit commit>, a Hugging Face folder or a GGUF file
    #[arg(long, value_name = "MODEL", env = "EARNEST_MODEL", hide_env_values = true, help_heading = "Model")]
    pub model: PathBuf,

    /// Prompt format, as in `earnest run`
    #[arg(long, value_name = "PROMPT", help_heading = "Model")]
    pub prompt: Option<Prompts>,

    #[command(flatten)]
    pub weights: WeightArgs,

    #[command(flatten)]
    pub hub: HubArgs,

    #[command(flatten)]
    pub seed: SeedArgs,

    /// Number of prompts
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Items")]
    pub limit: u32,

    /// Maximum number of new tokens per prompt
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Items")]
    pub max_tokens: u32,

    #[command(flatten)]
    pub engine: EngineArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,

    #[command(subcommand)]
    pub suite: SuiteCommand,
}
