//! `--learning-rate`: a number, or the search of one.
use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::cli::Exit;
use crate::cli::error::CliError;
use crate::cli::printer::Printer;
use earnest_train::{RateSearch, TrainSettings, search_rate};

/// A learning rate, or the search of one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RateArg {
    Rate(f64),
    Search,
}

impl std::str::FromStr for RateArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "search" => Ok(RateArg::Search),
            _ => text.parse().map(RateArg::Rate).map_err(|_| "write a number or `search`".to_owned()),
        }
    }
}

/// Searches the learning rate in trials of so many steps, and says what each found.
pub fn search(
    settings: &TrainSettings,
    steps: u64,
    folder: &Path,
    stop: &AtomicBool,
    printer: Printer,
) -> Result<RateSearch, CliError> {
    let found = search_rate(settings, steps, folder, stop, &mut |trial| {
        let loss = trial.loss.map_or_else(|| "diverged".to_owned(), |loss| format!("loss {loss:.4}"));
        printer.message(&format!("learning rate {}: {loss} after {steps} steps", trial.rate));
    })?;
    let Some(found) = found else {
        return Err(CliError::new(Exit::Interrupted, "interrupted in the search of the learning rate")
            .help("the same command begins the search again"));
    };
    printer.message(&format!("the learning rate is {}", found.rate));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_numbers_or_searched() {
        assert_eq!("search".parse(), Ok(RateArg::Search));
        assert_eq!("2e-3".parse(), Ok(RateArg::Rate(0.002)));
        assert!("find".parse::<RateArg>().is_err());
    }
}
