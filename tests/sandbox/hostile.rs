//! Hostile programs: each is one labelled failure within the limits, and the pool continues.
#![cfg(unix)]

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use earnest_sandbox::{Number, Outcome, Pool, SandboxError, Settings};

/// Time limits: one that ends a program, and one that does not even on a loaded machine.
const SHORT: Duration = Duration::from_millis(1500);
const LONG: Duration = Duration::from_secs(60);
/// Additional time allowed on a loaded machine.
const SLACK: Duration = Duration::from_secs(15);

fn settings(wall: Duration) -> Settings {
    Settings { wall, memory: 256 << 20, workers: 2, ..Settings::new(env!("CARGO_BIN_EXE_earnest")) }
}

/// The embedded interpreter and, where this machine has one, CPython.
struct Pools {
    embedded: Pool,
    cpython: Option<Pool>,
}

impl Pools {
    fn new(wall: Duration) -> Self {
        let python = Path::new("/usr/bin/python3");
        let with = |python: &Path| Pool::new(Settings { python: Some(python.to_owned()), ..settings(wall) }).unwrap();
        Pools { embedded: Pool::new(settings(wall)).unwrap(), cpython: python.exists().then(|| with(python)) }
    }

    fn all(&self) -> impl Iterator<Item = &Pool> {
        std::iter::once(&self.embedded).chain(&self.cpython)
    }
}

/// Pools with the long limit.
fn patient() -> &'static Pools {
    static POOLS: OnceLock<Pools> = OnceLock::new();
    POOLS.get_or_init(|| Pools::new(LONG))
}

/// Pools with the short limit.
fn hurried() -> &'static Pools {
    static POOLS: OnceLock<Pools> = OnceLock::new();
    POOLS.get_or_init(|| Pools::new(SHORT))
}

/// Runs the body of a function, and then checks that the pool still computes.
fn run(pool: &Pool, body: &str) -> Outcome {
    let start = Instant::now();
    let outcome = pool.run(&format!("def f():\n    {}", body.replace('\n', "\n    ")), "f");
    assert!(start.elapsed() < pool.settings().wall + SLACK, "{body}: {:?}", start.elapsed());
    assert!(!matches!(outcome, Outcome::Unavailable(_)), "{body}: {outcome:?}");
    // Under the short limit a loaded machine may be late once, not always.
    let goes_on = || pool.run("def f():\n    return 6 * 7", "f") == int("2a");
    assert!((0..10).any(|_| goes_on()), "after {body}");
    outcome
}

fn int(hexadecimal: &str) -> Outcome {
    Outcome::Number(Number::Int(hexadecimal.to_owned()))
}

fn raised(outcome: &Outcome, family: &str) -> bool {
    matches!(outcome, Outcome::Raised(exception) if exception.family == family)
}

fn limited(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::TimeLimit | Outcome::MemoryLimit | Outcome::Crashed(_))
}

#[test]
fn ordinary_programs() {
    for pool in patient().all() {
        assert_eq!(run(pool, "return 2 ** 100"), int("10000000000000000000000000"));
        assert_eq!(run(pool, "return 0.1 + 0.2"), Outcome::Number(Number::Float("0.30000000000000004".into())));
        assert_eq!(run(pool, "return 3 > 2"), Outcome::Number(Number::Bool(true)));
        assert_eq!(run(pool, "print('x')"), Outcome::None);
        assert_eq!(run(pool, "return fractions.Fraction(1, 3)"), Outcome::Other("Fraction".into()));
        assert_eq!(run(pool, "return math.floor(2.9) + len(array.array('i', [1]))"), int("3"));
        assert_eq!(run(pool, "return sum(random.sample(range(10), 10))"), int("2d"));
    }
}

#[test]
fn the_study_s_world_is_small() {
    for pool in patient().all() {
        assert!(raised(&run(pool, "return f()"), "NameError"), "no recursion");
        assert!(raised(&run(pool, "class A: pass"), "NameError"));
        assert!(raised(&run(pool, "if 1: import math\nreturn 1"), "ImportError"));
        assert!(raised(&run(pool, "from math import *"), "SyntaxError"));
        for name in
            ["open", "eval", "exec", "type", "isinstance", "getattr", "__import__", "iter", "ValueError", "vars"]
        {
            assert!(raised(&run(pool, &format!("return {name}")), "NameError"), "{name}");
        }
    }
}

#[test]
fn an_infinite_loop() {
    for pool in hurried().all() {
        assert_eq!(run(pool, "while True: pass"), Outcome::TimeLimit);
        assert_eq!(run(pool, "try:\n    while True: pass\nexcept: return 1"), Outcome::TimeLimit);
    }
}

#[test]
fn a_list_of_ten_billion_elements() {
    for pool in hurried().all() {
        assert_eq!(run(pool, "return len([0] * 10**10)"), Outcome::MemoryLimit);
        assert_eq!(run(pool, "return len([0] * 10**18)"), Outcome::MemoryLimit);
        assert!(limited(&run(pool, "return len(list(range(10**10)))")));
        assert!(limited(&run(pool, "x = 'a'\nwhile 1: x += x")));
        assert!(limited(&run(pool, "return len(array.array('d', [0]) * 10**10)")));
    }
}

#[test]
fn deep_recursion() {
    for pool in hurried().all() {
        let outcome = run(pool, "def g(n): return g(n + 1)\nreturn g(0)");
        assert!(raised(&outcome, "RecursionError"), "{outcome:?}");
        // Without the interpreter's own limit the stack ends it, or time.
        let outcome = run(pool, "fractions.sys.setrecursionlimit(10**9)\ndef g(n): return g(n + 1) + 1\nreturn g(0)");
        assert!(limited(&outcome) || raised(&outcome, "RecursionError"), "{outcome:?}");
        let outcome = run(pool, "x = []\nfor i in range(10**6): x = [x]\nreturn str(x)");
        assert!(limited(&outcome) || raised(&outcome, "RecursionError"), "{outcome:?}");
    }
}

#[test]
fn a_tower_of_integers() {
    for pool in hurried().all() {
        assert!(limited(&run(pool, "return 9 ** 9 ** 9 ** 9")));
        assert!(limited(&run(pool, "x = 9\nwhile 1: x *= x")));
        assert!(
            limited(&run(pool, "return 1 << 10**12")) || raised(&run(pool, "return 1 << 10**12"), "ArithmeticError")
        );
        let Outcome::Number(number) = run(pool, "return 7 ** 20000") else { panic!("a large integer is a number") };
        assert!(number.to_f64().is_infinite() && number.to_string().starts_with("0x"));
    }
}

#[test]
fn too_many_digits_are_refused_as_in_cpython() {
    let to_text = "ValueError: Exceeds the limit (4300 digits) for integer string conversion; use \
                   sys.set_int_max_str_digits() to increase the limit";
    let to_int = "ValueError: Exceeds the limit (4300 digits) for integer string conversion: value has 4301 digits; use \
                  sys.set_int_max_str_digits() to increase the limit";
    let refused = |pool: &Pool, body: &str, said: &str| match run(pool, body) {
        Outcome::Raised(exception) => {
            assert_eq!((exception.family.as_str(), exception.message.as_str()), ("ValueError", said), "{body}");
        }
        other => panic!("{body}: {other:?}"),
    };
    for pool in patient().all() {
        for body in [
            "return str(10**1000000)",
            "return str(10**4300)",
            "return (10**4300).__repr__()",
            "return (10**4300).__str__()",
            "return (-10**4300).__format__('')",
            "return len(f'{10**4300}')",
            "return len(f'{10**4300!r}')",
            "return len(f'{-10**4300:,}')",
            "return len(f'{10**4300:d}')",
            "return '{}'.format(10**4300)",
            "return '%d' % (10**4300)",
            "return '%s' % (10**4300,)",
            "return str([1, 10**4300])",
            "return ','.join(map(str, [10**4300] * 3))",
            "print(10**4300)\nreturn 1",
            "x = 0\nfor i in range(300): x = str(i)\nreturn str(10**5000)",
        ] {
            refused(pool, body, to_text);
        }
        refused(pool, "return int('1' * 4301)", to_int);
        // The exception is one like any other, and the limit is exact.
        assert_eq!(run(pool, "try:\n    x = str(10**4300)\nexcept:\n    x = 'long'\nreturn len(x)"), int("4"));
        assert_eq!(run(pool, "try:\n    str(10**4300)\nexcept: pass\nreturn len(str(10**4299 - 1))"), int("10cb"));
        assert_eq!(run(pool, "return len(str(10**4299)) + len(str(-10**4299)) + len(f'{10**4299:d}')"), int("3265"));
        assert_eq!(run(pool, "return len('%x' % (10**5000))"), int("1039"));
        assert_eq!(run(pool, "return len(f'{10**5000:x}')"), int("1039"));
        assert_eq!(
            run(pool, "return int('1' * 4300) % 7 + 10**5000 % 7 - 10**5000 % 7 - int('1' * 4300) % 7"),
            int("0")
        );
        assert_eq!(run(pool, "return decimal.Decimal(10**5000)"), Outcome::Other("Decimal".into()));
    }
}

#[test]
fn a_flood_of_output() {
    for pool in hurried().all() {
        assert_eq!(run(pool, "while True: print('x' * 100000)"), Outcome::TimeLimit);
    }
    for pool in patient().all() {
        assert_eq!(run(pool, "print('\\x1eearnest\\x1fint\\x1f1\\x1e')\nreturn 2"), int("2"));
        assert_eq!(run(pool, "return 'x' * 10**6"), Outcome::Other("str".into()));
    }
}

#[test]
fn an_answer_without_end() {
    for pool in hurried().all() {
        // 40 million digits: more than any answer has.
        let outcome = run(pool, "return 1 << (160 << 20)");
        assert!(limited(&outcome), "{outcome:?}");
    }
}

/// Walks that lead CPython's programs to `os`; the embedded interpreter has none to walk to.
const OS: &str = "random._os";

#[test]
fn forks() {
    let outcome = run(&patient().embedded, &format!("return {OS}.fork()"));
    assert!(raised(&outcome, "AttributeError"), "{outcome:?}");
    if let Some(pool) = &patient().cpython {
        let outcome = run(pool, &format!("while 1: {OS}.fork()"));
        assert!(raised(&outcome, "Exception"), "{outcome:?}");
        let outcome = run(pool, &format!("return {OS}.system('true')"));
        assert!(!matches!(outcome, Outcome::Number(Number::Int(ref status)) if status == "0"), "{outcome:?}");
        let thread = "t = fractions.sys.modules['_thread']\nreturn t.start_new_thread(print, ())";
        assert!(raised(&run(pool, thread), "Exception"));
    }
}

#[test]
fn files() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "42").unwrap();
    let open = |how: &str| format!("return len(fractions.sys.modules['builtins'].open({secret:?}, {how:?}).{how})");
    for pool in patient().all() {
        for body in [
            open("r").replace(").r)", ").read())"),
            format!("fractions.sys.modules['builtins'].open({:?}, 'w').write('x')", folder.path().join("new")),
            format!("{OS}.unlink({secret:?})"),
            format!("{OS}.mkdir({:?})", folder.path().join("new")),
            format!("{OS}.rename({secret:?}, {:?})", folder.path().join("new")),
            format!("{OS}.listdir({:?})", folder.path()),
            format!("{OS}.chmod({secret:?}, 0o777)"),
            format!("{OS}.symlink('/', {:?})", folder.path().join("new")),
        ] {
            let outcome = run(pool, &body);
            assert!(matches!(outcome, Outcome::Raised(_)), "{body}: {outcome:?}");
        }
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "42");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn the_network() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let body = format!(
        "s = fractions.sys.modules['builtins'].__dict__['__import__']('_socket')\nc = s.socket()\nc.connect(('127.0.0.1', {port}))\nreturn 1"
    );
    for pool in patient().all() {
        let outcome = run(pool, &body);
        assert!(matches!(outcome, Outcome::Raised(_)), "{outcome:?}");
    }
}

#[test]
fn walks_through_classes() {
    // All classes there are, by their names: nothing on the way may stop the walk, or it would prove nothing.
    let walk = "
known, classes = [], [().__class__.__base__]
while classes:
    one = classes.pop()
    if one not in known:
        known.append(one)
        classes += ().__class__.__class__.__subclasses__(one)
names = [one.__name__ for one in known]
";
    let ways_out = "
for one in known:
    if one.__name__ == 'FileIO':
        return one('/etc/passwd').read(1)[0]
for one in known:
    if one.__name__ == 'BuiltinImporter':
        posix = one.load_module('posix')
        return posix.open('/etc/passwd', 0)
return 'no way out'";
    for pool in patient().all() {
        let Outcome::Number(count) = run(pool, &format!("{walk}return len(names)")) else {
            panic!("the walk ends early")
        };
        assert!(count.to_f64() > 200.0, "{count} classes");
        // The walk sees what it is after, where that exists.
        let sees =
            |name: &str| run(pool, &format!("{walk}return {name:?} in names")) == Outcome::Number(Number::Bool(true));
        assert!(sees("ZeroDivisionError") && sees("Fraction") && !sees("NoSuchClass"));
        let outcome = run(pool, &format!("{walk}{ways_out}"));
        let refused = raised(&outcome, "Exception") || raised(&outcome, "ImportError") || raised(&outcome, "TypeError");
        assert!(refused || outcome == Outcome::Other("str".into()), "{outcome:?}");
    }
    let names = "['FileIO', 'socket', 'Popen', 'DirEntry']";
    let found = run(&patient().embedded, &format!("{walk}return len([name for name in {names} if name in names])"));
    assert_eq!(found, int("0"), "the embedded interpreter has no class that reaches out");
}

/// Below every interpreter: the system calls themselves, tried in a program's process.
#[test]
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn the_kernel_refuses_files_sockets_and_processes() {
    for pool in patient().all() {
        let report = pool.report();
        // A kernel without either cannot be blamed; `earnest doctor` says so.
        if report.confinement.seccomp && report.confinement.landlock.is_some() {
            assert_eq!(report.reached, Vec::<String>::new(), "{}", report.interpreter);
        } else {
            eprintln!("not checked: {:?} reaches {:?}", report.confinement, report.reached);
        }
    }
}

#[test]
fn crashes_say_how() {
    if let Some(pool) = &patient().cpython {
        let outcome = run(pool, &format!("{OS}.write(2, b'last words\\n')\n{OS}._exit(7)"));
        assert_eq!(outcome, Outcome::Crashed("exit status 7: last words".into()));
    }
}

#[test]
fn signals_to_others() {
    // Signal 0 only asks whether one may: should it ever be allowed, nobody is harmed.
    for pid in [std::process::id(), 1] {
        for pool in patient().all() {
            let outcome = run(pool, &format!("{OS}.kill({pid}, 0)\nreturn 1"));
            assert!(matches!(outcome, Outcome::Raised(_)), "{outcome:?}");
        }
    }
}

#[test]
fn changes_are_not_seen_by_the_next_program() {
    for pool in patient().all() {
        for body in [
            "math.floor = None",
            "fractions.sys.modules['builtins'].len = None",
            "decimal.getcontext().prec = 1",
            "random.randint = None",
            "fractions.sys.modules.clear()",
            "fractions.sys.stdout = None",
        ] {
            run(pool, body);
            let check = "return math.floor(2.5) + len('ab') + (decimal.Decimal(1) / 8 == decimal.Decimal('0.125'))";
            assert_eq!(run(pool, check), int("5"), "{body}");
        }
        let draw = || run(pool, "return random.randint(1, 10**9)");
        assert_eq!(draw(), draw(), "the same numbers every time");
    }
}

#[test]
fn sleeping() {
    for pool in hurried().all() {
        let body = "t = fractions.sys.modules['builtins'].__dict__['__import__']('time')\nt.sleep(1000)\nreturn 1";
        let outcome = run(pool, body);
        assert!(matches!(outcome, Outcome::TimeLimit | Outcome::Raised(_)), "{outcome:?}");
    }
}

#[test]
fn writing_to_descriptors() {
    if let Some(pool) = &patient().cpython {
        // A program can only write its own answer, which it decides anyway; it reaches no other descriptor.
        for descriptor in [0, 3, 4, 5, 6, 7, 8, 9] {
            let outcome = run(pool, &format!("{OS}.write({descriptor}, b'x')\nreturn 1"));
            assert!(raised(&outcome, "Exception"), "{descriptor}: {outcome:?}");
        }
        assert_eq!(
            run(pool, &format!("while 1: {OS}.write(1, b'x' * 10**6)")),
            Outcome::Crashed("it wrote more than 8 MiB".into())
        );
        assert_eq!(run(pool, &format!("{OS}.close(1)\nreturn 1")), Outcome::Crashed("exit status 1".into()));
        let outcome = run(pool, &format!("{OS}._exit(0)"));
        assert_eq!(outcome, Outcome::Crashed("exit status 0".into()));
    }
}

#[test]
fn sources_that_exhaust_the_parser() {
    for pool in hurried().all() {
        for source in [
            format!("return {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
            format!("return {}1", "-".repeat(200_000)),
            format!("return {}", "[".repeat(1_000_000)),
            format!("return 1{}", "+1".repeat(300_000)),
            (0..300).map(|depth| format!("{}if 1:\n", " ".repeat(depth))).collect::<String>(),
            format!("return {}", "x.".repeat(200_000)),
        ] {
            let outcome = run(pool, &source);
            assert!(!matches!(outcome, Outcome::None | Outcome::Other(_)), "{}: {outcome:?}", &source[..30]);
        }
        let long = format!("x = 1\n{}return x", "# ten megabytes of comments, line by line\n".repeat(250_000));
        let outcome = run(pool, &long);
        assert!(outcome == int("1") || limited(&outcome), "{outcome:?}");
    }
}

#[test]
fn unicode_trickery() {
    for pool in patient().all() {
        for body in [
            "return ｍａｔｈ.floor(2.5)",
            "return '\u{202e}' + 1",
            "return int('\\ud800')",
            "return '\\ud800'",
            "x\u{200b} = 1",
            "return 1\u{0}",
            "return ٣",
            "return 'é'.__nope__",
            "\u{feff}return 1",
            "raise 1 from '\\udcff'",
            "return 1\r\nreturn 2\r",
            "return 1 \u{c} ",
        ] {
            let outcome = run(pool, body);
            assert!(!limited(&outcome), "{body:?}: {outcome:?}");
        }
        let digits = run(pool, "return int('٣٤')");
        // The embedded interpreter's `int` reads ASCII digits only; docs/sandbox.md says so.
        assert!(digits == int("22") || raised(&digits, "ValueError"), "{digits:?}");
        // Names are compared in normal form, so wide letters get nobody past the list of names.
        assert!(raised(&run(pool, "return ｏｐｅｎ('x')"), "NameError"));
    }
}

#[test]
fn odd_requests() {
    for pool in patient().all() {
        assert!(matches!(pool.run("", "f"), Outcome::Raised(_)));
        assert!(matches!(pool.run("def f():\n    return 1", "g"), Outcome::Raised(_)));
        assert!(matches!(pool.run("def f(x):\n    return 1", "f"), Outcome::Raised(_)));
    }
    let outcome = patient().embedded.run(&"#".repeat(80 << 20), "f");
    assert!(matches!(outcome, Outcome::Unavailable(_)), "a text beyond every message is refused, not sent");
    assert_eq!(run(&patient().embedded, "return 1"), int("1"));
}

#[test]
fn programs_that_are_no_workers_are_named() {
    for program in ["/bin/true", "/no/such/program"] {
        let error = Pool::new(Settings { program: PathBuf::from(program), ..settings(SHORT) }).unwrap_err();
        assert!(error.to_string().contains(program), "{error}");
    }
    for python in ["/bin/true", "/bin/cat", "/no/such/python"] {
        let error = Pool::new(Settings { python: Some(python.into()), ..settings(SHORT) }).unwrap_err();
        assert!(matches!(error, SandboxError::Python { .. }) && error.help().is_some(), "{error}");
    }
}
