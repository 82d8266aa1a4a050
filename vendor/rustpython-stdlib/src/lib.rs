//! The native modules of RustPython's standard library that the sandbox's modules import.
#![allow(clippy::module_inception)]

#[macro_use]
extern crate rustpython_derive;
extern crate alloc;

pub mod array;
// Its `crc32` was for `zlib`, which is not here.
#[allow(unused_imports)]
mod binascii;
mod bisect;
mod cmath;
mod contextvars;
mod math;
mod pystruct;
mod random;
mod sha2;
mod statistics;
mod unicodedata;

use rustpython_common as common;
use rustpython_vm as vm;

use crate::vm::{Context, builtins};

/// Definitions of the modules.
pub fn stdlib_module_defs(ctx: &Context) -> Vec<&'static builtins::PyModuleDef> {
    vec![
        array::module_def(ctx),
        binascii::module_def(ctx),
        bisect::module_def(ctx),
        cmath::module_def(ctx),
        contextvars::module_def(ctx),
        math::module_def(ctx),
        pystruct::module_def(ctx),
        random::module_def(ctx),
        sha2::module_def(ctx),
        statistics::module_def(ctx),
        unicodedata::module_def(ctx),
    ]
}
