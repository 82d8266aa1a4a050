//! Routes, the token, and pages from templates.
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::extract::{FromRequestParts, Query, Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, RETRY_AFTER, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn, map_response};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use earnest_eval::EvalError;
use earnest_eval::report::page::SHARED;
use earnest_eval::report::plot::{DARK, LIGHT, RULES};
use earnest_eval::report::{p_sentence, with_commas};
use earnest_eval::run::RunError;
use earnest_eval::run::store::Store;
use earnest_serve::http::{Connections, Place, hosts, is_loopback};
use earnest_tasks::suite::registry::task_label;
use minijinja::{Environment, Value};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::limits::PAGE_BYTES;
use crate::pages::{compare, leaderboard, run, sample, samples};
use crate::shape;
use crate::work::{Asked, Kind, Threads};

/// State shared by all requests.
pub(crate) struct App {
    pub results: PathBuf,
    /// Path before every page: `/TOKEN/`.
    pub base: String,
    pub environment: Environment<'static>,
    pub threads: Threads,
    pub connections: Arc<Connections>,
}

/// State of the routes.
pub(crate) type Shared = State<Arc<App>>;

/// Parameters of a page's address, behind its `?`.
pub(crate) trait Parameters: DeserializeOwned {
    /// Names, each with what it takes.
    const TAKE: &'static [(&'static str, &'static str)];
}

/// Words for what parameters take.
pub(crate) const RUN: &str = "the name of a run";
pub(crate) const ITEM: &str = "the name of an item";
pub(crate) const NUMBER: &str = "a number from 0";
pub(crate) const TRUTH: &str = "true or false";
pub(crate) const TEXT: &str = "a text";

/// The parameters of a request; a page says which of them is wrong.
pub(crate) struct Asks<T>(pub T);

impl<T: Parameters> FromRequestParts<Arc<App>> for Asks<T> {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Response> {
        match Query::try_from_uri(&parts.uri) {
            Ok(Query(given)) => Ok(Asks(given)),
            Err(rejection) => Err(app.failure(Failed::bad_request(wrong_parameter::<T>(&rejection.body_text())))),
        }
    }
}

/// Says which parameter is wrong and what it takes. The reader's own reason begins with its name, or has it in backquotes.
fn wrong_parameter<T: Parameters>(reason: &str) -> String {
    let reason = reason.rsplit_once("query string: ").map_or(reason, |(_, reason)| reason);
    for (name, takes) in T::TAKE {
        if reason == format!("missing field `{name}`") {
            return format!("`{name}` is missing in the address: it takes {takes}");
        }
        if reason.contains(&format!("duplicate field `{name}`")) {
            return format!("`{name}` stands twice in the address: give it once, with {takes}");
        }
        if reason.starts_with(&format!("{name}:")) {
            return format!("the value of `{name}` in the address is wrong: it takes {takes}");
        }
    }
    let names: Vec<String> = T::TAKE.iter().map(|(name, takes)| format!("`{name}` ({takes})")).collect();
    format!("what stands behind the ? of the address cannot be read; this page takes {}", names.join(", "))
}

/// A request that has no page.
#[derive(Debug)]
pub(crate) struct Failed {
    status: StatusCode,
    message: String,
    hint: Option<String>,
}

impl From<EvalError> for Failed {
    fn from(error: EvalError) -> Self {
        Failed { status: StatusCode::UNPROCESSABLE_ENTITY, message: error.to_string(), hint: error.help() }
    }
}

impl From<RunError> for Failed {
    fn from(error: RunError) -> Self {
        let status = match error {
            RunError::NoRun { .. } | RunError::NotExact { .. } | RunError::AmbiguousRun { .. } => StatusCode::NOT_FOUND,
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        };
        Failed { status, message: error.to_string(), hint: error.help() }
    }
}

impl Failed {
    pub fn not_found(message: impl Into<String>) -> Failed {
        Failed { status: StatusCode::NOT_FOUND, message: message.into(), hint: None }
    }

    /// Adds the next step, if there is one.
    pub fn hint(self, hint: &str) -> Failed {
        Failed { hint: Some(hint.trim().to_owned()).filter(|hint| !hint.is_empty()), ..self }
    }

    /// All threads are busy.
    pub fn busy() -> Failed {
        Failed {
            status: StatusCode::SERVICE_UNAVAILABLE,
            message: "the viewer is busy with other pages".to_owned(),
            hint: Some("Reload in a moment. What a closed page was waiting for ends by itself.".to_owned()),
        }
    }

    pub fn bad_request(message: impl Into<String>) -> Failed {
        Failed { status: StatusCode::BAD_REQUEST, message: message.into(), hint: None }
    }
}

impl std::fmt::Display for Failed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        (self.status, self.message).into_response()
    }
}

/// A page: the template and what it shows.
pub(crate) struct Page {
    template: &'static str,
    context: Value,
}

impl Page {
    pub fn new(template: &'static str, context: impl Serialize) -> Page {
        Page { template, context: from_serialize(context) }
    }
}

impl App {
    /// Reads the results on a thread for work that blocks, and renders the page.
    pub async fn page(
        self: &Arc<Self>,
        kind: Kind,
        make: impl FnOnce(&Store, &Asked) -> Result<Page, Failed> + Send + 'static,
    ) -> Response {
        let app = Arc::clone(self);
        let render = move |store: &Store, asked: &Asked| {
            let Page { template, context } = make(store, asked)?;
            asked.check()?;
            app.render(template, context)
        };
        match self.read(kind, render).await {
            Ok(html) => Html(html).into_response(),
            Err(failed) => self.failure(failed),
        }
    }

    /// Reads the results on a thread for work that blocks, for as long as the client waits.
    pub async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        kind: Kind,
        read: impl FnOnce(&Store, &Asked) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, Failed> {
        let app = Arc::clone(self);
        let work = move |asked: &Asked| {
            app.make_room();
            let store = Store::open(&app.results)?;
            asked.reads(&store);
            read(&store, asked)
        };
        // A panic; the thread has printed it.
        self.threads.run(kind, work).await?.unwrap_or_else(|| {
            Err(Failed {
                status: StatusCode::INTERNAL_SERVER_ERROR,
                message: "this page failed, which is an error in earnest".to_owned(),
                hint: None,
            })
        })
    }

    /// Closes idle connections until there are file descriptors for what a page opens: the results, their log and a lock, twice.
    fn make_room(&self) {
        const FILES: usize = 8;
        // Connections close on the other thread.
        const TRIES: usize = 200;
        const PAUSE: Duration = Duration::from_millis(5);
        let is_free = || (0..FILES).map(|_| File::open(&self.results)).collect::<io::Result<Vec<File>>>().is_ok();
        for _ in 0..if cfg!(unix) { TRIES } else { 0 } {
            if is_free() || !self.results.is_dir() || !self.connections.evict_any() {
                return;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn render(&self, template: &str, context: Value) -> Result<String, Failed> {
        // Hexadecimal digits and slashes need no escape.
        let base = Value::from_safe_string(self.base.clone());
        let results = Value::from(self.results.display().to_string());
        let shared = minijinja::context! { base, results };
        let shared = minijinja::value::merge_maps([context, shared]);
        let mut page = Bounded::default();
        let rendered = self
            .environment
            .get_template(template)
            .and_then(|template| template.render_captured_to(shared, &mut page).map(drop));
        match rendered {
            _ if page.is_full => Err(Failed {
                status: StatusCode::UNPROCESSABLE_ENTITY,
                message: format!("this page would be larger than {} MiB", PAGE_BYTES >> 20),
                hint: Some("`earnest samples RUN` and `earnest export RUN` have all of it.".to_owned()),
            }),
            Ok(()) => Ok(String::from_utf8_lossy(&page.bytes).into_owned()),
            Err(error) => Err(Failed {
                status: StatusCode::INTERNAL_SERVER_ERROR,
                message: format!("the page cannot be made: {error:#}"),
                hint: None,
            }),
        }
    }

    fn failure(&self, failed: Failed) -> Response {
        let Failed { status, message, hint } = failed;
        let context = json!({"title": "Not available", "message": message, "hint": hint});
        match self.render("error.html", from_serialize(context)) {
            Ok(html) if status == StatusCode::SERVICE_UNAVAILABLE => {
                (status, [(RETRY_AFTER, "1")], Html(html)).into_response()
            }
            Ok(html) => (status, Html(html)).into_response(),
            Err(failed) => (failed.status, failed.message).into_response(),
        }
    }
}

/// A page while it is written, up to [`PAGE_BYTES`].
#[derive(Default)]
struct Bounded {
    bytes: Vec<u8>,
    is_full: bool,
}

impl io::Write for Bounded {
    fn write(&mut self, part: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + part.len() > PAGE_BYTES {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(part);
        Ok(part.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

static STYLE: LazyLock<String> = LazyLock::new(|| {
    format!(
        ":root {{ {LIGHT} color-scheme: light; }}\n\
         @media (prefers-color-scheme: dark) {{ :root:not([data-theme=light]) {{ {DARK} color-scheme: dark; }} }}\n\
         :root[data-theme=dark] {{ {DARK} color-scheme: dark; }}\n{RULES}\n{}",
        include_str!("../templates/view.css")
    )
});
static SCRIPT: LazyLock<String> =
    LazyLock::new(|| [SHARED, include_str!("../templates/copy.js"), include_str!("../templates/view.js")].concat());

/// Makes a value for templates.
fn from_serialize(value: impl Serialize) -> Value {
    Value::from(minijinja::value::Serde(value))
}

/// Makes the routes of a viewer. Everything is below the token; what is not says nothing about the results.
pub(crate) fn router(results: PathBuf, token: &str, connections: Arc<Connections>) -> Router {
    let base = format!("/{token}/");
    let app = Arc::new(App {
        results,
        base: base.clone(),
        environment: environment(),
        threads: Threads::default(),
        connections,
    });
    let at = |path: &str| format!("{base}{path}");
    let fixed = |kind: &'static str, content: &'static str| {
        get(async move || ([(CONTENT_TYPE, kind), (CACHE_CONTROL, "max-age=600")], content))
    };
    Router::new()
        .route(&at(""), get(leaderboard::page))
        .route(&at("differences"), get(leaderboard::differences))
        .route(&at("run/{run}"), get(run::page))
        .route(&at("run/{run}/progress"), get(run::progress))
        .route(&at("run/{run}/samples"), get(samples::page))
        .route(&at("run/{run}/sample"), get(sample::page))
        .route(&at("compare"), get(compare::page))
        .route(&at("pair"), get(compare::pair))
        .route(&at("view.css"), fixed("text/css; charset=utf-8", &STYLE))
        .route(&at("view.js"), fixed("text/javascript; charset=utf-8", &SCRIPT))
        .fallback(async || {
            (StatusCode::NOT_FOUND, "There is no such page. `earnest view` printed the address of the first one.\n")
        })
        .layer(from_fn(check_host))
        .layer(map_response(secure))
        .with_state(app)
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

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    let templates = [
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
        ("macros.html", include_str!("../templates/macros.html")),
    ];
    for (name, source) in templates {
        environment.add_template(name, source).expect("the templates are part of the program and tested");
    }
    environment.add_filter("percent", shape::percent);
    environment.add_filter("points", shape::points);
    environment.add_filter("count", with_commas);
    environment.add_filter("task", |text: &str| task_label(text).into_owned());
    environment.add_filter("segment", |text: &str| shape::path_segment(text));
    environment.add_filter("pair", |one: &str, other: &str| shape::pair(one, other));
    environment.add_filter("class", |word: &str| sample::class(word));
    environment.add_filter("p", shape::p_value);
    environment.add_filter("p_sentence", p_sentence);
    environment
}
