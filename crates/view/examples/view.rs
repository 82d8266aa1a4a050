//! Serves the pages of a results folder until Enter is pressed: `cargo run --release -p earnest-view --example view -- results`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use earnest_view::Viewer;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let results = std::env::args().nth(1).map_or_else(|| PathBuf::from("results"), PathBuf::from);
    let viewer = Viewer::bind(&results, 0)?;
    println!("{}", viewer.address()?);

    let stop = Arc::new(AtomicBool::new(false));
    let on_enter = Arc::clone(&stop);
    std::thread::spawn(move || {
        std::io::stdin().read_line(&mut String::new()).ok();
        on_enter.store(true, Ordering::Relaxed);
    });
    Ok(viewer.run(&stop)?)
}
