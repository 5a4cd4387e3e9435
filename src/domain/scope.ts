/**
 * `ingest`: send single records. `import`: send files and arrays. `export`: create exports. `read`:
 * read profiles, events, jobs and lookups. `delete`: create deletions and readmit deleted users.
 */
export const scopes = ['ingest', 'import', 'export', 'read', 'delete'] as const;

/** `browser` is the scope of public keys, which send single records from allowed origins. */
export const keyScopes = [...scopes, 'browser'] as const;
export type Scope = (typeof keyScopes)[number];

/** Ways to sign in to the console. Capabilities can add others. */
export type Holder = 'key' | 'static_key' | 'admin' | 'link';
