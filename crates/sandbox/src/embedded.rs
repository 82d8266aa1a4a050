//! The embedded interpreter: RustPython with its frozen standard library, corrected where it rounds differently.
use std::sync::OnceLock;

use num_traits::ToPrimitive;
use rustpython_vm::builtins::{PyFloat, PyInt, PyIntRef, PyStr};
use rustpython_vm::function::OptionalOption;
use rustpython_vm::protocol::PyNumberTernaryFunc;
use rustpython_vm::{
    AsObject, Interpreter, PyObject, PyObjectRef, PyRef, PyResult, Settings, VirtualMachine, compiler,
};

use super::{outcome, rounding};

/// What both interpreters run.
pub const HARNESS: &str = include_str!("harness.py");

/// Name and version, for people and for a run's record.
pub const VERSION: &str = "RustPython 0.5.0 (Python 3.14 syntax and library)";

/// What only the embedded interpreter needs before the modules are imported: it has no operating system (it is built without
/// files, sockets and processes), and `random` wants one for `urandom`, which it calls nowhere but in `SystemRandom`.
const PRELUDE: &str = r#"
import sys
_os = type(sys)("os")
_os.urandom = bytes
sys.modules["os"] = _os
"#;

/// What it needs after they are. Statements that import anything find no `__import__`, as in CPython, where it is looked up
/// among the program's builtins; the interpreter's own modules keep theirs. And the names of all classes are interned:
/// RustPython panics when it is asked for the `__name__` of one of its own classes whose name is not.
const GUARD: &str = r#"
del sys.modules["os"]

def _guarded(original):
    def __import__(name, globals=None, *rest, **named):
        seen = (globals or {}).get("__builtins__")
        if isinstance(seen, dict) and "__import__" not in seen:
            raise ImportError("__import__ not found")
        return original(name, globals, *rest, **named)
    return __import__

builtins.__import__ = _guarded(builtins.__import__)

def _intern():
    classes, known = [object], set()
    while classes:
        one = classes.pop()
        if one not in known:
            known.add(one)
            sys.intern(one.__qualname__)
            classes += type.__subclasses__(one)

_intern()
"#;

/// An interpreter in which the harness has run: its modules are imported.
pub struct Embedded {
    interpreter: Interpreter,
    run: PyObjectRef,
}

impl Embedded {
    /// Starts an interpreter.
    ///
    /// # Errors
    /// If the harness does not run, with its message; that would be a defect of this build.
    pub fn new() -> Result<Self, String> {
        let mut settings = Settings::default();
        settings.isolated = true;
        settings.import_site = false;
        settings.install_signal_handlers = false;
        settings.write_bytecode = false;
        // Sets are walked in the same order every time.
        settings.hash_seed = Some(0);
        let builder = Interpreter::builder(settings);
        let modules = rustpython_stdlib::stdlib_module_defs(&builder.ctx);
        let interpreter =
            builder.add_native_modules(&modules).add_frozen_modules(rustpython_pylib::FROZEN_STDLIB).build();
        let run = interpreter.enter(|vm| {
            prepare(vm).map_err(|error| {
                let mut text = String::new();
                vm.write_exception(&mut text, &error).ok();
                text
            })
        })?;
        Ok(Embedded { interpreter, run })
    }

    /// What the harness says of a program, ready to be written.
    ///
    /// # Errors
    /// If the harness itself raised, which it should not.
    pub fn answer(&self, source: &str, function: &str) -> Result<Vec<u8>, String> {
        if source.contains('\0') {
            // As CPython 3.11, on which the study's rows were made; RustPython's parser takes NULs.
            let raised = "raised\x1fValueError\x1fValueError: source code string cannot contain null bytes";
            return Ok([outcome::MARK.as_bytes(), raised.as_bytes(), &[outcome::END]].concat());
        }
        self.interpreter.enter(|vm| {
            let arguments = (vm.ctx.new_str(source), vm.ctx.new_str(function));
            let answer = self.run.call(arguments, vm).map_err(|error| error.class().name().to_string())?;
            let answer = answer.downcast_ref::<PyStr>().ok_or("no text")?;
            let mut bytes = outcome::MARK.as_bytes().to_vec();
            bytes.extend(answer.as_bytes().iter().map(|&byte| if byte.is_ascii() { byte } else { b'?' }));
            bytes.push(outcome::END);
            Ok(bytes)
        })
    }
}

fn prepare(vm: &VirtualMachine) -> PyResult<PyObjectRef> {
    let method = vm.new_method("__round__", vm.ctx.types.float_type, round);
    vm.ctx.types.float_type.set_str_attr("__round__", method, &vm.ctx);
    let number = &vm.ctx.types.float_type.slots.as_number;
    for slot in [&number.remainder, &number.right_remainder] {
        slot.store(Some(remainder));
    }
    for slot in [&number.floor_divide, &number.right_floor_divide] {
        slot.store(Some(floor_divide));
    }
    for slot in [&number.divmod, &number.right_divmod] {
        slot.store(Some(divmod));
    }
    // Set once: a second interpreter of the process finds ours in the slot, because types are shared.
    if let Some(original) = number.power.load() {
        POWER.get_or_init(|| original);
    }
    for slot in [&number.power, &number.right_power] {
        slot.store(Some(power));
    }
    let scope = vm.new_scope_with_builtins();
    for source in [PRELUDE, HARNESS, GUARD] {
        let code = vm
            .compile(source, compiler::Mode::Exec, "<harness>".to_owned())
            .map_err(|error| vm.new_syntax_error(&error, Some(source)))?;
        vm.run_code_obj(code, scope.clone())?;
    }
    scope.globals.get_item("run", vm)
}

/// Both operands as floats; none where one of them is another type's business.
fn operands(a: &PyObject, b: &PyObject, vm: &VirtualMachine) -> PyResult<Option<(f64, f64)>> {
    let float = |object: &PyObject| -> PyResult<Option<f64>> {
        if let Some(float) = object.downcast_ref::<PyFloat>() {
            return Ok(Some(float.to_f64()));
        }
        let Some(int) = object.downcast_ref::<PyInt>() else { return Ok(None) };
        match int.as_bigint().to_f64().filter(|float| float.is_finite()) {
            Some(float) => Ok(Some(float)),
            None => Err(vm.new_overflow_error("int too large to convert to float")),
        }
    };
    Ok(float(a)?.zip(float(b)?))
}

/// Floor and remainder for two operands that are numbers.
fn parts(a: &PyObject, b: &PyObject, vm: &VirtualMachine) -> PyResult<Option<(f64, f64)>> {
    match operands(a, b, vm)? {
        None => Ok(None),
        Some((a, b)) => match rounding::divmod(a, b) {
            Some(parts) => Ok(Some(parts)),
            None => Err(vm.new_zero_division_error("float division by zero")),
        },
    }
}

fn remainder(a: &PyObject, b: &PyObject, vm: &VirtualMachine) -> PyResult {
    Ok(parts(a, b, vm)?.map_or_else(|| vm.ctx.not_implemented(), |(_, rest)| vm.ctx.new_float(rest).into()))
}

fn floor_divide(a: &PyObject, b: &PyObject, vm: &VirtualMachine) -> PyResult {
    Ok(parts(a, b, vm)?.map_or_else(|| vm.ctx.not_implemented(), |(whole, _)| vm.ctx.new_float(whole).into()))
}

fn divmod(a: &PyObject, b: &PyObject, vm: &VirtualMachine) -> PyResult {
    Ok(parts(a, b, vm)?.map_or_else(
        || vm.ctx.not_implemented(),
        |(whole, rest)| {
            let pair = vec![vm.ctx.new_float(whole).into(), vm.ctx.new_float(rest).into()];
            vm.ctx.new_tuple(pair).into()
        },
    ))
}

/// RustPython's own `**` on floats, which is kept for all but what overflows.
static POWER: OnceLock<PyNumberTernaryFunc> = OnceLock::new();

/// `a ** b` where one is a float: a result beyond the range of floats raises, as in CPython.
fn power(a: &PyObject, b: &PyObject, modulus: &PyObject, vm: &VirtualMachine) -> PyResult {
    if vm.is_none(modulus)
        && let Some((a, b)) = operands(a, b, vm)?
        && a.is_finite()
        && a != 0.0
        && b.is_finite()
        && a.powf(b).is_infinite()
    {
        return Err(vm.new_overflow_error("(34, 'Numerical result out of range')"));
    }
    match POWER.get() {
        Some(original) => original(a, b, modulus, vm),
        None => Ok(vm.ctx.not_implemented()),
    }
}

/// `float.__round__` on exact values: RustPython's own multiplies by a power of ten first.
fn round(value: PyRef<PyFloat>, digits: OptionalOption<PyIntRef>, vm: &VirtualMachine) -> PyResult {
    let value = value.to_f64();
    match digits.flatten() {
        Some(digits) => {
            let digits = digits.as_bigint();
            let clamped =
                digits.to_i32().unwrap_or(if digits.sign() == num_bigint::Sign::Minus { i32::MIN } else { i32::MAX });
            let rounded = rounding::round(value, clamped)
                .ok_or_else(|| vm.new_overflow_error("rounded value too large to represent"))?;
            Ok(vm.ctx.new_float(rounded).into())
        }
        None if value.is_nan() => Err(vm.new_value_error("cannot convert float NaN to integer")),
        None => {
            use num_traits::FromPrimitive;
            let integer = num_bigint::BigInt::from_f64(value.round_ties_even())
                .ok_or_else(|| vm.new_overflow_error("cannot convert float infinity to integer"))?;
            Ok(vm.ctx.new_bigint(&integer).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Number, Outcome};
    use super::*;

    fn run(source: &str) -> Outcome {
        let answer = Embedded::new().unwrap().answer(&format!("def f():\n{source}"), "f").unwrap();
        Outcome::parse(&answer).unwrap()
    }

    #[test]
    fn floats_divide_as_in_cpython() {
        for (source, expected) in [
            ("return 1.0 // 0.1", "9.0"),
            ("x = 1\n    return x // 0.1", "9.0"),
            ("x = -7.5\n    return x % 2", "0.5"),
            ("x = 110.0\n    return x % -10", "-0.0"),
            ("x = 7.5\n    return divmod(x, 2)[1]", "1.5"),
            ("x = 2.0\n    return x ** 0.5", "1.4142135623730951"),
        ] {
            assert_eq!(run(&format!("    {source}")), Outcome::Number(Number::Float(expected.into())), "{source}");
        }
        let raised = |source: &str, family: &str| {
            assert!(matches!(run(source), Outcome::Raised(error) if error.family == family), "{source}");
        };
        raised("    x = 0.0\n    return 1 % x", "ZeroDivisionError");
        raised("    x = 10.0\n    return x ** 400", "ArithmeticError");
        raised("    return 1.5 % 'a'", "TypeError");
    }

    #[test]
    fn every_class_says_its_name() {
        let walk = "    known, classes = [], [().__class__.__base__]\n    while classes:\n        one = classes.pop()\n        \
                    if one not in known:\n            known.append(one)\n            classes += type.__subclasses__(one)\n    \
                    return len([one.__name__ + one.__qualname__ for one in known])";
        let walk = walk.replace("type.", "().__class__.__class__.");
        let Outcome::Number(count) = run(&walk) else { panic!("a panic, or no number") };
        assert!(count.to_f64() > 200.0, "{count}");
    }

    #[test]
    fn sources_with_a_nul_are_refused_as_in_cpython() {
        for source in ["    return 1\0", "    x = 'a\0b'\n    return 1"] {
            assert!(matches!(run(source), Outcome::Raised(error) if error.family == "ValueError"), "{source:?}");
        }
    }

    #[test]
    fn programs_return() {
        assert_eq!(run("    return 6 * 7"), Outcome::Number(Number::Int("2a".into())));
        assert_eq!(run("    return round(6.755, 2)"), Outcome::Number(Number::Float("6.75".into())));
        assert_eq!(run("    return round(2.5) + round(0.49999999999999994)"), Outcome::Number(Number::Int("2".into())));
    }
}
