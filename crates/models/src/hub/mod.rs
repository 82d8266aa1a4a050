//! Models by commit: the list of models, the local Hugging Face cache, and downloads into it.
//!
//! Only [`Remote`] opens sockets, and only `earnest models` and `earnest data` create one; everything else works on local files.

mod name;
mod error;
mod registry;
mod shapes;
mod environment;
mod listing;
mod cache;
mod snapshot;
mod locate;
mod lock;
mod own;
mod remote;
mod fetch;
mod verify;
mod expected;

pub use cache::{Cache, CachedCommit, Removal};
pub use environment::{Environment, OfflineReason, Token};
pub use error::HubError;
pub use expected::Expected;
pub use fetch::{FetchEvent, FetchReport, fetch};
pub use listing::{Hash, Listing, RemoteFile};
pub use locate::{CommitReference, HubSettings, beside, resolved_file};
pub use name::{Commit, CommitError, Reference, RepoId};
pub use registry::{Claim, Decoding, Entry, Gate, Kind, Registry, save_commit};
pub use remote::{Remote, Revision};
pub use shapes::shape;
pub use verify::{CheckedFile, FileState, verify};
