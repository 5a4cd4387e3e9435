export interface Environment {
  readonly environmentId: number;
  readonly name: string;
  /** Public token of the environment, such as `NX-1A2B3C4D`. Exports contain it. */
  readonly appToken: string;
}

export const defaultEnvironmentName = 'default';

export interface Caller {
  readonly environment: Environment;
  readonly scopes: readonly Scope[];
  readonly keyId: string;
  readonly session?: CallerSession;
}

interface CallerSession {
  readonly sessionId: string;
  /** How the session started, such as `key` or `link`. */
  readonly holder: string;
  /** Person who signed in, or `null` for a key or link. */
  readonly subject: string | null;
  readonly expiresAt: Date;
  /** True for ADMIN_KEY or a link, which see all environments, sessions and keys. */
  readonly isAdmin: boolean;
}

/**
 * The reason why a key is refused. Callers get the same response for `unknown`, `revoked` and
 * `expired`, so that they cannot find out which ids exist.
 */
export interface KeyRefusal {
  readonly sentence?: string | undefined;
  readonly refused: 'missing' | 'malformed' | 'unknown' | 'revoked' | 'expired';
  /** Public id that the key contains, or `null` if it contains none. */
  readonly keyId: string | null;
}

export function isRefusal(result: object): result is KeyRefusal {
  return 'refused' in result;
}

/**
 * Permissions of a key. `ingest`: send single records. `import`: send files and arrays. `export`:
 * create exports. `read`: read profiles, events, jobs and lookups. `delete`: create deletions and
 * readmit deleted users.
 */
export const scopes = ['ingest', 'import', 'export', 'read', 'delete'] as const;

/** `browser` is the scope of public keys, which send single records from allowed origins. */
export const keyScopes = [...scopes, 'browser'] as const;
export type Scope = (typeof keyScopes)[number];

/** Ways to sign in to the console. Capabilities can add others. */
export type Holder = 'key' | 'static_key' | 'admin' | 'link';
