//! Engine over an OpenAI-compatible endpoint: vLLM, SGLang, llama.cpp's server, `earnest serve`, a provider.
//!
//! [`Address`] says where it is and [`Secret`] with which key, `probe` asks what it is, `body` and `reply` are the protocol, `client` does
//! one exchange, `retry` decides when the next try is due, and `engine` has threads that do this for many requests.

mod body;
mod client;
mod echo;
mod engine;
mod probe;
mod reply;
mod retry;

pub use body::Api;
pub use client::ExchangeError;
pub use earnest_models::address::{Address, AddressError, Secret};
pub use engine::{Concurrency, ConnectError, EndpointEngine, EndpointError, Options, Silence};
pub use probe::{Dialect, Server};
pub use retry::Retry;

/// Word in a record for a property of a model that its endpoint does not tell.
pub const NOT_TOLD: &str = "not told";
