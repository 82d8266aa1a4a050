//! From an expression to its value.
use std::sync::Arc;

use num_bigint::BigInt;

use super::budget::Budget;
use super::builtin::{Arguments, builtin, call};
use super::error::PythonError;
use super::number::{PythonNumber, magnitude};
use super::operate::{compared, operate, prefixed};
use super::parse::parse;
use super::sequence::{dictionary, elements, item, set, slice};
use super::tree::{Argument, Clause, Collected, Comparison, Lambda, Operator, Tree};
use super::value::PythonValue;

/// Bytes of the longest text that is evaluated. CPython's compiler gives up at sums of 3,000 numbers.
const LONGEST: usize = 6_000;

/// Expressions within each other, calls of functions among them.
const DEEPEST: usize = 200;

/// Names, functions and methods that an expression finds beside the builtins.
pub trait Scope {
    /// Looks up a name.
    fn value(&self, _name: &str) -> Option<&PythonValue> {
        None
    }

    /// True if [`Scope::call`] knows the function.
    fn has_function(&self, _name: &str) -> bool {
        false
    }

    /// Calls a function with values in their places.
    ///
    /// # Errors
    /// The exception of the function.
    fn call(&mut self, _name: &str, _arguments: Vec<PythonValue>) -> Result<PythonValue, PythonError> {
        Err(PythonError::Name)
    }

    /// Calls a method of a value, if there is one of this name.
    fn method(
        &self,
        _of: &PythonValue,
        _name: &str,
        _arguments: &[PythonValue],
    ) -> Option<Result<PythonValue, PythonError>> {
        None
    }
}

/// The builtins alone.
struct Builtins;

impl Scope for Builtins {}

/// A part of a value: one item, or those of a slice.
enum Position {
    Item(PythonValue),
    Slice([Option<BigInt>; 3]),
}

impl Position {
    fn of(self, value: &PythonValue) -> Result<PythonValue, PythonError> {
        match self {
            Position::Item(index) => item(value, &index),
            Position::Slice(bounds) => slice(value, bounds),
        }
    }
}

/// Evaluates an expression among the names of a scope.
///
/// # Errors
/// As [`python_eval`].
pub fn evaluate(tree: &Tree, scope: &mut dyn Scope) -> Result<PythonValue, PythonError> {
    Evaluator::new(scope).evaluate(tree)
}

/// `eval(text)`, of nothing but values and builtin functions.
///
/// # Errors
/// As Python would raise it; `Limit` and `Unsupported` where nothing is evaluated.
pub fn python_eval(text: &str) -> Result<PythonValue, PythonError> {
    Evaluator::new(&mut Builtins).evaluate_text(text)
}

/// `abs(a - b) < 1e-4`.
///
/// # Errors
/// As Python would raise it: of what is no number `TypeError`, of integers beyond a double `OverflowError`.
pub fn python_close(a: &PythonValue, b: &PythonValue) -> Result<bool, PythonError> {
    let budget = &mut Budget::new();
    let difference = operate(Operator::Subtract, a, b, budget)?.number().ok_or(PythonError::Type)?;
    let difference = PythonValue::Number(magnitude(&difference)?);
    compared(Comparison::Less, &difference, &PythonValue::Number(PythonNumber::Float(1e-4)), budget)
}

struct Function {
    lambda: Arc<Lambda>,
    defaults: Vec<PythonValue>,
    /// The names around it.
    around: Vec<(String, PythonValue)>,
}

pub(super) struct Evaluator<'s> {
    pub(super) budget: Budget,
    scope: &'s mut dyn Scope,
    functions: Vec<Function>,
    /// Scopes of comprehensions and functions, the innermost last.
    names: Vec<(String, PythonValue)>,
    /// Names that `:=` assigned.
    assigned: Vec<(String, PythonValue)>,
    depth: usize,
}

impl<'s> Evaluator<'s> {
    fn new(scope: &'s mut dyn Scope) -> Self {
        Evaluator {
            budget: Budget::new(),
            scope,
            functions: Vec::new(),
            names: Vec::new(),
            assigned: Vec::new(),
            depth: 0,
        }
    }

    pub(super) fn evaluate_text(&mut self, text: &str) -> Result<PythonValue, PythonError> {
        if text.len() > LONGEST {
            return Err(PythonError::Limit);
        }
        self.budget.spend(text.len() as u64)?;
        self.evaluate(&parse(text)?)
    }

    fn evaluate(&mut self, tree: &Tree) -> Result<PythonValue, PythonError> {
        self.budget.spend(1)?;
        if self.depth >= DEEPEST {
            return Err(PythonError::Recursion);
        }
        self.depth += 1;
        let found = self.value(tree);
        self.depth -= 1;
        found
    }

    fn value(&mut self, tree: &Tree) -> Result<PythonValue, PythonError> {
        match tree {
            Tree::Constant(value) => {
                self.budget.spend(value.size())?;
                Ok(value.clone())
            }
            Tree::Unsupported => Err(PythonError::Unsupported),
            Tree::Bracketed(inner) => self.value(inner),
            Tree::Name(name) => self.name(name),
            Tree::Prefixed(prefixes, inner) => {
                let value = self.evaluate(inner)?;
                self.budget.spend(prefixes.len() as u64)?;
                prefixes.iter().rev().try_fold(value, |value, prefix| prefixed(*prefix, &value))
            }
            Tree::Operated(first, others) => {
                let mut left = self.evaluate(first)?;
                for (operator, right) in others {
                    let right = self.evaluate(right)?;
                    left = operate(*operator, &left, &right, &mut self.budget)?;
                }
                Ok(left)
            }
            Tree::Compared(first, others) => self.comparisons(first, others),
            Tree::And(parts) => self.first_that(parts, |value| !value.is_true()),
            Tree::Or(parts) => self.first_that(parts, PythonValue::is_true),
            Tree::Conditional(parts) => {
                let [condition, then, otherwise] = &**parts;
                let chosen = if self.evaluate(condition)?.is_true() { then } else { otherwise };
                self.evaluate(chosen)
            }
            Tree::Assigned(name, value) => self.assign(name, value),
            Tree::Lambda(lambda) => self.function(lambda),
            Tree::Tuple(parts) => self.elements_of(parts).map(PythonValue::Tuple),
            Tree::List(parts) => self.elements_of(parts).map(PythonValue::List),
            Tree::Set(parts) => {
                let parts = self.elements_of(parts)?;
                set(parts, &mut self.budget)
            }
            Tree::Dictionary(pairs) => {
                let pairs = pairs.iter().map(|(key, value)| Ok((self.evaluate(key)?, self.evaluate(value)?)));
                let pairs = pairs.collect::<Result<Vec<_>, _>>()?;
                dictionary(pairs, &mut self.budget)
            }
            // Only among elements and in items; the parser leaves them nowhere else.
            Tree::Starred(_) | Tree::Slice(_) => Err(PythonError::Syntax),
            Tree::Comprehension(collected, element, clauses) => self.comprehension(*collected, element, clauses),
            Tree::Call(function, arguments) => self.call(function, arguments),
            Tree::Item(value, index) => self.item(value, index),
            Tree::Attribute(value, name) => {
                let value = self.evaluate(value)?;
                attribute(&value, name)
            }
        }
    }

    fn name(&mut self, name: &str) -> Result<PythonValue, PythonError> {
        let known = self.names.iter().rev().chain(self.assigned.iter().rev()).find(|(known, _)| known == name);
        match known.map(|(_, value)| value).or_else(|| self.scope.value(name)) {
            Some(value) => {
                self.budget.spend(value.size())?;
                Ok(value.clone())
            }
            None => builtin(name).ok_or(PythonError::Name),
        }
    }

    fn comparisons(&mut self, first: &Tree, others: &[(Comparison, Tree)]) -> Result<PythonValue, PythonError> {
        let mut left = self.evaluate(first)?;
        for (comparison, right) in others {
            let right = self.evaluate(right)?;
            if !compared(*comparison, &left, &right, &mut self.budget)? {
                return Ok(PythonValue::Bool(false));
            }
            left = right;
        }
        Ok(PythonValue::Bool(true))
    }

    /// The first of the values that decides, or the last one.
    fn first_that(
        &mut self,
        parts: &[Tree],
        decides: impl Fn(&PythonValue) -> bool,
    ) -> Result<PythonValue, PythonError> {
        let mut value = PythonValue::None;
        for part in parts {
            value = self.evaluate(part)?;
            if decides(&value) {
                break;
            }
        }
        Ok(value)
    }

    fn assign(&mut self, name: &str, value: &Tree) -> Result<PythonValue, PythonError> {
        let value = self.evaluate(value)?;
        self.budget.spend(value.size())?;
        self.assigned.retain(|(known, _)| known != name);
        self.assigned.push((name.to_owned(), value.clone()));
        Ok(value)
    }

    fn function(&mut self, lambda: &Arc<Lambda>) -> Result<PythonValue, PythonError> {
        let defaults = lambda.defaults.iter().map(|value| self.evaluate(value)).collect::<Result<Vec<_>, _>>()?;
        self.budget.spend(self.names.iter().map(|(_, value)| 1 + value.size()).sum())?;
        self.functions.push(Function { lambda: Arc::clone(lambda), defaults, around: self.names.clone() });
        Ok(PythonValue::Function(self.functions.len() - 1))
    }

    fn elements_of(&mut self, parts: &[Tree]) -> Result<Vec<PythonValue>, PythonError> {
        let mut found = Vec::new();
        for part in parts {
            match part {
                Tree::Starred(values) => {
                    let values = self.evaluate(values)?;
                    found.extend(elements(values, &mut self.budget)?);
                }
                part => found.push(self.evaluate(part)?),
            }
        }
        self.budget.spend(found.iter().map(PythonValue::size).sum())?;
        Ok(found)
    }

    fn comprehension(
        &mut self,
        collected: Collected,
        element: &Tree,
        clauses: &[Clause],
    ) -> Result<PythonValue, PythonError> {
        let mut found = Vec::new();
        let outer = self.names.len();
        let finished = self.clauses(element, clauses, &mut found);
        self.names.truncate(outer);
        finished?;
        match collected {
            Collected::List => Ok(PythonValue::List(found)),
            Collected::Iterator => Ok(PythonValue::Iterator(found)),
            Collected::Set => set(found, &mut self.budget),
        }
    }

    fn clauses(&mut self, element: &Tree, clauses: &[Clause], found: &mut Vec<PythonValue>) -> Result<(), PythonError> {
        let Some((clause, inner)) = clauses.split_first() else {
            let value = self.evaluate(element)?;
            self.budget.spend(value.size())?;
            found.push(value);
            return Ok(());
        };
        let values = self.evaluate(&clause.iterable)?;
        let outer = self.names.len();
        for value in elements(values, &mut self.budget)? {
            self.names.truncate(outer);
            let values = if clause.unpacked { elements(value, &mut self.budget)? } else { vec![value] };
            if values.len() != clause.names.len() {
                return Err(PythonError::Value);
            }
            self.names.extend(clause.names.iter().cloned().zip(values));
            let mut passes = true;
            for condition in &clause.conditions {
                passes = passes && self.evaluate(condition)?.is_true();
            }
            if passes {
                self.clauses(element, inner, found)?;
            }
        }
        self.names.truncate(outer);
        Ok(())
    }

    fn item(&mut self, value: &Tree, index: &Tree) -> Result<PythonValue, PythonError> {
        // A part of a variable costs what the part does, however long the variable is.
        if let Tree::Name(name) = value
            && self.scope.value(name).is_some()
            && self.names.iter().chain(&self.assigned).all(|(known, _)| known != name)
        {
            let position = self.position(index)?;
            return self.scope.value(name).ok_or(PythonError::Name).and_then(|value| position.of(value));
        }
        let value = self.evaluate(value)?;
        self.position(index)?.of(&value)
    }

    /// Evaluates what stands between the brackets behind a value.
    fn position(&mut self, index: &Tree) -> Result<Position, PythonError> {
        let Tree::Slice(bounds) = index else { return self.evaluate(index).map(Position::Item) };
        let mut values = [None, None, None];
        for (position, bound) in values.iter_mut().zip(&**bounds) {
            *position = bound.as_ref().map(|bound| self.evaluate(bound)).transpose()?;
        }
        let whole = |bound: Option<PythonValue>| -> Result<Option<BigInt>, PythonError> {
            bound.filter(|bound| *bound != PythonValue::None).map(|bound| bound.integer()).transpose()
        };
        let [start, stop, step] = values;
        Ok(Position::Slice([whole(start)?, whole(stop)?, whole(step)?]))
    }

    fn call(&mut self, function: &Tree, arguments: &[Argument]) -> Result<PythonValue, PythonError> {
        if let Tree::Attribute(value, name) = function {
            let value = self.evaluate(value)?;
            let arguments = self.arguments(arguments)?;
            if arguments.named.is_empty()
                && let Some(found) = self.scope.method(&value, name, &arguments.positional)
            {
                let found = found?;
                self.budget.spend(found.size())?;
                return Ok(found);
            }
            return method(&value, name, &arguments);
        }
        if let Tree::Name(name) = function
            && self.scope.has_function(name)
        {
            let arguments = self.arguments(arguments)?;
            return if arguments.named.is_empty() {
                self.scope.call(name, arguments.positional)
            } else {
                Err(PythonError::Type)
            };
        }
        let function = self.evaluate(function)?;
        let arguments = self.arguments(arguments)?;
        self.apply(&function, arguments)
    }

    fn arguments(&mut self, arguments: &[Argument]) -> Result<Arguments, PythonError> {
        let mut found = Arguments::default();
        for argument in arguments {
            match argument {
                Argument::Positional(value) => found.positional.push(self.evaluate(value)?),
                Argument::ByName(name, value) => found.named.push((name.clone(), self.evaluate(value)?)),
                Argument::Unpacked(values) => {
                    let values = self.evaluate(values)?;
                    found.positional.extend(elements(values, &mut self.budget)?);
                }
            }
        }
        Ok(found)
    }

    fn apply(&mut self, function: &PythonValue, arguments: Arguments) -> Result<PythonValue, PythonError> {
        match function {
            PythonValue::Builtin(name) => {
                let found = call(name, arguments, self)?;
                self.budget.spend(found.size())?;
                Ok(found)
            }
            PythonValue::Function(index) => self.call_function(*index, arguments),
            _ => Err(PythonError::Type),
        }
    }

    /// Calls a function with values in their places.
    pub(super) fn call_with(
        &mut self,
        function: &PythonValue,
        positional: Vec<PythonValue>,
    ) -> Result<PythonValue, PythonError> {
        self.budget.spend(1)?;
        self.apply(function, Arguments { positional, named: Vec::new() })
    }

    /// Every value behind what a key function says of it, or behind itself without one.
    pub(super) fn keyed(
        &mut self,
        key: &PythonValue,
        values: Vec<PythonValue>,
    ) -> Result<Vec<(PythonValue, PythonValue)>, PythonError> {
        let keyed = values.into_iter().map(|value| match key {
            PythonValue::None => Ok((value.clone(), value)),
            key => Ok((self.call_with(key, vec![value.clone()])?, value)),
        });
        keyed.collect()
    }

    fn call_function(&mut self, index: usize, arguments: Arguments) -> Result<PythonValue, PythonError> {
        let function = self.functions.get(index).ok_or(PythonError::Type)?;
        let lambda = Arc::clone(&function.lambda);
        let mut values: Vec<Option<PythonValue>> = vec![None; lambda.names.len()];
        if arguments.positional.len() > values.len() {
            return Err(PythonError::Type);
        }
        for (index, value) in values.iter_mut().zip(arguments.positional) {
            *index = Some(value);
        }
        for (name, value) in arguments.named {
            let index = lambda.names.iter().position(|known| *known == name).ok_or(PythonError::Type)?;
            if values[index].replace(value).is_some() {
                return Err(PythonError::Type);
            }
        }
        let first_default = values.len() - function.defaults.len();
        for (index, default) in values[first_default..].iter_mut().zip(&function.defaults) {
            index.get_or_insert_with(|| default.clone());
        }
        let values = values.into_iter().collect::<Option<Vec<_>>>().ok_or(PythonError::Type)?;
        let around = function.around.clone();
        self.budget.spend(around.iter().map(|(_, value)| value.size()).sum())?;
        let outside = std::mem::replace(&mut self.names, around);
        self.names.extend(lambda.names.iter().cloned().zip(values));
        let found = self.evaluate(&lambda.body);
        self.names = outside;
        found
    }
}

/// `value.name` of a number.
fn attribute(value: &PythonValue, name: &str) -> Result<PythonValue, PythonError> {
    let number = value.number().ok_or(PythonError::Unsupported)?;
    match (name, number) {
        ("real", PythonNumber::Complex(real, _)) => Ok(real.into()),
        ("imag", PythonNumber::Complex(_, imaginary)) => Ok(imaginary.into()),
        ("real", number) => Ok(PythonValue::Number(number)),
        ("imag", PythonNumber::Float(_)) => Ok(0.0.into()),
        ("imag", _) => Ok(0.into()),
        ("numerator", PythonNumber::Int(value)) => Ok(value.into()),
        ("denominator", PythonNumber::Int(_)) => Ok(1.into()),
        (name, number) => Err(unknown(name, &number)),
    }
}

/// Error of an attribute without a value here: Python's numbers do not have it, or it is not covered.
fn unknown(name: &str, number: &PythonNumber) -> PythonError {
    let known: &[&str] = match number {
        PythonNumber::Int(_) => &["as_integer_ratio", "bit_count", "bit_length", "conjugate", "from_bytes", "to_bytes"],
        PythonNumber::Float(_) => &["as_integer_ratio", "conjugate", "fromhex", "hex", "is_integer"],
        PythonNumber::Complex(..) => &["conjugate"],
    };
    if known.contains(&name) || name.starts_with("__") { PythonError::Unsupported } else { PythonError::Attribute }
}

/// `value.name(arguments)` of a number.
fn method(value: &PythonValue, name: &str, arguments: &Arguments) -> Result<PythonValue, PythonError> {
    let number = value.number().ok_or(PythonError::Unsupported)?;
    let called = match (name, number) {
        ("conjugate", PythonNumber::Complex(real, imaginary)) => {
            PythonValue::Number(PythonNumber::Complex(real, -imaginary))
        }
        ("conjugate", number) => PythonValue::Number(number),
        ("bit_length", PythonNumber::Int(value)) => BigInt::from(value.bits()).into(),
        ("is_integer", PythonNumber::Float(value)) => PythonValue::Bool(value.is_finite() && value.fract() == 0.0),
        // A number that is called, unless the attribute has no value.
        _ => return Err(attribute(value, name).err().unwrap_or(PythonError::Type)),
    };
    let bare = arguments.positional.is_empty() && arguments.named.is_empty();
    if bare { Ok(called) } else { Err(PythonError::Type) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(expression: &str) -> String {
        python_eval(expression).and_then(|value| value.text()).unwrap_or_else(|error| error.class().to_owned())
    }

    // CPython 3.11: str(eval(text)), or the class of what it raises. tests/fixtures/dnc has many more.
    #[test]
    fn evaluates_as_cpython_does() {
        for (expression, expected) in [
            ("28/4", "7.0"),
            ("1050/65", "16.153846153846153"),
            ("123456789012345678901234567890/7", "1.763668414462081e+28"),
            ("18.9+8.9", "27.799999999999997"),
            ("0/-6", "-0.0"),
            // Two texts are equally near, and the even one is taken.
            ("85833671213175*2.675", "229605070495243.12"),
            ("-7//2", "-4"),
            ("-2**2", "-4"),
            ("2**-1", "0.5"),
            ("(-8)**(1/3)", "(1.0000000000000002+1.7320508075688772j)"),
            ("5^2", "7"),
            ("5==5", "True"),
            ("sum([18,9])", "27"),
            ("round(2.675,2)", "2.67"),
            ("max(3,5) if 1<2 else 0", "5"),
            ("[x*x for x in range(4)][-1]", "9"),
            ("(lambda x,y=3:x+y)(2)", "5"),
            ("1_000+1", "1001"),
            ("0x1F+0b1", "32"),
            // The tuple (1, 1): `000` is a zero.
            ("1,000+1", "(1, 1)"),
            ("7/0", "ZeroDivisionError"),
            ("2(3)", "TypeError"),
            ("twelve", "NameError"),
            ("[NUM1]+[NUM2]", "NameError"),
            ("1,050+1", "SyntaxError"),
            ("5x7", "SyntaxError"),
            ("5×7", "SyntaxError"),
            ("5+7=12", "SyntaxError"),
            ("10%", "SyntaxError"),
            ("", "SyntaxError"),
            ("\n 5", "IndentationError"),
            ("int('x')", "ValueError"),
            ("[5][1]", "IndexError"),
            ("10.0**400", "OverflowError"),
        ] {
            assert_eq!(text(expression), expected, "{expression}");
        }
    }

    #[test]
    fn time_memory_and_stack_are_bounded() {
        for hostile in [
            "(".repeat(3_000),
            "(1+".repeat(150) + "1" + &")".repeat(150),
            "[".repeat(2_000) + "1",
            "2**".repeat(1_900) + "2",
            "1 if 1 else ".repeat(400) + "1",
            "lambda:".repeat(800) + "1",
            "1+".repeat(5_000) + "1",
            "9**9**9".to_owned(),
            "1<<10**10".to_owned(),
            "'a'*10**10".to_owned(),
            "sum(range(10**9))".to_owned(),
            "(lambda f:f(f))(lambda f:f(f))".to_owned(),
            "(x:=[1]) and [(x:=[x,x]) for i in range(10000)]".to_owned(),
            "pow(3,10**4000,10**4000)".to_owned(),
        ] {
            assert!(python_eval(&hostile).is_err(), "{hostile:.40}");
        }
        assert_eq!(text(&("-".repeat(2_000) + "1")), "1");
        assert_eq!(text(&("1+".repeat(2_000) + "1")), "2001");
    }

    #[test]
    fn nothing_outside_the_expression_is_reached() {
        for (hostile, class) in [
            ("__import__('os').system('ls')", "Unsupported"),
            ("open('/etc/passwd').read()", "Unsupported"),
            ("().__class__.__bases__[0].__subclasses__()", "Unsupported"),
            ("exec('1')", "Unsupported"),
            ("os.system('ls')", "NameError"),
            ("import os", "SyntaxError"),
        ] {
            assert_eq!(text(hostile), class, "{hostile}");
        }
    }

    #[test]
    fn differences_below_a_ten_thousandth_are_none() {
        let close = |a: &str, b: &str| python_close(&python_eval(a).unwrap(), &python_eval(b).unwrap());
        assert_eq!((close("1.0001", "1"), close("1.0002", "1")), (Ok(true), Ok(false)));
        assert_eq!((close("True", "1"), close("1+1e-5j", "1")), (Ok(true), Ok(true)));
        assert_eq!(close("'1'", "1"), Err(PythonError::Type));
        assert_eq!(close("10**400", "1.5"), Err(PythonError::Overflow));
        assert_eq!(close("float('nan')", "1"), Ok(false));
    }
}
