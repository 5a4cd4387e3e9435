import type { Scope } from './scope.ts';

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
  /** Person who signed in. `null` if the session was started with a key or a link. */
  readonly subject: string | null;
  readonly expiresAt: Date;
  /**
   * True if the caller signed in with ADMIN_KEY or a link, and so can see all environments,
   * sessions and keys.
   */
  readonly isAdmin: boolean;
}

/**
 * Reason why a key is refused. For `unknown`, `revoked` and `expired`, the response is the same, so
 * callers cannot find out which ids exist.
 */
export interface KeyRefusal {
  readonly sentence?: string | undefined;
  readonly refused: 'missing' | 'malformed' | 'unknown' | 'revoked' | 'expired';
  /** Public id contained in the key. `null` if the header contains no id. */
  readonly keyId: string | null;
}

export function isRefusal(result: object): result is KeyRefusal {
  return 'refused' in result;
}
