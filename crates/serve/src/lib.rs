//! A small OpenAI-compatible server in front of an engine: `earnest serve`.
//!
//! `http` reads requests and writes responses, `ask` and `reply` are the protocol, `desk` is where connections hand requests
//! to the engine's thread and wait for answers, and `server` listens and knows the paths.

mod ask;
mod desk;
mod http;
mod problem;
mod reply;
mod server;

pub use server::{Bound, Limits, ServeError, Served, bind};
