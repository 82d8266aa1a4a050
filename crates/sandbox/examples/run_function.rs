//! Runs a Python function in the sandbox: `cargo run --release -p earnest-sandbox --example run_function`.
use earnest_sandbox::{Outcome, Pool, Settings, serve_if_worker};

const SOURCE: &str = "
def solution():
    apples = 3 * 12
    return apples / 8
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // A worker is this executable, started again by the pool.
    serve_if_worker();
    let pool = Pool::new(Settings::of_this_program()?)?;
    println!("{} with {:?}", pool.report().interpreter, pool.report().confinement);
    match pool.run(SOURCE, "solution") {
        Outcome::Number(number) => println!("returned {number}"),
        other => println!("ended with {other}"),
    }
    // No file system inside: prints an exception.
    println!("{}", pool.run("def f():\n    return open('/etc/passwd')", "f"));
    Ok(())
}
