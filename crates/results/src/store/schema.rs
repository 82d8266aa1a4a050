//! Tables of the results file.
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::RunError;

/// Name of the results file.
pub const FILE_NAME: &str = "earnest.sqlite";

/// Version of the tables, in the file's `user_version`. Files of other versions are refused.
pub const SCHEMA_VERSION: u32 = 6;

/// The file's `application_id`: `earn` in ASCII.
pub(crate) const APPLICATION_ID: i32 = 0x6561_726e;

/// Timeout of waiting for another process's transaction. Transactions take milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Page size of new files.
const PAGE_BYTES: i64 = 32_768;
/// Size of the page cache: rows are appended or read in order, so few pages are needed twice.
const CACHE_KIB: i64 = 16_384;
/// Size at which the write-ahead log is checkpointed, with two disk syncs.
const LOG_BYTES: i64 = 128 << 20;

/// Tables of a file.
const TABLES: &str = "
    CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        settings_sha256 TEXT NOT NULL,
        suite TEXT NOT NULL,
        model TEXT NOT NULL,
        status TEXT NOT NULL,
        started TEXT NOT NULL,
        ended TEXT,
        manifest TEXT NOT NULL,
        -- Samples that the plan has.
        planned INTEGER,
        -- The results of a finished run as JSON.
        summary TEXT,
        -- A digest of the row.
        seal INTEGER
    ) STRICT;
    CREATE INDEX runs_by_settings ON runs (settings_sha256);
    -- A sample is two rows with one key, `run * 2^32 + index in the plan`: what lists and sums read is in `samples`, what is read
    -- one sample at a time in `texts`, so that a million samples are summed without reading a gigabyte of text. Keys ascend as
    -- samples are asked, so writing appends.
    CREATE TABLE samples (
        key INTEGER PRIMARY KEY,
        run INTEGER NOT NULL,
        item TEXT NOT NULL,
        sample INTEGER NOT NULL,
        task TEXT NOT NULL,
        cluster TEXT NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        budget INTEGER NOT NULL,
        max_tokens INTEGER NOT NULL,
        finish TEXT,
        completion_tokens INTEGER,
        cached_tokens INTEGER,
        queued_s REAL,
        prefill_s REAL,
        decode_s REAL,
        correct INTEGER,
        verdict_failure TEXT,
        failure_kind TEXT,
        retryable INTEGER,
        -- A digest of this row, for what reads no texts.
        seal INTEGER,
        UNIQUE (run, item, sample)
    ) STRICT;
    CREATE TABLE texts (
        key INTEGER PRIMARY KEY,
        format INTEGER NOT NULL,
        covariates TEXT NOT NULL,
        gold TEXT NOT NULL,
        prompt_sha256 TEXT NOT NULL,
        completion TEXT,
        ids BLOB,
        extracted TEXT,
        matchers TEXT,
        metrics TEXT,
        failure_message TEXT,
        -- What people see of how a score came about, as JSON, null where there is nothing.
        evidence TEXT,
        -- A digest of both rows.
        seal INTEGER
    ) STRICT;
    -- What was asked. A pack is the questions, or the prompts, of 512 neighbouring items of a plan, compressed, and is kept once
    -- whichever runs have it. `asked` has a run's packs under `run * 2^32 + number of the pack`: without prompts where they were
    -- made elsewhere.
    CREATE TABLE packs (
        id INTEGER PRIMARY KEY,
        sha256 BLOB NOT NULL UNIQUE,
        content BLOB NOT NULL
    ) STRICT;
    CREATE TABLE asked (
        key INTEGER PRIMARY KEY,
        items INTEGER NOT NULL,
        questions INTEGER NOT NULL,
        prompts INTEGER,
        -- A digest of the link to the packs.
        seal INTEGER
    ) STRICT;";

/// Opens the file below `results`, and creates it with `create`. Files without write permission are opened read-only.
pub fn open(results: &Path, create: bool) -> Result<(PathBuf, Connection), RunError> {
    match open_to_write(results, create) {
        Err(RunError::Store { source, .. }) if !create && is_refused(&source) => open_to_read(results.join(FILE_NAME)),
        opened => opened,
    }
}

/// True if the process has no write permission.
fn is_refused(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied))
}

/// Opens a file read-only. Readers of a write-ahead log need its index beside the file; without a log nobody is writing, and the
/// file is opened as immutable.
fn open_to_read(path: PathBuf) -> Result<(PathBuf, Connection), RunError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let mut log = path.clone().into_os_string();
    log.push("-wal");
    let logged = std::fs::metadata(log).is_ok_and(|log| log.len() > 0);
    let attempt = |immutable: bool| -> Result<(bool, Connection), RunError> {
        let connection = Connection::open_with_flags(address(&path, immutable), flags)
            .map_err(|source| RunError::store("open", &path, source))?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(|source| RunError::store("open", &path, source))?;
        Ok((is_empty(&connection, &path)?, connection))
    };
    let (empty, connection) = match attempt(false) {
        Err(RunError::Store { source, .. }) if !logged && is_refused(&source) => attempt(true)?,
        opened => opened?,
    };
    if empty {
        return Err(RunError::NotAStore { path });
    }
    connection
        .pragma_update(None, "cache_size", -CACHE_KIB)
        .map_err(|source| RunError::store("open", &path, source))?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok((path, connection))
}

/// Returns the file as a URI for SQLite.
fn address(path: &Path, immutable: bool) -> String {
    let name = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    let place = if cfg!(windows) { format!("/{}", name.replace('\\', "/")) } else { name };
    format!("file:{place}{}", if immutable { "?immutable=1" } else { "" })
}

fn open_to_write(results: &Path, create: bool) -> Result<(PathBuf, Connection), RunError> {
    let path = results.join(FILE_NAME);
    if create {
        std::fs::create_dir_all(results).map_err(|source| RunError::io("create", results, source))?;
    } else if !path.exists() {
        return Err(RunError::NoStore { path });
    }
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, create);
    let failed = |action| move |source| RunError::store(action, &results.join(FILE_NAME), source);
    let mut connection = Connection::open_with_flags(&path, flags).map_err(failed("open"))?;
    connection.busy_timeout(BUSY_TIMEOUT).map_err(failed("open"))?;
    let empty = is_empty(&connection, &path)?;
    if empty {
        // Rows with their texts are about a kilobyte. Pages of 32 KiB write twice as many per second as pages of 8 KiB.
        connection.pragma_update(None, "page_size", PAGE_BYTES).map_err(failed("open"))?;
    }
    use_write_ahead_log(&connection).map_err(failed("open"))?;
    // Commits survive a crash of the program; after a power failure the last batches may be missing, but the file is intact.
    connection.pragma_update(None, "synchronous", "NORMAL").map_err(failed("open"))?;
    connection.pragma_update(None, "cache_size", -CACHE_KIB).map_err(failed("open"))?;
    // The limit is in pages, whose size is fixed when the file is created.
    let page: i64 = connection.pragma_query_value(None, "page_size", |row| row.get(0)).map_err(failed("open"))?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_BYTES / page.max(1)).map_err(failed("open"))?;
    connection.set_prepared_statement_cache_capacity(64);
    if empty {
        create_tables(&mut connection).map_err(failed("make the tables of"))?;
    }
    Ok((path, connection))
}

/// True for an empty file, false for one with today's tables.
///
/// # Errors
/// [`RunError::OtherFormat`] for files of other versions, [`RunError::NotAStore`] for other files.
fn is_empty(connection: &Connection, path: &Path) -> Result<bool, RunError> {
    let number = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    let read = || -> rusqlite::Result<(i64, i64, i64)> {
        // One state of the file: between two reads another process may make its tables.
        let _snapshot = connection.unchecked_transaction()?;
        let tables = connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
        Ok((number("application_id")?, number("user_version")?, tables))
    };
    match read() {
        Ok((id, version, _)) if id == i64::from(APPLICATION_ID) => {
            refuse_code(connection, path)?;
            RunError::check_format(
                || path.display().to_string(),
                u32::try_from(version).unwrap_or(u32::MAX),
                SCHEMA_VERSION,
            )?;
            Ok(false)
        }
        Ok((0, 0, 0)) => Ok(true),
        Ok(_) => Err(RunError::NotAStore { path: path.to_owned() }),
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            Err(RunError::NotAStore { path: path.to_owned() })
        }
        Err(source) => Err(RunError::store("read", path, source)),
    }
}

/// Refuses triggers, views and virtual tables, none of which earnest makes: they run code when rows are read or written.
fn refuse_code(connection: &Connection, path: &Path) -> Result<(), RunError> {
    let read = || -> rusqlite::Result<Vec<String>> {
        // Functions in indexes and defaults of a hostile file do not run either.
        connection.pragma_update(None, "trusted_schema", false)?;
        let mut statement = connection
            .prepare(
                "SELECT type || ' ' || name FROM sqlite_master WHERE type IN ('trigger', 'view') OR sql LIKE 'CREATE VIRTUAL%' ORDER BY 1",
            )?;
        statement.query_map([], |row| row.get(0))?.collect()
    };
    let found = read().map_err(|source| RunError::store("read", path, source))?;
    match found.is_empty() {
        true => Ok(()),
        false => Err(RunError::ForeignCode { path: path.to_owned(), found }),
    }
}

/// Enables the write-ahead log, with which readers do not wait for writers. SQLite ignores its busy timeout for this change, so
/// it is repeated here when two processes create the file at once.
fn use_write_ahead_log(connection: &Connection) -> rusqlite::Result<()> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(10));
            }
            outcome => return outcome,
        }
    }
}

/// Makes the tables in one transaction, so that a killed process leaves an empty file.
fn create_tables(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read again, now that no other process can make them.
    let version: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version == 0 {
        transaction.execute_batch(TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", SCHEMA_VERSION)?;
    }
    transaction.commit()
}
