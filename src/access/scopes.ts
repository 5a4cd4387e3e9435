/** What a key may do. `ingest`: single records; `import`: files and arrays; `export`: exports; `read`: jobs and lookups. */
export const scopes = ['ingest', 'import', 'export', 'read'] as const;
export type Scope = (typeof scopes)[number];
