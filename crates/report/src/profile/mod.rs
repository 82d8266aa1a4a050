//! The numeracy profile of a model, from the stored answers of a run of the suite `profile`.
//!
//! `document` has the limits, `anatomy` the wrong answers, `compare` the differences of two models by their answers and by those to shared questions, `notations` and `thinking` have what is asked once the limits are known, `text`, `page`,
//! `anatomy_page` and `thinking_page` show all of it.

mod anatomy;
mod anatomy_page;
mod compare;
mod document;
mod notations;
mod page;
mod text;
mod thinking;
mod thinking_page;

pub use anatomy::{Anatomy, ClassShare, FamilyErrors, PositionRow, TaskErrors};
pub use compare::{Comparison, LimitDifference, SharedAnswers, comparison, shared_questions};
pub use document::{FormShare, NumeracyProfile, SkillProfile, profile};
pub use notations::{NotationResult, NotationVerdict};
pub use page::{figures, page};
pub use text::{comparison_text, limit_text, text};
pub use thinking::{CapResult, Gain, ThinkingResult};
