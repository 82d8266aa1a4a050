//! The part of Python that rules are written in, as a tree.
use std::fmt;

use num_bigint::BigInt;

/// A parsed rule: its functions, the first one being the rule itself.
#[derive(Debug)]
pub(super) struct Program {
    pub functions: Vec<Function>,
}

#[derive(Debug)]
pub(super) struct Function {
    pub name: String,
    pub parameters: usize,
    /// Names of the local variables; the parameters come first.
    pub locals: Vec<String>,
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
    Assign(usize, Expression),
    While(Expression, Vec<Statement>),
    If(Expression, Vec<Statement>),
    Return(Expression),
}

#[derive(Debug)]
pub(super) enum Expression {
    Constant(Value),
    Local(usize),
    Binary(Operator, Box<(Expression, Expression)>),
    /// `container[index]`.
    Index(Box<(Expression, Expression)>),
    /// `container[from:to]`.
    Slice(Box<Expression>, Option<Box<Expression>>, Option<Box<Expression>>),
    /// A function of the rule.
    Call(usize, Vec<Expression>),
    Builtin(Builtin, Vec<Expression>),
    Method(Box<Expression>, Method, Vec<Expression>),
    Parenthesised(Box<Expression>),
    Negative(Box<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    FloorDivide,
    Modulo,
}

impl Operator {
    /// Python's spelling.
    pub(super) fn symbol(self) -> &'static str {
        match self {
            Operator::Or => "or",
            Operator::And => "and",
            Operator::Equal => "==",
            Operator::NotEqual => "!=",
            Operator::Less => "<",
            Operator::LessEqual => "<=",
            Operator::Greater => ">",
            Operator::GreaterEqual => ">=",
            Operator::Add => "+",
            Operator::Subtract => "-",
            Operator::Multiply => "*",
            Operator::FloorDivide => "//",
            Operator::Modulo => "%",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Builtin {
    Len,
    Int,
    Str,
    Max,
}

impl Builtin {
    /// Every builtin with its name.
    pub(super) const NAMED: [(&'static str, Builtin); 4] =
        [("len", Builtin::Len), ("int", Builtin::Int), ("str", Builtin::Str), ("max", Builtin::Max)];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Split,
    LeftStrip,
    RightStrip,
    ZeroFill,
    LeftJustify,
    Replace,
}

impl Method {
    /// Every method with its name.
    pub(super) const NAMED: [(&'static str, Method); 6] = [
        ("split", Method::Split),
        ("lstrip", Method::LeftStrip),
        ("rstrip", Method::RightStrip),
        ("zfill", Method::ZeroFill),
        ("ljust", Method::LeftJustify),
        ("replace", Method::Replace),
    ];
}

/// A value. Texts are ASCII: operands are digits, points, slashes and exponents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Integer(BigInt),
    Text(String),
    List(Vec<String>),
    Bool(bool),
}

impl fmt::Display for Value {
    /// Python's `repr`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Integer(value) => write!(f, "{value}"),
            Value::Text(text) => write!(f, "'{text}'"),
            Value::List(items) => {
                let items: Vec<String> = items.iter().map(|item| format!("'{item}'")).collect();
                write!(f, "[{}]", items.join(", "))
            }
            Value::Bool(true) => f.write_str("True"),
            Value::Bool(false) => f.write_str("False"),
        }
    }
}
