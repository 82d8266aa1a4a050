//! Languages, as far as numbers are written differently.

/// Language of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    English,
    German,
    French,
    Spanish,
    Portuguese,
    Italian,
    /// Another one that writes decimals with a comma.
    CommaDecimal,
    Other,
}

impl Language {
    /// True where decimals are written with a comma.
    pub fn has_decimal_comma(self) -> bool {
        !matches!(self, Language::English | Language::Other)
    }

    /// True for the Romance languages, in which words of fractions are those of ranks and of other things.
    pub fn is_romance(self) -> bool {
        matches!(self, Language::French | Language::Spanish | Language::Portuguese | Language::Italian)
    }
}
