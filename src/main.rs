//! The `earnest` program; everything is in the library.
use std::process::ExitCode;

fn main() -> ExitCode {
    earnest::cli::main()
}
