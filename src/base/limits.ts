import { KiB, MiB } from './bytes.ts';

// Bounds that several folders share, in bytes unless the name has another unit. `settings.ts` has
// the configurable ones.

export const MAX_INTEGER = 2 ** 31 - 1;

/** Longer records are refused as `record_too_large`. Also bounds a quoted cell. */
export const MAX_RECORD_BYTES = MiB;
export const MAX_VALUE_BYTES = 64 * KiB;
export const MAX_ID_BYTES = 256;
export const MAX_PROPERTY_NAME_CHARS = 255;
/** Listed properties per environment and entity, and event names per environment. */
export const MAX_LISTED_NAMES = 10_000;
/** Bytes of an operator's file, and items of each list in it. */
export const MAX_OPERATOR_FILE_BYTES = 4 * MiB;
export const MAX_OPERATOR_FILE_ITEMS = 5_000;
export const MAX_EVENT_RETENTION_DAYS = 36_500;
/** Nested objects and arrays. The record is level 1. */
export const MAX_DEPTH = 32;
/** Nesting before parsing, which includes the `company` and `metadata` around a value. */
export const MAX_PARSED_DEPTH = MAX_DEPTH + 2;
export const MAX_COLUMNS = 10_000;
export const MAX_MAPPED_COLUMNS = MAX_COLUMNS;
export const MAX_HEADER_BYTES = MiB;
export const MAX_SHOWN_COLUMNS = 20;
export const MAX_SHEET_NAME_CHARS = 255;
/** jsonb would expand greater powers of ten, as in 1e4000, to kilobytes of zeros. */
export const MAX_NUMBER_EXPONENT = 1_000;
export const MAX_REJECT_RAW_BYTES = 64 * KiB;

/** Target length of a chunk, the unit of work, retry and parallelism. */
export const CHUNK_BYTES = 2 * MiB;
export const CHUNK_RECORDS = 50_000;
export const READ_BYTES = 256 * KiB;
/** Bytes scanned in one step, well under a millisecond. */
export const SCAN_BYTES = 32 * KiB;
/** Age at which an untouched temporary or received file counts as abandoned. */
export const ABANDONED_FILE_MS = 60 * 60 * 1000;
/** Interval of touching a file in use. */
export const FILE_TOUCH_MS = 5 * 60 * 1000;
/** Attempts at a request to S3, and at resuming a read without progress. */
export const S3_ATTEMPTS = 3;
export const SNIFF_BYTES = 4 * KiB;
export const MAX_RECORDS_PATH = 16;

/** Rate below which an upload is ended. A modem is five times as fast. */
export const MIN_UPLOAD_BYTES_PER_SECOND = 1024;

export const DEFAULT_PAGE_SIZE = 50;
export const MAX_PAGE_SIZE = 500;
/** Bytes after which a page of JSON ends, with the row that exceeds them. */
export const MAX_PAGE_BYTES = MiB;
/** Bytes shown of a refused record. Files of rejects contain all stored bytes. */
export const MAX_SHOWN_RAW_BYTES = 4 * KiB;
export const MAX_SHAPE_CHARS = 48;
export const PLANNED_ROWS_AT_A_TIME = 1_000;
export const MAX_COUNTED_REJECTS = 100_000;
export const MAX_COUNTED_AHEAD = 10_000;
export const READ_TIMEOUT_MS = 5_000;
export const MAX_REQUEST_PROBLEMS = 100;

/** Time that a worker owns a chunk without a heartbeat, by the database's clock. */
export const LEASE_MS = 8_000;
export const HEARTBEAT_MS = 2_000;
export const RECONCILE_MS = 2_000;
/**
 * Consecutive server timeouts that fail a job. More than for other errors, because lock waits
 * count.
 */
export const MAX_TIMEOUTS = 10;

export const MAX_BATCH_BYTES = 10 * MiB;
/**
 * Bytes of all batch bodies in a process, from first byte to answer. Parsed bodies take a multiple.
 */
export const MAX_HELD_BATCH_BYTES = 48 * MiB;
/** Time after which a single record or a key look-up is refused if the database does not answer. */
export const RECORD_DEADLINE_MS = 10_000;
export const MAX_EVENT_NAME_BYTES = 256;
/** Tolerance for event times in the future, because a sender's clock may be wrong or local. */
export const MAX_EVENT_AHEAD_MS = 24 * 60 * 60 * 1000;
/** Earliest event, which bounds the number of partitions. */
export const EARLIEST_EVENT = Date.UTC(2000, 0, 1);

/** Interval of measurements of the event loop. A shorter one keeps an idle process awake. */
export const DELAY_RESOLUTION_MS = 50;

export const TASK_PAUSE_MS = 5_000;

export const MAX_DELETION_IDS = 10_000;
export const MAX_DELETION_BYTES = 8 * MiB;

/** Age of a worker's last report after which it counts as dead. It reports every 5 seconds. */
export const WORKER_ALIVE_SECONDS = 15;

/** Steps of a period that are shown. Twice as many are stored. */
export const RATE_STEPS = 60;
export const RATE_PERIODS = { '1h': 1, '24h': 24, '30d': 720 } as const;
export const SHOWN_FAILURES = 5;

export const SEGMENT_PREVIEW_USERS = 50;
export const MAX_PREVIEWED_ROWS = 1_000_000;
export const CONSOLE_SESSION_MS = 12 * 3_600_000;
export const SHOWN_RECORDS = 20;
