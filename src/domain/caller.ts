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
  readonly expiresAt: Date;
  /**
   * True for a caller who signed in with ADMIN_KEY or a link. Such a caller sees all environments,
   * sessions and keys.
   */
  readonly isAdmin: boolean;
}

/**
 * Reason why a key is refused. Callers cannot distinguish the last three reasons, so that they do
 * not learn which ids exist.
 */
export interface KeyRefusal {
  readonly refused: 'missing' | 'malformed' | 'unknown' | 'revoked' | 'expired';
  /** Public id that the key contains. `null` if the header contains none. */
  readonly keyId: string | null;
}

export function isRefusal(result: Caller | KeyRefusal): result is KeyRefusal {
  return 'refused' in result;
}
