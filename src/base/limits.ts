import { KiB, MiB } from './bytes.ts';

// Limits that several folders share. They are in bytes unless the name states another unit.
// Configurable limits are in `settings.ts`.

export const MAX_INTEGER = 2 ** 31 - 1;

/**
 * Maximum length of a record, and of a quoted cell. A longer record is refused as
 * `record_too_large`.
 */
export const MAX_RECORD_BYTES = MiB;
export const MAX_VALUE_BYTES = 64 * KiB;
export const MAX_ID_BYTES = 256;
export const MAX_PROPERTY_NAME_CHARS = 255;
/**
 * Maximum number of listed properties per environment and entity, and of listed event names per
 * environment.
 */
export const MAX_LISTED_NAMES = 10_000;
/** Maximum size of an operator's file, and maximum number of items in each of its lists. */
export const MAX_OPERATOR_FILE_BYTES = 4 * MiB;
export const MAX_OPERATOR_FILE_ITEMS = 5_000;
export const MAX_EVENT_RETENTION_DAYS = 36_500;
/** Maximum depth of nested objects and arrays. The record itself is level 1. */
export const MAX_DEPTH = 32;
/**
 * Maximum depth of nested objects and arrays in text. Text that is nested deeper is refused before
 * it is parsed. The limit is higher than MAX_DEPTH, because `company` or `metadata` objects may
 * surround a value.
 */
export const MAX_PARSED_DEPTH = MAX_DEPTH + 2;
export const MAX_COLUMNS = 10_000;
export const MAX_MAPPED_COLUMNS = MAX_COLUMNS;
export const MAX_HEADER_BYTES = MiB;
export const MAX_SHOWN_COLUMNS = 20;
export const MAX_SHEET_NAME_CHARS = 255;
/**
 * Maximum exponent of a number. jsonb would store a number such as 1e4000 with kilobytes of zeros.
 */
export const MAX_NUMBER_EXPONENT = 1_000;
export const MAX_REJECT_RAW_BYTES = 64 * KiB;

/** Target length of a chunk, which is the unit of work, retry and parallelism. */
export const CHUNK_BYTES = 2 * MiB;
export const CHUNK_RECORDS = 50_000;
export const READ_BYTES = 256 * KiB;
/** Number of bytes scanned in one step. A step takes well under a millisecond. */
export const SCAN_BYTES = 32 * KiB;
/** Age at which a temporary or received file counts as abandoned if no process has touched it. */
export const ABANDONED_FILE_MS = 60 * 60 * 1000;
/** Interval at which a process touches a file that it uses. */
export const FILE_TOUCH_MS = 5 * 60 * 1000;
/**
 * Maximum number of attempts for an S3 request. Also the maximum number of attempts to resume an
 * interrupted download, counted from the last byte received.
 */
export const S3_ATTEMPTS = 3;
export const SNIFF_BYTES = 4 * KiB;
export const MAX_RECORDS_PATH = 16;

/**
 * Minimum speed of an upload. A slower upload is ended. A 56k modem is about five times as fast.
 */
export const MIN_UPLOAD_BYTES_PER_SECOND = 1024;

export const DEFAULT_PAGE_SIZE = 50;
export const MAX_PAGE_SIZE = 500;
/** A page of JSON ends after the row that makes it longer than this number of bytes. */
export const MAX_PAGE_BYTES = MiB;
/**
 * Maximum number of bytes of a refused record that are shown. Files of rejects contain all stored
 * bytes.
 */
export const MAX_SHOWN_RAW_BYTES = 4 * KiB;
export const MAX_SHAPE_CHARS = 48;
export const PLANNED_ROWS_AT_A_TIME = 1_000;
export const MAX_COUNTED_REJECTS = 100_000;
export const MAX_COUNTED_AHEAD = 10_000;
export const READ_TIMEOUT_MS = 5_000;
export const MAX_REQUEST_PROBLEMS = 100;

/**
 * Time after a worker's last heartbeat for which the worker still owns its chunk. It is measured by
 * the database's clock.
 */
export const LEASE_MS = 8_000;
export const HEARTBEAT_MS = 2_000;
export const RECONCILE_MS = 2_000;
/**
 * Number of consecutive database timeouts after which a job fails. It is larger than the limit for
 * other errors, because waits for locks also cause timeouts.
 */
export const MAX_TIMEOUTS = 10;

export const MAX_BATCH_BYTES = 10 * MiB;
/**
 * Maximum total size of all batch bodies in a process. A body counts from its first byte until the
 * response. Parsed bodies need several times as much memory.
 */
export const MAX_HELD_BATCH_BYTES = 48 * MiB;
/**
 * If the database does not respond within this time, single records and look-ups of keys are
 * refused.
 */
export const RECORD_DEADLINE_MS = 10_000;
export const MAX_EVENT_NAME_BYTES = 256;
/**
 * Maximum time by which an event may be in the future. It is not 0, because a sender's clock may be
 * wrong or show local time.
 */
export const MAX_EVENT_AHEAD_MS = 24 * 60 * 60 * 1000;
/** Earliest allowed time of an event. It limits the number of partitions. */
export const EARLIEST_EVENT = Date.UTC(2000, 0, 1);

/**
 * Interval between measurements of the event loop's delay. A shorter interval would keep an idle
 * process awake.
 */
export const DELAY_RESOLUTION_MS = 50;

export const TASK_PAUSE_MS = 5_000;

export const MAX_DELETION_IDS = 10_000;
export const MAX_DELETION_BYTES = 8 * MiB;

/**
 * Age of a worker's last heartbeat after which the worker counts as dead. A worker sends a
 * heartbeat every 5 seconds.
 */
export const WORKER_ALIVE_SECONDS = 15;

/** The overview divides each period into this number of steps. */
export const RATE_STEPS = 60;
export const RATE_PERIODS = { '1h': 1, '24h': 24, '30d': 720 } as const;
export const SHOWN_FAILURES = 5;

export const SEGMENT_PREVIEW_USERS = 50;
export const MAX_PREVIEWED_ROWS = 1_000_000;
export const CONSOLE_SESSION_MS = 12 * 3_600_000;
export const SHOWN_RECORDS = 20;
