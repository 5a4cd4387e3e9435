/**
 * Every bound in one place. Bytes unless the name says otherwise. Those an operator may change are defaults
 * here and settings in `config.ts`; the others are part of what "a record" means.
 */
const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

/** A record longer than this is refused as `record_too_large`; also how far a quoted cell may run. */
export const MAX_RECORD_BYTES = MiB;
/** One property value, as UTF-8 text (a nested value: as JSON). */
export const MAX_VALUE_BYTES = 64 * KiB;
/** user_id and company_id. */
export const MAX_ID_BYTES = 256;
export const MAX_PROPERTY_NAME_CHARS = 255;
/** Objects and arrays inside one another, the record itself being level 1. */
export const MAX_DEPTH = 32;
/** Nesting a JSON array body may reach before it is refused as a whole; bounds the parser's stack. */
export const MAX_BODY_DEPTH = 100_000;
export const MAX_COLUMNS = 10_000;
/** The header line of a CSV. */
export const MAX_HEADER_BYTES = MiB;
/** A number such as 1e400 is kept; beyond this power of ten jsonb would expand it to kilobytes of zeros. */
export const MAX_NUMBER_EXPONENT = 1_000;
/** What is kept of a refused record; a longer one is cut and the message says so. */
export const MAX_REJECT_RAW_BYTES = 64 * KiB;

/** Target length of a chunk: the unit of work, retry and parallelism. */
export const CHUNK_BYTES = 2 * MiB;
/** Read buffer while receiving. */
export const READ_BYTES = 256 * KiB;
/** Bytes written to a file between two syncs in the background. */
export const FILE_SYNC_BYTES = 16 * MiB;
/** What is looked at to tell the encoding and the format of a file. */
export const SNIFF_BYTES = 4 * KiB;
/** gzip inside gzip: how many times a file is unpacked at most. */
export const MAX_GZIP_LAYERS = 2;
/** Waiting for the sender, in milliseconds, over which the upload rate is measured; the first is its grace. */
export const UPLOAD_RATE_WINDOW_MS = 10_000;

export const DEFAULT_MAX_UPLOAD_BYTES = 10 * GiB;
/** Decompressed size of one upload. */
export const DEFAULT_MAX_INFLATED_BYTES = 50 * GiB;
/** Decompressed bytes per compressed byte, looked at after the first 16 MiB; gzip's own limit is about 1032. */
export const MAX_INFLATE_RATIO = 200;
export const INFLATE_RATIO_GRACE_BYTES = 16 * MiB;

export const DEFAULT_PAGE_SIZE = 50;
export const MAX_PAGE_SIZE = 500;

/** How long a worker owns a chunk without a sign of life; on the database's clock. */
export const LEASE_MS = 8_000;
export const HEARTBEAT_MS = 2_000;
export const RECONCILE_MS = 2_000;
/** A chunk whose worker vanished this often is taken to be what kills it. */
export const MAX_CHUNK_LOSSES = 20;
/** Attempts a chunk gets at errors that are not known to pass. */
export const MAX_CHUNK_FAILURES = 5;
