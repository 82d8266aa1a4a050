//! The perturbations, and which numerical capability each one tests.
use std::fmt;

use serde::{Deserialize, Serialize};

use super::problem::Dataset;

/// A perturbation (section 4.2 of the paper).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Digits become words.
    Language,
    /// `.0` is added to operands.
    Type,
    /// A decimal is added to operands.
    Noise,
    /// Operands are moved by about a thousand.
    Distribution,
    /// `(not k)` follows numbers.
    Verbosity,
    /// A sentence with a number from another question is added.
    Extra,
    /// The question asks for another operation.
    Logic,
    /// The sentences stand in another order.
    Order,
    /// Words become digits: the other direction of the released Language rows, not one of the eight.
    LanguageToDigits,
}

/// A numerical capability (section 4.1 and Figure 1 of the paper).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Capability {
    NumberDetection,
    NumberValueUnderstanding,
    OperandSelection,
    OperationReasoning,
}

impl Capability {
    pub const ALL: [Capability; 4] = [
        Capability::NumberDetection,
        Capability::NumberValueUnderstanding,
        Capability::OperandSelection,
        Capability::OperationReasoning,
    ];

    /// As Figure 1 names it.
    pub fn name(self) -> &'static str {
        match self {
            Capability::NumberDetection => "Number Detection",
            Capability::NumberValueUnderstanding => "Number Value Understanding",
            Capability::OperandSelection => "Operand Selection",
            Capability::OperationReasoning => "Operation Reasoning",
        }
    }
}

impl Kind {
    /// The paper's eight, in its order.
    pub const EIGHT: [Kind; 8] = [
        Kind::Language,
        Kind::Type,
        Kind::Noise,
        Kind::Distribution,
        Kind::Verbosity,
        Kind::Extra,
        Kind::Logic,
        Kind::Order,
    ];

    /// With the other direction of Language.
    pub const ALL: [Kind; 9] = [
        Kind::Language,
        Kind::Type,
        Kind::Noise,
        Kind::Distribution,
        Kind::Verbosity,
        Kind::Extra,
        Kind::Logic,
        Kind::Order,
        Kind::LanguageToDigits,
    ];

    /// The name on the command line and of the task.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Language => "language",
            Kind::Type => "type",
            Kind::Noise => "noise",
            Kind::Distribution => "distribution",
            Kind::Verbosity => "verbosity",
            Kind::Extra => "extra",
            Kind::Logic => "logic",
            Kind::Order => "order",
            Kind::LanguageToDigits => "language-to-digits",
        }
    }

    /// The name in the paper's tables; none for what the paper does not have.
    pub fn title(self) -> Option<&'static str> {
        match self {
            Kind::Language => Some("Language"),
            Kind::Type => Some("Type"),
            Kind::Noise => Some("Noise"),
            Kind::Distribution => Some("Distribution"),
            Kind::Verbosity => Some("Verbosity"),
            Kind::Extra => Some("Extra"),
            Kind::Logic => Some("Logic"),
            Kind::Order => Some("Order"),
            Kind::LanguageToDigits => None,
        }
    }

    /// The capability that it tests.
    pub fn capability(self) -> Capability {
        match self {
            Kind::Language | Kind::LanguageToDigits | Kind::Type => Capability::NumberDetection,
            Kind::Noise | Kind::Distribution => Capability::NumberValueUnderstanding,
            Kind::Verbosity | Kind::Extra => Capability::OperandSelection,
            Kind::Logic | Kind::Order => Capability::OperationReasoning,
        }
    }

    /// Comes from an annotation file: people write it, no program does.
    pub fn is_annotated(self) -> bool {
        matches!(self, Kind::Logic | Kind::Order)
    }

    /// The edited numbers change the answer, so that without an equation there is nothing to recompute it from.
    pub fn changes_values(self) -> bool {
        matches!(self, Kind::Noise | Kind::Distribution)
    }

    /// Draws random numbers.
    pub fn is_random(self) -> bool {
        matches!(self, Kind::Noise | Kind::Distribution | Kind::Verbosity | Kind::Extra)
    }

    /// True if the data set has what it needs (spec section 3.9): DROP and TAT-QA have no infix equation, and nobody has
    /// annotated their order.
    pub fn applies_to(self, dataset: Dataset) -> bool {
        match self {
            Kind::Noise | Kind::Distribution | Kind::Order => dataset == Dataset::AsdivA,
            Kind::Logic => dataset != Dataset::DropNum,
            _ => true,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name is of no perturbation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}; there are {names}, and all for the paper's eight", what = said(.0), names = Kind::ALL.map(Kind::name).join(", "))]
pub struct UnknownKind(pub String);

fn said(name: &str) -> String {
    match name {
        "" => "a perturbation is wanted and its name is empty".to_owned(),
        name => format!("there is no perturbation {:?}", crate::suite::quoted::shortened(name, 40)),
    }
}

impl std::str::FromStr for Kind {
    type Err = UnknownKind;

    /// The name, or a short form (`lang`, `distri`).
    fn from_str(text: &str) -> Result<Self, UnknownKind> {
        let short = match text {
            "lang" => "language",
            "distri" => "distribution",
            "lang-to-digits" => "language-to-digits",
            other => other,
        };
        Kind::ALL.into_iter().find(|kind| kind.name() == short).ok_or_else(|| UnknownKind(text.to_owned()))
    }
}

/// Reads a list of names; `all` is the paper's eight. Repeated names count once.
///
/// # Errors
/// The first unknown name.
pub fn kinds(names: &[String]) -> Result<Vec<Kind>, UnknownKind> {
    let mut found: Vec<Kind> = Vec::new();
    for name in names.iter().map(|name| name.trim()) {
        let add: Vec<Kind> = if name == "all" { Kind::EIGHT.to_vec() } else { vec![name.parse()?] };
        for kind in add {
            if !found.contains(&kind) {
                found.push(kind);
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_and_all_is_eight() {
        for kind in Kind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        assert_eq!(kinds(&["all".into(), "type".into()]).unwrap(), Kind::EIGHT);
        assert_eq!(kinds(&["distri".into(), " lang".into()]).unwrap(), [Kind::Distribution, Kind::Language]);
        assert!(
            kinds(&["".into()])
                .unwrap_err()
                .to_string()
                .starts_with("a perturbation is wanted and its name is empty; ")
        );
        assert!(kinds(&["tipe".into()]).unwrap_err().to_string().contains("language, type"));
        for capability in Capability::ALL {
            assert_eq!(Kind::EIGHT.iter().filter(|kind| kind.capability() == capability).count(), 2);
        }
    }
}
