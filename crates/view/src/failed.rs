//! Requests that have no page.
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use earnest_eval::EvalError;
use earnest_report::ReportError;
use earnest_results::{ResultsError, RunError};

/// A request that has no page.
#[derive(Debug, Clone)]
pub(crate) struct Failed {
    pub status: StatusCode,
    pub message: String,
    pub hint: Option<String>,
}

impl From<ReportError> for Failed {
    fn from(error: ReportError) -> Self {
        Failed::unprocessable(&error, error.help())
    }
}

impl From<EvalError> for Failed {
    fn from(error: EvalError) -> Self {
        Failed::unprocessable(&error, error.help())
    }
}

impl From<ResultsError> for Failed {
    fn from(error: ResultsError) -> Self {
        Failed::unprocessable(&error, error.help())
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
    pub fn unprocessable(error: &dyn std::error::Error, hint: Option<String>) -> Failed {
        Failed { status: StatusCode::UNPROCESSABLE_ENTITY, message: error.to_string(), hint }
    }

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
