//! Counters of the server, as text for Prometheus.
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use axum::http::StatusCode;

use super::budget::Budget;
use super::connections::Connections;
use super::queue::EngineQueue;
use earnest_engine::Statistics;

/// Counters of responses; all others are kept where they arise.
#[derive(Default)]
pub(crate) struct Metrics {
    responses: Mutex<BTreeMap<u16, u64>>,
}

/// A metric: its name, type, help and value.
type Row = (&'static str, &'static str, &'static str, u64);

impl Metrics {
    /// Counts a response.
    pub fn count(&self, status: StatusCode) {
        *self.responses.lock().unwrap_or_else(PoisonError::into_inner).entry(status.as_u16()).or_default() += 1;
    }

    /// Returns all metrics in Prometheus' text format.
    pub fn render(&self, queue: &EngineQueue, budget: &Budget, connections: &Connections) -> String {
        let mut text = String::from(
            "# HELP earnest_http_responses_total Responses by status.\n# TYPE earnest_http_responses_total counter\n",
        );
        // A string grows without an error.
        for (status, count) in &*self.responses.lock().unwrap_or_else(PoisonError::into_inner) {
            let _ = writeln!(text, "earnest_http_responses_total{{status=\"{status}\"}} {count}");
        }
        let evicted = connections.evicted.load(Ordering::Relaxed);
        let refused = connections.refused.load(Ordering::Relaxed);
        let server: [Row; 7] = [
            ("earnest_connections", "gauge", "Open connections.", connections.open() as u64),
            ("earnest_connections_evicted_total", "counter", "Connections closed to make room for others.", evicted),
            (
                "earnest_connections_refused_total",
                "counter",
                "Connections refused because all slots were taken.",
                refused,
            ),
            ("earnest_request_memory_bytes", "gauge", "Memory granted to requests in flight.", budget.used() as u64),
            ("earnest_request_memory_limit_bytes", "gauge", "Memory for all requests.", budget.total() as u64),
            ("earnest_completions_in_flight", "gauge", "Completions in flight.", queue.in_flight() as u64),
            ("earnest_completions_total", "counter", "Completions delivered.", queue.completed.load(Ordering::Relaxed)),
        ];
        for (name, kind, help, value) in server.into_iter().chain(engine_rows(&queue.statistics())) {
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        text
    }
}

fn engine_rows(engine: &Statistics) -> [Row; 12] {
    [
        ("earnest_prompt_tokens_total", "counter", "Prompt tokens of accepted requests.", engine.prompt_tokens),
        ("earnest_prefilled_tokens_total", "counter", "Prompt tokens computed.", engine.prefilled_tokens),
        ("earnest_cached_tokens_total", "counter", "Prompt tokens from the prefix cache.", engine.cached_tokens),
        ("earnest_generated_tokens_total", "counter", "Tokens generated.", engine.decoded_tokens),
        ("earnest_engine_steps_total", "counter", "Steps of the engine.", engine.steps),
        ("earnest_engine_running", "gauge", "Completions that the engine runs.", engine.running as u64),
        ("earnest_engine_waiting", "gauge", "Completions that wait in the engine.", engine.waiting as u64),
        ("earnest_kv_blocks", "gauge", "KV blocks in all.", engine.blocks_total as u64),
        ("earnest_kv_blocks_used", "gauge", "KV blocks in use, cached ones included.", engine.blocks_used as u64),
        ("earnest_kv_blocks_cached", "gauge", "KV blocks of the prefix cache alone.", engine.blocks_cached as u64),
        ("earnest_kv_evictions_total", "counter", "Cached KV blocks evicted.", engine.evictions),
        ("earnest_preemptions_total", "counter", "Completions preempted for want of KV blocks.", engine.preemptions),
    ]
}
