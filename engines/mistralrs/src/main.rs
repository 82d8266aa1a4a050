//! `earnest-mistralrs`: mistral.rs behind OpenAI's protocol, for `earnest run --engine mistralrs`.
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use clap::Parser;
use earnest_mistralrs::MistralRs;
use earnest_models::checkpoint::Checkpoint;
use earnest_serve::{Server, Settings};

#[derive(Debug, Parser)]
#[command(
    name = "earnest-mistralrs",
    version,
    about = "mistral.rs as an engine of earnest, to cross-check the native one",
    after_help = "Examples:
  earnest run arithmetic-bench --engine mistralrs --model ./Qwen2.5-0.5B-Instruct --limit 40
      starts this program by itself, if it lies beside earnest or in the PATH, or EARNEST_MISTRALRS names it
  earnest-mistralrs --model ./Qwen2.5-0.5B-Instruct --port 8000
      serves others as `earnest serve` does

One request at a time, in 32-bit floats, on the CPU: mistral.rs 0.8.1 answers wrongly otherwise."
)]
struct Args {
    /// The model: a Hugging Face folder
    #[arg(long, value_name = "PATH")]
    model: PathBuf,

    /// Port to listen on, on this machine only; 0 takes a free one
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    port: u16,

    /// The model's name for clients [default: the folder's or the file's]
    #[arg(long, value_name = "NAME")]
    served_name: Option<String>,
}

fn main() -> ExitCode {
    match serve(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The chain of causes in a line; a backtrace would say nothing to a user.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn serve(args: Args) -> anyhow::Result<()> {
    let checkpoint = Checkpoint::open_for_mistralrs(&args.model, &[]).context("cannot use the checkpoint")?;
    // A port that is taken is noticed before the weights are loaded.
    let server = Server::bind("127.0.0.1", args.port)?;
    let mut engine = MistralRs::load(&args.model)?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
    })
    .context("cannot listen for Ctrl-C")?;
    let own = args.model.file_name().map_or_else(|| "model".into(), |name| name.to_string_lossy().into_owned());
    let name = args.served_name.unwrap_or(own);
    // The line that `--engine mistralrs` waits for.
    println!("listening on http://{}", server.address);
    let settings = Settings { name, ..Settings::default() };
    let summary = server.run(&mut engine, checkpoint, &settings, &stop)?;
    eprintln!("stopped after {} completions", summary.completions);
    Ok(())
}
