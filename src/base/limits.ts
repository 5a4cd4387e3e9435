export const KiB = 1024;
export const MiB = 1024 * KiB;
export const GiB = 1024 * MiB;

// Limits that several folders share, in bytes unless the name states a unit. Configurable limits
// are in `settings.ts`.

export const MAX_INTEGER = 2 ** 31 - 1;

/**
 * Maximum length of a record, and of a quoted cell. A longer record is refused as
 * `record_too_large`.
 */
export const MAX_RECORD_BYTES = MiB;
export const MAX_VALUE_BYTES = 64 * KiB;
export const MAX_ID_BYTES = 256;
export const MAX_PROPERTY_NAME_CHARS = 255;
/** Maximum number of properties per environment and entity, and of event names per environment. */
export const MAX_LISTED_NAMES = 10_000;
/** Maximum size of an operator's file, and maximum number of items in each of its lists. */
export const MAX_OPERATOR_FILE_BYTES = 4 * MiB;
export const MAX_OPERATOR_FILE_ITEMS = 5_000;
export const MAX_EVENT_RETENTION_DAYS = 36_500;
/** Maximum nesting of objects and arrays. The record itself is level 1. */
export const MAX_DEPTH = 32;
/**
 * Text that is nested deeper than this is refused before it is parsed. The limit is above
 * MAX_DEPTH, because `company` or `metadata` objects may surround a value.
 */
export const MAX_PARSED_DEPTH = MAX_DEPTH + 2;
export const MAX_COLUMNS = 10_000;
export const MAX_MAPPED_COLUMNS = MAX_COLUMNS;
export const MAX_HEADER_BYTES = MiB;
export const MAX_SHOWN_COLUMNS = 20;
export const MAX_SHEET_NAME_CHARS = 255;
/** Maximum exponent of a number. jsonb would store 1e4000 with kilobytes of zeros. */
export const MAX_NUMBER_EXPONENT = 1_000;
export const MAX_REJECT_RAW_BYTES = 64 * KiB;

/** Target length of a chunk: the unit of work, retry and parallelism. */
export const CHUNK_BYTES = 2 * MiB;
export const CHUNK_RECORDS = 50_000;
export const READ_BYTES = 256 * KiB;
/** Number of bytes scanned in one step, which takes well under a millisecond. */
export const SCAN_BYTES = 32 * KiB;
/** A temporary or received file that no process has touched for this time is abandoned. */
export const ABANDONED_FILE_MS = 60 * 60 * 1000;
/** Interval at which a process touches a file in use. */
export const FILE_TOUCH_MS = 5 * 60 * 1000;
/**
 * Maximum number of attempts of an S3 request. A download fails after this many consecutive
 * attempts that receive no byte.
 */
export const S3_ATTEMPTS = 3;
export const SNIFF_BYTES = 4 * KiB;
export const MAX_RECORDS_PATH = 16;

/** An upload that is slower than this is ended. A 56k modem is about five times as fast. */
export const MIN_UPLOAD_BYTES_PER_SECOND = 1024;

export const DEFAULT_PAGE_SIZE = 50;
export const MAX_PAGE_SIZE = 500;
/** A page of JSON ends after the row that exceeds this length. */
export const MAX_PAGE_BYTES = MiB;
/**
 * Maximum number of bytes that are shown of a refused record. Files of rejects contain all the
 * bytes that are stored.
 */
export const MAX_SHOWN_RAW_BYTES = 4 * KiB;
export const MAX_SHAPE_CHARS = 48;
export const PLANNED_ROWS_AT_A_TIME = 1_000;
export const MAX_COUNTED_REJECTS = 100_000;
export const MAX_COUNTED_AHEAD = 10_000;
export const READ_TIMEOUT_MS = 5_000;
export const MAX_REQUEST_PROBLEMS = 100;

/** After a heartbeat, a worker owns its chunk for this time, by the database's clock. */
export const LEASE_MS = 8_000;
export const HEARTBEAT_MS = 2_000;
export const RECONCILE_MS = 2_000;
/**
 * A job fails after this many consecutive database timeouts. The number is higher than for other
 * errors, because waits for locks also cause them.
 */
export const MAX_TIMEOUTS = 10;

export const MAX_BATCH_BYTES = 10 * MiB;
/**
 * Maximum total length of the batch bodies in a process, each counted from its first byte to its
 * response. Parsed bodies need several times as much memory.
 */
export const MAX_HELD_BATCH_BYTES = 48 * MiB;
/**
 * If the database does not answer within this time, single records and look-ups of keys are
 * refused.
 */
export const RECORD_DEADLINE_MS = 10_000;
export const MAX_EVENT_NAME_BYTES = 256;
/**
 * An event may be this far in the future, because a sender's clock may be wrong or show local time.
 */
export const MAX_EVENT_AHEAD_MS = 24 * 60 * 60 * 1000;
/** Earlier events are refused, because each month of events needs a partition. */
export const EARLIEST_EVENT = Date.UTC(2000, 0, 1);

/**
 * Interval at which the delay of the event loop is measured. A shorter interval would keep an idle
 * process awake.
 */
export const DELAY_RESOLUTION_MS = 50;

export const TASK_PAUSE_MS = 5_000;

export const MAX_DELETION_IDS = 10_000;
export const MAX_DELETION_BYTES = 8 * MiB;

/**
 * A worker counts as dead if its last heartbeat is older than this. A worker sends a heartbeat
 * every 5 seconds.
 */
export const WORKER_ALIVE_SECONDS = 15;

/** Number of steps into which the overview divides each period. */
export const RATE_STEPS = 60;
export const RATE_PERIODS = { '1h': 1, '24h': 24, '30d': 720 } as const;
export const SHOWN_FAILURES = 5;
export const SHOWN_JOB_DAYS = 30;
export const SHOWN_FAILING_TASKS = 20;
export const SHOWN_LANE_JOBS = 20;
export const PREVIEWED_ROWS = 5;
/** A preview estimates the size of a file from this many rows. */
export const MEASURED_ROWS = 500;

export const SEGMENT_PREVIEW_USERS = 50;
export const MAX_PREVIEWED_ROWS = 1_000_000;
export const CONSOLE_SESSION_MS = 12 * 3_600_000;
export const SHOWN_RECORDS = 20;
