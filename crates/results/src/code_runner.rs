//! Execution of a task's programs in the sandbox.
use earnest_answer::{CodeNumber, CodeOutcome, CodeRunner, NumberKind, Program};
use earnest_sandbox::{Number, Outcome, Pool};

/// A pool of sandbox processes as a scorer's code runner.
pub struct SandboxRunner(pub Pool);

impl CodeRunner for SandboxRunner {
    fn run(&self, program: &Program) -> CodeOutcome {
        match self.0.run(&program.source, &program.function) {
            Outcome::Number(number) => {
                let kind = match number {
                    Number::Bool(_) => NumberKind::Bool,
                    Number::Int(_) => NumberKind::Int,
                    Number::Float(_) => NumberKind::Float,
                };
                CodeOutcome::Number(CodeNumber { kind, value: number.to_f64(), text: number.to_string() })
            }
            Outcome::None => CodeOutcome::None,
            Outcome::Other(class) => CodeOutcome::Other(class),
            Outcome::Raised(exception) => CodeOutcome::Raised { class: exception.family, message: exception.message },
            Outcome::TimeLimit => CodeOutcome::TimeLimit,
            Outcome::MemoryLimit => CodeOutcome::MemoryLimit,
            Outcome::Crashed(how) => CodeOutcome::Crashed(how),
            Outcome::Unavailable(why) => CodeOutcome::Unavailable(why),
        }
    }
}
