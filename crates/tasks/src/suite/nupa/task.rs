//! The 53 task ids: 41 tasks of the paper (Table 1) and their easy and hard variants.
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use strsim::levenshtein;

use super::answer::AnswerForm;

use super::NupaError;

/// Notation of the operands (section 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Representation {
    /// `123`.
    Integer,
    /// `10.4`.
    Float,
    /// `7/13`.
    Fraction,
    /// `1.23e4`.
    Scientific,
}

impl Representation {
    /// The name inside a task id.
    pub fn name(self) -> &'static str {
        match self {
            Representation::Integer => "Integer",
            Representation::Float => "Float",
            Representation::Fraction => "Fraction",
            Representation::Scientific => "ScientificNotation",
        }
    }

    /// The name in the headings of tables.
    pub fn heading(self) -> &'static str {
        match self {
            Representation::Scientific => "Scientific",
            other => other.name(),
        }
    }

    /// All four.
    pub const ALL: [Representation; 4] =
        [Representation::Integer, Representation::Float, Representation::Fraction, Representation::Scientific];
}

/// Operation of a question. Variants with the same question text differ in how operands are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Sum.
    Add,
    /// Sum, the shorter fraction having at most three digits.
    AddEasy,
    /// Difference, the larger operand first.
    Sub,
    /// The larger operand.
    Max,
    /// The larger of two operands that share a prefix.
    MaxHard,
    /// The smaller operand.
    Min,
    /// The smaller of two operands that share a prefix.
    MinHard,
    /// Product.
    MultiplyHard,
    /// Product, the shorter operand having at most three digits a part.
    MultiplyEasy,
    /// The larger digit at every position.
    DigitMax,
    /// The smaller digit at every position.
    DigitMin,
    /// The sum modulo 10 at every position.
    DigitAdd,
    /// The digit at a position, 0-based from the left.
    GetDigit,
    /// The number of digits.
    Length,
    /// Quotient as a reduced fraction.
    TrueDiv,
    /// Floor quotient, the larger operand first.
    FloorDiv,
    /// Remainder, the divisor having at most about 0.7 of the digits.
    Mod,
    /// Remainder by a divisor of at most three digits.
    ModEasy,
    /// Conversion to a finite decimal.
    ToFloat,
    /// Conversion to scientific notation.
    ToScient,
    /// Occurrences of a digit.
    Count,
    /// Scientific notation with a number of significant figures.
    Sig,
}

impl Operation {
    /// The first part of a task id, which also names the task prompt.
    pub fn title(self) -> &'static str {
        match self {
            Operation::Add => "add",
            Operation::AddEasy => "add_easy",
            Operation::Sub => "sub",
            Operation::Max => "max",
            Operation::MaxHard => "max_hard",
            Operation::Min => "min",
            Operation::MinHard => "min_hard",
            Operation::MultiplyHard => "multiply_hard",
            Operation::MultiplyEasy => "multiply_easy",
            Operation::DigitMax => "digit_max",
            Operation::DigitMin => "digit_min",
            Operation::DigitAdd => "digit_add",
            Operation::GetDigit => "get_digit",
            Operation::Length => "length",
            Operation::TrueDiv => "truediv",
            Operation::FloorDiv => "floordiv",
            Operation::Mod => "mod",
            Operation::ModEasy => "mod_easy",
            Operation::ToFloat => "to_float",
            Operation::ToScient => "to_scient",
            Operation::Count => "count",
            Operation::Sig => "sig",
        }
    }

    /// The operand beside the first one.
    pub fn second(self) -> Second {
        match self {
            Operation::Length | Operation::ToFloat | Operation::ToScient => Second::None,
            Operation::GetDigit | Operation::Count | Operation::Sig => Second::ShortInteger,
            _ => Second::SameRepresentation,
        }
    }

    /// True if swapping the operands asks for the same answer.
    pub fn is_commutative(self) -> bool {
        use Operation::{
            Add, AddEasy, DigitAdd, DigitMax, DigitMin, Max, MaxHard, Min, MinHard, MultiplyEasy, MultiplyHard,
        };
        matches!(
            self,
            Add | AddEasy
                | Max
                | MaxHard
                | Min
                | MinHard
                | MultiplyHard
                | MultiplyEasy
                | DigitMax
                | DigitMin
                | DigitAdd
        )
    }
}

/// Kind of a task's second operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Second {
    /// A number written like the first.
    SameRepresentation,
    /// A position, a digit or a count.
    ShortInteger,
    /// There is none.
    None,
}

/// Raw pairs that a task is derived from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PairSource {
    /// Independent numbers, trained up to 8 digits and tested up to 20.
    Add,
    /// Independent numbers, trained up to 20 digits and tested up to 100.
    Compare,
    /// Pairs that share a prefix.
    CompareHarder,
}

/// A task: an operation on a representation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId {
    /// Options of the suite.
    pub operation: Operation,
    /// Notation of the operands.
    pub representation: Representation,
}

const fn task(operation: Operation, representation: Representation) -> TaskId {
    TaskId { operation, representation }
}

/// All 53 tasks, in the order of the reference's task list.
pub const TASKS: [TaskId; 53] = {
    use Operation as O;
    use Representation::{Float, Fraction, Integer, Scientific};
    [
        task(O::Add, Integer),
        task(O::Add, Float),
        task(O::Add, Fraction),
        task(O::AddEasy, Fraction),
        task(O::Add, Scientific),
        task(O::Sub, Integer),
        task(O::Sub, Float),
        task(O::Sub, Fraction),
        task(O::Sub, Scientific),
        task(O::Max, Integer),
        task(O::Max, Float),
        task(O::Max, Fraction),
        task(O::Max, Scientific),
        task(O::MaxHard, Integer),
        task(O::MaxHard, Float),
        task(O::MaxHard, Scientific),
        task(O::Min, Integer),
        task(O::Min, Float),
        task(O::Min, Fraction),
        task(O::Min, Scientific),
        task(O::MinHard, Integer),
        task(O::MinHard, Float),
        task(O::MinHard, Scientific),
        task(O::MultiplyHard, Integer),
        task(O::MultiplyHard, Float),
        task(O::MultiplyHard, Fraction),
        task(O::MultiplyHard, Scientific),
        task(O::MultiplyEasy, Integer),
        task(O::MultiplyEasy, Float),
        task(O::MultiplyEasy, Fraction),
        task(O::MultiplyEasy, Scientific),
        task(O::DigitMax, Integer),
        task(O::DigitMax, Float),
        task(O::DigitMin, Integer),
        task(O::DigitMin, Float),
        task(O::DigitAdd, Integer),
        task(O::DigitAdd, Float),
        task(O::GetDigit, Integer),
        task(O::GetDigit, Float),
        task(O::Length, Integer),
        task(O::Length, Float),
        task(O::TrueDiv, Integer),
        task(O::TrueDiv, Fraction),
        task(O::FloorDiv, Integer),
        task(O::Mod, Integer),
        task(O::ModEasy, Integer),
        task(O::ToFloat, Fraction),
        task(O::ToFloat, Scientific),
        task(O::ToScient, Integer),
        task(O::ToScient, Float),
        task(O::Count, Integer),
        task(O::Sig, Integer),
        task(O::Sig, Float),
    ]
};

impl TaskId {
    pub fn answer_form(self) -> AnswerForm {
        match self.operation {
            Operation::GetDigit | Operation::Length | Operation::Count => AnswerForm::Integer,
            Operation::TrueDiv => AnswerForm::Fraction,
            Operation::ToFloat => AnswerForm::Float,
            Operation::ToScient | Operation::Sig => AnswerForm::Scientific,
            _ => match self.representation {
                Representation::Integer => AnswerForm::Integer,
                Representation::Float => AnswerForm::Float,
                Representation::Fraction => AnswerForm::Fraction,
                Representation::Scientific => AnswerForm::Scientific,
            },
        }
    }

    /// The raw pairs behind the task (spec section 2).
    pub fn pair_source(self) -> PairSource {
        use Operation as O;
        match (self.operation, self.representation) {
            (_, Representation::Fraction) => PairSource::Add,
            (O::MaxHard | O::MinHard, _) => PairSource::CompareHarder,
            (
                O::Add
                | O::AddEasy
                | O::Sub
                | O::MultiplyEasy
                | O::MultiplyHard
                | O::TrueDiv
                | O::FloorDiv
                | O::Mod
                | O::ModEasy,
                _,
            ) => PairSource::Add,
            _ => PairSource::Compare,
        }
    }

    /// The greatest length: 20 for the paper's hard tasks, 100 for its easy ones (Table 6).
    pub fn longest(self) -> usize {
        if self.pair_source() == PairSource::Add { 20 } else { 100 }
    }

    /// The smallest length that the reference tests; shorter ones it omits as too few to be sampled.
    pub fn shortest_in_reference(self) -> usize {
        match (self.pair_source(), self.representation) {
            (_, Representation::Fraction) => 1,
            (PairSource::Compare | PairSource::CompareHarder, Representation::Integer) => 5,
            _ => 3,
        }
    }

    /// True if the reference's test set has this length.
    pub fn in_reference_range(self, length: usize) -> bool {
        (self.shortest_in_reference()..=self.longest()).contains(&length)
    }

    /// True if the published data set ships the task: it lacks the `min` family and `digit_min`.
    pub fn in_released_set(self) -> bool {
        !matches!(self.operation, Operation::Min | Operation::MinHard | Operation::DigitMin)
    }

    /// The name used by the published tables, e.g. `add:Integer`.
    pub fn table_name(self) -> String {
        format!("{}:{}", self.operation.title(), self.representation.name())
    }

    /// The shortest name that is read back, e.g. `add_Integer`.
    pub fn short_name(self) -> String {
        format!("{}_{}", self.operation.title(), self.representation.name())
    }
}

impl fmt::Display for TaskId {
    /// The reference's id: `<title>_<first>_<second>_<output>`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.representation.name();
        let second = match self.operation.second() {
            Second::SameRepresentation => first,
            Second::ShortInteger => "int",
            Second::None => "none",
        };
        let output = match self.operation {
            Operation::GetDigit | Operation::Length | Operation::Count => "int",
            _ => match self.answer_form() {
                AnswerForm::Integer => "Integer",
                AnswerForm::Float => "Float",
                AnswerForm::Fraction => "Fraction",
                AnswerForm::Scientific => "ScientificNotation",
            },
        };
        let id = format!("{}_{first}_{second}_{output}", self.operation.title());
        f.pad(&id)
    }
}

/// Tasks by each of their names.
static NAMES: LazyLock<HashMap<String, TaskId>> = LazyLock::new(|| {
    let names = |task: &TaskId| [task.to_string(), task.short_name(), task.table_name()].map(|name| (name, *task));
    // The first task of a name has it.
    TASKS.iter().rev().flat_map(names).collect()
});

impl TaskId {
    /// Returns the task of a name that [`TaskId::from_str`] reads; none of another name, without looking for the nearest.
    pub fn find(name: &str) -> Option<TaskId> {
        NAMES.get(name).copied()
    }
}

impl FromStr for TaskId {
    type Err = NupaError;

    /// Reads a full id, or `<title>_<representation>` / `<title>:<representation>` where that is enough.
    fn from_str(name: &str) -> Result<Self, NupaError> {
        TaskId::find(name).ok_or_else(|| {
            let wanted = name.to_lowercase();
            let away = |task: &TaskId| {
                let (title, short) = (task.operation.title().to_lowercase(), task.short_name().to_lowercase());
                // The beginning of a name first: `ad` is add in all its forms.
                let begins = !wanted.is_empty() && short.starts_with(&wanted);
                (!begins, levenshtein(&wanted, &title).min(levenshtein(&wanted, &short)))
            };
            let mut tasks = TASKS.to_vec();
            tasks.sort_by_cached_key(away);
            let nearest: Vec<String> = tasks.iter().take(5).map(|task| task.short_name()).collect();
            NupaError::UnknownTask { name: name.into(), nearest: nearest.join(", ") }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_distinct_and_read_back() {
        let ids: BTreeSet<String> = TASKS.iter().map(TaskId::to_string).collect();
        assert_eq!(ids.len(), 53);
        for task in TASKS {
            assert_eq!(task.to_string().parse::<TaskId>().unwrap(), task);
            assert_eq!(task.short_name().parse::<TaskId>().unwrap(), task);
            assert_eq!(task.table_name().parse::<TaskId>().unwrap(), task);
        }
        assert_eq!(TASKS.iter().filter(|task| task.in_released_set()).count(), 44);
    }

    #[test]
    fn the_paper_counts_41_tasks() {
        use Operation as O;
        let folded = |operation: O| match operation {
            O::AddEasy => O::Add,
            O::MaxHard => O::Max,
            O::MinHard => O::Min,
            O::MultiplyEasy => O::MultiplyHard,
            O::ModEasy => O::Mod,
            other => other,
        };
        let tasks: BTreeSet<_> = TASKS.iter().map(|task| (folded(task.operation), task.representation)).collect();
        assert_eq!(tasks.len(), 41);
        let of = |representation| tasks.iter().filter(|(_, other)| *other == representation).count();
        assert_eq!(Representation::ALL.map(of), [16, 12, 7, 6]);
    }

    #[test]
    fn reference_evaluation_has_2390_cells() {
        let cells: usize = TASKS
            .iter()
            .filter(|task| task.in_released_set())
            .map(|task| task.longest() - task.shortest_in_reference() + 1)
            .sum();
        assert_eq!(cells, 2390);
    }

    #[test]
    fn unknown_names_have_the_nearest_beside_them() {
        let error = "add_Intger".parse::<TaskId>().unwrap_err().to_string();
        assert!(error.contains("the nearest are add_Integer, "), "{error}");
        assert!(error.contains("`earnest suites` has all 53"), "{error}");
    }
}
