/** Every bound in one place, in bytes unless the name says otherwise. Those that an operator may change are defaults of `settings.ts`. */
const KiB = 1024;
const MiB = 1024 * KiB;
const GiB = 1024 * MiB;

/** Calls of a key for pages, from one address in a window of time. */
export const MAX_BROWSER_CALLS = 300;
export const BROWSER_WINDOW_MS = 10_000;
/** Records of a batch that count as one of these calls. */
export const RECORDS_OF_CALL = 100;
export const MAX_ALLOWED_ORIGINS = 100;

export const MAX_INTEGER = 2 ** 31 - 1;

/** A record longer than this is refused as `record_too_large`; also how far a quoted cell may run. */
export const MAX_RECORD_BYTES = MiB;
export const MAX_VALUE_BYTES = 64 * KiB;
export const MAX_ID_BYTES = 256;
export const MAX_PROPERTY_NAME_CHARS = 255;
/** Listed properties of an environment and entity, and event names of an environment. */
export const MAX_LISTED_NAMES = 10_000;
/** Until a change of what judges the records of requests counts. */
export const STAGE_KNOWN_MS = 1_000;
export const WRITERS_POLL_MS = 20;
/** A file that an operator wrote: its bytes, levels of nesting, and the items of one list. Lookups list them whole. */
export const MAX_OPERATOR_FILE_BYTES = 4 * MiB;
export const MAX_OPERATOR_FILE_DEPTH = 64;
export const MAX_OPERATOR_FILE_ITEMS = 5_000;
export const MAX_EVENT_RETENTION_DAYS = 36_500;
export const MAX_OPERATOR_FILE_PROBLEMS = 100;
export const MAX_SCHEMA_ERRORS = 50_000;
/** Objects and arrays inside one another, the record itself being level 1. */
export const MAX_DEPTH = 32;
/** The nesting before parsing, which counts the `company` and the `metadata` around a value. */
export const MAX_PARSED_DEPTH = MAX_DEPTH + 2;
export const MAX_RECORD_PROPERTIES = 10_000;
/** Nesting a JSON array body may reach before it is refused as a whole; bounds the parser's stack. */
export const MAX_BODY_DEPTH = 100_000;
export const MAX_COLUMNS = 10_000;
export const MAX_MAPPED_COLUMNS = MAX_COLUMNS;
/** Rows at the head of each chunk of a CSV that tell which columns are dates; in NDJSON, values looked at closely for it. */
export const SAMPLED_ROWS = 64;
export const MAX_HEADER_BYTES = MiB;
export const MAX_BLANK_BYTES = 64 * KiB;
export const MAX_HEADER_PROBLEMS = 100;
export const MAX_SHOWN_COLUMNS = 20;
export const MAX_SHEET_NAME_CHARS = 255;
export const MAX_READ_AS_COLUMNS = 100;
export const MAX_HEADER_NOTES = 20;
export const DIALECT_SAMPLE_BYTES = MiB;
/** The longest beginning that is sniffed outside of a sandbox: a wide file takes tenths of a second. */
export const SNIFFED_HERE_BYTES = 64 * KiB;
/** A number such as 1e400 is kept; beyond this power of ten jsonb would expand it to kilobytes of zeros. */
export const MAX_NUMBER_EXPONENT = 1_000;
export const MAX_NUMBER_CHARS = 20_000;
export const MAX_REJECT_RAW_BYTES = 64 * KiB;

/** Target length of a chunk: the unit of work, retry and parallelism. */
export const CHUNK_BYTES = 2 * MiB;
export const CHUNK_RECORDS = 50_000;
/** Records that a worker reads before it checks whether anything else is due: its lease, its signals, other chunks. */
export const RECORDS_AT_A_TIME = 1_000;
/** A load fails early once the ledger counts this many of its records and all of them are refused. */
export const MAX_REFUSED_AT_FIRST = 100_000;
export const READ_BYTES = 256 * KiB;
/** Bytes that are scanned for records in one step: well under a millisecond, whatever they hold. */
export const SCAN_BYTES = 32 * KiB;
export const FILE_SYNC_BYTES = 16 * MiB;
/** Temporary files that nobody touched for so long belong to a killed process, as do received files that nobody loaded. */
export const ABANDONED_FILE_MS = 60 * 60 * 1000;
/** A file in use is touched this often, even if nothing is written to it. */
export const FILE_TOUCH_MS = 5 * 60 * 1000;
/** An upload waits so long to learn whether a COMMIT without an answer took effect: without one, the session ends after 15 s idle. */
export const COMMIT_DOUBT_MS = 20_000;
/** The parts in which a file is sent to S3: their size, how many are in flight, and the most of a file. */
export const S3_PART_BYTES = 8 * MiB;
export const S3_PARTS_IN_FLIGHT = 2;
export const MAX_S3_PARTS = 10_000;
/** Attempts at a request to S3, and at resuming a read without a byte since the last attempt. */
export const S3_ATTEMPTS = 3;
export const S3_CONNECT_MS = 5_000;
export const S3_STALL_MS = 20_000;
export const S3_CHECK_MS = 5_000;
/** Connections to S3 of one process; downloads that callers take slowly hold one each. */
export const MAX_S3_CONNECTIONS = 500;
export const S3_REMOVALS_AT_A_TIME = 8;
/** A multipart upload to S3 that was begun this long ago is abandoned. */
export const S3_UPLOAD_LIFE_MS = 48 * 60 * 60 * 1000;
export const MAX_PRESIGNED_SECONDS = 7 * 24 * 60 * 60;
/** A link to a file of an export is valid so long. Fetching the job again gives new ones. */
export const LINK_TTL_MS = 48 * 60 * 60 * 1000;
/** The beginnings of a file from which its format and its encoding are told. */
export const SNIFF_BYTES = 4 * KiB;
export const ENCODING_SNIFF_BYTES = MiB;
/** The beginning of a file from which the layout of JSON is told, and the lines that are parsed for it. */
export const JSON_SNIFF_BYTES = MiB;
export const MAX_SNIFFED_LINES = 100;
export const MAX_RECORDS_PATH = 16;
export const MAX_GZIP_LAYERS = 2;
/** Bytes of NDJSON per byte of a Parquet file, which writes a repeated value only once. */
export const MAX_COLUMNAR_RATIO = 2_000;
/** A row of a Parquet file as JSON. Within this bound a row that is too large for a record is refused alone; beyond it, the file. */
export const MAX_PARQUET_ROW_CHARS = 32 * MiB;
/** Bounds of a Parquet file: its footer, a row group (packed and unpacked), and an unpacked page. */
export const MAX_PARQUET_FOOTER_BYTES = 16 * MiB;
export const MAX_PARQUET_GROUP_BYTES = 160 * MiB;
export const MAX_PARQUET_PAGE_BYTES = 32 * MiB;
/** The values, and about the bytes, of a row group that are unpacked at a time. */
export const PARQUET_SLICE_VALUES = 2 * MiB;
export const PARQUET_SLICE_BYTES = 24 * MiB;
export const MAX_ZIP_MEMBERS = 10_000;
export const MAX_NAMED_PARTS = 10;
/** Bounds of a workbook: sheets, relations and styles; shared text held in memory; rows and columns as in Excel. */
export const MAX_SHEETS = 1_000;
export const MAX_WORKBOOK_STYLES = 100_000;
export const MAX_SHARED_TEXT_BYTES = 128 * MiB;
export const MAX_SHEET_ROWS = 1_048_576;
export const MAX_SHEET_COLUMNS = 16_384;
/** A cell; Excel itself takes 32 767 characters. */
export const MAX_CELL_CHARS = MAX_VALUE_BYTES;
export const SHEET_SNIFF_BYTES = 256 * KiB;
export const UPLOAD_RATE_WINDOW_MS = 10_000;

/** Sandboxes of a process in all, of one environment, and for whole files, so that one stays free for what a person waits for. */
export const MAX_SANDBOXES = 4;
export const MAX_SANDBOXES_PER_OWNER = 2;
export const MAX_LONG_TASKS = 3;
export const SANDBOX_HEAP_MIB = 192;
/** The time that one piece of work may take in a sandbox. */
export const SANDBOX_ITEM_MS = 30_000;
/** The longest time that a sandbox takes to start, that a task waits for a sandbox, and that a sandbox waits for a task. */
export const SANDBOX_START_MS = 30_000;
export const SANDBOX_WAIT_MS = 30_000;
export const SANDBOX_IDLE_MS = 60_000;

/** An upload is kept so long after its last byte. */
export const UPLOAD_KEPT_MS = 24 * 60 * 60 * 1000;
/** A slower upload is ended. A modem sends five times as fast. */
export const MIN_UPLOAD_BYTES_PER_SECOND = 1024;
/** A longer export fails: its snapshot holds back the clean-up of the whole database. */
export const EXPORT_TIMEOUT_MS = 12 * 60 * 60 * 1000;

export const DEFAULT_MAX_UPLOAD_BYTES = 10 * GiB;
export const DEFAULT_MAX_INFLATED_BYTES = 50 * GiB;
/** Decompressed bytes per compressed byte, looked at after the first 16 MiB; gzip's own limit is about 1032. */
export const MAX_INFLATE_RATIO = 200;
export const INFLATE_RATIO_GRACE_BYTES = 16 * MiB;

export const DEFAULT_PAGE_SIZE = 50;
export const MAX_PAGE_SIZE = 500;
export const MAX_PAGE_OFFSET = 100_000;
/** A page of rows as JSON, of which the last row may be beyond it; a page may hold fewer rows than were asked for and have a next one. */
export const MAX_PAGE_BYTES = MiB;
/** The part of a refused record that a page of JSON shows; files of rejects have all that is kept. */
export const MAX_SHOWN_RAW_BYTES = 4 * KiB;
/** Refused records, and bytes of them, that a download of rejects holds at a time. */
export const REJECTS_AT_A_TIME = 1_000;
export const REJECT_BYTES_AT_A_TIME = 256 * KiB;
export const MAX_SHAPE_CHARS = 48;
/** Causes of a job that are listed, the most frequent first; the others are counted. */
export const MAX_SHOWN_CAUSES = 50;
/** The time, in milliseconds, that a list of causes spends on its samples. */
export const CAUSES_MS = 10_000;
export const CAUSE_SAMPLES = 3;
export const MAX_SAMPLE_CHARS = 200;
export const SAMPLE_BYTES = 256 * KiB;
/** Properties, names of events and days that the summary of a plan lists; and rows of it that are shown. */
export const MAX_PLAN_PROPERTIES = 1_000;
export const PLAN_SAMPLE_ROWS = 50;
export const MAX_SAMPLE_VALUE_CHARS = 256;
export const MAX_SAMPLE_PROPERTIES = 50;
/** Rows of a plan, and bytes of them, that a download holds at a time. */
export const PLANNED_ROWS_AT_A_TIME = 1_000;
export const PLANNED_BYTES_AT_A_TIME = MiB;
/** The latest loads of a source that say what is usual, the fewest that do, and the loads of an environment among which they are searched. */
export const USUAL_LOADS = 10;
export const MIN_USUAL_LOADS = 3;
export const USUAL_AMONG = 10_000;
export const MAX_COUNTED_REJECTS = 100_000;
export const MAX_SHOWN_UNDONE = 100;
export const MAX_SHOWN_MENDS = 20;
export const MAX_SHOWN_LATER_LOADS = 20;
export const MAX_COUNTED_AHEAD = 10_000;
/** Answers that a serving process holds until their callers have taken them: per connection, per environment, in all. */
export const MAX_HELD_BYTES = 128 * MiB;
export const ANSWER_PIECE_BYTES = 64 * KiB;
export const READ_TIMEOUT_MS = 5_000;
export const MAX_LOOKUP_PAGE_SIZE = 200;
export const MAX_REQUEST_PROBLEMS = 100;

/** A worker owns a chunk so long without a sign of life, on the database's clock. */
export const LEASE_MS = 8_000;
export const HEARTBEAT_MS = 2_000;
export const RECONCILE_MS = 2_000;
/** A load of one chunk of up to so many bytes may be merged by the server that accepted it; a millisecond or two of its time. */
export const SMALL_LOAD_BYTES = 64 * KiB;
/** A command that has not loaded a small file by then starts workers. */
export const SMALL_LOAD_MS = 1_000;
/** A task whose worker vanished this often is done from then on where it can end no other's (`sluice work --only`). */
export const SUSPECT_LOSSES = 2;
/** A chunk, or the finish of a load, whose worker vanished this often is taken to be what kills it. */
export const MAX_CHUNK_LOSSES = 10;
/** A worker that runs, but whose event loop gives no sign for so long, is ended. Longer than a lease: others own by then what it had claimed. */
export const SILENT_WORKER_MS = 20_000;
/** Attempts a chunk gets at errors that are not known to pass. */
export const MAX_CHUNK_FAILURES = 5;
/** Tries in a row that a timeout of the server ended before the job fails. More than of other errors: waits for others' locks count. */
export const MAX_TIMEOUTS = 10;

/** Records that share a statement of the commit window, and the bytes they were sent in. */
export const MAX_WINDOW_RECORDS = 500;
export const MAX_WINDOW_BYTES = 4 * MiB;
/** Records that wait for a statement, and their bytes; one more is refused for the moment. */
export const MAX_WAITING_RECORDS = 20_000;
export const MAX_WAITING_BYTES = 64 * MiB;
/** The body of POST /v1/batch once unpacked, and its items. */
export const MAX_BATCH_BYTES = 10 * MiB;
export const MAX_BATCH_ITEMS = 10_000;
/** Bodies of batches that a serving process holds, from their first byte to the answer, in all and of one environment: what is parsed takes a multiple. */
export const MAX_HELD_BATCH_BYTES = 48 * MiB;
export const MAX_HELD_BATCH_BYTES_PER_ENVIRONMENT = 24 * MiB;
/** Bounds the held bodies of callers whose key is in the body and not yet known, in all and from one address. */
export const MAX_HELD_STRANGERS_BYTES = 24 * MiB;
export const MAX_HELD_STRANGERS_BYTES_PER_ADDRESS = 4 * MiB;
export const BATCH_DEADLINE_MS = 30_000;
/** Events of a batch that share a statement: more would not fit into PostgreSQL's default work_mem. */
export const BATCH_STATEMENT_EVENTS = 2_000;
/** Items that are read until other requests have their turn. */
export const BATCH_ITEMS_AT_A_TIME = 250;
/** A caller of the commit window, or one whose key is looked up, is told after so long that the database does not answer. */
export const RECORD_DEADLINE_MS = 10_000;
/** Look-ups at a time, and the most that wait, for keys and sessions that were not valid at their last look-up. */
export const UNKNOWN_LOOKUPS_AT_A_TIME = 2;
export const MAX_WAITING_LOOKUPS = 1_000;
/** A window's statement is sent again this often after it lost a deadlock. */
export const MAX_WINDOW_RETRIES = 5;
export const MAX_EVENT_NAME_BYTES = 256;
export const MAX_EVENT_SOURCE_BYTES = 256;
/** The time of an event may be so far ahead of our clock: the sender's clock may be wrong, or on local time. */
export const MAX_EVENT_AHEAD_MS = 24 * 60 * 60 * 1000;
/** A sender's clock that differs from ours by more is wrong; less may be the time that its request took. */
export const CLOCK_TOLERANCE_MS = 5_000;
/** The earliest instant an event may have: bounds the number of partitions. */
export const EARLIEST_EVENT = Date.UTC(2000, 0, 1);

export const MAX_SEGMENT_DEPTH = 10;
export const MAX_SEGMENT_CONDITIONS = 100;
export const MAX_SEGMENT_VALUES = 1_000;
/** A longer string is neither a number nor a date to a segment; bounds what Postgres is asked to read as one. */
export const MAX_COMPARED_CHARS = 100;
export const SEGMENT_PREVIEW_TIMEOUT_MS = 10_000;

export const TASK_PAUSE_MS = 5_000;

export const MAX_EXPORT_LOSSES = 5;
export const MAX_EXPORT_FAILURES = 5;
export const MAX_EXPORT_VALUES = 10_000;
export const MAX_EXCLUSIONS = 1_000;
/** Exclusions with a wildcard: each is compared with every row and name, at the cost of the product of the two lengths. */
export const MAX_EXCLUSION_PATTERNS = 100;
export const MAX_EXPORT_EMAILS = 20;
/** A file of an export that grows beyond it continues in the next part. Bytes as stored. */
export const EXPORT_PART_BYTES = GiB;
/** The block of an exported file that a thread packs at a time, and the blocks that are held. */
export const GZIP_BLOCK_BYTES = 256 * KiB;
export const MAX_GZIP_BLOCKS = 4;

/** Events that one statement removes when they have outlived their retention. */
export const RETIREMENT_BATCH_ROWS = 5_000;
/** A month that is taken out of the events waits so long for exports to end, and new exports for it. */
export const EVENT_STORE_LOCK_MS = 3_000;
/** The wait for writers of events that follows, which they wait for as long. */
export const EVENTS_LOCK_MS = 200;
/** The tries at a lock that holds up others while it is waited for. */
export const LOCK_TRIES = 10;
export const LOCK_PAUSE_MS = 250;

/** Ids that one deletion may name, and the bytes that a request with them may have. */
export const MAX_DELETION_IDS = 10_000;
export const MAX_DELETION_BYTES = 8 * MiB;
/** Ids that share the transactions of a deletion, and rows that one of those removes or changes. */
export const DELETION_BATCH_IDS = 200;
export const DELETION_BATCH_ROWS = 5_000;
/** Attempts in a row at a deletion whose worker vanished before it got any further, and at one that met an error; then it fails. */
export const MAX_DELETION_LOSSES = 10;
export const MAX_DELETION_FAILURES = 5;

/** A worker shows its life every 5 seconds; one silent for this long is taken for dead. */
export const WORKER_ALIVE_SECONDS = 15;
export const MAX_WORKER_NAME_CHARS = 100;

/** A process adds its counts to the rates this often. */
export const RATES_FLUSH_MS = 5_000;
/** Rates are kept for as many steps as are shown of a period, and as many again. */
export const RATE_STEPS = 60;
/** The periods of rates, and the minutes of a step of each. */
export const RATE_PERIODS = { '1h': 1, '24h': 24, '30d': 720 } as const;
export const SHOWN_JOB_DAYS = 30;
export const SHOWN_FAILING_TASKS = 20;
export const SHOWN_FAILURES = 5;
export const SHOWN_LANE_JOBS = 20;
export const RECOUNTED_LOADS = 200;
export const MAX_SHOWN_PARAMETERS = 100;

/** The cursor of an export: 18 characters for each transaction that was open. */
export const MAX_CURSOR_CHARS = 64 * 1024;

/** A page of profiles whose search without an index takes longer ends with what it has. */
export const SEARCH_BUDGET_MS = 250;
export const SEGMENT_PREVIEW_USERS = 50;
/** Stored bytes of the images on a page of a profile's history. The first image is on it even if it is larger. */
export const MAX_HISTORY_BYTES = 8 * MiB;
export const MAX_PREVIEWED_ROWS = 1_000_000;
/** Rows that the preview of an export shows of each file, and those whose length it takes for the size. */
export const PREVIEWED_ROWS = 5;
export const MEASURED_ROWS = 500;
/** The rows of a file of an export are counted for so long, and then estimated. */
export const EXPORT_COUNT_MS = 2_000;
export const CONSOLE_SESSION_MS = 12 * 3_600_000;
export const CONSOLE_LINK_MS = 15 * 60_000;
/** Sessions that are kept of one key, the ended ones too; beyond it the oldest ends. */
export const MAX_SESSIONS_PER_KEY = 100;
export const SHOWN_RECORDS = 20;
