//! Models under evaluation: location, metadata and engines.
//!
//! A [`ModelSource`] is a local checkpoint, a program that runs one, or an endpoint; [`ModelSource::open`] returns the
//! [`OpenModel`] of an evaluation.

mod built_in;
mod checkpoint;
mod device;
mod endpoint;
mod endpoint_request;
mod local;
mod located;
mod open;
mod process;
mod recommended;
mod shared;

pub use built_in::{BUILT_IN, BUILT_IN_WORD, as_model, built_in_folder, without_word};
pub use checkpoint::{hash_files, open, record, short_name, unverifiable};
pub use device::{Device, DeviceChoice, DeviceNote, LARGER_THAN_A_GPU, device_error};
pub use endpoint::{EndpointSource, TrafficSettings, api_key};
pub use endpoint_request::EndpointRequest;
pub use local::{DEFAULT_BATCH, EngineSettings, load, load_cpu, load_on, load_profiled, measure_peaks};
pub use located::{LocatedModel, checked_name};
pub use open::{LoadedEngine, ModelSource, OpenModel, address};
pub use process::LISTENING;
pub use recommended::{CheckpointDefaults, checkpoint_defaults, recommended_by_files};
