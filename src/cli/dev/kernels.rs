//! `earnest dev kernels`: GPU kernels against their definitions.
use std::fmt::Write;

use clap::Args;
use serde::Serialize;

use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use earnest_engine::cuda::{KernelCheck, check_kernels};
use earnest_eval::model::{DeviceChoice, device_error};

#[derive(Debug, Args)]
#[command(
    after_help = "Attention with every head size and several work layouts, products of dense and quantised weights
by our own kernels and by cublasLt, and sampling are compared with their definitions in double
precision; batch-invariant kernels are compared bit for bit. The exit code is 5 if a check fails.

Examples:
  earnest dev kernels
  earnest dev kernels --device cuda:1 --json"
)]
pub struct BenchKernelsArgs {
    /// GPU: cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "cuda", value_parser = str::parse::<DeviceChoice>)]
    pub device: DeviceChoice,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Serialize)]
struct Document {
    passed: bool,
    checks: Vec<KernelCheck>,
}

/// Checks all kernels; the exit code is 5 if one is wrong.
pub fn execute(args: &BenchKernelsArgs, printer: Printer) -> Result<Exit, CliError> {
    let DeviceChoice::Cuda(index) = args.device else {
        return Err(CliError::usage("`earnest dev kernels` needs a GPU: --device cuda or cuda:N")
            .help("on the CPU the same checks run as `cargo test --lib cuda`"));
    };
    let checks = check_kernels(index).map_err(|error| device_error(&error))?;
    let document = Document { passed: !checks.is_empty() && checks.iter().all(|c| c.passed), checks };
    if args.json {
        printer.json(&document)?;
    } else {
        printer.result(&screen(&document))?;
    }
    Ok(if document.passed { Exit::Success } else { Exit::Engine })
}

fn screen(d: &Document) -> String {
    let mut text = String::new();
    for c in &d.checks {
        let state = if c.passed { "ok   " } else { "WRONG" };
        let bits = if c.same_bits { "" } else { ", bits differ" };
        // NaN is reported as f64::MAX.
        let error = if c.error < f64::MAX { format!("within {:.6}", c.error) } else { "not numbers".to_owned() };
        writeln!(text, "{state}  {}: {error} of {}{bits}", c.name, c.tolerance)
            .expect("writing to a String cannot fail");
    }
    let wrong = d.checks.iter().filter(|c| !c.passed).count();
    writeln!(text, "{} checks, {wrong} wrong", d.checks.len()).expect("writing to a String cannot fail");
    text
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
        let text =
            screen(&Document { passed: false, checks: vec![check("a", 0.001), check("b", 2.0), check("c", f64::MAX)] });
        assert_eq!(
            text,
            "ok     a: within 0.001000 of 0.01\nWRONG  b: within 2.000000 of 0.01, bits differ\nWRONG  c: not numbers of 0.01, bits differ\n3 checks, 2 wrong\n"
        );
    }
}
