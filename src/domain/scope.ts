/**
 * What a key may do. `ingest`: single records; `import`: files and arrays; `export`: exports; `read`: profiles, events, jobs and lookups;
 * `delete`: deletions.
 */
export const scopes = ['ingest', 'import', 'export', 'read', 'delete'] as const;
export type Scope = (typeof scopes)[number];

/** What somebody signed in to the console with. */
export type Holder = 'key' | 'static_key' | 'admin' | 'link';
