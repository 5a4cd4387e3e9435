const types: Readonly<Record<string, string>> = {
  gz: 'application/gzip',
  ndjson: 'application/x-ndjson',
  csv: 'text/csv; charset=utf-8',
  parquet: 'application/vnd.apache.parquet',
  json: 'application/json',
};

/** Of a file of an export, by its name. */
export function contentType(filename: string): string {
  return types[filename.split('.').at(-1) ?? ''] ?? 'application/octet-stream';
}
