//! The name of a measure of memory. Ruff's syntax tree derives it, and nothing that earnest builds asks for a size.
pub use get_size_derive2::GetSize;

/// A type whose memory could be measured.
pub trait GetSize {}
