//! Addresses of hosts by their names.
use std::sync::mpsc::{RecvTimeoutError, sync_channel};

use ureq::Error;
use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::time::Duration;
use ureq::unversioned::transport::{DefaultConnector, NextTimeout};

/// The library's resolver, whose own way of ending in time panics where the system starts no thread; here the name is then looked up
/// without a limit of time.
#[derive(Debug, Default)]
struct HostNames;

impl Resolver for HostNames {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, Error> {
        let for_ever = NextTimeout { after: Duration::NotHappening, ..timeout };
        let look_up = move |uri: &Uri, config: &Config| DefaultResolver::default().resolve(uri, config, for_ever);
        if timeout.after.is_not_happening() {
            return look_up(uri, config);
        }
        let (sender, found) = sync_channel(1);
        let (its_uri, its_config) = (uri.clone(), config.clone());
        let work = move || drop(sender.send(look_up(&its_uri, &its_config)));
        if std::thread::Builder::new().name("resolver".into()).spawn(work).is_err() {
            return look_up(uri, config);
        }
        match found.recv_timeout(*timeout.after) {
            Ok(addresses) => addresses,
            Err(RecvTimeoutError::Timeout) => Err(Error::Timeout(timeout.reason)),
            Err(RecvTimeoutError::Disconnected) => Err(Error::HostNotFound),
        }
    }
}

/// Makes a client for requests.
pub fn agent(config: Config) -> ureq::Agent {
    ureq::Agent::with_parts(config, DefaultConnector::default(), HostNames)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_up_within_the_time() {
        let config = ureq::Agent::config_builder().build();
        let uri: Uri = "http://localhost:81/x".parse().unwrap();
        for after in [Duration::NotHappening, Duration::from(std::time::Duration::from_secs(20))] {
            let timeout = NextTimeout { after, reason: ureq::Timeout::Resolve, per_read: None, per_write: None };
            let found = HostNames.resolve(&uri, &config, timeout).unwrap();
            assert!(found.iter().all(|address| address.port() == 81 && address.ip().is_loopback()), "{found:?}");
        }
    }
}
