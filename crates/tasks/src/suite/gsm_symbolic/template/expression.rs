//! Expressions of templates: the part of Python's that they need, with variables by their indices.
use super::fault::TemplateFault;
use super::value::Value;
use earnest_answer::python::{
    Argument, Brackets, Comparison, Operator, Prefix, PythonNumber, PythonValue, Tree, parse_one,
};

#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    Literal(Value),
    /// A template variable, by its index among the variables.
    Variable(usize),
    Negate(Box<Expression>),
    Not(Box<Expression>),
    Binary(Operator, Box<Expression>, Box<Expression>),
    /// A chain such as `a < b < c`.
    Compare(Box<Expression>, Vec<(Comparison, Expression)>),
    And(Box<Expression>, Box<Expression>),
    Or(Box<Expression>, Box<Expression>),
    /// `then if condition else otherwise`
    Conditional {
        condition: Box<Expression>,
        then: Box<Expression>,
        otherwise: Box<Expression>,
    },
    Call(Function, Vec<Expression>),
    Index(Box<Expression>, Box<Expression>),
    Slice(Box<Expression>, Option<Box<Expression>>, Option<Box<Expression>>),
    List(Vec<Expression>),
    /// `(text, value)`
    Pair(Box<Expression>, Box<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    Int,
    Float,
    Abs,
    Min,
    Max,
    Round,
    Fraction,
    IsInt,
    Divides,
    FormatFrac,
    Range,
    List,
    Sample,
    SampleSequential,
    NumbersWithin,
    Arange,
    Frange,
    FixFloats,
    ShuffleList,
    RandInt,
}

impl Function {
    fn named(name: &str) -> Option<Function> {
        Some(match name {
            "int" => Function::Int,
            "float" => Function::Float,
            "abs" => Function::Abs,
            "min" => Function::Min,
            "max" => Function::Max,
            "round" => Function::Round,
            "Fraction" => Function::Fraction,
            "is_int" => Function::IsInt,
            "divides" => Function::Divides,
            "format_frac" => Function::FormatFrac,
            "range" => Function::Range,
            "list" => Function::List,
            "sample" => Function::Sample,
            "sample_sequential" => Function::SampleSequential,
            "numbers_within" => Function::NumbersWithin,
            "np.arange" => Function::Arange,
            "frange" => Function::Frange,
            "fix_floats" => Function::FixFloats,
            "shuffle_list" => Function::ShuffleList,
            "np.random.randint" => Function::RandInt,
            _ => return None,
        })
    }
}

/// Parses an expression; `resolve` gives the expression that a name stands for.
///
/// # Errors
/// The first thing that cannot be understood.
pub(super) fn parse(text: &str, resolve: &dyn Fn(&str) -> Option<Expression>) -> Lowered {
    lower(&parse_one(&without_marks(text), Brackets::Dropped)?, resolve)
}

/// The text without `$` outside quotation marks: it only marks a variable.
fn without_marks(text: &str) -> String {
    let (mut quote, mut escaped) = (None, false);
    let kept = text.chars().filter(|&letter| {
        let within = quote.is_some();
        match quote {
            _ if escaped => escaped = false,
            Some(_) if letter == '\\' => escaped = true,
            Some(open) if letter == open => quote = None,
            None if matches!(letter, '"' | '\'') => quote = Some(letter),
            _ => {}
        }
        within || letter != '$'
    });
    kept.collect()
}

type Lowered = Result<Expression, TemplateFault>;

/// Turns Python's tree into a template's expression.
fn lower(tree: &Tree, resolve: &dyn Fn(&str) -> Option<Expression>) -> Lowered {
    let lower = |tree: &Tree| lower(tree, resolve);
    let boxed = |tree: &Tree| lower(tree).map(Box::new);
    let all = |trees: &[Tree]| trees.iter().map(lower).collect::<Result<Vec<_>, _>>();
    Ok(match tree {
        Tree::Constant(value) => Expression::Literal(literal(value)?),
        Tree::Name(_) | Tree::Attribute(..) => {
            let name = dotted(tree)?;
            resolve(&name).ok_or(TemplateFault::Undefined(name))?
        }
        Tree::Prefixed(prefixes, inner) => {
            prefixes.iter().rev().try_fold(lower(inner)?, |inner, prefix| match prefix {
                Prefix::Plus => Ok(inner),
                Prefix::Minus => Ok(Expression::Negate(Box::new(inner))),
                Prefix::Not => Ok(Expression::Not(Box::new(inner))),
                Prefix::Invert => Err(TemplateFault::Outside("~")),
            })?
        }
        Tree::Operated(first, others) => others.iter().try_fold(lower(first)?, |left, (operator, right)| {
            Ok::<_, TemplateFault>(Expression::Binary(*operator, Box::new(left), boxed(right)?))
        })?,
        Tree::Compared(first, others) => {
            let chain = others.iter().map(|(comparison, right)| Ok((ordered(*comparison)?, lower(right)?)));
            Expression::Compare(boxed(first)?, chain.collect::<Result<_, TemplateFault>>()?)
        }
        Tree::And(parts) => joined(all(parts)?, Expression::And)?,
        Tree::Or(parts) => joined(all(parts)?, Expression::Or)?,
        Tree::Conditional(parts) => {
            let [condition, then, otherwise] = &**parts;
            Expression::Conditional { condition: boxed(condition)?, then: boxed(then)?, otherwise: boxed(otherwise)? }
        }
        Tree::Call(function, arguments) => {
            let name = dotted(function)?;
            let function = Function::named(&name).ok_or(TemplateFault::UnknownFunction(name))?;
            let arguments = arguments.iter().map(|argument| match argument {
                Argument::Positional(value) => lower(value),
                Argument::ByName(..) | Argument::Unpacked(_) => Err(TemplateFault::Outside("such an argument")),
            });
            Expression::Call(function, arguments.collect::<Result<_, _>>()?)
        }
        Tree::Item(inner, index) => match &**index {
            Tree::Slice(bounds) => match &**bounds {
                [from, to, None] => {
                    let (from, to) = (from.as_ref().map(boxed).transpose()?, to.as_ref().map(boxed).transpose()?);
                    Expression::Slice(boxed(inner)?, from, to)
                }
                _ => return Err(TemplateFault::Outside("a step")),
            },
            index => Expression::Index(boxed(inner)?, boxed(index)?),
        },
        Tree::List(items) => Expression::List(all(items)?),
        // A set of one value, as a few #answer lines write it, stands for the value.
        Tree::Set(items) | Tree::Tuple(items) if items.len() == 1 => lower(&items[0])?,
        Tree::Tuple(items) => match &items[..] {
            [text, value] => Expression::Pair(boxed(text)?, boxed(value)?),
            _ => return Err(TemplateFault::Brackets),
        },
        _ => return Err(TemplateFault::Outside("an expression of this kind")),
    })
}

/// `a and b and c` as pairs, from the left.
fn joined(parts: Vec<Expression>, join: fn(Box<Expression>, Box<Expression>) -> Expression) -> Lowered {
    let joined = parts.into_iter().reduce(|left, right| join(Box::new(left), Box::new(right)));
    joined.ok_or(TemplateFault::Outside("nothing"))
}

/// A name, with the dots of `np.arange`.
fn dotted(tree: &Tree) -> Result<String, TemplateFault> {
    match tree {
        Tree::Name(name) => Ok(name.clone()),
        Tree::Attribute(of, name) => Ok(format!("{}.{name}", dotted(of)?)),
        _ => Err(TemplateFault::Outside("a call or attribute of something other than a name")),
    }
}

fn literal(value: &PythonValue) -> Result<Value, TemplateFault> {
    match value {
        PythonValue::Bool(value) => Ok(Value::Bool(*value)),
        PythonValue::Number(PythonNumber::Int(value)) => Ok(Value::Int(value.clone())),
        PythonValue::Number(PythonNumber::Float(value)) => Ok(Value::Float(*value)),
        PythonValue::Text(text) => Ok(Value::text(text)),
        _ => Err(TemplateFault::Outside("a literal of this kind")),
    }
}

/// A comparison of values; templates have neither `in` nor `is`.
fn ordered(comparison: Comparison) -> Result<Comparison, TemplateFault> {
    match comparison {
        Comparison::In | Comparison::NotIn | Comparison::Is | Comparison::IsNot => {
            Err(TemplateFault::Outside("in or is"))
        }
        other => Ok(other),
    }
}
