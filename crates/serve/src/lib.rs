//! A small OpenAI-compatible server in front of an engine: `earnest serve`.
//!
//! [`Server::bind`] takes a port and [`Server::run`] answers with an engine until it is told to stop. Inside, `http` reads
//! requests and writes responses, `request` and `response` are OpenAI's protocol, `queue` carries requests from connection
//! threads to the engine's thread, and `server` accepts connections and routes paths. `examples/serve.rs` serves the
//! built-in model.

mod error;
mod http;
mod queue;
mod request;
mod response;
mod server;

pub use server::{Limits, ServeError, ServeSummary, Server};
