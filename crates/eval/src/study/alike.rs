//! One form of the prompts for all models of a study's task.
use earnest_engine::endpoint::Api;

use super::definition::ModelReference;
use super::execute::Sessions;
use super::{PlannedRun, StudyPlan};
use crate::EvalError;
use earnest_results::{Mode, ModeRequest, Reporter};

impl StudyPlan {
    /// Asks all models of a task in one form where neither study nor suite names one: raw, which every model has, if some have a
    /// chat template and some have none. Opens all models, loads none; those that cannot be opened are reported with their runs.
    ///
    /// [`notes`](StudyPlan::notes) has the decisions.
    pub fn ask_alike(&mut self, sessions: &mut Sessions, reporter: &mut dyn Reporter) {
        for task in 0..self.definition.tasks.len() {
            for prompt in 0..self.definition.tasks[task].prompts.len() {
                let runs: Vec<PlannedRun> =
                    (0..self.definition.models.len()).map(|model| PlannedRun { model, task, prompt }).collect();
                let is_open = self.definition.tasks[task].prompts[prompt].mode.is_none()
                    && runs.first().is_some_and(|run| matches!(self.mode(*run), Ok(ModeRequest::Auto)));
                if !is_open {
                    continue;
                }
                let forms: Vec<(PlannedRun, Mode)> =
                    runs.into_iter().filter_map(|run| Some((run, self.form(run, sessions, reporter).ok()?))).collect();
                let of = |form: Mode| forms.iter().find(|(_, one)| *one == form).map(|(run, _)| *run);
                if let (Some(chat), Some(raw)) = (of(Mode::Chat), of(Mode::Raw)) {
                    self.ask_raw(chat, raw);
                }
            }
        }
    }

    /// Asks all models raw, unless an endpoint takes no such prompts. `chat` has a chat template and `raw` none.
    fn ask_raw(&mut self, chat: PlannedRun, raw: PlannedRun) {
        let hub = &self.settings.hub;
        let without_raw = self.definition.models.iter().find(|model| match &model.reference {
            ModelReference::Endpoint(request) => request.source(ModeRequest::Raw, hub).is_err(),
            _ => false,
        });
        let (column, none) = (self.column(raw), &self.model(raw).name);
        let note = match without_raw {
            None => format!(
                "{column}: all models are asked raw, because {none} has no chat template. `prompts = \"auto\"` asks each in its own form."
            ),
            Some(endpoint) => format!(
                "{column}: {none} is asked raw and {} by its chat template, because {none} has none and the endpoint of {} takes no raw \
                 prompts. That alone can make a difference.",
                self.model(chat).name,
                endpoint.name
            ),
        };
        if without_raw.is_none() {
            self.asked_raw.push((raw.task, raw.prompt));
        }
        self.notes.push(note);
    }

    /// Form in which a model is asked where nobody names one.
    fn form(&self, run: PlannedRun, sessions: &mut Sessions, reporter: &mut dyn Reporter) -> Result<Mode, EvalError> {
        // Messages have the form that the endpoint gives them, whether it can be reached or not.
        if self.api(run)? == Some(Api::Chat) {
            return Ok(Mode::Chat);
        }
        let settings = self.evaluation(run)?;
        let form = sessions.of(self, run, &settings, reporter)?.form(settings.prompt)?;
        sessions.close_beyond(run.model);
        Ok(form)
    }
}
