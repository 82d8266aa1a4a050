//! Counts of readings, by frame and task.
use std::collections::BTreeMap;
use std::fmt::Write;

/// The stated number's relation to the right one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Truth {
    /// It is right.
    Right,
    /// It is wrong and has the same shape.
    Wrong,
    /// It is one of the question's own numbers.
    Operand,
}

impl Truth {
    pub const ALL: [Truth; 3] = [Truth::Right, Truth::Wrong, Truth::Operand];
}

/// Readings, and those that are as stated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    pub as_stated: usize,
    pub all: usize,
}

impl Count {
    fn add(&mut self, as_stated: bool) {
        self.as_stated += usize::from(as_stated);
        self.all += 1;
    }

    fn merge(&mut self, other: Count) {
        self.as_stated += other.as_stated;
        self.all += other.all;
    }

    fn share(self) -> f64 {
        if self.all == 0 { 1.0 } else { self.as_stated as f64 / self.all as f64 }
    }
}

/// A stated number that was not read as stated.
pub struct Miss {
    pub frame: &'static str,
    pub task: String,
    pub truth: Truth,
    pub prompt: String,
    pub completion: String,
    pub stated: String,
    pub read: String,
}

/// All readings of a run.
#[derive(Default)]
pub struct Tally {
    all: BTreeMap<Truth, Count>,
    /// Right numbers where one of the question's own numbers was stated too.
    beside_operand: Count,
    frames: BTreeMap<&'static str, BTreeMap<Truth, Count>>,
    tasks: BTreeMap<String, BTreeMap<Truth, Count>>,
    pub misses: Vec<Miss>,
}

impl Tally {
    /// Counts a reading.
    pub fn count(&mut self, frame: &'static str, task: &str, truth: Truth, has_operand: bool, as_stated: bool) {
        self.all.entry(truth).or_default().add(as_stated);
        if truth == Truth::Right && has_operand {
            self.beside_operand.add(as_stated);
        }
        self.frames.entry(frame).or_default().entry(truth).or_default().add(as_stated);
        self.tasks.entry(task.to_owned()).or_default().entry(truth).or_default().add(as_stated);
    }

    /// The counts of both.
    pub fn with(mut self, other: Tally) -> Tally {
        fn merge<K: Ord>(into: &mut BTreeMap<K, BTreeMap<Truth, Count>>, from: BTreeMap<K, BTreeMap<Truth, Count>>) {
            for (key, counts) in from {
                let sums = into.entry(key).or_default();
                for (truth, count) in counts {
                    sums.entry(truth).or_default().merge(count);
                }
            }
        }
        for (truth, count) in other.all {
            self.all.entry(truth).or_default().merge(count);
        }
        self.beside_operand.merge(other.beside_operand);
        merge(&mut self.frames, other.frames);
        merge(&mut self.tasks, other.tasks);
        self.misses.extend(other.misses);
        self
    }

    fn of(&self, truth: Truth) -> Count {
        self.all.get(&truth).copied().unwrap_or_default()
    }

    /// The shares in one line.
    pub fn summary(&self) -> String {
        let told = |name: &str, count: Count| format!("{name} {:.2} % of {}", 100.0 * count.share(), count.all);
        let [right, wrong, operand] = Truth::ALL.map(|truth| self.of(truth));
        format!(
            "read as stated: {}, {}, {} ({} beside them)",
            told("right numbers", right),
            told("wrong ones of the same shape", wrong),
            told("numbers of the question", operand),
            told("right", self.beside_operand),
        )
    }

    /// Broken bounds, a sentence each.
    pub fn problems(&self, least: f64, least_of_one: f64, most_difference: f64) -> Vec<String> {
        let mut problems = Vec::new();
        for truth in Truth::ALL {
            let count = self.of(truth);
            if count.share() < least {
                problems.push(format!("{truth:?}: {:.2} % of {} are read as stated", 100.0 * count.share(), count.all));
            }
        }
        let pairs = [(Truth::Wrong, self.of(Truth::Right)), (Truth::Operand, self.beside_operand)];
        for (truth, right) in pairs {
            let difference = right.share() - self.of(truth).share();
            if difference.abs() > most_difference {
                problems.push(format!("Right and {truth:?} differ by {:+.2} points", 100.0 * difference));
            }
        }
        let frames = self.frames.iter().map(|(name, counts)| (*name, counts));
        let tasks = self.tasks.iter().map(|(name, counts)| (name.as_str(), counts));
        for (name, counts) in frames.chain(tasks) {
            let all = total(counts);
            if all.share() < least_of_one {
                problems.push(format!("{name}: {:.1} % of {} are read as stated", 100.0 * all.share(), all.all));
            }
        }
        problems
    }

    /// Shares of the frames and tasks with misreadings, the worst first, with an example each.
    pub fn by_frame_and_task(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, counts: &BTreeMap<Truth, Count>, miss: Option<&Miss>| {
            let Some(miss) = miss else { return };
            let shares: Vec<String> =
                counts.iter().map(|(truth, count)| format!("{truth:?} {}/{}", count.as_stated, count.all)).collect();
            let _ = writeln!(
                text,
                "{name}: {}; {:?} in {} was read as {}, to {:?}",
                shares.join(", "),
                miss.completion,
                if miss.task == name { miss.frame } else { &miss.task },
                miss.read,
                end(&miss.prompt, 60),
            );
        };
        for (name, counts) in worst_first(&self.frames) {
            line(name, counts, self.misses.iter().find(|miss| miss.frame == *name));
        }
        for (name, counts) in worst_first(&self.tasks) {
            line(name, counts, self.misses.iter().find(|miss| miss.task == *name));
        }
        text
    }

    /// The misreadings by frame and kind of task, with two examples each, for the author of the reader.
    pub fn report(&self, cases: usize) -> String {
        let mut text = format!("{} frames, {cases} cases\n{}\n", self.frames.len(), self.summary());
        for (name, counts) in worst_first(&self.frames) {
            let all = total(counts);
            if all.as_stated == all.all {
                continue;
            }
            let shares: Vec<String> =
                counts.iter().map(|(truth, count)| format!("{truth:?} {}/{}", count.as_stated, count.all)).collect();
            let _ = writeln!(text, "\n## {name}: {}/{} ({})", all.as_stated, all.all, shares.join(", "));
            let mut kinds: BTreeMap<&str, Vec<&Miss>> = BTreeMap::new();
            for miss in self.misses.iter().filter(|miss| miss.frame == *name) {
                kinds.entry(kind(&miss.task)).or_default().push(miss);
            }
            let mut kinds: Vec<_> = kinds.into_iter().collect();
            kinds.sort_by_key(|(_, misses)| std::cmp::Reverse(misses.len()));
            for (kind, misses) in kinds {
                let _ = writeln!(text, "  {kind}: {}", misses.len());
                for miss in
                    [misses.first(), misses.get(misses.len() / 2).filter(|_| misses.len() > 1)].into_iter().flatten()
                {
                    let _ = writeln!(
                        text,
                        "    {:?} stated {} read {}\n      Q ({}) {:?}\n      A {:?}",
                        miss.truth,
                        miss.stated,
                        miss.read,
                        miss.task,
                        end(&miss.prompt, 110),
                        miss.completion
                    );
                }
            }
        }
        text
    }
}

fn total(counts: &BTreeMap<Truth, Count>) -> Count {
    counts.values().fold(Count::default(), |mut sum, count| {
        sum.merge(*count);
        sum
    })
}

fn worst_first<K: Ord>(counts: &BTreeMap<K, BTreeMap<Truth, Count>>) -> Vec<(&K, &BTreeMap<Truth, Count>)> {
    let mut all: Vec<_> = counts.iter().collect();
    all.sort_by(|a, b| total(a.1).share().total_cmp(&total(b.1).share()));
    all
}

/// Suite and operation of a task: `nupa/add`.
fn kind(task: &str) -> &str {
    let Some((suite, name)) = task.split_once('/') else { return task };
    let operation = name.find(|c: char| c.is_ascii_uppercase()).map_or(name, |at| name[..at].trim_end_matches('_'));
    if suite == "gsm-mini" { suite } else { &task[..suite.len() + 1 + operation.len()] }
}

fn end(text: &str, most: usize) -> &str {
    let start = text.char_indices().rev().nth(most.saturating_sub(1)).map_or(0, |(at, _)| at);
    &text[start..]
}
