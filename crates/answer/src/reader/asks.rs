//! Phrases of a prompt, and the quantities and forms that they ask for.
use std::sync::LazyLock;

use regex::{RegexSet, SetMatches};

/// A table of what the phrases of a prompt tell, with the phrases in lower case as one expression each.
macro_rules! asks {
    ($($(#[doc = $doc:literal])* $name:ident: $phrases:literal,)*) => {
        /// One thing that phrases of a prompt tell.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Ask { $($(#[doc = $doc])* $name,)* }

        static SET: LazyLock<Option<RegexSet>> = LazyLock::new(|| RegexSet::new([$($phrases),*]).ok());
    };
}

asks! {
    Largest: "maxim|larger|largest|greater|greatest|bigger|biggest|更大|最大|größer|plus grand|mayor|maggiore",
    Smallest: "minim|minin|smaller|smallest|lesser|更小|最小|kleiner|plus petit|menor|minore",
    Digits: "digit",
    DigitAt: "digit at|digit in position|digit on position",
    Spaces: "space",
    Division: "divi",
    Binary: "binary",
    Counts: "how many|how much|count|wie viel|combien|cuánt|quant",
    Percent: "percent|per cent|prozent|pourcent|porcentaje|porcentagem",
    Year: "which year|what year",
    Remainder: "remainder|modul| mod ",
    /// "reste": a remainder where an integer is asked for, what is left elsewhere.
    Rest: "reste",
    Rank: "position|which place|what place|rank|what floor|which floor|which row|which letter|what number|\
        which number|from the left|from the right|in line|in which|which day|what day|which term|what term|\
        which month|which week|which step|which page|which round|which attempt|stelle|platz",
    Part: "fraction|what part|what share|bruchteil|quelle part|qué parte|que parte",
    Simplest: "simplif|lowest terms|reduce|irreducible|kürze|mixed number",
    Brackets: "parenthes|bracket",
    Times: "count|times|occur|often|digit|wie oft|combien de fois|veces|vezes|volte",
    Difference: " more|difference| less| fewer|cheaper|expensive|älter|teurer|mehr|plus de|más |older|younger|\
        taller|longer|heavier",
    NamedQuotient: "quotient",
    Quotient: "integer division|divide|quotient|//",
}

/// Quantities and forms that a prompt asks for.
#[derive(Debug)]
pub(super) struct Asks(Option<SetMatches>);

impl Asks {
    /// Looks a prompt in lower case through.
    pub(super) fn of(lower: &str) -> Self {
        Asks(SET.as_ref().map(|set| set.matches(lower)))
    }

    pub(super) fn has(&self, ask: Ask) -> bool {
        self.0.as_ref().is_some_and(|found| found.matched(ask as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_tell_what_is_asked_for() {
        let asks = Asks::of("perform integer division and give the remainder");
        assert!(
            asks.has(Ask::Quotient) && asks.has(Ask::Remainder) && asks.has(Ask::Division) && !asks.has(Ask::Largest)
        );
    }
}
