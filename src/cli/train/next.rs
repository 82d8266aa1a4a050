//! Next command after a training: an evaluation on what was learnt, if a suite has it.
use earnest_train::{FormatSettings, TrainingTask};

/// Tasks, lengths and format of a training.
pub struct Learnt<'a> {
    pub tasks: Vec<TrainingTask>,
    /// Lengths of training and validation.
    pub lengths: Vec<usize>,
    pub format: &'a FormatSettings,
}

/// The lines with the next command; `options` are appended to it.
pub fn next(model: &str, learnt: &Learnt<'_>, options: &str) -> String {
    if *learnt.format != FormatSettings::default() {
        return "The table uses the number format of the training. `earnest run` writes plain numbers, which this model has not learnt \
                to read; `earnest train experiment` evaluates models with other formats on the split `test`.\n"
            .to_owned();
    }
    let (mut nupa, mut bench) = (Suite::default(), Suite::default());
    for task in &learnt.tasks {
        match task {
            TrainingTask::Nupa(task) => nupa.add(task.short_name(), task.longest()),
            TrainingTask::ArithmeticBench(bench_task) => bench.add(bench_task.to_string(), task.longest()),
            TrainingTask::Memorise(_) => {}
        }
    }
    let commands: Vec<String> = [("nupa", nupa), ("arithmetic-bench", bench)]
        .into_iter()
        .filter_map(|(name, suite)| {
            let lengths: Vec<usize> =
                learnt.lengths.iter().copied().filter(|length| *length <= suite.longest).collect();
            (!suite.tasks.is_empty() && !lengths.is_empty()).then(|| {
                let (tasks, lengths) = (suite.tasks.join(","), ranges(lengths));
                format!("earnest run {name} --model {model} --tasks {tasks} --lengths {lengths}{options}\n")
            })
        })
        .collect();
    match commands.is_empty() {
        true => "No suite asks for the digits of a constant; the table is the result.\n".to_owned(),
        false => format!("Next: {}", commands.join("      ")),
    }
}

/// Tasks of a suite, and the greatest length that all of them have.
struct Suite {
    tasks: Vec<String>,
    longest: usize,
}

impl Default for Suite {
    fn default() -> Self {
        Suite { tasks: Vec::new(), longest: usize::MAX }
    }
}

impl Suite {
    fn add(&mut self, task: String, longest: usize) {
        self.longest = self.longest.min(longest);
        if !self.tasks.contains(&task) {
            self.tasks.push(task);
        }
    }
}

/// `1-4,6`.
fn ranges(mut lengths: Vec<usize>) -> String {
    lengths.sort_unstable();
    lengths.dedup();
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for length in lengths {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == length => *last = length,
            _ => runs.push((length, length)),
        }
    }
    let shown = runs.into_iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    shown.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(tasks: &[&str], lengths: &[usize], format: &FormatSettings) -> String {
        let tasks = tasks.iter().map(|task| task.parse().unwrap()).collect();
        next("m", &Learnt { tasks, lengths: lengths.to_vec(), format }, " --prompt raw")
    }

    #[test]
    fn the_next_command_asks_what_was_learnt() {
        let plain = FormatSettings::default();
        assert_eq!(
            of(&["add_Integer", "add_Integer", "max_Float"], &[1, 2, 4, 3, 3, 6], &plain),
            "Next: earnest run nupa --model m --tasks add_Integer,max_Float --lengths 1-4,6 --prompt raw\n"
        );
        assert_eq!(
            of(&["arithmetic-bench:copy", "memorise:pi"], &[3], &plain),
            "Next: earnest run arithmetic-bench --model m --tasks copy --lengths 3 --prompt raw\n"
        );
        let both = of(&["arithmetic-bench:copy", "add_Integer"], &[3], &plain);
        assert_eq!(both.lines().count(), 2, "{both}");
        let none = of(&["memorise:pi"], &[300], &plain);
        assert!(none.contains("No suite") && !none.contains("Next:"), "{none}");
        for format in [
            FormatSettings { reversal: "int".into(), ..FormatSettings::default() },
            FormatSettings { zero_padding: true, ..FormatSettings::default() },
            FormatSettings { index_hints: Some(30), ..FormatSettings::default() },
        ] {
            let text = of(&["add_Integer"], &[3], &format);
            assert!(text.contains("plain numbers") && !text.contains("Next:"), "{text}");
        }
    }
}
