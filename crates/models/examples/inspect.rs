//! Opens a checkpoint and describes it: `cargo run --release -p earnest-models --example inspect -- [FOLDER] [TEXT]`.

use std::path::Path;

use earnest_models::checkpoint::Checkpoint;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // The checkpoint's tokenizer and chat template run in a process of their own, which is this program again.
    earnest_models::serve_if_worker();
    let mut arguments = std::env::args().skip(1);
    let built_in = concat!(env!("CARGO_MANIFEST_DIR"), "/../../embedded/earnest-abacus-1.4m");
    let folder = arguments.next().unwrap_or_else(|| built_in.into());
    let text = arguments.next().unwrap_or_else(|| "12+34=?".into());

    let checkpoint = Checkpoint::open(Path::new(&folder))?;
    let config = &checkpoint.config;
    println!("architecture  {}", config.architecture);
    println!("parameters    {}", config.parameter_count());
    println!("weights       {} bytes", checkpoint.memory().weights);
    for id in checkpoint.tokenizer.encode(&text, true)? {
        println!("{id:>8}      {:?}", checkpoint.tokenizer.token(id).unwrap_or_default());
    }
    Ok(())
}
