//! Open connections: how many, of which client, and which of them to close for another.
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::task::AbortHandle;

/// Table of the open connections.
///
/// A full table closes the connection that has been sending its request, or nothing, for longest, so that connections that are held open for nothing
/// cannot keep others out. One whose request was received is never closed for another.
#[derive(Debug)]
pub struct Connections {
    /// Most connections.
    limit: usize,
    /// Most connections of one client.
    per_peer: usize,
    table: Mutex<Table>,
    /// Connections closed for others.
    pub evicted: AtomicU64,
    /// Connections refused because all slots were taken.
    pub refused: AtomicU64,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    open: HashMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    peer: IpAddr,
    /// Since when the client has been sending a request, or could; none while it waits for an answer.
    receiving_since: Option<Instant>,
    task: Option<AbortHandle>,
}

/// A place in the table, until it is dropped.
#[derive(Debug)]
pub struct Place {
    connections: Arc<Connections>,
    id: u64,
}

impl Connections {
    /// Makes an empty table for so many connections, and so many of one client.
    pub fn new(limit: usize, per_peer: usize) -> Connections {
        Connections { limit, per_peer, table: Mutex::default(), evicted: AtomicU64::new(0), refused: AtomicU64::new(0) }
    }

    /// Makes a place for a new connection, if need be by closing another; none if all are waiting for answers.
    pub(crate) fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<Place> {
        let peer = client_of(peer);
        let mut table = self.lock();
        let of_peer = table.open.values().filter(|entry| entry.peer == peer).count();
        let placed = (of_peer < self.per_peer || self.evict(&mut table, Some(peer)))
            && (table.open.len() < self.limit || self.evict(&mut table, None));
        if !placed {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        table.next += 1;
        let id = table.next;
        table.open.insert(id, Entry { peer, receiving_since: Some(Instant::now()), task: None });
        Some(Place { connections: Arc::clone(self), id })
    }

    /// Closes the connection that has been receiving for longest, if there is one.
    pub fn evict_any(&self) -> bool {
        self.evict(&mut self.lock(), None)
    }

    fn evict(&self, table: &mut Table, peer: Option<IpAddr>) -> bool {
        let of_peer = table.open.iter().filter(|(_, entry)| peer.is_none_or(|peer| entry.peer == peer));
        let receiving = of_peer.filter_map(|(id, entry)| Some((entry.receiving_since?, *id)));
        let Some((_, id)) = receiving.min() else { return false };
        if let Some(task) = table.open.remove(&id).and_then(|entry| entry.task) {
            task.abort();
        }
        self.evicted.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Number of open connections.
    pub fn open(&self) -> usize {
        self.lock().open.len()
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        // No code panics while it holds the table.
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Names the task that serves the connection.
    pub(crate) fn set_task(&self, task: AbortHandle) {
        if let Some(entry) = self.connections.lock().open.get_mut(&self.id) {
            entry.task = Some(task);
        }
    }

    /// Records that the client sends a request, or may.
    pub fn receives(&self) {
        self.set_receiving_since(Some(Instant::now()));
    }

    /// Records that a request was received and is being answered.
    pub fn answers(&self) {
        self.set_receiving_since(None);
    }

    fn set_receiving_since(&self, since: Option<Instant>) {
        if let Some(entry) = self.connections.lock().open.get_mut(&self.id) {
            entry.receiving_since = since;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.lock().open.remove(&self.id);
    }
}

/// Returns the address that stands for a client: in IPv6 its network, which is what one client is given.
fn client_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) if !address.is_loopback() => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        other => other,
    }
}
