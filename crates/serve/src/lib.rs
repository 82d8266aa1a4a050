//! A small OpenAI-compatible server in front of an engine: `earnest serve`.
//!
//! [`Server::bind`] takes a port and [`Server::run`] answers with an engine until it is told to stop. HTTP is axum's and hyper's, on one thread with
//! tokio; the engine stays on the caller's.
//!
//! Every step from a socket to the engine has a bound, in this order: `connections` (how many, how long they may take to send and to read),
//! `access` (key, Host and Origin, from the head alone), `body` and `budget` (bytes held for all requests together), `request` and the
//! modules that it calls (fields, context), `queue` (completions in flight). `response` writes OpenAI's JSON, `metrics` Prometheus' text, and `routes` joins them.
//! `examples/serve.rs` serves the built-in model. [`http`] is what `earnest view` shares.

/// Connections and hosts as every server of earnest takes them: bounded in number and time, from this machine's own pages.
pub mod http {
    pub use crate::access::{hosts, is_loopback};
    pub use crate::connection::{Stage, Terms, serve, unavailable};
    pub use crate::connections::{Connections, Place};
    pub use crate::threads::runtime;
}

mod access;
mod body;
mod budget;
mod completions;
mod connection;
mod connections;
mod error;
mod fields;
mod generation;
mod messages;
mod metrics;
mod prompt;
mod queue;
mod request;
mod response;
mod routes;
mod server;
mod threads;
mod timed_stream;

pub use request::Checker;
pub use server::{Limits, ServeError, ServeSummary, Server, Settings};
