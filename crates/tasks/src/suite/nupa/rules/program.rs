//! A rule's functions and statements; expressions are Python's.
use earnest_answer::python::Tree;

/// A parsed rule: its functions, the first one being the rule itself.
#[derive(Debug)]
pub(super) struct Program {
    pub functions: Vec<Function>,
}

#[derive(Debug)]
pub(super) struct Function {
    pub name: String,
    pub parameters: Vec<String>,
    pub body: Vec<Statement>,
}

#[derive(Debug)]
pub(super) struct Statement {
    /// 1-based line in the rule's text.
    pub line: usize,
    pub action: Action,
}

#[derive(Debug)]
pub(super) enum Action {
    Assign(String, Tree),
    While(Tree, Vec<Statement>),
    If(Tree, Vec<Statement>),
    Return(Tree),
}
