/**
 * The permissions of a key. `ingest`: single records; `import`: files and arrays; `export`: exports; `read`: profiles, events, jobs and lookups;
 * `delete`: deletions, and letting suppressed users in again.
 */
export const scopes = ['ingest', 'import', 'export', 'read', 'delete'] as const;

/** The scopes of a key. `browser` stands alone and is public: it allows single records from pages of the allowed origins. */
export const keyScopes = [...scopes, 'browser'] as const;
export type Scope = (typeof keyScopes)[number];

export type Holder = 'key' | 'static_key' | 'admin' | 'link';
