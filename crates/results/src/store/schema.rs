//! Tables of the results file and migrations from earlier versions.
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::backup::Backup;
use rusqlite::{Connection, ErrorCode, OpenFlags, TransactionBehavior};

use crate::RunError;

/// Name of the results file.
pub const FILE_NAME: &str = "earnest.sqlite";

/// Version of the tables, in the file's `user_version`. Older files are migrated when they are opened, later ones refused.
pub const SCHEMA_VERSION: u32 = MIGRATIONS.len() as u32;

/// The file's `application_id`: `earn` in ASCII.
pub(crate) const APPLICATION_ID: i32 = 0x6561_726e;

/// Timeout of waiting for another process's transaction. Transactions take milliseconds.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Pages that are copied at once.
const COPIED_PAGES: i32 = 1 << 10;

/// Page size of new files.
const PAGE_BYTES: i64 = 32_768;
/// Size of the page cache: rows are appended or read in order, so few pages are needed twice.
const CACHE_KIB: i64 = 16_384;
/// Size at which the write-ahead log is checkpointed, with two disk syncs.
const LOG_BYTES: i64 = 128 << 20;

/// Migrations from version N to N + 1. Released entries never change; new versions append one.
const MIGRATIONS: [&str; 6] = [
    // 1. A sample is two rows with one key, `run * 2^32 + index in the plan`: what lists and sums read is in `samples`,
    // what is read one sample at a time in `texts`, so that a million samples are summed without reading a gigabyte of
    // text. Keys ascend as samples are asked, so writing appends.
    "CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        settings_sha256 TEXT NOT NULL,
        suite TEXT NOT NULL,
        model TEXT NOT NULL,
        status TEXT NOT NULL,
        started TEXT NOT NULL,
        ended TEXT,
        manifest TEXT NOT NULL
    ) STRICT;
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
        failure_message TEXT
    ) STRICT;",
    // 2. Samples that a run's plan has (unknown for runs of version 1 until they are continued).
    "ALTER TABLE runs ADD COLUMN planned INTEGER;
    CREATE INDEX runs_by_settings ON runs (settings_sha256);",
    // 3. What people see of how a score came about, as JSON, null where there is nothing; a digest of a sample's columns, which
    // rows of earlier versions do not have.
    "ALTER TABLE texts ADD COLUMN evidence TEXT;
    ALTER TABLE texts ADD COLUMN seal INTEGER;",
    // 4. What was asked. A pack is the questions, or the prompts, of 512 neighbouring items of a plan, compressed, and is kept
    // once whichever runs have it. `asked` has a run's packs under `run * 2^32 + number of the pack`: without prompts where they
    // were made elsewhere. The results of a finished run as JSON.
    "CREATE TABLE packs (
        id INTEGER PRIMARY KEY,
        sha256 BLOB NOT NULL UNIQUE,
        content BLOB NOT NULL
    ) STRICT;
    CREATE TABLE asked (
        key INTEGER PRIMARY KEY,
        items INTEGER NOT NULL,
        questions INTEGER NOT NULL,
        prompts INTEGER
    ) STRICT;
    ALTER TABLE runs ADD COLUMN summary TEXT;",
    // 5. Digests of what lists read: a run's row, and a sample's row of `samples` without its texts. Rows of earlier versions have
    // none.
    "ALTER TABLE runs ADD COLUMN seal INTEGER;
    ALTER TABLE samples ADD COLUMN seal INTEGER;",
    // 6. Digests of a run's packs. Some files of version 5 have the column already (see `migrate`).
    PACK_SEALS,
];

/// The sixth migration.
const PACK_SEALS: &str = "ALTER TABLE asked ADD COLUMN seal INTEGER;";

/// Opens the file below `results`, creates it with `create`, and migrates its tables. Files without write permission are opened
/// read-only.
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

/// Opens a file read-only; one of an earlier version is copied to memory and migrated there. Readers of a write-ahead log need its index beside the file; without a log
/// nobody is writing, and the file is opened as immutable.
fn open_to_read(path: PathBuf) -> Result<(PathBuf, Connection), RunError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let mut log = path.clone().into_os_string();
    log.push("-wal");
    let logged = std::fs::metadata(log).is_ok_and(|log| log.len() > 0);
    let attempt = |immutable: bool| -> Result<(u32, Connection), RunError> {
        let connection = Connection::open_with_flags(address(&path, immutable), flags)
            .map_err(|source| RunError::store("open", &path, source))?;
        connection.busy_timeout(BUSY_TIMEOUT).map_err(|source| RunError::store("open", &path, source))?;
        let version = identify(&connection, &path)?;
        Ok((version, connection))
    };
    let (version, connection) = match attempt(false) {
        Err(RunError::Store { source, .. }) if !logged && is_refused(&source) => attempt(true)?,
        opened => opened?,
    };
    if version > SCHEMA_VERSION {
        return Err(RunError::LaterFormat { path, found: version, known: SCHEMA_VERSION });
    }
    let connection = match version < SCHEMA_VERSION {
        true => migrated_copy(&connection).map_err(|source| RunError::store("migrate a copy of", &path, source))?,
        false => connection,
    };
    connection
        .pragma_update(None, "cache_size", -CACHE_KIB)
        .map_err(|source| RunError::store("open", &path, source))?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok((path, connection))
}

/// Returns a copy in memory with the current tables: a file of an earlier version that may not be written is left as it is.
fn migrated_copy(file: &Connection) -> rusqlite::Result<Connection> {
    let mut copy = Connection::open_in_memory()?;
    Backup::new(file, &mut copy)?.run_to_completion(COPIED_PAGES, Duration::ZERO, None)?;
    migrate(&mut copy)?;
    // Writers of the copy would lose what they write.
    copy.pragma_update(None, "query_only", true)?;
    Ok(copy)
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
    let version = identify(&connection, &path)?;
    if version > SCHEMA_VERSION {
        return Err(RunError::LaterFormat { path, found: version, known: SCHEMA_VERSION });
    }
    if version == 0 {
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
    if version < SCHEMA_VERSION {
        migrate(&mut connection).map_err(failed("migrate"))?;
    }
    Ok((path, connection))
}

/// Returns the file's version, 0 for an empty file.
///
/// # Errors
/// [`RunError::NotAStore`] for other files.
fn identify(connection: &Connection, path: &Path) -> Result<u32, RunError> {
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
            Ok(u32::try_from(version).unwrap_or(u32::MAX))
        }
        Ok((0, 0, 0)) => Ok(0),
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

/// Migrates in one transaction, so that a killed process leaves the earlier version.
fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Read again, now that no other process can migrate.
    let version: u32 = transaction.pragma_query_value(None, "user_version", |row| row.get(0))?;
    for step in MIGRATIONS.into_iter().skip(version as usize) {
        // One development version wrote the column under version 5.
        if step == PACK_SEALS && transaction.column_exists(None, "asked", "seal")? {
            continue;
        }
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
    transaction.pragma_update(None, "user_version", SCHEMA_VERSION.max(version))?;
    transaction.commit()
}
