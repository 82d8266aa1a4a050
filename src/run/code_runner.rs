//! A suite's wish to run code, granted by the sandbox.
use crate::answer::gsm::{CodeNumber, CodeOutcome, CodeRunner, NumberKind, Program};
use crate::sandbox::{Number, Outcome, Pool};

impl CodeRunner for Pool {
    fn run(&self, program: &Program) -> CodeOutcome {
        match Pool::run(self, &program.source, &program.function) {
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
