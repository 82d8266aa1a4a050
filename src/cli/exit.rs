//! Exit codes, documented in `earnest --help` and README.md; scripts may rely on them.

/// Exit code of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Done.
    Success = 0,
    /// Finished, but some samples have no answer (a prompt longer than the context, a rejected request), the model of `earnest stats` has
    /// no estimate, a model, log or sample was left out, or a check found something. A sentence says which.
    FailedSamples = 1,
    /// Invalid command line: an unknown option, suite, task or item.
    Usage = 2,
    /// The checkpoint cannot be used: missing, damaged, of an unknown architecture.
    Model = 3,
    /// Results cannot be read or written: a full disk, missing permission, a locked or damaged run.
    Results = 4,
    /// The engine failed during a run, or model-written Python cannot be confined here.
    Engine = 5,
    /// More samples failed in the session than `--fail-on-error` allows; the same command continues after those that failed for good.
    TooManyFailures = 6,
    /// The user stopped the run; the same command continues it.
    Interrupted = 130,
}

impl Exit {
    /// Table for `--help`.
    pub const HELP: &str = "\
Exit codes:
  0    done
  1    finished, but samples have no answer (`earnest samples RUN --wrong`), a model is missing or
       cannot be fitted, `earnest import --keep-going` left something out, or `earnest tasks check`
       found something; a sentence says which
  2    invalid command line
  3    the checkpoint cannot be used
  4    results cannot be read or written (disk full, permissions, locked or damaged run)
  5    the engine failed during a run, or model-written Python cannot be confined on this system
  6    more samples failed than --fail-on-error allows; the same command continues after them
  130  interrupted; the same command continues the run";

    /// The number.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        exit.code().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_names_every_code() {
        use Exit::{Engine, FailedSamples, Interrupted, Model, Results, Success, TooManyFailures, Usage};
        for exit in [Success, FailedSamples, Usage, Model, Results, Engine, TooManyFailures, Interrupted] {
            assert!(Exit::HELP.lines().any(|line| line.trim_start().starts_with(&format!("{} ", exit.code()))));
        }
    }
}
