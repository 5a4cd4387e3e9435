/**
 * Permissions of a key. `ingest`: single records. `import`: files and arrays. `read`: profiles,
 * events, jobs and lookups. `delete`: deletions, and readmitting deleted users.
 */
export const scopes = ['ingest', 'import', 'export', 'read', 'delete'] as const;

/** `browser` is public and has no other scope: single records from pages of allowed origins. */
export const keyScopes = [...scopes, 'browser'] as const;
export type Scope = (typeof keyScopes)[number];

export type Holder = 'key' | 'static_key' | 'admin' | 'link';
