//! Reads a checkpoint and generates: `cargo run --release -p earnest-engine --example generate -- [FOLDER] [PROMPT]`.

use std::path::Path;

use earnest_engine::cpu::{CpuEngine, Options};
use earnest_engine::{Engine, Event, Request, RequestId};
use earnest_models::checkpoint::Checkpoint;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let built_in = concat!(env!("CARGO_MANIFEST_DIR"), "/../../embedded/earnest-abacus-1.4m");
    let folder = arguments.next().unwrap_or_else(|| built_in.into());
    let prompt = arguments.next().unwrap_or_else(|| "12+34=?".into());

    let checkpoint = Checkpoint::open(Path::new(&folder))?;
    let mut engine = CpuEngine::load(&checkpoint, Options::default())?;
    let ids = checkpoint.tokenizer.encode(&prompt, true)?;
    let stop_ids = checkpoint.tokenizer.eos().into_iter().collect();
    engine.submit(Request { stop_ids, ..Request::greedy(RequestId(0), ids, 64) })?;
    loop {
        for event in engine.poll()? {
            match event {
                Event::Finished(completion) => {
                    println!("{prompt}{}", completion.text);
                    return Ok(());
                }
                Event::Failed { error, .. } => return Err(error.into()),
                _ => {}
            }
        }
    }
}
