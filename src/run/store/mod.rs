//! The results of all runs of a folder in one SQLite file, `earnest.sqlite`.

mod aggregate;
mod database;
mod legacy;
mod lock;
mod outcome;
mod read;
mod row;
mod schema;
mod verify;
mod write;

pub use aggregate::{Aggregate, TaskAggregate};
pub use database::{RunRecord, Standing, Store};
pub use legacy::legacy_folders;
pub use lock::RunLock;
pub use outcome::Outcome;
pub use read::{Filter, Named, Samples};
pub use schema::{FILE_NAME, SCHEMA_VERSION};
pub use write::{BULK_ROWS, SampleWriter};
