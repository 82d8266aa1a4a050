//! State of the viewer that all pages share, the parameters of their addresses, and the making of a page.
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Query, State};
use axum::http::header::RETRY_AFTER;
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::response::{Html, IntoResponse, Response};
use earnest_results::store::Store;
use earnest_serve::http::Connections;
use minijinja::{Environment, Value};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::failed::Failed;
use crate::limits::PAGE_BYTES;
use crate::shape::{path_segment, unescaped};
use crate::work::{Asked, Kind, Threads};

/// State shared by all requests.
pub(crate) struct App {
    /// The results folder as it was named, for pages.
    pub named: PathBuf,
    /// The folder from which results are read.
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
        let given: Result<Query<Vec<(String, String)>>, _> = Query::try_from_uri(&parts.uri);
        let known = |name: &str| T::TAKE.iter().any(|(known, _)| *known == name);
        if let Some((name, _)) = given.iter().flat_map(|Query(given)| given).find(|(name, _)| !known(name)) {
            let message = format!("there is no `{name}` in the address of this page; it takes {}", takes::<T>());
            return Err(app.failure(Failed::bad_request(message)));
        }
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
    format!("what stands behind the ? of the address cannot be read; this page takes {}", takes::<T>())
}

/// Names of a page's parameters with what each takes.
fn takes<T: Parameters>() -> String {
    let names: Vec<String> = T::TAKE.iter().map(|(name, takes)| format!("`{name}` ({takes})")).collect();
    names.join(", ")
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
        let results = Value::from(self.named.display().to_string());
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

    /// Answers with a page that says what failed; [`App::leading_back`] writes it, which knows where it is.
    pub fn failure(&self, failed: Failed) -> Response {
        let mut response = failed.status.into_response();
        response.extensions_mut().insert(failed);
        response
    }

    /// True if there are runs of all these names.
    async fn has(self: &Arc<Self>, runs: Vec<String>) -> bool {
        let found = move |store: &Store, _: &Asked| -> Result<bool, Failed> {
            for run in &runs {
                if store.exactly(run)?.is_none() {
                    return Ok(false);
                }
            }
            Ok(true)
        };
        self.read(Kind::Quick, found).await.unwrap_or(false)
    }

    /// Writes the page of a failure, with the ways back from its address: to the run or the comparison it is of, and to all runs.
    pub async fn leading_back(self: &Arc<Self>, address: &Uri, response: Response) -> Response {
        let Some(failed) = response.extensions().get::<Failed>() else { return response };
        let Failed { status, message, hint, .. } = failed;
        let mut parts = address.path().strip_prefix(&self.base).into_iter().flat_map(|rest| rest.split('/'));
        let back = match (parts.next(), parts.next()) {
            // The page of a run leads to itself where it was asked for a part of it.
            (Some("run"), Some(run)) if parts.next().is_some() || address.query().is_some() => {
                unescaped(run).map(|name| ("The run", format!("run/{run}"), vec![name]))
            }
            (Some("compare" | "pair"), None) => compared(address),
            _ => None,
        };
        let back = match back {
            Some((word, to, runs)) => self.has(runs).await.then_some((word, to)),
            None => None,
        };
        let context = json!({"title": "Not available", "message": message, "hint": hint, "back": back});
        match self.render("error.html", from_serialize(context)) {
            Ok(html) if *status == StatusCode::SERVICE_UNAVAILABLE => {
                (*status, [(RETRY_AFTER, "1")], Html(html)).into_response()
            }
            Ok(html) => (*status, Html(html)).into_response(),
            Err(failed) => (failed.status, failed.message).into_response(),
        }
    }
}

/// Way back to the comparison of the two runs that an address names beside other parameters, and these runs.
fn compared(address: &Uri) -> Option<(&'static str, String, Vec<String>)> {
    let Query(given): Query<Vec<(String, String)>> = Query::try_from_uri(address).ok()?;
    let run = |name: &str| given.iter().find(|(known, _)| known == name).map(|(_, run)| run.clone());
    let (a, b) = run("a").zip(run("b")).filter(|_| given.len() > 2)?;
    Some(("The comparison", format!("compare?a={}&b={}", path_segment(&a), path_segment(&b)), vec![a, b]))
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

/// Makes a value for templates.
fn from_serialize(value: impl Serialize) -> Value {
    Value::from(minijinja::value::Serde(value))
}
