//! Engine over an OpenAI-compatible endpoint: vLLM, SGLang, llama.cpp's server, `earnest serve`, a provider.
//!
//! `address` says where it is and with which key, `probe` asks what it is, `body` and `reply` are the protocol, `client` does
//! one exchange, `retry` decides when the next try is due, and `engine` has threads that do this for many requests.

mod address;
mod body;
mod client;
mod echo;
mod engine;
mod probe;
mod reply;
mod retry;

pub use address::{Address, AddressError, Secret};
pub use body::Api;
pub use client::ExchangeError;
pub use engine::{Concurrency, ConnectError, EndpointEngine, EndpointError, Options, Silence};
pub use probe::{Dialect, Server};
pub use retry::Retry;

/// Word in a record for a property of a model that its endpoint does not tell.
pub const NOT_TOLD: &str = "not told";
