#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| earnest_fuzz::fuzz("formula", data));
