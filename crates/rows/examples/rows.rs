//! Prints how many rows files of questions have, and the first one.
//! `cargo run --release -p earnest-rows --example rows FILE...`
use std::path::PathBuf;

use earnest_tasks::suite::registry::RowSource;

fn main() {
    let paths: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let source = RowSource { paths, format: None, skip_bad_rows: false, columns: Vec::new() };
    match earnest_rows::read(&source) {
        Ok(rows) => match rows.row(0) {
            Ok(row) => println!("{} rows; {}: {}", rows.len(), row.place, serde_json::Value::Object(row.values)),
            Err(error) => eprintln!("{error}"),
        },
        Err(error) => eprintln!("{error}"),
    }
}
