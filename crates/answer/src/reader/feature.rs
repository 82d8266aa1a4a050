//! Features: the evidence for and against a number's being the answer, and their weights.
use std::sync::LazyLock;

macro_rules! features {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// One piece of evidence on a number or on the absence of an answer.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Feature { $($(#[doc = $doc])* $name,)* }

        impl Feature {
            /// All of them, in order.
            pub const ALL: &'static [Feature] = &[$(Feature::$name,)*];

            /// The name in the file of weights.
            pub fn name(self) -> &'static str {
                match self { $(Feature::$name => stringify!($name),)* }
            }
        }
    };
}

features! {
    // Marks.
    Boxed, BoxedResult, BoxList, Tagged, Hashes, Declared, DeclaredBehind, Confirmed, LabelResult, Headed,
    KeyAnswer, KeyOther, Bold, BoldSentence, BoldLabel,
    Whole, LineAlone, LineLast, Continues, Choice, Chosen, Highlighted,
    // Expressions.
    EqualsLast, EqualsMiddle, EqualsLeft, About, AskedEquation, LeftOfOperation,
    // Form and unit.
    InForm, OutOfForm, AskedUnit, OtherUnit, HasUnit, PercentAsked, PercentOdd, SmallWord, SmallNumeral, Ordinal, OrdinalAsked,
    YearAsked, YearOdd, CountWord, OtherPart,
    // The word before.
    CueLink, CueGives, CueConcludes, CueColon, CueArrow, CueTotal, CueContext, CueTo, CueThan, CueAnd, CueOr, CueComma,
    CueResult, CueBy, CueWith, CueOther, CueStart, CueExactly, CueOf,
    // The clause.
    SubjectVerb, IsSubject, TotalsBehind, EndsSentence, BeginsSentence, LastOfSentence, FirstOfSentence, OnlyOfSentence, OnlyBesideOthers, GivenUnit, CountedTwice, EchoesAll, Refuted, SaidWrong, EachBehind, BesideAsked, Restates, TableTotal, NoneOf, AnyOf, ExplainsBehind, RefusedLater, StatesResult, PartOf, Operand, LastResult, ComputedLast, AfterResult, Computed, Trails, CutLow,
    InReason, ReasonFirst, InIf, InPremise, InBrackets, Elaborates, Denied, Contrast, RivalBefore, RivalBehind, RangeSide, InList,
    OfMany, NamedAsked, NamedOther, Compared, NotCompared,
    SegmentMost, SegmentLess, Adjunct, WholeOf, AfterTurn, BeforeTurn, StrangeUnit, ResultFirst, SpeakerOther, CheckWithin, FollowsWithin, BeforeFollows,
    // The sentence.
    Concludes, Follows, AskedOne, AskedTwo, AskedThree, ClauseAsked, IfWould, Times, Hypothetical, Unsure, Offer, Check, CheckSection, Question, Plans, Echoes, EchoesMuch, Bullet, Heading, AfterRule, TableLast,
    TableOther, ListAfter, ListFollows, Explained, ExplainFollows, NamesTarget, Corrects,
    // The place.
    LastSentence, SecondLast, FirstSentence, OnlySentence, Corrected, Reopened, WithdrawnBare, AfterRefusal, BeforeRefusal,
    EarlierDeclared, LaterDeclared, EarlierShown, LaterShown, LaterResult, LaterSaid, LaterNone, Supported, Repeated,
    // The text.
    Example, ExampleQuoted, LaterOther, Cut, TextCut, CutAfter, Contradicted, Tier0, Tier1, Tier2, Tier3, Tier4, OtherLines, AfterAsked,
    // No answer.
    NoneBias, NoneRefused, NoneTruncated, NoneNoResult, NoneOperation, NoneEmptyBox, NoneAsks, NoneOnlyChecks, NoneProgram,
    NoneDeclaredNothing, NoneOptions, NoneContested, NoneCutDeclared, NoneAnswered, NoneContradicted, NoneRivals, NoneBareList, NoneGuesses, NoneWithdrawn, NoneDepends, NoneUnsure, NoneSeeks, NoneUnrelated,
}

/// A set of features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features([u64; Feature::ALL.len().div_ceil(64)]);

impl Features {
    pub fn add(&mut self, feature: Feature) {
        self.0[feature as usize / 64] |= 1 << (feature as usize % 64);
    }

    pub fn set(&mut self, feature: Feature, holds: bool) {
        if holds {
            self.add(feature);
        }
    }

    pub fn remove(&mut self, features: &[Feature]) {
        for &feature in features {
            self.0[feature as usize / 64] &= !(1 << (feature as usize % 64));
        }
    }

    pub fn has(&self, feature: Feature) -> bool {
        self.0[feature as usize / 64] >> (feature as usize % 64) & 1 == 1
    }

    pub fn any(&self, features: &[Feature]) -> bool {
        features.iter().any(|&feature| self.has(feature))
    }

    pub fn iter(&self) -> impl Iterator<Item = Feature> + '_ {
        Feature::ALL.iter().copied().filter(|&feature| self.has(feature))
    }

    /// The sum of the weights.
    pub fn score(&self) -> f64 {
        let mut sum = 0.0;
        for (word, &bits) in self.0.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                sum += WEIGHTS[word * 64 + bits.trailing_zeros() as usize];
                bits &= bits - 1;
            }
        }
        sum
    }
}

/// Weights by feature, as `examples/reader_fit.rs` fits them.
static WEIGHTS: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let mut weights = vec![0.0; Feature::ALL.len()];
    for line in include_str!("weights.tsv").lines().filter(|line| !line.starts_with('#')) {
        if let Some((name, weight)) = line.split_once('\t')
            && let Some(index) = Feature::ALL.iter().position(|feature| feature.name() == name)
            && let Ok(weight) = weight.trim().parse()
        {
            weights[index] = weight;
        }
    }
    weights
});
