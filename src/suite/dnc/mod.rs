//! DNC: eight perturbations of questions with numbers, attack and defence (Xu et al., "Towards Robust Numerical Question
//! Answering: Diagnosing Numerical Capabilities of NLP Systems", EMNLP 2022).

mod annotation;
mod demonstrations;
mod effects;
mod expression;
mod extra;
mod fixed;
mod judge;
mod kind;
mod measure;
mod calendar;
mod mention;
mod number_words;
mod options;
mod pairs;
mod perturbation;
mod problem;
pub mod published;
mod python;
mod question_set;
mod raw_json;
mod read;
mod records;
mod reference;
mod sentence;
mod suite;
mod summary;
mod target;
mod tatqa_metric;
mod written;

pub use annotation::{Annotation, AnnotationError, Annotations, Asked, read_annotations};
pub use demonstrations::DemonstrationError;
pub use expression::{Expression, ExpressionError, Operand, Operator, exact, plain};
pub use extra::{Donor, DonorPool, inserted, place};
pub use fixed::{Context, Ineligible, perturb};
pub use judge::own_rule;
pub use kind::{Capability, Kind, UnknownKind, kinds};
pub use measure::{Equation, PaperEquation, drop_match, equation, paper_equation, round_half_up, same_value};
pub use mention::{Attached, Mention, Number, mentions, raw_reference_mentions, reference_mentions};
pub use number_words::{WordNumber, exact_words, number_words, words_in};
pub use options::{Mode, Options, OptionsError, PinnedFile, Profile, Source};
pub use perturbation::{Edit, Field, Perturbed};
pub use problem::{Dataset, Problem, Remainder, Scale, Split};
pub use python::{PythonError, PythonNumber, PythonValue, python_close, python_eval};
pub use question_set::{Fields, SetRow};
pub use read::{ReadFile, read};
pub use records::{FileError, Malformed, Record, Records, records, shortened};
pub use reference::{
    ReferenceRandom, has_program, is_simple, perturb as reference_perturb, perturb_all as reference_perturb_all,
    perturb_text as reference_perturb_text,
};
pub use suite::{Cell, Data, Dnc, DncError, VERSION};
pub use summary::summarise_samples;
pub use target::{Numbers, PromptShape, Target, labelled, masked, parse_equation, restored};
pub use tatqa_metric::{TatqaMatch, tatqa_match};
pub use written::{Convention, ParsedNumber, parse_number, parse_number_as};
