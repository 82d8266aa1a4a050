//! The modules of Python's library that a program in the sandbox reaches, copied from RustPython's crate to where `embedded.rs` freezes them. The
//! whole library is five times as large, and no program can import another module.

fn main() {
    #[cfg(feature = "python")]
    library::copy();
}

#[cfg(feature = "python")]
mod library {
    use std::path::Path;
    use std::{env, fs};

    /// Modules and packages with their modules: those of the harness, what they import, what their functions and the interpreter import when they
    /// are called. `tests/sandbox/library.rs` tries them.
    const MODULES: &str = "
        __future__ _ast_unparse _collections_abc _colorize _opcode_metadata _py_abc _py_warnings _pycodecs _pydecimal _threading_local
        _weakrefset abc annotationlib ast base64 bisect codecs collections contextlib contextvars copy copyreg dataclasses decimal dis
        encodings enum fractions functools genericpath heapq importlib inspect io keyword linecache locale numbers opcode operator os
        posixpath quopri random re reprlib stat statistics string stringprep struct textwrap threading token tokenize traceback types
        typing warnings weakref
    ";

    pub fn copy() {
        let out = env::var("OUT_DIR").expect("cargo sets it");
        let to = Path::new(&out).join("Lib");
        if to.exists() {
            fs::remove_dir_all(&to).expect("the folder is ours");
        }
        fs::create_dir_all(&to).expect("the folder is ours");
        let from = Path::new(rustpython_pylib::LIB_PATH);
        for module in MODULES.split_whitespace() {
            let (package, file) = (from.join(module), format!("{module}.py"));
            if package.is_dir() {
                copy_package(&package, &to.join(module));
            } else {
                fs::copy(from.join(&file), to.join(&file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            }
        }
        // `py_freeze` reads a folder beside the file in which it stands.
        let code = "rustpython_derive::py_freeze!(dir = \"Lib\", crate_name = \"rustpython_compiler_core\")\n";
        fs::write(Path::new(&out).join("library.rs"), code).expect("the folder is ours");
        println!("cargo:rerun-if-changed=build.rs");
    }

    fn copy_package(from: &Path, to: &Path) {
        fs::create_dir_all(to).expect("the folder is ours");
        for entry in fs::read_dir(from).expect("the library is there") {
            let entry = entry.expect("the library can be read");
            let path = entry.path();
            if path.extension().is_some_and(|ending| ending == "py") {
                fs::copy(&path, to.join(entry.file_name()))
                    .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            }
        }
    }
}
