//! Python's expressions.
use std::sync::Arc;

use super::value::PythonValue;

/// An operator between two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    BitOr,
    BitXor,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Modulo,
    MatrixMultiply,
    Power,
}

impl Operator {
    /// Of integers only.
    pub(super) fn is_bitwise(self) -> bool {
        use Operator::{BitAnd, BitOr, BitXor, ShiftLeft, ShiftRight};
        matches!(self, BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight)
    }

    /// The operator of a sign, and how strongly it binds; `**` binds from the right and is not among them.
    pub(super) fn of(sign: &str) -> Option<(Operator, u8)> {
        OPERATORS.into_iter().find(|(written, ..)| *written == sign).map(|(_, operator, strength)| (operator, strength))
    }

    /// Python's spelling.
    pub fn sign(self) -> &'static str {
        OPERATORS.into_iter().find(|(_, operator, _)| *operator == self).map_or("**", |(sign, ..)| sign)
    }
}

/// Operators that bind from the left, with their strength.
const OPERATORS: [(&str, Operator, u8); 12] = [
    ("|", Operator::BitOr, 0),
    ("^", Operator::BitXor, 1),
    ("&", Operator::BitAnd, 2),
    ("<<", Operator::ShiftLeft, 3),
    (">>", Operator::ShiftRight, 3),
    ("+", Operator::Add, 4),
    ("-", Operator::Subtract, 4),
    ("*", Operator::Multiply, 5),
    ("/", Operator::Divide, 5),
    ("//", Operator::FloorDivide, 5),
    ("%", Operator::Modulo, 5),
    ("@", Operator::MatrixMultiply, 5),
];

/// An operator before a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    Plus,
    Minus,
    Invert,
    Not,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
    Is,
    IsNot,
}

impl Comparison {
    /// Every comparison with its spelling.
    pub(super) const WRITTEN: [(&'static str, Comparison); 10] = [
        ("==", Comparison::Equal),
        ("!=", Comparison::NotEqual),
        ("<", Comparison::Less),
        ("<=", Comparison::LessOrEqual),
        (">", Comparison::Greater),
        (">=", Comparison::GreaterOrEqual),
        ("in", Comparison::In),
        ("not in", Comparison::NotIn),
        ("is", Comparison::Is),
        ("is not", Comparison::IsNot),
    ];

    /// Python's spelling.
    pub fn sign(self) -> &'static str {
        Self::WRITTEN.into_iter().find(|(_, comparison)| *comparison == self).map_or("", |(sign, _)| sign)
    }
}

/// Result of a comprehension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collected {
    List,
    Set,
    Iterator,
}

/// `for name in iterable if condition`.
#[derive(Debug)]
pub struct Clause {
    pub names: Vec<String>,
    /// The names are unpacked from each element, even a single one.
    pub unpacked: bool,
    pub iterable: Tree,
    pub conditions: Vec<Tree>,
}

/// `lambda names: body`; the last names have defaults.
#[derive(Debug)]
pub struct Lambda {
    pub names: Vec<String>,
    pub defaults: Vec<Tree>,
    pub body: Tree,
}

/// An argument of a call.
#[derive(Debug)]
pub enum Argument {
    Positional(Tree),
    ByName(String, Tree),
    Unpacked(Tree),
}

/// An expression.
#[derive(Debug)]
pub enum Tree {
    Constant(PythonValue),
    /// A literal or form that is not evaluated here.
    Unsupported,
    /// Brackets around an expression, where they are kept.
    Bracketed(Box<Tree>),
    Name(String),
    /// Operators before an expression, the innermost last.
    Prefixed(Vec<Prefix>, Box<Tree>),
    /// Operators applied one after the other to what stands left of them.
    Operated(Box<Tree>, Vec<(Operator, Tree)>),
    Compared(Box<Tree>, Vec<(Comparison, Tree)>),
    /// All of `and`.
    And(Vec<Tree>),
    /// All of `or`.
    Or(Vec<Tree>),
    /// Condition, then, otherwise.
    Conditional(Box<[Tree; 3]>),
    Assigned(String, Box<Tree>),
    Lambda(Arc<Lambda>),
    Tuple(Vec<Tree>),
    List(Vec<Tree>),
    Set(Vec<Tree>),
    Dictionary(Vec<(Tree, Tree)>),
    /// `*iterable` among elements.
    Starred(Box<Tree>),
    Comprehension(Collected, Box<Tree>, Vec<Clause>),
    Call(Box<Tree>, Vec<Argument>),
    Item(Box<Tree>, Box<Tree>),
    /// Start, stop, step.
    Slice(Box<[Option<Tree>; 3]>),
    Attribute(Box<Tree>, String),
}
