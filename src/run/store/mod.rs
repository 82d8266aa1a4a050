//! The results of all runs of a folder in one SQLite file, `earnest.sqlite`.

mod aggregate;
mod legacy;
mod lock;
mod read;
mod row;
mod schema;
mod store;
mod verify;
mod write;

pub use aggregate::{Aggregate, TaskAggregate};
pub use legacy::legacy_folders;
pub use lock::RunLock;
pub use read::{Filter, Samples};
pub use schema::{FILE_NAME, SCHEMA_VERSION};
pub use store::{RunRecord, Standing, Store};
pub use write::SampleWriter;
