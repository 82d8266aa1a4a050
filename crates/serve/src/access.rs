//! Checks of a request's head: who may ask, and for which host.
//!
//! A web page in a browser on this machine can send requests to the loopback, and a name that its author controls can resolve to 127.0.0.1. What gives
//! both away is in the head: the `Host` that the browser was told, and the `Origin` of the page.
use std::net::{IpAddr, SocketAddr};

use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Uri, Version, request::Parts};

use super::error::ApiError;

/// Rules about keys and hosts.
#[derive(Debug)]
pub(crate) struct Access {
    /// Required value of `Authorization`, if there is a key.
    authorization: Option<String>,
    /// Names beside those of the loopback that `Host` and `Origin` may have; none if they may have any.
    hosts: Option<Vec<String>>,
}

/// Returns the hosts that a head names: that of its `Host`, and that of a request line with a whole address, which is the one that counts for
/// proxies. Clients of HTTP/1.0 need not name one; browsers always do.
///
/// # Errors
/// The reason why they are not what a client sends (status 400).
pub fn hosts(head: &Parts) -> Result<Vec<Authority>, &'static str> {
    let mut given = head.headers.get_all(HOST).iter();
    let host = match given.next() {
        Some(value) => {
            let parsed = value.to_str().ok().and_then(|text| text.parse::<Authority>().ok());
            Some(parsed.ok_or("the Host header is not a host")?)
        }
        None if head.version >= Version::HTTP_11 => return Err("the request has no Host header"),
        None => None,
    };
    if given.next().is_some() {
        return Err("the request has more than one Host header");
    }
    Ok(host.into_iter().chain(head.uri.authority().cloned()).collect())
}

/// True for `localhost` and the addresses of this machine, with any port. Only names can be made to resolve to another machine's address, and
/// only `localhost` cannot.
pub fn is_loopback(authority: &Authority) -> bool {
    let host = authority.host().to_ascii_lowercase();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let loopback = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    !authority.as_str().contains('@') && loopback
}

impl Access {
    /// Creates the rules of a server at `address`. Elsewhere than on the loopback, the key that it needs there takes the place of names: the
    /// machine's own are not known.
    pub fn new(address: SocketAddr, key: Option<&str>, allowed_hosts: &[String]) -> Access {
        let names = || allowed_hosts.iter().map(|name| name.to_ascii_lowercase()).collect();
        Access {
            authorization: key.map(|key| format!("Bearer {key}")),
            hosts: address.ip().to_canonical().is_loopback().then(names),
        }
    }

    /// Checks a head, before anything of the body is read.
    pub fn check(&self, head: &Parts) -> Result<(), ApiError> {
        self.check_host(head)?;
        self.check_origin(&head.headers)?;
        // Monitors ask for the health without a key; the answer says nothing else.
        if head.uri.path().trim_end_matches('/') == "/health" || self.authorizes(&head.headers) {
            return Ok(());
        }
        Err(ApiError::unauthorized())
    }

    fn check_host(&self, head: &Parts) -> Result<(), ApiError> {
        for authority in hosts(head).map_err(|reason| ApiError::transport(400, reason))? {
            if !self.allows(&authority) {
                return Err(ApiError::transport(
                    403,
                    format!(
                        "the host {authority} is not served, only localhost, 127.0.0.1 and [::1]: allow it with the setting `allowed_host = {}` of the server",
                        authority.host()
                    ),
                ));
            }
        }
        Ok(())
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), ApiError> {
        for origin in headers.get_all(ORIGIN) {
            let parsed = origin.to_str().ok().and_then(|text| text.parse::<Uri>().ok());
            let authority = parsed.as_ref().filter(|uri| uri.scheme().is_some()).and_then(Uri::authority);
            // `null`, the origin of pages from files and sandboxes, is nobody's.
            let allowed = self.hosts.is_none() || authority.is_some_and(|authority| self.allows(authority));
            if !allowed {
                let origin = String::from_utf8_lossy(origin.as_bytes()).into_owned();
                return Err(ApiError::transport(403, format!("pages of the origin {origin} may not use this server")));
            }
        }
        Ok(())
    }

    /// True for an address of the loopback and for an allowed name, with any port.
    fn allows(&self, authority: &Authority) -> bool {
        let Some(hosts) = &self.hosts else { return true };
        let is_named = hosts.contains(&authority.host().to_ascii_lowercase());
        is_loopback(authority) || (is_named && !authority.as_str().contains('@'))
    }

    /// True if the head has the key. Takes the same time however much of the key is right.
    fn authorizes(&self, headers: &HeaderMap) -> bool {
        let Some(required) = &self.authorization else { return true };
        let given = headers.get(AUTHORIZATION).map(|value| value.as_bytes()).unwrap_or_default();
        // Schemes are case-insensitive (RFC 9110, section 11.1).
        let (scheme, rest) = given.split_at(given.len().min("Bearer ".len()));
        let given = if scheme.eq_ignore_ascii_case(b"Bearer ") { [b"Bearer ", rest].concat() } else { given.to_vec() };
        let (required, given) = (earnest_digest::sha256(required.as_bytes()), earnest_digest::sha256(&given));
        required.iter().zip(&given).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
    }
}
