//! `earnest-dev assemble`: the CUDA kernels as a GPU's compiler sees them, without a GPU.
use std::fmt::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use earnest_engine::cuda::{self, Assembled, DeviceError};

use crate::failure::{Exit, Failure};
use crate::output;

#[derive(Debug, Args)]
#[command(
    after_help = "It needs NVRTC and no GPU. scripts/cuda-assemble.sh runs it for every architecture; with --record it embeds the kernels in the \
program."
)]
pub struct AssembleArgs {
    /// Architectures to compile every kernel for
    #[arg(value_name = "sm_80,sm_90", value_delimiter = ',', required = true)]
    pub architectures: Vec<String>,

    /// Folder that gets the compiled kernels of each architecture instead of a report, for those inside the program
    #[arg(long, value_name = "DIR", conflicts_with = "json")]
    pub embed: Option<PathBuf>,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Compiles all kernels and prints the assembler's report; slow ones are an error.
///
/// # Errors
/// A kernel that does not compile or is slow, or a folder that cannot be written.
pub fn execute(args: &AssembleArgs) -> Result<Exit, Failure> {
    if let Some(folder) = &args.embed {
        return embed(&args.architectures, folder);
    }
    let (mut all, mut slow) = (Vec::new(), Vec::new());
    for architecture in &args.architectures {
        let (kernels, of) = cuda::assemble(architecture).map_err(|error| failed(architecture, &error))?;
        slow.extend(of.into_iter().map(|what| format!("{architecture} {what}")));
        all.push((architecture, kernels));
    }
    if args.json {
        output::document(&all)?;
    } else {
        output::write(&report(&all))?;
    }
    match slow.is_empty() {
        true => Ok(Exit::Success),
        false => Err(Failure::new(
            Exit::Engine,
            format!(
                "kernels assemble, and some are slow (only attend_tall may spill, 768 bytes a thread; products by warp groups must not be \
                 serialised):\n  {}",
                slow.join("\n  ")
            ),
        )),
    }
}

/// Compiles all kernels into files of a folder, one for each architecture, named after it and the compiler.
fn embed(architectures: &[String], folder: &Path) -> Result<Exit, Failure> {
    let unwritable =
        |error: std::io::Error| Failure::new(Exit::Output, format!("cannot write to {}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(unwritable)?;
    for architecture in architectures {
        let (compiler, part) = cuda::embeddable(architecture).map_err(|error| failed(architecture, &error))?;
        std::fs::write(folder.join(format!("{architecture}.{compiler}")), &part).map_err(unwritable)?;
        output::write(&format!("{architecture}  {} bytes by {compiler}\n", part.len()))?;
    }
    Ok(Exit::Success)
}

fn failed(architecture: &str, error: &DeviceError) -> Failure {
    Failure::new(
        Exit::Engine,
        format!(
            "cannot assemble for {architecture}: {error}; NVRTC must be in the system's library path or in EARNEST_CUDA_LIBRARIES"
        ),
    )
}

/// The assembler's report for people.
fn report(all: &[(&String, Vec<Assembled>)]) -> String {
    let mut text = String::new();
    for (architecture, kernels) in all {
        let widest = kernels.iter().map(|k| k.unit.len() + k.kernel.len() + 1).max().unwrap_or(0);
        for k in kernels {
            let name = format!("{} {}", k.unit, k.kernel);
            let spilled = if k.spilled > 0 { format!(", {} bytes spilled", k.spilled) } else { String::new() };
            writeln!(
                text,
                "{architecture}  {name:widest$}  {:3} registers, {:5} bytes shared{spilled}",
                k.registers, k.shared
            )
            .expect("writing to a String cannot fail");
        }
        writeln!(text, "{architecture}  {} kernels", kernels.len()).expect("writing to a String cannot fail");
    }
    text
}
