//! Embedded interpreter: RustPython with its frozen standard library, and CPython's float arithmetic.
use std::cell::{Cell, RefCell};
use std::sync::OnceLock;

use num_bigint::{BigInt, BigUint};
use num_traits::ToPrimitive;
use rustpython_compiler_core::frozen::FrozenLib;
use rustpython_vm::builtins::{PyFloat, PyInt, PyIntRef, PyStr};
use rustpython_vm::function::OptionalOption;
use rustpython_vm::protocol::PyNumberTernaryFunc;
use rustpython_vm::signal::{UserSignalSender, user_signal_channel};
use rustpython_vm::vm::thread;
use rustpython_vm::{
    AsObject, Interpreter, PyObject, PyObjectRef, PyRef, PyResult, Settings, VirtualMachine, compiler,
};

use super::{HARNESS, outcome, rounding};

/// Modules of Python's library; `build.rs` lists them.
const LIBRARY: &FrozenLib = include!(concat!(env!("OUT_DIR"), "/library.rs"));

/// Name and version of the interpreter, as recorded in a run.
pub const VERSION: &str = "RustPython 0.5.0 (Python 3.14 syntax and library)";

/// Setup before the modules are imported, for the embedded interpreter alone: it is built without `os`, and `random` imports
/// `urandom` from there, which only `SystemRandom` calls.
const PRELUDE: &str = r#"
import sys
_os = type(sys)("os")
_os.urandom = bytes
sys.modules["os"] = _os
"#;

/// Setup after the modules are imported. Import statements of a program find no `__import__`, as in CPython, which looks it up
/// in the program's builtins; the interpreter's own modules keep theirs. The names of all classes are interned: RustPython panics
/// on `__name__` of a built-in class whose name is not.
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

/// Failure of the harness itself, a defect of this build.
#[derive(Debug, thiserror::Error)]
pub enum HarnessError {
    /// The harness raised while it was loaded.
    #[error("the sandbox's harness cannot be loaded: {traceback}")]
    Load { traceback: String },
    /// The harness raised instead of reporting the program's exception.
    #[error("the sandbox's harness raised {class}")]
    Raised { class: String },
    /// The harness returned a value other than a string.
    #[error("the sandbox's harness returned no string")]
    NoString,
}

/// Interpreter with the harness loaded and its modules imported.
pub struct Embedded {
    interpreter: Interpreter,
    run: PyObjectRef,
}

impl Embedded {
    /// Starts an interpreter and loads the harness.
    ///
    /// # Errors
    /// [`HarnessError::Load`].
    pub fn new() -> Result<Self, HarnessError> {
        let mut settings = Settings::default();
        settings.isolated = true;
        settings.import_site = false;
        settings.install_signal_handlers = false;
        settings.write_bytecode = false;
        // A fixed seed makes the iteration order of sets reproducible.
        settings.hash_seed = Some(0);
        let (sender, receiver) = user_signal_channel();
        REFUSALS.set(Some(sender));
        malachite_bigint::set_refuse(refuse_digits);
        let builder = Interpreter::builder(settings).init_hook(move |vm| vm.set_user_signal_channel(receiver));
        let modules = rustpython_stdlib::stdlib_module_defs(&builder.ctx);
        let interpreter = builder.add_native_modules(&modules).add_frozen_modules(LIBRARY).build();
        let run = interpreter.enter(|vm| {
            prepare(vm).map_err(|error| {
                let mut traceback = String::new();
                vm.write_exception(&mut traceback, &error).ok();
                HarnessError::Load { traceback }
            })
        })?;
        Ok(Embedded { interpreter, run })
    }

    /// Runs a program and returns the harness's answer, ready to be written.
    ///
    /// # Errors
    /// [`HarnessError::Raised`], [`HarnessError::NoString`].
    pub fn answer(&self, source: &str, function: &str) -> Result<Vec<u8>, HarnessError> {
        if source.contains('\0') {
            // As CPython 3.11, which the study used; RustPython's parser accepts NULs.
            let raised = "raised\x1fValueError\x1fValueError: source code string cannot contain null bytes";
            return Ok([outcome::MARK.as_bytes(), raised.as_bytes(), &[outcome::END]].concat());
        }
        self.interpreter.enter(|vm| {
            let arguments = (vm.ctx.new_str(source), vm.ctx.new_str(function));
            let answer = self
                .run
                .call(arguments, vm)
                .map_err(|error| HarnessError::Raised { class: error.class().name().to_string() })?;
            let answer = answer.downcast_ref::<PyStr>().ok_or(HarnessError::NoString)?;
            let mut bytes = outcome::MARK.as_bytes().to_vec();
            bytes.extend(answer.as_bytes().iter().map(|&byte| if byte.is_ascii() { byte } else { b'?' }));
            bytes.push(outcome::END);
            Ok(bytes)
        })
    }
}

thread_local! {
    /// Raises an exception in the thread's interpreter before its next instruction.
    static REFUSALS: RefCell<Option<UserSignalSender>> = const { RefCell::new(None) };
    /// True from a refusal until it is raised.
    static IS_REFUSED: Cell<bool> = const { Cell::new(false) };
}

/// Refuses to write more decimal digits than `sys.get_int_max_str_digits()`, as CPython does: RustPython limits reading them
/// only. A conversion cannot fail there, so the exception is raised before the next instruction, and nothing sees what is
/// written instead.
fn refuse_digits(value: &BigInt) -> Option<String> {
    thread::with_current_vm(|vm| {
        let limit = vm.state.int_max_str_digits.load();
        // CPython's own `decimal` is written in C and converts without text.
        let in_decimal =
            || vm.current_frame().is_some_and(|frame| frame.code.source_path().as_str().contains("_pydecimal"));
        if limit == 0 || !has_more_digits(value, limit) || in_decimal() {
            return None;
        }
        if !IS_REFUSED.replace(true) {
            let message = format!(
                "Exceeds the limit ({limit} digits) for integer string conversion; use sys.set_int_max_str_digits() to increase \
                 the limit"
            );
            let raise = move |vm: &VirtualMachine| {
                IS_REFUSED.set(false);
                Err(vm.new_value_error(message))
            };
            REFUSALS.with_borrow(|sender| sender.as_ref().map(|sender| sender.send(Box::new(raise))));
        }
        Some("0".to_owned())
    })
}

/// True for an integer of more than so many decimal digits.
fn has_more_digits(value: &BigInt, limit: usize) -> bool {
    // A bit is between 0.30102 and 0.30103 digits.
    let bits = u128::from(value.bits());
    let (least, most) = (bits.saturating_sub(1) * 30_102 / 100_000 + 1, bits * 30_103 / 100_000 + 1);
    let limit_digits = limit as u128;
    if least > limit_digits || most <= limit_digits {
        return least > limit_digits;
    }
    u32::try_from(limit).is_ok_and(|limit| *value.magnitude() >= BigUint::from(10_u8).pow(limit))
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
    // Set once: types are shared, so a second interpreter of the process finds ours in the slot.
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

/// Both operands as floats; `None` if one of them is neither float nor int.
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

/// Quotient and remainder of two numbers; `None` for other operands.
fn quotient_remainder(a: &PyObject, b: &PyObject, vm: &VirtualMachine) -> PyResult<Option<(f64, f64)>> {
    match operands(a, b, vm)? {
        None => Ok(None),
        Some((a, b)) => match rounding::divmod(a, b) {
            Some(pair) => Ok(Some(pair)),
            None => Err(vm.new_zero_division_error("float division by zero")),
        },
    }
}

fn remainder(a: &PyObject, b: &PyObject, vm: &VirtualMachine) -> PyResult {
    Ok(quotient_remainder(a, b, vm)?
        .map_or_else(|| vm.ctx.not_implemented(), |(_, rest)| vm.ctx.new_float(rest).into()))
}

fn floor_divide(a: &PyObject, b: &PyObject, vm: &VirtualMachine) -> PyResult {
    Ok(quotient_remainder(a, b, vm)?
        .map_or_else(|| vm.ctx.not_implemented(), |(whole, _)| vm.ctx.new_float(whole).into()))
}

fn divmod(a: &PyObject, b: &PyObject, vm: &VirtualMachine) -> PyResult {
    Ok(quotient_remainder(a, b, vm)?.map_or_else(
        || vm.ctx.not_implemented(),
        |(whole, rest)| {
            let pair = vec![vm.ctx.new_float(whole).into(), vm.ctx.new_float(rest).into()];
            vm.ctx.new_tuple(pair).into()
        },
    ))
}

/// RustPython's `**` on floats, used unless the result overflows.
static POWER: OnceLock<PyNumberTernaryFunc> = OnceLock::new();

/// `a ** b` for a float operand: overflow raises, as in CPython.
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

/// `float.__round__` on the exact value; RustPython's multiplies by a power of ten first.
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
            Ok(vm.ctx.new_bigint(&integer.into()).into())
        }
    }
}
