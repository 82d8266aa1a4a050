//! The `earnest` program; everything is in the library.
mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}
