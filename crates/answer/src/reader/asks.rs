//! Phrases of a prompt, and the quantities and forms that they ask for.
use std::sync::LazyLock;

use regex::{RegexSet, SetMatches};

/// One thing that phrases of a prompt tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    Largest,
    Smallest,
    Digits,
    Spaces,
    Division,
    Binary,
    Counts,
    Table,
    Percent,
    Year,
    Remainder,
    /// "reste": a remainder where an integer is asked for, what is left elsewhere.
    Rest,
    Rank,
    Part,
    Simplest,
    Brackets,
    Times,
    Difference,
    Quotient,
}

/// Phrases in lower case, as one expression each, in the order of [`Ask`].
const PHRASES: [(Ask, &str); 19] = [
    (Ask::Largest, "maxim|larger|largest|greater|greatest|bigger|biggest|更大|最大|größer|plus grand|mayor|maggiore"),
    (Ask::Smallest, "minim|minin|smaller|smallest|lesser|更小|最小|kleiner|plus petit|menor|minore"),
    (Ask::Digits, "digit"),
    (Ask::Spaces, "space"),
    (Ask::Division, "divi"),
    (Ask::Binary, "binary"),
    (Ask::Counts, "how many|how much|count|wie viel|combien|cuánt|quant"),
    (Ask::Table, r"table:|text:|passage|(?m:^\s*\|.*\|)"),
    (Ask::Percent, "percent|per cent|prozent|pourcent|porcentaje|porcentagem"),
    (Ask::Year, "which year|what year"),
    (Ask::Remainder, "remainder|modul| mod "),
    (Ask::Rest, "reste"),
    (
        Ask::Rank,
        "position|which place|what place|rank|what floor|which floor|which row|which letter|what number|which number|from the left|from the right|\
     in line|in which|which day|what day|which term|what term|which month|which week|which step|which page|which round|which attempt|stelle|platz",
    ),
    (Ask::Part, "fraction|what part|what share|bruchteil|quelle part|qué parte|que parte"),
    (Ask::Simplest, "simplif|lowest terms|reduce|irreducible|kürze|mixed number"),
    (Ask::Brackets, "parenthes|bracket"),
    (Ask::Times, "count|times|occur|often|digit|wie oft|combien de fois|veces|vezes|volte"),
    (
        Ask::Difference,
        " more|difference| less| fewer|cheaper|expensive|älter|teurer|mehr|plus de|más |older|younger|taller|longer|heavier",
    ),
    (Ask::Quotient, "integer division|divide|quotient"),
];

static SET: LazyLock<Option<RegexSet>> = LazyLock::new(|| RegexSet::new(PHRASES.map(|(_, phrases)| phrases)).ok());

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
    fn phrases_stand_in_the_order_of_what_they_tell() {
        assert!(PHRASES.iter().enumerate().all(|(index, (ask, _))| *ask as usize == index));
        let asks = Asks::of("perform integer division and give the remainder");
        assert!(
            asks.has(Ask::Quotient) && asks.has(Ask::Remainder) && asks.has(Ask::Division) && !asks.has(Ask::Largest)
        );
    }
}
