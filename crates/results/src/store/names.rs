//! Names of runs as people type them: a part of one, or one with a slip.

/// Longest name of a run, in bytes: with an ending it still fits the 255 bytes of a file's name.
pub const LONGEST_NAME: usize = 240;

/// Checks the name of a run, which names files too: its lock and its page.
///
/// # Errors
/// The fault of the name.
pub fn check_name(name: &str) -> Result<(), NameProblem> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | ',');
    match name.chars().find(|&c| !fits(c)) {
        _ if name.is_empty() => Err(NameProblem::Empty),
        _ if name.len() > LONGEST_NAME => Err(NameProblem::Long { bytes: name.len() }),
        _ if name.starts_with(['.', '-']) => Err(NameProblem::Beginning),
        Some(character) => Err(NameProblem::Character { character }),
        None => Ok(()),
    }
}

/// Fault of a name; its text is the end of a sentence about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NameProblem {
    #[error("is empty")]
    Empty,
    #[error("has {bytes} bytes, and at most {LONGEST_NAME} are allowed")]
    Long { bytes: usize },
    #[error("begins with a dot or a dash")]
    Beginning,
    #[error("has the character {character:?}; letters, digits and - _ . , are allowed")]
    Character { character: char },
}

/// Characters from which on a name may end in the middle of a part: `1f2e` for `1f2e3d4c`.
const LONG: usize = 4;

/// Runs that a message suggests.
const SUGGESTED: usize = 3;

/// Returns the runs that a name may mean: those that begin with it, else those that end with it, else those that contain it. An end or a
/// middle begins with a part of the run's name, and a short one is made of whole parts, as is a single letter: neither `a` nor `b` is a name of
/// `arithmetic-bench-llama-1f2e3d4c`.
pub(super) fn meant<'a>(name: &str, runs: &'a [String]) -> Vec<&'a str> {
    if name.is_empty() {
        return Vec::new();
    }
    // The end is tried before the middle, because copies (`-scored`) and repeats (`.2`) have the hash in the middle.
    let scorers: [&dyn Fn(&str) -> bool; 3] = [
        &|run| run.starts_with(name) && (name.chars().count() > 1 || begins_part(run, name.len())),
        &|run| run.ends_with(name) && begins_part(run, run.len() - name.len()),
        &|run| {
            let fits = |at: usize| {
                let end = at + name.len();
                begins_part(run, at) && (name.chars().count() >= LONG || begins_part(run, end))
            };
            run.match_indices(name).any(|(at, _)| fits(at))
        },
    ];
    let matching = |scorer: &dyn Fn(&str) -> bool| -> Vec<&'a str> {
        runs.iter().map(String::as_str).filter(|run| scorer(run)).collect()
    };
    scorers.into_iter().map(matching).find(|found| !found.is_empty()).unwrap_or_default()
}

/// True for the bytes of a run's name at which a part begins or a separator stands, and for its end.
fn begins_part(run: &str, at: usize) -> bool {
    let separates = |c: char| !c.is_alphanumeric();
    run[at..].chars().next().is_none_or(separates) || run[..at].chars().next_back().is_none_or(separates)
}

/// Returns a question that names the runs nearest to a name that no run has, with a blank behind it; nothing if all are too far from it.
pub fn did_you_mean(name: &str, runs: &[String]) -> String {
    match &nearest(name, runs)[..] {
        [] => String::new(),
        near => format!("did you mean {}? ", near.join(" or ")),
    }
}

/// Returns the runs whose names, or whole parts of them, are most like a name that no run has, at most three; none if all are too far from
/// it.
fn nearest<'a>(name: &str, runs: &'a [String]) -> Vec<&'a str> {
    // No run has a longer one, and the distance takes time in proportion to both lengths.
    if name.len() > LONGEST_NAME {
        return Vec::new();
    }
    let wanted = name.to_lowercase();
    let length = wanted.chars().count();
    let most = (length / 3).min(4);
    let away = |run: &str| {
        let run = run.to_lowercase();
        let bounds: Vec<usize> =
            (0..=run.len()).filter(|&at| run.is_char_boundary(at) && begins_part(&run, at)).collect();
        let pieces = bounds
            .iter()
            .enumerate()
            .flat_map(|(from, &start)| bounds[from + 1..].iter().map(move |&end| (start, end)));
        // Others are farther away than what is looked for.
        let near = pieces.filter(|(start, end)| run[*start..*end].chars().count().abs_diff(length) <= most);
        near.map(|(start, end)| strsim::osa_distance(&wanted, &run[start..end])).min()
    };
    let mut near: Vec<(usize, &str)> =
        runs.iter().filter_map(|run| Some((away(run)?, run.as_str()))).filter(|(away, _)| *away <= most).collect();
    near.sort_by_key(|(away, _)| *away);
    near.into_iter().take(SUGGESTED).map(|(_, run)| run).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> Vec<String> {
        [
            "arithmetic-bench-llama-be3d04ed",
            "nupa-earnest-abacus-1.4m-e8d63116",
            "nupa-earnest-abacus-1.4m-e8d63116.2",
            "nupa-Qwen2.5-0.5B-77aa00ff",
            "mine-\u{6570}\u{5b66}-00112233",
        ]
        .map(String::from)
        .to_vec()
    }

    #[test]
    fn parts_of_names_find_their_run_and_letters_do_not() {
        let runs = runs();
        for (name, expected) in [
            ("arith", &[0][..]),
            ("be3d04ed", &[0]),
            ("be3d", &[0]),
            ("bench", &[0]),
            ("llama-be3d04ed", &[0]),
            ("e8d63116", &[1]),
            ("e8d6", &[1, 2]),
            (".2", &[2]),
            ("e8d63116.2", &[2]),
            ("nupa", &[1, 2, 3]),
            ("0.5B", &[3]),
            ("\u{6570}\u{5b66}", &[4]),
            ("a", &[]),
            ("b", &[]),
            ("e", &[]),
            ("ben", &[]),
            ("enc", &[]),
            ("d04ed", &[]),
            ("ench", &[]),
            ("", &[]),
            ("x", &[]),
        ] {
            let expected: Vec<&str> = expected.iter().map(|&index| runs[index].as_str()).collect();
            assert_eq!(meant(name, &runs), expected, "{name}");
        }
    }

    #[test]
    fn slips_name_the_nearest_runs() {
        let runs = runs();
        for (name, expected) in [
            ("nupa-earnst", &[1, 2][..]),
            ("arithmetic-bench-lama", &[0]),
            ("arithmetic-bench-llama-be3d04de", &[0]),
            ("be3d04de", &[0]),
            ("nupa-qwen2.5-0.5b", &[3]),
            ("mine-\u{6570}", &[4]),
            ("something-else", &[]),
            ("b", &[]),
            ("zz", &[]),
        ] {
            let expected: Vec<&str> = expected.iter().map(|&index| runs[index].as_str()).collect();
            assert_eq!(nearest(name, &runs), expected, "{name}");
        }
    }
}
