//! The numeracy profile: up to how many digits a model can do what, asked adaptively.
//!
//! Its questions are those of the other suites, at the lengths that say most about a model's limit in every skill.
//!
//! | files | contents |
//! |---|---|
//! | `skill` | the skills: tasks of NUPA and Arithmetic-Bench, word problems, numbers in text; their lengths and chance |
//! | `question`, `text` | the question of a skill, a length and a number |
//! | `notation`, `notation_rounds` | numbers in several notations: sums that are mostly right in plain digits, else copies |
//! | `thinking` | products and word problems under caps on the tokens of thinking |
//! | `form`, `screening` | forms of prompts, and the screening that finds the one in which a model is best, and skills for which it is another |
//! | `chooser` | rounds over all skills, by [`earnest_stats::psychometric`] |
//! | `shared`, `shared_question` | the questions that two models are both asked, to compare them |
//! | `options`, `registration` | options, and the registration |
//! | `suite`, `summary` | scoring by `final`; limits by skill |

mod chooser;
mod form;
mod notation;
mod notation_rounds;
mod options;
mod question;
mod registration;
mod screening;
mod shared;
mod shared_question;
mod skill;
mod suite;
mod summary;
mod text;
mod thinking;

pub use form::PromptForm;
pub use notation::{Notation, NotationQuestion};
pub use notation_rounds::{FIRST_PAIRS, PAIRS, notation_p};
pub use options::{BUDGET, ProfileOptions, THINKING, WIDTH};
pub use registration::Registration;
pub use screening::{FormCount, SCREENED, best_form, form_of_skill};
pub use shared::{ComparedSkill, ComparedSkills, FEWEST_OF_SKILL, SHARED, SHARED_OF_SKILL, compared_skills};
pub use shared_question::SharedQuestions;
pub use skill::{Family, Skill, SkillError, skills};
pub use suite::ProfileSuite;
pub use summary::{LIMITS, SkillResult, results, same_curve};
pub use thinking::{THINKING_PAIRS, ThinkingBudgets, ThinkingTask, Way, cap_of, cap_text};

/// Name of the suite.
pub const NAME: &str = "profile";

/// Version of skills, procedure and scoring; those of the suites that make the questions go with it.
const VERSION: &str = "5.1";
