/** Media types of a body that is the file of an import itself. */
export const importMediaTypes = {
  csv: ['text/csv', 'text/tab-separated-values'],
  ndjson: ['application/x-ndjson', 'application/ndjson', 'application/jsonl', 'application/x-jsonlines'],
  json: ['application/json'],
  packed: ['application/gzip', 'application/x-gzip'],
  /** The content tells. */
  any: ['application/octet-stream'],
} as const;
