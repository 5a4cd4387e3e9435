/**
 * Permissions of a key. `ingest`: send single records. `import`: send files and arrays. `read`:
 * profiles, events, jobs and lookups. `delete`: create deletions, and readmit deleted users.
 */
export const scopes = ['ingest', 'import', 'export', 'read', 'delete'] as const;

/**
 * `browser` is for public keys, which have no other scope. They can send single records from pages
 * of allowed origins.
 */
export const keyScopes = [...scopes, 'browser'] as const;
export type Scope = (typeof keyScopes)[number];

export type Holder = 'key' | 'static_key' | 'admin' | 'link';
