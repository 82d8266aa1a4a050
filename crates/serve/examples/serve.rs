//! Serves the built-in model until Enter is pressed: `cargo run --release -p earnest-serve --example serve -- [FOLDER]`.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use earnest_engine::cpu::{CpuEngine, Options};
use earnest_models::checkpoint::Checkpoint;
use earnest_serve::{Server, Settings};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The checkpoint's tokenizer and chat template run in a process of their own, which is this program again.
    earnest_models::serve_if_worker();
    let built_in = concat!(env!("CARGO_MANIFEST_DIR"), "/../../embedded/earnest-abacus-1.4m");
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| built_in.into());

    let server = Server::bind("127.0.0.1", 0)?;
    let checkpoint = Checkpoint::open(Path::new(&folder))?;
    let mut engine = CpuEngine::load(&checkpoint, Options::default())?;
    println!("curl http://{}/v1/completions -H 'content-type: application/json' \\", server.address);
    println!("     -d '{{\"prompt\": \"12+34=?\", \"temperature\": 0}}'");

    let stop = Arc::new(AtomicBool::new(false));
    let on_enter = Arc::clone(&stop);
    std::thread::spawn(move || {
        std::io::stdin().read_line(&mut String::new()).ok();
        on_enter.store(true, Ordering::Relaxed);
    });
    let settings = Settings { name: "example".into(), ..Settings::default() };
    let summary = server.run(&mut engine, checkpoint, &settings, &stop)?;
    println!("stopped after {} completions", summary.completions);
    Ok(())
}
