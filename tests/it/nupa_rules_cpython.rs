//! The rules against CPython: same answers, same executed lines, and every line of a trace is true. Runs where a
//! `python3` is installed (EARNEST_PYTHON names another one); without one it says so.
use std::io::Write as _;
use std::process::{Command, Stdio};

use earnest_tasks::suite::nupa::{Cell, PairRules, Second, Split, rule, ruled_tasks};
use serde_json::json;

const CHECKER: &str = r#"
import json, sys
sys.set_int_max_str_digits(0) if hasattr(sys, 'set_int_max_str_digits') else None
checked = 0
for row in map(json.loads, sys.stdin):
    space = {}
    exec(compile(row['source'], 'rule', 'exec'), space)
    name = row['source'].split('(')[0].removeprefix('def ')
    lines = []
    def tracer(frame, event, _):
        if frame.f_code.co_filename != 'rule':
            return None
        if event == 'line':
            lines.append(frame.f_lineno)
        return tracer
    sys.settrace(tracer)
    answer = space[name](*row['operands'])
    sys.settrace(None)
    assert answer == row['answer'], (row['task'], row['operands'], answer)
    assert lines == row['lines'], (row['task'], row['operands'], lines[:40], row['lines'][:40])
    *steps, last = row['trace'].split('\n')
    assert last == 'So the answer is ' + answer, last
    for step in steps:
        if step.startswith(('if ', 'while ')):
            claim, value = step.split(' ', 1)[1].rsplit(': ', 1)
            assert eval(claim, space) is (value == 'True'), step
        elif step.startswith('enter '):
            eval(step.removeprefix('enter '), space)
        else:
            pieces = step.removeprefix('exit ').split(' = ')
            if step.startswith('return '):
                pieces = ['return', *step.removeprefix('return ').split(' = ')]
            first = 0 if step.startswith('exit ') else 1
            values = [eval(piece, space) for piece in pieces[first:]]
            assert all(value == values[0] for value in values), step
        checked += 1
print(checked)
"#;

#[test]
fn cpython_agrees_with_every_line() {
    let python = std::env::var("EARNEST_PYTHON").unwrap_or_else(|_| "python3".into());
    if Command::new(&python).arg("--version").output().is_err() {
        eprintln!("not checked: there is no `{python}`; set EARNEST_PYTHON to a CPython 3.9 or newer");
        return;
    }
    let mut rows = String::new();
    for task in ruled_tasks() {
        let rule = rule(task).unwrap();
        for length in [1, 2, 3, 5, 8, 13, 20] {
            let cell = Cell::new(task, length, Split::Valid, PairRules::default(), 3).unwrap();
            for question in cell.take(6) {
                let trace = rule.execute_traced(&question.a, question.b.as_deref()).unwrap();
                let mut operands = vec![json!(question.a)];
                match (task.operation.second(), &question.b) {
                    (Second::ShortInteger, Some(b)) => operands.push(json!(b.parse::<u64>().unwrap())),
                    (_, Some(b)) => operands.push(json!(b)),
                    (_, None) => {}
                }
                let row = json!({
                    "task": task.to_string(),
                    "source": rule.source(),
                    "operands": operands,
                    "answer": question.answer,
                    "trace": trace.text,
                    "lines": trace.lines,
                });
                rows.push_str(&format!("{row}\n"));
            }
        }
    }
    let mut child = Command::new(&python)
        .args(["-c", CHECKER])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || input.write_all(rows.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let _ = writer.join().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let checked: usize = String::from_utf8_lossy(&output.stdout).trim().parse().unwrap();
    assert!(checked > 10_000, "{checked} lines");
    println!("{checked} trace lines are true");
}
