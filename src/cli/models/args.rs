//! The command lines of `earnest models`, and the options about models that other commands share.
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::cli::args::{EngineArgs, SeedArgs};
use crate::cli::catalogue::SuiteCommand;
use crate::cli::values::Prompts;
use earnest_models::checkpoint::{Compute, ElementType, Quant, WeightFormat};
use earnest_models::hub::HubSettings;

/// Where models are looked up.
#[derive(Debug, Clone, Default, Args)]
pub struct HubArgs {
    /// A list of models that extends and overrides the built-in one
    #[arg(long, value_name = "FILE", env = "EARNEST_MODELS_TOML", hide_env_values = true, help_heading = "Model")]
    pub models: Option<PathBuf>,

    /// Open no connection but to this machine: nothing is fetched (only `earnest models` ever does), and an endpoint must be here
    #[arg(long, help_heading = "Model")]
    pub offline: bool,
}

impl HubArgs {
    /// The settings.
    pub fn settings(&self) -> HubSettings {
        HubSettings { list: self.models.clone(), offline: self.offline }
    }
}

/// Changes to the weights at load.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct WeightArgs {
    /// Quantise the weights of attention and feed-forward at load; the CPU engine computes with the dequantised values, so
    /// this shows what quantisation does to answers and saves no memory. Counts as another model
    #[arg(long, value_name = "SCHEME", value_enum, help_heading = "Model")]
    pub quant: Option<QuantArg>,

    /// Round matrices to this type and hold them in it [default: the file's]
    #[arg(long, value_name = "TYPE", value_enum, help_heading = "Model")]
    pub dtype: Option<DtypeArg>,

    /// Arithmetic of matrix products and attention. int8 rounds weights, activations, keys and values to 8 bits in groups:
    /// less time on CPUs with VNNI, a third of the memory, the same on every machine and in any batch. Counts as another
    /// model [default: f32]
    #[arg(long, value_name = "TYPE", value_enum, help_heading = "Model")]
    pub compute: Option<ComputeArg>,
}

/// `--compute`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ComputeArg {
    /// The weights' exact values
    F32,
    /// 8-bit integers, both operands rounded
    Int8,
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
        let compute = args.compute.and_then(|compute| match compute {
            ComputeArg::F32 => None,
            ComputeArg::Int8 => Some(Compute::Int8),
        });
        WeightFormat { quant, dtype, compute }
    }
}

#[derive(Debug, Args)]
#[command(
    subcommand_required = true,
    arg_required_else_help = true,
    after_help = "A model is named by its name in the list, as org/repo@<40-digit commit>, by its folder, or by its GGUF file.
Models are kept in the cache of huggingface_hub: HF_HUB_CACHE, HF_HOME/hub, or ~/.cache/huggingface/hub.

Examples:
  earnest models list --paper gsm-symbolic
  earnest models fetch gemma-2-2b-it
  earnest models fetch microsoft/phi-2@810d367871c1d460086d9f82db8696f2e0a0fcd0
  earnest models resolve Qwen2-7B                 asks the hub for today's commit and keeps it
  earnest models quant-check arithmetic-bench --model model.gguf --quant q4k"
)]
pub struct ModelsArgs {
    #[command(subcommand)]
    pub command: ModelsCommand,
}

#[derive(Debug, Subcommand)]
pub enum ModelsCommand {
    /// List the models of the papers and your own: commit, size, memory, what is in the cache
    List(ListArgs),
    /// Show a model: source, licence, recommended decoding, memory, files
    Show(ShowArgs),
    /// Fetch a commit into the cache, continuing where an earlier attempt broke off, and check every file
    Fetch(FetchArgs),
    /// Hash the files of the cache again
    Verify(VerifyArgs),
    /// Ask the hub which commit a branch, a tag or a short hash names today
    Resolve(ResolveArgs),
    /// Remove a commit from the cache
    Remove(RemoveArgs),
    /// Measure what --quant or --dtype does: perplexity and greedy agreement on a suite's own prompts
    QuantCheck(Box<QuantCheckArgs>),
}

#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only the models of this suite's paper
    #[arg(long, value_name = "SUITE")]
    pub paper: Option<String>,

    /// Only what is in the cache, models outside the list included
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
    /// The model
    #[arg(value_name = "MODEL")]
    pub model: String,

    /// Ask the hub for the files of the commit
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
    /// The models: names of the list, or org/repo@<40-digit commit>
    #[arg(value_name = "MODEL", required = true)]
    pub names: Vec<String>,

    /// Only this file of the repository, e.g. a GGUF; may be repeated [default: what the native engine reads]
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
    /// The models [default: every commit in the cache]
    #[arg(value_name = "MODEL")]
    pub names: Vec<String>,

    /// Compare with what the hub announces today instead of with what it announced when the files were fetched
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
    /// A name of the list, whose commit is then kept in resolved.toml; or org/repo@REVISION, which is only printed
    #[arg(value_name = "MODEL")]
    pub model: String,

    /// Keep the commit under this name
    #[arg(long, value_name = "NAME")]
    pub save: Option<String>,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct RemoveArgs {
    /// The models
    #[arg(value_name = "MODEL", required = true)]
    pub names: Vec<String>,

    /// Remove them; without it only say what would go
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
    after_help = "Both models see the same prompts. Perplexity is that of the prompt's tokens after the first; agreement counts \
the tokens that greedy decoding gives before the first difference.

Examples:
  earnest models quant-check arithmetic-bench --model model.gguf --quant q4k
  earnest models quant-check nupa --model Meta-Llama-3-8B --quant nf4 --dtype bf16 --limit 100 --json"
)]
pub struct QuantCheckArgs {
    /// The model
    #[arg(long, value_name = "MODEL", env = "EARNEST_MODEL", hide_env_values = true, help_heading = "Model")]
    pub model: PathBuf,

    /// How prompts are written, as in `earnest run`
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

    /// Most new tokens for each prompt
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
