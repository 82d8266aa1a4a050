//! Routes with their pages, the token, and the templates.
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use earnest_report::markup::{self, SCRIPT, STYLE};
use earnest_report::{in_folder, options};
use earnest_results::results_option;
use earnest_serve::http::{Connections, Place, hosts, is_loopback};
use minijinja::Environment;

use crate::app::{App, Shared};
use crate::failed::Failed;
use crate::pages::{compare, differences, leaderboard, run, sample, samples};
use crate::shape::{self, unescaped};
use crate::work::Threads;

static ALL: LazyLock<String> = LazyLock::new(|| [SCRIPT, include_str!("../templates/view.js")].concat());

/// Makes the routes of a viewer. Everything is below the token; what is not says nothing about the results.
pub(crate) fn router(named: PathBuf, results: PathBuf, token: &str, connections: Arc<Connections>) -> Router {
    let base = format!("/{token}/");
    let app = Arc::new(App {
        environment: environment(&named),
        named,
        results,
        base: base.clone(),
        threads: Threads::default(),
        connections,
    });
    let at = |path: &str| format!("{base}{path}");
    let fixed = |kind: &'static str, content: &'static str| {
        get(async move || ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "max-age=600")], content))
    };
    let here = Arc::clone(&app);
    let leading_back = from_fn(move |request: Request, next: Next| {
        let app = Arc::clone(&here);
        async move {
            let address = request.uri().clone();
            let response = match unescaped(address.path()) {
                Some(_) => next.run(request).await,
                None => app.failure(Failed::bad_request("what the % signs of the address stand for is not UTF-8")),
            };
            app.leading_back(&address, response).await
        }
    });
    Router::new()
        .route(&at(""), get(leaderboard::page))
        .route(&at("differences"), get(differences::page))
        .route(&at("run/{run}"), get(run::page))
        .route(&at("run/{run}/progress"), get(run::progress))
        .route(&at("run/{run}/figure"), get(run::figure))
        .route(&at("run/{run}/samples"), get(samples::page))
        .route(&at("run/{run}/count"), get(samples::count))
        .route(&at("run/{run}/sample"), get(sample::page))
        .route(&at("compare"), get(compare::page))
        .route(&at("compare/figure"), get(compare::figure))
        .route(&at("pair"), get(compare::pair))
        .route(&at("view.css"), fixed("text/css; charset=utf-8", &STYLE))
        .route(&at("view.js"), fixed("text/javascript; charset=utf-8", &ALL))
        .route(&at("{*rest}"), get(nothing))
        .route_layer(leading_back)
        .fallback(async || {
            (StatusCode::NOT_FOUND, "There is no such page. `earnest view` printed the address of the first one.\n")
        })
        .layer(from_fn(check_host))
        .layer(map_response(secure))
        .with_state(app)
}

/// Says that there is no such page; below the token, where it tells nobody anything.
async fn nothing(State(app): Shared) -> Response {
    app.failure(Failed::not_found("there is no such page"))
}

/// Refuses names that a page of somebody else could have pointed at this machine. While a page is made, its connection is not closed for
/// another.
async fn check_host(request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    match hosts(&head) {
        Ok(hosts) if !hosts.is_empty() && hosts.iter().all(is_loopback) => {
            let place: Option<Arc<Place>> = head.extensions.get().cloned();
            if let Some(place) = &place {
                place.answers();
            }
            let response = next.run(Request::from_parts(head, body)).await;
            if let Some(place) = &place {
                place.receives();
            }
            response
        }
        Ok(_) => (StatusCode::FORBIDDEN, "only localhost and 127.0.0.1 are served\n").into_response(),
        Err(reason) => (StatusCode::BAD_REQUEST, format!("{reason}\n")).into_response(),
    }
}

/// Forbids pages to load anything from elsewhere, to be framed, and to tell other sites their address, which has the token.
async fn secure(mut response: Response) -> Response {
    const POLICY: &str = "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; img-src data:; connect-src 'self'; \
                          form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Templates of the pages, beside those that every page can use.
static TEMPLATES: [(&str, &str); 11] = [
    ("base.html", include_str!("../templates/base.html")),
    ("error.html", include_str!("../templates/error.html")),
    ("leaderboard.html", include_str!("../templates/leaderboard.html")),
    ("differences.html", include_str!("../templates/differences.html")),
    ("run.html", include_str!("../templates/run.html")),
    ("samples.html", include_str!("../templates/samples.html")),
    ("sample.html", include_str!("../templates/sample.html")),
    ("sample_body.html", include_str!("../templates/sample_body.html")),
    ("compare.html", include_str!("../templates/compare.html")),
    ("pair.html", include_str!("../templates/pair.html")),
    ("pair_body.html", include_str!("../templates/pair_body.html")),
];

/// The templates; commands that pages offer name the results folder.
fn environment(results: &Path) -> Environment<'static> {
    let mut environment = markup::environment(&TEMPLATES);
    let option = results_option(results);
    environment.add_filter("options", move |text: &str| markup::kept_together(&in_folder(&options(text), &option)));
    environment.add_filter("pair", |one: &str, other: &str| shape::pair(one, other));
    environment.add_filter("tint", sample::tint);
    environment.add_filter("class", |word: &str| sample::class(word));
    environment
}
