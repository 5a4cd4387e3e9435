import { KiB, MiB } from './bytes.ts';

/* Bounds that several folders share, in bytes unless the name says otherwise. `settings.ts` has those that an operator may change. */

export const MAX_INTEGER = 2 ** 31 - 1;

/** A record longer than this is refused as `record_too_large`; also how far a quoted cell may run. */
export const MAX_RECORD_BYTES = MiB;
export const MAX_VALUE_BYTES = 64 * KiB;
export const MAX_ID_BYTES = 256;
export const MAX_PROPERTY_NAME_CHARS = 255;
/** Listed properties of an environment and entity, and event names of an environment. */
export const MAX_LISTED_NAMES = 10_000;
/** Bytes of a file that an operator wrote, and items of one of its lists. Lookups list them whole. */
export const MAX_OPERATOR_FILE_BYTES = 4 * MiB;
export const MAX_OPERATOR_FILE_ITEMS = 5_000;
export const MAX_EVENT_RETENTION_DAYS = 36_500;
/** Objects and arrays inside one another, the record itself being level 1. */
export const MAX_DEPTH = 32;
/** The nesting before parsing, which counts the `company` and the `metadata` around a value. */
export const MAX_PARSED_DEPTH = MAX_DEPTH + 2;
export const MAX_COLUMNS = 10_000;
export const MAX_MAPPED_COLUMNS = MAX_COLUMNS;
export const MAX_HEADER_BYTES = MiB;
export const MAX_SHOWN_COLUMNS = 20;
export const MAX_SHEET_NAME_CHARS = 255;
/** A number such as 1e400 is kept; beyond this power of ten jsonb would expand it to kilobytes of zeros. */
export const MAX_NUMBER_EXPONENT = 1_000;
export const MAX_REJECT_RAW_BYTES = 64 * KiB;

/** Target length of a chunk: the unit of work, retry and parallelism. */
export const CHUNK_BYTES = 2 * MiB;
export const CHUNK_RECORDS = 50_000;
export const READ_BYTES = 256 * KiB;
/** Bytes that are scanned for records in one step: well under a millisecond. */
export const SCAN_BYTES = 32 * KiB;
/** Temporary files that nobody touched for so long belong to a killed process, as do received files that nobody loaded. */
export const ABANDONED_FILE_MS = 60 * 60 * 1000;
/** A file in use is touched this often, even if nothing is written to it. */
export const FILE_TOUCH_MS = 5 * 60 * 1000;
/** Attempts at a request to S3, and at resuming a read without a byte since the last attempt. */
export const S3_ATTEMPTS = 3;
/** The beginning of a file, which tells its format and its encoding. */
export const SNIFF_BYTES = 4 * KiB;
export const MAX_RECORDS_PATH = 16;

/** A slower upload is ended. A modem sends five times as fast. */
export const MIN_UPLOAD_BYTES_PER_SECOND = 1024;

export const DEFAULT_PAGE_SIZE = 50;
export const MAX_PAGE_SIZE = 500;
/** A page of rows as JSON ends with the row that passes this, even if more rows were asked for. */
export const MAX_PAGE_BYTES = MiB;
/** The part of a refused record that a page of JSON shows; files of rejects have all that is kept. */
export const MAX_SHOWN_RAW_BYTES = 4 * KiB;
export const MAX_SHAPE_CHARS = 48;
/** Rows of a plan that a download holds at a time. */
export const PLANNED_ROWS_AT_A_TIME = 1_000;
export const MAX_COUNTED_REJECTS = 100_000;
export const MAX_COUNTED_AHEAD = 10_000;
export const READ_TIMEOUT_MS = 5_000;
export const MAX_REQUEST_PROBLEMS = 100;

/** A worker owns a chunk so long without a sign of life, on the database's clock. */
export const LEASE_MS = 8_000;
export const HEARTBEAT_MS = 2_000;
export const RECONCILE_MS = 2_000;
/** Tries in a row that a timeout of the server ended before the job fails. More than of other errors: waits for others' locks count. */
export const MAX_TIMEOUTS = 10;

/** The body of POST /v1/batch once unpacked. */
export const MAX_BATCH_BYTES = 10 * MiB;
/** All bodies of batches that a serving process holds, from first byte to answer. Parsed, they take a multiple. */
export const MAX_HELD_BATCH_BYTES = 48 * MiB;
/** The time after which a single record, or the look-up of a key, is refused because the database does not answer. */
export const RECORD_DEADLINE_MS = 10_000;
export const MAX_EVENT_NAME_BYTES = 256;
/** The time of an event may be so far ahead of our clock: the sender's clock may be wrong, or on local time. */
export const MAX_EVENT_AHEAD_MS = 24 * 60 * 60 * 1000;
/** The earliest instant an event may have: bounds the number of partitions. */
export const EARLIEST_EVENT = Date.UTC(2000, 0, 1);

export const TASK_PAUSE_MS = 5_000;

/** Ids that one deletion may name, and the bytes that a request with them may have. */
export const MAX_DELETION_IDS = 10_000;
export const MAX_DELETION_BYTES = 8 * MiB;

/** A worker shows its life every 5 seconds; one silent for this long is taken for dead. */
export const WORKER_ALIVE_SECONDS = 15;

/** Rates are kept for as many steps as are shown of a period, and as many again. */
export const RATE_STEPS = 60;
/** The periods of rates, and the minutes of a step of each. */
export const RATE_PERIODS = { '1h': 1, '24h': 24, '30d': 720 } as const;
export const SHOWN_FAILURES = 5;

export const SEGMENT_PREVIEW_USERS = 50;
export const MAX_PREVIEWED_ROWS = 1_000_000;
export const CONSOLE_SESSION_MS = 12 * 3_600_000;
export const SHOWN_RECORDS = 20;
