//! `num-bigint` under the name that RustPython asks for. See `vendor/README.md`.

pub use num_bigint::{
    BigInt, BigUint, ParseBigIntError, Sign, ToBigInt, ToBigUint, TryFromBigIntError, U32Digits, U64Digits,
};
