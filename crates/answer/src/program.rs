//! Model-written programs: what is run, what comes of it, and the interface of whoever runs it.

/// A model-written function without parameters: its source and its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub source: String,
    pub function: String,
}

/// Type of a number that a program returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NumberKind {
    Bool,
    Int,
    Float,
}

impl NumberKind {
    /// The name of its type in Python.
    pub fn name(self) -> &'static str {
        // In the order of the variants.
        ["bool", "int", "float"][self as usize]
    }
}

/// A number that a program returned.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeNumber {
    pub kind: NumberKind,
    /// The nearest float; an infinity for an integer beyond the range of floats.
    pub value: f64,
    /// As Python prints it, exactly.
    pub text: String,
}

/// Outcome of running a program.
#[derive(Debug, Clone, PartialEq)]
pub enum CodeOutcome {
    /// A bool, an integer or a float.
    Number(CodeNumber),
    /// `None`.
    None,
    /// A value of another type, by its name.
    Other(String),
    /// An exception: the most specific of Python's own classes that names it here, and its message.
    Raised { class: String, message: String },
    /// The time limit ended it.
    TimeLimit,
    /// The memory limit ended it.
    MemoryLimit,
    /// Its process died; how.
    Crashed(String),
    /// The sandbox failed; why. Says nothing about the program.
    Unavailable(String),
}

impl CodeOutcome {
    /// The number as a float, if it is one.
    pub fn value(&self) -> Option<f64> {
        match self {
            CodeOutcome::Number(number) => Some(number.value),
            _ => None,
        }
    }
}

/// Runs programs. Suites receive one, because they do no I/O themselves; calls from several threads run side by side.
pub trait CodeRunner: Send + Sync {
    /// Defines a program, calls its function without arguments and says what came of it.
    fn run(&self, program: &Program) -> CodeOutcome;
}
