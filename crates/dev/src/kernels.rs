//! `earnest-dev kernels`: GPU kernels against their definitions.

use clap::Args;
use earnest_engine::cuda::{CheckError, KernelCheck, check_kernels};
use serde::Serialize;

use crate::failure::{Exit, Failure};
use crate::options::{Device, device};
use crate::output::{self, First};

#[derive(Debug, Args)]
#[command(
    after_help = "Attention with every head size and several work layouts, products of dense and quantised weights
by our own kernels and by cublasLt, and sampling are compared with their definitions in double
precision; batch-invariant kernels are compared bit for bit. Each check is a line as it ends. If
the device breaks, the check is named and a new process goes on with the next one. The exit code
is 5 if a check fails. EARNEST_CUDA_SYNC=1 waits after every launch, so that an error names it.

Examples:
  earnest-dev kernels
  earnest-dev kernels --device cuda:1 --json"
)]
pub struct KernelsArgs {
    /// GPU: cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "cuda", value_parser = device)]
    pub device: Device,

    /// Leave out the products of cublasLt, e.g. under compute-sanitizer, which they may break
    #[arg(long)]
    pub own: bool,

    #[command(flatten)]
    pub first: First,

    /// One JSON document a check, in a line
    #[arg(long)]
    pub json: bool,
}

/// A check that broke the device.
#[derive(Debug, Serialize)]
struct Broken<'a> {
    name: &'a str,
    passed: bool,
    broken: String,
}

#[derive(Debug, Serialize)]
struct Summary {
    checks: usize,
    wrong: usize,
}

/// Checks all kernels; the exit code is 5 if one is wrong.
pub fn execute(args: &KernelsArgs) -> Result<Exit, Failure> {
    let Device::Cuda(index) = args.device else {
        return Err(Failure::usage(
            "kernels are checked on a GPU: --device cuda or cuda:N (on the CPU `cargo test --release -p earnest-engine cuda` runs them)",
        ));
    };
    let (mut count, mut wrong, mut written) = (args.first.first, args.first.wrong_before, Ok(()));
    let mut done = |check: &KernelCheck| {
        count += 1;
        wrong += usize::from(!check.passed);
        let line = if args.json { output::line(check) } else { output::write(&screen(check)) };
        if written.is_ok() {
            written = line;
        }
    };
    let ended = check_kernels(index, args.first.first, !args.own, &mut done);
    written?;
    match ended {
        Ok(()) => {}
        Err(CheckError::Device(error)) => return Err(Failure::new(Exit::Engine, error.to_string())),
        Err(CheckError::Broken(broken)) => {
            if args.json {
                output::line(&Broken { name: &broken.name, passed: false, broken: broken.error.to_string() })?;
            } else {
                output::write(&format!("BROKEN {broken}\n"))?;
            }
            return Err(output::go_on_at(broken.index + 1, wrong + 1));
        }
    }
    if count == args.first.first && wrong == 0 {
        return Err(Failure::new(Exit::Engine, "no check was made"));
    }
    if args.json {
        output::line(&Summary { checks: count, wrong })?;
    } else {
        output::write(&format!("{count} checks, {wrong} wrong\n"))?;
    }
    Ok(if count > 0 && wrong == 0 { Exit::Success } else { Exit::Engine })
}

fn screen(check: &KernelCheck) -> String {
    let state = if check.passed { "ok    " } else { "WRONG " };
    let bits = if check.same_bits { "" } else { ", bits differ" };
    // NaN is reported as f64::MAX.
    let error = if check.error < f64::MAX { format!("within {:.6}", check.error) } else { "not numbers".to_owned() };
    format!("{state} {}: {error} of {}{bits}\n", check.name, check.tolerance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_kernels_are_named() {
        let check = |name: &str, error: f64| KernelCheck {
            name: name.into(),
            error,
            tolerance: 0.01,
            same_bits: error < 1.0,
            passed: error <= 0.01,
        };
        let lines: String = [check("a", 0.001), check("b", 2.0), check("c", f64::MAX)].iter().map(screen).collect();
        assert_eq!(
            lines,
            "ok     a: within 0.001000 of 0.01\nWRONG  b: within 2.000000 of 0.01, bits differ\nWRONG  c: not numbers of 0.01, bits differ\n"
        );
    }
}
