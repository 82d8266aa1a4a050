//! The traits and the type of malachite-base that RustPython names. See `vendor/README.md`.

/// Rounding modes.
pub mod rounding_modes {
    /// How a value that a type cannot hold is rounded; RustPython asks for no other mode.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum RoundingMode {
        /// To the nearest value, ties to even.
        Nearest,
    }
}

/// Numbers.
pub mod num {
    /// Conversions.
    pub mod conversion {
        /// Their traits.
        pub mod traits {
            use core::cmp::Ordering;

            use crate::rounding_modes::RoundingMode;

            /// Rounds to a type; the ordering compares the result with the exact value.
            pub trait RoundingInto<T> {
                /// The rounded value.
                fn rounding_into(self, mode: RoundingMode) -> (T, Ordering);
            }
        }
    }

    /// Primitive types.
    pub mod basic {
        /// Floating-point numbers.
        pub mod floats {
            /// What RustPython asks of a floating-point number beyond the standard library.
            pub trait PrimitiveFloat {
                /// True for `-0.0` only.
                fn is_negative_zero(self) -> bool;
            }

            impl PrimitiveFloat for f64 {
                fn is_negative_zero(self) -> bool {
                    self == 0.0 && self.is_sign_negative()
                }
            }
        }
    }
}
