//! Paths of the server.
use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{Method, Uri};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use serde_json::{Value, json};

use super::completions::complete;
use super::error::ApiError;
use super::request::ServedModel;
use super::server::Shared;
use earnest_engine::endpoint::Api;

/// Makes the service that answers all requests.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    type Routes = [(&'static str, MethodRouter<Arc<Shared>>); 6];
    let routes: Routes = [
        ("/health", get(async || json_response(&json!({"status": "ok"})))),
        ("/metrics", get(metrics)),
        ("/version", get(async |State(shared): State<Arc<Shared>>| json_response(&json!({"version": shared.version})))),
        ("/v1/models", get(models)),
        (
            "/v1/completions",
            post(async |State(shared): State<Arc<Shared>>, http: Request| {
                complete(shared, Api::Completions, http).await
            }),
        ),
        (
            "/v1/chat/completions",
            post(async |State(shared): State<Arc<Shared>>, http: Request| complete(shared, Api::Chat, http).await),
        ),
    ];
    let mut router = Router::new().route("/v1/models/{*id}", get(model));
    for (path, methods) in routes {
        router = router.route(path, methods.clone()).route(&format!("{path}/"), methods);
    }
    router
        .fallback(async |method: Method, uri: Uri| ApiError::unknown_path(method.as_str(), uri.path()))
        .method_not_allowed_fallback(async |method: Method, uri: Uri| {
            let allowed = if uri.path().contains("/completions") { "POST" } else { "GET" };
            ApiError::method_not_allowed(method.as_str(), uri.path(), allowed)
        })
        .layer(from_fn_with_state(Arc::clone(&shared), guard))
        .with_state(shared)
}

/// Checks who asks before anything else is done, and counts the answer.
async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let response = match shared.access.check(&head) {
        Ok(()) => next.run(Request::from_parts(head, body)).await,
        Err(error) => error.into_response(),
    };
    shared.metrics.count(response.status());
    response
}

fn json_response(body: &Value) -> Response {
    ([(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    let text = shared.metrics.render(&shared.queue, &shared.budget, &shared.connections);
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response()
}

async fn models(State(shared): State<Arc<Shared>>) -> Response {
    json_response(&json!({"object": "list", "data": [description(&shared.model)]}))
}

async fn model(
    State(shared): State<Arc<Shared>>,
    id: Result<Path<String>, PathRejection>,
) -> Result<Response, ApiError> {
    let served = &shared.model;
    let Path(id) = id.map_err(|_| ApiError::transport(400, "the name in the path is not UTF-8"))?;
    if id.trim_end_matches('/') != served.name {
        return Err(ApiError::unknown_model(&id, &served.name));
    }
    Ok(json_response(&description(served)))
}

fn description(model: &ServedModel) -> Value {
    let ServedModel { name, context, .. } = model;
    json!({"id": name, "object": "model", "created": 0, "owned_by": "earnest", "root": name, "max_model_len": context})
}
