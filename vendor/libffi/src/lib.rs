//! Nothing: RustPython is built without `ctypes`, the one module that calls functions of C libraries.
