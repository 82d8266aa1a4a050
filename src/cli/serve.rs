//! `earnest serve`: the native engine behind OpenAI's HTTP API.
use earnest_eval::model;
use earnest_eval::model::{LISTENING, LoadedEngine};
use std::path::PathBuf;

use clap::Args;

use super::Exit;
use super::args::EngineArgs;
use super::error::CliError;
use super::interrupt::stop_on_signal;
use super::models::{HubArgs, locate, open};
use super::printer::Printer;
use super::values::ByteSize;
use earnest_serve::{Limits, ServeError, Server, Settings};

/// Environment variable with the key that clients must send.
const KEY_VARIABLE: &str = "EARNEST_SERVE_KEY";

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  earnest serve --model ./Qwen2.5-1.5B-Instruct
  earnest serve --model model.gguf --port 0      a free port, printed as `listening on ...`
  curl http://127.0.0.1:8000/v1/completions -H 'content-type: application/json' \\
       -d '{\"prompt\": \"12 + 30 =\", \"max_tokens\": 4, \"temperature\": 0}'

Paths: /v1/completions, /v1/chat/completions, /v1/models, /v1/models/NAME, /version, /metrics, /health. If EARNEST_SERVE_KEY is \
set, clients must send that key; addresses other than the loopback require one. There is no encryption: for those, use a proxy in front.")]
pub struct ServeArgs {
    /// Model: a name from `earnest models list`, org/repo@<40-digit commit>, a Hugging Face folder or a GGUF file
    #[arg(long, value_name = "MODEL", env = "EARNEST_MODEL", hide_env_values = true, default_value = earnest_eval::model::BUILT_IN)]
    pub model: PathBuf,

    #[command(flatten)]
    pub hub: HubArgs,

    /// Model name for clients [default: the name of the folder or file]
    #[arg(long, value_name = "NAME")]
    pub served_name: Option<String>,

    /// Address to listen on
    #[arg(long, value_name = "HOST", default_value = "127.0.0.1")]
    pub host: String,

    /// Port to listen on; 0 means any free one
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    pub port: u16,

    /// Name by which clients may call a server on the loopback, beside localhost and the addresses of the loopback; repeatable
    #[arg(long, value_name = "NAME")]
    pub allowed_host: Vec<String>,

    /// Largest request body
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    pub body_limit: ByteSize,

    /// Memory for all requests in flight; those that find none wait for a few seconds
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    pub request_memory: ByteSize,

    #[command(flatten)]
    pub engine: EngineArgs,
}

/// Serves until it is interrupted.
pub fn execute(args: &ServeArgs, printer: Printer) -> Result<Exit, CliError> {
    let settings = args.engine.settings()?;
    let key = match std::env::var(KEY_VARIABLE) {
        Ok(key) if key.trim().is_empty() => return Err(CliError::usage(format!("{KEY_VARIABLE} is set but empty"))),
        // Clients send it in a header, which takes nothing else.
        Ok(key) if !key.trim().bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') => {
            return Err(CliError::usage(format!("{KEY_VARIABLE} has characters that no HTTP header can hold")));
        }
        Ok(key) => Some(key.trim().to_owned()),
        Err(std::env::VarError::NotPresent) => None,
        Err(std::env::VarError::NotUnicode(_)) => {
            return Err(CliError::usage(format!("{KEY_VARIABLE} is not valid UTF-8")));
        }
    };
    if let Some(name) = args.allowed_host.iter().find(|name| name.is_empty() || name.contains([':', '/', ' ', '*'])) {
        let message = format!(
            "--allowed-host takes a name without scheme and port, e.g. box.example (one for each name, no patterns), not {name:?}"
        );
        return Err(CliError::usage(message));
    }
    let chosen = locate(&args.model, &args.hub, Default::default(), printer)?;
    let checkpoint = open(&chosen, printer)?;
    // Bound first: a port in use is reported before the weights are loaded.
    let server = Server::bind(&args.host, args.port).map_err(failed)?;
    server.check_key(key.as_deref()).map_err(failed)?;
    let LoadedEngine { mut engine, notes, .. } = model::load(&checkpoint, &settings)?;
    notes.iter().for_each(|note| printer.warning(&note.to_string()));
    let stop = stop_on_signal()?;
    let name = args.served_name.clone().unwrap_or_else(|| model::record(&chosen, &checkpoint).name);
    printer.result(&format!("{LISTENING}http://{}\n", server.address))?;
    printer.message(&format!("serving {name}; Ctrl-C stops the server"));
    let bytes = |size: ByteSize| usize::try_from(size.0).unwrap_or(usize::MAX);
    let limits =
        Limits { body_bytes: bytes(args.body_limit), request_memory: bytes(args.request_memory), ..Limits::default() };
    let settings = Settings { name, key, allowed_hosts: args.allowed_host.clone(), limits };
    let summary = server.run(engine.as_mut(), checkpoint, &settings, &stop).map_err(failed)?;
    printer.message(&format!("stopped after {} completions", summary.completions));
    Ok(Exit::Success)
}

fn failed(error: ServeError) -> CliError {
    let failed = CliError::new(Exit::Engine, error.to_string());
    match error {
        ServeError::KeyRequired(_) => CliError::usage(error.to_string())
            .help(format!("set {KEY_VARIABLE} to a key of your choice, or listen on the loopback, as without --host")),
        ServeError::Listen { .. } => failed.help("choose another --port (0 means any free one) or --host"),
        ServeError::Http(_) | ServeError::Engine(_) => failed,
    }
}
